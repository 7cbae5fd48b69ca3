"""What the groups of methods share: a way to run named queries, and the kicks for after the commit."""

from __future__ import annotations

from nightporter.store.sql_port import Sql


class TxBase:
    sql: Sql
    dialect: str
    kicks: set[str]

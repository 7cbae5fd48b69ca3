"""`status` says in a sentence how the desk is, and a monitor reads it from the exit code."""

from __future__ import annotations

import socket
import time

from shell import Shell

from nightporter.clock import Instant
from nightporter.store import open_store
from nightporter.store.locks import FileLock

pytest_plugins = ["homes"]


def test_what_status_says_follows_from_whether_what_is_due_was_looked_at(shell: Shell) -> None:
    now = Instant(time.time_ns() // 1000)
    lock = FileLock(shell.home / "locks" / "wrk_a.lock")
    assert lock.take()

    def join(minutes: float, looked: float | None) -> None:
        with_store = open_store(str(shell.home / "nightporter.sqlite"), now=now)
        try:
            def work(tx):  # type: ignore[no-untyped-def]  # any transaction
                tx.sql.run("worker_end", id="wrk_a", how="stopped", now=now)
                tx.sql._connection.execute("DELETE FROM worker")
                tx.join("wrk_a", role="desk", host=socket.gethostname(), pid=1, lock_path=str(lock.path),
                        now=Instant(now - round(minutes * 60e6)))
                if looked is not None:
                    tx.put_setting("due_evaluated_at", str(now - round(looked * 60e6)))

            with_store.write(work)
        finally:
            with_store.close()

    def said() -> tuple[int, str, str]:
        found = shell("status")
        return found.code, found.out.splitlines()[0], shell("status", "--json").json["desk"]

    assert said() == (1, "No desk is running: nightporter up starts one.", "gone")
    join(minutes=10, looked=0.5)
    assert said() == (0, "A desk is running.", "running")
    join(minutes=30, looked=20)
    code, line, word = said()
    assert (code, word) == (1, "frozen")
    assert line.startswith("A desk is alive and has not looked at what is due for 20 min")
    assert shell("doctor").code == 1
    lock.let_go()
    assert said()[0] == 1

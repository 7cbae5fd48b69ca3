"""The recorder: the world outside, in a process of its own, with books that are on the disk before it answers.

`python recorder.py BOOK` prints its port. `POST /hook...` is a receiver of signed webhooks, `/hook/slow` one
that takes half a second, `/hook/moody` one that first refuses each event once, `/hook/late` one that takes each event
at once and first answers when nobody listens any more; `POST /effect` is somebody who acts when told to, and counts;
`POST /work`, or `/work/slow`, works for whoever asks, and notes who did.
"""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

SECRET = "whsec_dGhlIG5pZ2h0IHBvcnRlciB1bmRlciBsaXZlIGZpcmU="
"""Of the house's webhooks; desks find it in FIRE_SECRET."""


@dataclass(frozen=True)
class World:
    """What the recorder wrote down, as the tests read it."""

    port: int
    book: Path
    process: subprocess.Popen[str]

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def lines(self, kind: str) -> list[dict[str, Any]]:
        return [line for line in map(json.loads, self.book.read_text().splitlines()) if line["kind"] == kind]

    def deliveries(self) -> dict[str, list[dict[str, Any]]]:
        """What was received, by event id."""
        found: dict[str, list[dict[str, Any]]] = defaultdict(list)
        for line in self.lines("delivery"):
            found[line["id"]].append(line)
        return dict(found)

    def work(self) -> Counter[str]:
        """How often each run asked for work."""
        return Counter(line["run"] for line in self.lines("work"))

    def effects(self) -> dict[str, list[dict[str, Any]]]:
        """What was done, by idempotency key."""
        found: dict[str, list[dict[str, Any]]] = defaultdict(list)
        for line in self.lines("effect"):
            found[line["key"]].append(line)
        return dict(found)


@contextmanager
def a_world(folder: Path) -> Iterator[World]:
    """A recorder for the time of the block."""
    folder.mkdir(parents=True, exist_ok=True)
    book = folder / "recorder.jsonl"
    book.touch()
    process = subprocess.Popen(
        [sys.executable, __file__, str(book)], stdout=subprocess.PIPE, text=True, start_new_session=True
    )
    assert process.stdout is not None
    try:
        yield World(int(process.stdout.readline()), book, process)
    finally:
        process.kill()
        process.wait()
        process.stdout.close()


class _Books:
    """Lines in a file, each on the disk before it counts."""

    def __init__(self, path: str) -> None:
        self._file = os.open(path, os.O_WRONLY | os.O_APPEND)
        self._lock = threading.Lock()
        self.refused: set[str] = set()

    def write(self, **line: Any) -> None:
        with self._lock:
            os.write(self._file, json.dumps(line).encode() + b"\n")
            os.fsync(self._file)

    def refuses_first(self, event: str) -> bool:
        with self._lock:
            new = event not in self.refused
            self.refused.add(event)
            return new


def _serve(path: str) -> None:
    from standardwebhooks.webhooks import Webhook, WebhookVerificationError

    books, verifier = _Books(path), Webhook(SECRET)

    class Door(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"]))
            if self.path == "/effect":
                books.write(kind="effect", **json.loads(body))
                return self._answer(200)
            if self.path.startswith("/work"):
                if self.path == "/work/slow":
                    time.sleep(0.4)
                books.write(kind="work", run=self.headers["idempotency-key"])
                return self._answer(200, b"worked")
            event = self.headers["webhook-id"]
            if self.path == "/hook/moody" and books.refuses_first(event):
                return self._answer(503)
            if self.path == "/hook/slow":
                time.sleep(0.5)
            try:
                verifier.verify(body, dict(self.headers))
                verified = True
            except WebhookVerificationError:
                verified = False
            books.write(kind="delivery", id=event, verified=verified, hash=hashlib.sha256(body).hexdigest(),
                        run=json.loads(body)["data"]["run"])
            if self.path == "/hook/late" and books.refuses_first(event):
                time.sleep(1.3)
            return self._answer(200 if verified else 401)

        def _answer(self, status: int, body: bytes = b"") -> None:
            self.send_response(status)
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:
            """Its books are its log."""

    class Server(ThreadingHTTPServer):
        def handle_error(self, request: Any, client_address: Any) -> None:
            """A desk that dies in the middle of a sentence is what this is here for."""

    server = Server(("127.0.0.1", 0), Door)
    server.daemon_threads = True
    print(server.server_address[1], flush=True)
    server.serve_forever()


if __name__ == "__main__":
    _serve(sys.argv[1])

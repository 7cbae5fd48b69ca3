"""A receiver: a real HTTP server on 127.0.0.1 that answers what a test told it to, and remembers what it was asked."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Iterable
from dataclasses import dataclass
from types import TracebackType

HANG = b"hang"
"""An answer that never comes."""


@dataclass(frozen=True)
class Asked:
    method: str
    target: str
    headers: dict[str, str]
    body: bytes


def answer(status: int = 200, body: bytes | str = b"", **headers: str) -> bytes:
    """The bytes of an HTTP answer; header names with _ for -."""
    content = body.encode() if isinstance(body, str) else body
    lines = [f"HTTP/1.1 {status} x", f"content-length: {len(content)}"]
    lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
    return "\r\n".join([*lines, "", ""]).encode() + content


class Receiver:
    """`async with Receiver(first, second) as receiver`: the last answer is repeated."""

    def __init__(self, *answers: bytes, tls: ssl.SSLContext | None = None) -> None:
        self.answers = list(answers) or [answer()]
        self.asked: list[Asked] = []
        self.connections = 0
        self._tls = tls
        self.port = 0
        self._open: dict[asyncio.Task[None], asyncio.StreamWriter] = {}

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/in"

    async def __aenter__(self) -> Receiver:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0, ssl=self._tls)
        self.port = int(self._server.sockets[0].getsockname()[1])
        return self

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None,
                        trace: TracebackType | None) -> None:
        self._server.close()
        for writer in self._open.values():
            writer.close()
        await asyncio.gather(*self._open)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        task: asyncio.Task[None] | None = asyncio.current_task()
        assert task is not None
        self._open[task] = writer
        try:
            while (asked := await _read(reader)) is not None:
                self.asked.append(asked)
                said = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
                if said == HANG:
                    await reader.read()
                    break
                writer.write(said)
                await writer.drain()
                if not said.startswith(b"HTTP/1.1") or b"content-length" not in said:
                    break
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.close()
            del self._open[task]


async def _read(reader: asyncio.StreamReader) -> Asked | None:
    head = await reader.readuntil(b"\r\n\r\n") if not reader.at_eof() else b""
    if not head:
        return None
    first, *lines = head.decode("latin-1").split("\r\n")
    method, target, _ = first.split(" ")
    headers = dict(_fields(lines))
    return Asked(method, target, headers, await reader.readexactly(int(headers.get("content-length", "0"))))


def _fields(lines: Iterable[str]) -> Iterable[tuple[str, str]]:
    for line in lines:
        name, colon, value = line.partition(":")
        if colon:
            yield name.lower(), value.strip()

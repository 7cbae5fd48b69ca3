"""Pipes: what a child says, kept within bounds and never held up, and what it is told."""

from __future__ import annotations

import asyncio
import os
from dataclasses import dataclass, field
from typing import IO

_CHUNK = 65_536


@dataclass(slots=True)
class Heard:
    """What came out of one pipe: the beginning, and how many bytes beyond it were dropped."""

    limit: int
    head: bytearray = field(default_factory=bytearray)
    cut: int = 0

    def take(self, chunk: bytes) -> None:
        room = self.limit - len(self.head)
        self.head += chunk[:room]
        self.cut += max(0, len(chunk) - room)

    @property
    def text(self) -> str:
        """As text; what is not UTF-8 is replaced, and a cut is said in a last line."""
        if not self.cut:
            return self.head.decode(errors="replace")
        # A character torn by the cut is dropped rather than shown as damage the child never wrote.
        whole = self.head.decode(errors="replace").removesuffix("\N{REPLACEMENT CHARACTER}")
        return f"{whole}\n[cut here: {self.cut} more bytes]"


class Pipes:
    """The desk's ends of one child's pipes, served by the event loop they are made in."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._listening: dict[int, Heard] = {}
        self._mouth: IO[bytes] | None = None
        self._to_say = memoryview(b"")
        self.silent: asyncio.Future[None] = self._loop.create_future()
        """Done when the last pipe listened to is closed at the other end."""

    def listen(self, descriptor: int, heard: Heard) -> None:
        """Take from now on whatever comes out of `descriptor`; closing it stays with the caller."""
        os.set_blocking(descriptor, False)
        self._listening[descriptor] = heard
        self._loop.add_reader(descriptor, self._hear, descriptor, heard)

    def say(self, pipe: IO[bytes], words: bytes) -> None:
        """Write `words` as the pipe takes them, and close it behind the last."""
        os.set_blocking(pipe.fileno(), False)
        self._mouth = pipe
        self._to_say = memoryview(words)
        self._say()

    def drain(self) -> None:
        """Take what is in the pipes now. A daemon that left the group may write for ever; it is not waited for."""
        for descriptor, heard in list(self._listening.items()):
            for _ in range(64):
                if not self._hear(descriptor, heard):
                    break

    def leave(self) -> None:
        """Listen and speak no more."""
        for descriptor in list(self._listening):
            self._loop.remove_reader(descriptor)
        self._hush()

    def _hear(self, descriptor: int, heard: Heard) -> bool:
        """Take one chunk. False when there is none now."""
        try:
            chunk = os.read(descriptor, _CHUNK)
        except BlockingIOError:
            return False
        if chunk:
            heard.take(chunk)
            return True
        self._loop.remove_reader(descriptor)
        del self._listening[descriptor]
        if not self._listening and not self.silent.done():
            self.silent.set_result(None)
        return False

    def _say(self) -> None:
        if self._mouth is None:
            return
        try:
            while self._to_say:
                self._to_say = self._to_say[os.write(self._mouth.fileno(), self._to_say) :]
        except BlockingIOError:
            self._loop.add_writer(self._mouth.fileno(), self._say)
            return
        except BrokenPipeError:
            pass  # The child does not read its input, which is its own affair.
        self._hush()

    def _hush(self) -> None:
        if self._mouth is not None:
            self._loop.remove_writer(self._mouth.fileno())
            self._mouth.close()
            self._mouth = None

"""A network of its own for a member of a group, and the cable to it: pulled, nothing arrives and nobody is told, and
the kernels at both ends find out by themselves. Needs root and `ip`."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from hole import Pipe, Road

from fire.house import until


def possible() -> bool:
    """Whether this machine lets us lay cables."""
    return os.geteuid() == 0 and shutil.which("ip") is not None


class Cable(Road):
    """The way to the store from inside a network namespace."""

    def __init__(self, url: str, number: int) -> None:
        self.namespace = f"night-{os.getpid()}-{number}"
        self._here, there = f"nh{os.getpid() % 100000}-{number}", f"nt{os.getpid() % 100000}-{number}"
        net = f"10.213.{number}"
        _ip(f"netns add {self.namespace}")
        _ip(f"link add {self._here} type veth peer name {there}")
        _ip(f"link set {there} netns {self.namespace}")
        _ip(f"addr add {net}.1/24 dev {self._here}")
        _ip(f"link set {self._here} up")
        _ip(f"-n {self.namespace} addr add {net}.2/24 dev {there}")
        _ip(f"-n {self.namespace} link set {there} up")
        _ip(f"-n {self.namespace} link set lo up")
        super().__init__(url, at=f"{net}.1")

    def swallow(self) -> None:
        """The cable is pulled."""
        _ip(f"link set {self._here} down")

    def heal(self) -> None:
        """It is plugged in again. What was connected before may go on, if neither end has given up."""
        _ip(f"link set {self._here} up")

    def close(self) -> None:
        super().close()
        _ip(f"link del {self._here}")
        _ip(f"netns del {self.namespace}")


@contextmanager
def a_cable(url: str, recorder: int, number: int) -> Iterator[Cable]:
    """A network with a cable to the store, in which the recorder is where it is outside: that one is not cut off."""
    folder = Path(tempfile.mkdtemp(prefix="cable-"))
    cable, path = Cable(url, number), str(folder / "recorder")
    door = socket.socket(socket.AF_UNIX)
    door.bind(path)
    door.listen(64)
    outer = Pipe(door, ("127.0.0.1", recorder))
    inner = subprocess.Popen(
        ["ip", "netns", "exec", cable.namespace, sys.executable, __file__, str(recorder), path],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}, stdout=subprocess.PIPE, text=True,
    )
    assert inner.stdout is not None
    try:
        until(inner.stdout.readline, "the recorder can be reached from inside")
        yield cable
    finally:
        inner.kill()
        inner.wait()
        inner.stdout.close()
        outer.close()
        cable.close()
        shutil.rmtree(folder)


def _ip(words: str) -> None:
    subprocess.run(["ip", *words.split()], check=True, capture_output=True)


def main() -> None:
    """Inside: carry the recorder's port to a socket in the file system, which no network cuts."""
    pipe = Pipe(socket.create_server(("127.0.0.1", int(sys.argv[1])), backlog=64), sys.argv[2])
    print("ready", flush=True)
    pipe.wait()


if __name__ == "__main__":
    main()

"""Commands: what to start as a child, what it may see, and what the kernel lets it use."""

from __future__ import annotations

import os
import resource
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

from nightporter.errors import BadInput

ANSWER = "NIGHTPORTER_ANSWER_FD"
"""The variable that names the descriptor of the answer pipe, where there is one."""

_INHERITED = ("PATH", "HOME", "LANG", "TZ", "TMPDIR")


@dataclass(frozen=True, slots=True)
class Ceilings:
    """What the kernel lets the child and its descendants use, each; None leaves the desk's own limit."""

    memory: int | None = None
    """Bytes of address space."""
    files: int | None = None
    """Open descriptors."""
    cpu: int | None = None
    """Seconds of processor time."""


@dataclass(frozen=True, slots=True)
class Command:
    """What to start. `environment` is all the child sees of variables; see `scrubbed`."""

    argv: tuple[str, ...]
    """The first is an absolute path; see `program`."""
    environment: Mapping[str, str]
    cwd: Path
    stdin: bytes = b""
    timeout: timedelta | None = None
    output_limit: int = 1_000_000
    """Bytes kept of each stream, from its beginning."""
    ceilings: Ceilings = Ceilings()
    merged: bool = False
    """Standard output goes where standard error goes, in the order written."""
    answer_limit: int = 0
    """Above 0: open a further pipe for the child's answer, of which so many bytes are kept; `ANSWER` names its
    descriptor."""


def scrubbed(declared: Mapping[str, str]) -> dict[str, str]:
    """The environment of a child: the few variables any program needs, and what was declared for this one."""
    kept = {name: value for name, value in os.environ.items() if name in _INHERITED or name.startswith("LC_")}
    kept.setdefault("PATH", os.defpath)
    return {**kept, **declared}


def program(name: str, search: str, cwd: Path) -> str:
    """The absolute path of a program, found as a shell in `cwd` with the PATH `search` would find it.

    Raises BadInput saying whether it is missing or may not be executed.
    """
    if "/" not in name:
        found = shutil.which(name, path=search)
        if found is None:
            raise BadInput(f"the program {name!r} is not there", why=f"no folder of PATH ({search}) has it",
                           next=f"install it, or write its absolute path; ./{name} is a file beside the definition")
        return str(Path(found).absolute())
    path = cwd / Path(name).expanduser()
    if not path.is_file():
        raise BadInput(f"the program {str(path)!r} is not there",
                       why="it is a folder" if path.is_dir() else "there is no such file",
                       next="correct the path, or put the file back")
    if not os.access(path, os.X_OK):
        raise BadInput(f"the program {str(path)!r} cannot be executed",
                       why="the file is not marked executable for the user the desk runs as",
                       next=f"chmod +x {path}")
    return str(path.absolute())


def impose(pid: int, ceilings: Ceilings) -> None:
    """Set the kernel's limits on a child that still waits at the gate. Never raises one above the desk's own."""
    for kind, amount in (
        (resource.RLIMIT_CORE, 0),
        (resource.RLIMIT_AS, ceilings.memory),
        (resource.RLIMIT_NOFILE, ceilings.files),
        (resource.RLIMIT_CPU, ceilings.cpu),
    ):
        if amount is None:
            continue
        _, most = resource.prlimit(pid, kind)
        soft = amount if most == resource.RLIM_INFINITY else min(amount, most)
        # One second more for the hard limit of processor time: SIGXCPU comes first and says what it was.
        extra = 1 if kind == resource.RLIMIT_CPU and (most == resource.RLIM_INFINITY or soft < most) else 0
        resource.prlimit(pid, kind, (soft, soft + extra))

"""What a foreign scheduler has of one job, before anything is made of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from nightporter.words.automation import ScheduleKind

SourceKind = Literal["crontab", "run-parts", "anacron", "systemd", "at"]


@dataclass(frozen=True, slots=True)
class Source:
    """Where a job is written down."""

    kind: SourceKind
    path: str
    """As the machine it is on calls it."""
    line: int = 0
    """From 1; 0 where the whole file is the job."""

    @property
    def where(self) -> str:
        return f"{self.path}:{self.line}" if self.line else self.path


@dataclass(frozen=True, slots=True)
class Timing:
    """One schedule, in our words."""

    kind: ScheduleKind
    expression: str
    timezone: str
    options: Mapping[str, Any] = field(default_factory=dict)
    """Further keys of the trigger."""
    warning: str = ""
    """What it does that may surprise, there and here."""


@dataclass(frozen=True, slots=True)
class Leftover:
    """Something that is said there and is not said here, and why."""

    what: str
    why: str

    def as_json(self) -> dict[str, str]:
        return {"what": self.what, "why": self.why}


@dataclass(frozen=True, slots=True)
class Entry:
    """One job. It can be brought over, or says why it cannot (`refused`) or is not meant to be (`skipped`)."""

    source: Source
    text: str
    """As it is written there."""
    user: str = ""
    label: str = ""
    """What it may be called."""
    about: str = ""
    """What the words beside it say of it."""
    timings: tuple[Timing, ...] = ()
    command: str | tuple[str, ...] = ""
    """For the shell, or a program and its arguments."""
    shown: str = ""
    """The command as a person knows it."""
    environment: Mapping[str, str] = field(default_factory=dict)
    cwd: str = ""
    keys: Mapping[str, Any] = field(default_factory=dict)
    """Further keys of the definition."""
    carried: tuple[str, ...] = ()
    """What comes over beside schedule and command."""
    leftovers: tuple[Leftover, ...] = ()
    refused: str = ""
    skipped: str = ""
    off: tuple[str, ...] = ()
    """The command that takes it out where it is; empty where a file has to be changed."""

    def refuse(self, why: str) -> Entry:
        return replace(self, refused=why)

    def skip(self, why: str) -> Entry:
        return replace(self, skipped=why)


@dataclass(frozen=True, slots=True)
class Off:
    """What became of a job where it was, once it was here."""

    state: Literal["would", "out", "by_hand", "failed"]
    how: str
    """What is done to take it out."""
    why: str = ""
    """Why it is left to somebody, or did not come about."""
    backup: str = ""
    """The file as it was before."""

    def as_json(self) -> dict[str, str | None]:
        return {"state": self.state, "how": self.how, "why": self.why or None, "backup": self.backup or None}


@dataclass(frozen=True, slots=True)
class Reading:
    """One source, read: its jobs, and how many of its lines are no job."""

    path: str
    entries: tuple[Entry, ...]
    lines: int = 0
    """0 where the source is not read by the line; else jobs, variables, comments and empty lines together."""
    variables: int = 0
    comments: int = 0
    """Empty lines too."""

    def as_json(self) -> dict[str, Any]:
        return {"path": self.path, "found": len(self.entries), "lines": self.lines, "variables": self.variables,
                "comments": self.comments}


@dataclass(frozen=True, slots=True)
class Unread:
    """A place that could not be looked into."""

    path: str
    why: str

    def as_json(self) -> dict[str, str]:
        return {"path": self.path, "why": self.why}

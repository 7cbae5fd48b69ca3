"""Every error says what happened, why, and what to do next.

    NightporterError
    ├── BadInput               what somebody wrote cannot be used               exit 2
    │   ├── BadDefinition      ... in a definition file, at a line and column
    │   ├── BadSchedule        ... in a schedule, a zone or a duration
    │   └── NotYet             ... a key that a later release brings
    ├── NotFound               no such automation, run ..., or several          exit 3
    ├── Conflict               somebody else was first, or it is already so     exit 4
    │   └── MayHaveHappened    an earlier attempt meant to act and did not say that it did
    ├── NotPermitted           the guard of the outside world said no           exit 5
    ├── StoreError             the ledger cannot be used                        exit 6
    │   ├── StoreLocked        another process holds it for too long
    │   │   └── StoreEntangled two processes waited for one another, again and again
    │   ├── StoreNewer         written by a newer program
    │   ├── StoreUnwritable    read-only, full, or not ours
    │   ├── StoreCorrupt       what is in it cannot be read
    │   └── StoreRefused       it is well, and what was to be written is not
    ├── LostClaim              a worker that was presumed dead tried to write
    └── IllegalStep            a state change that the machine does not have

`NightporterError` itself is never raised.
"""

from __future__ import annotations

from typing import ClassVar


class NightporterError(Exception):
    """Base of all errors. `what` happened, `why`, and what to do `next`; the last two may be empty."""

    code: ClassVar[str] = "error"
    exit_code: ClassVar[int] = 1

    def __init__(self, what: str, *, why: str = "", next: str = "") -> None:
        if type(self) is NightporterError:
            raise TypeError("raise one of its subclasses")
        super().__init__(what)
        self.what = what
        self.why = why
        self.next = next

    def __str__(self) -> str:
        parts = [self.what]
        if self.why:
            parts.append(f"why: {self.why}")
        if self.next:
            parts.append(f"next: {self.next}")
        return "\n  ".join(parts)

    def as_json(self) -> dict[str, object]:
        """The error as the surfaces show it: `{code, what, why, next}`."""
        return {"code": self.code, "what": self.what, "why": self.why, "next": self.next}


class BadInput(NightporterError):
    """What somebody wrote cannot be used; nothing was changed."""

    code = "bad_input"
    exit_code = 2


def location(path: str, line: int, column: int) -> str:
    """Where in a file something is wrong: the path alone where no line is known (0)."""
    return f"{path}:{line}:{column}" if line else path


class BadDefinition(BadInput):
    """A definition file cannot be used. `line` and `column` count from 1; 0 where they are not known."""

    code = "bad_definition"

    def __init__(
        self, what: str, *, why: str = "", next: str = "", path: str = "", line: int = 0, column: int = 0
    ) -> None:
        super().__init__(what, why=why, next=next)
        self.path = path
        self.line = line
        self.column = column

    def __str__(self) -> str:
        where = location(self.path or "definition", self.line, self.column) if self.line or self.path else ""
        return (f"{where}: " if where else "") + super().__str__()

    def as_json(self) -> dict[str, object]:
        return {**super().as_json(), "path": self.path, "line": self.line, "column": self.column}


class BadSchedule(BadInput):
    """A schedule, a zone or a duration cannot be used."""

    code = "bad_schedule"


class NotYet(BadDefinition):
    """A key or value that a later release brings; refused, because ignoring it would be a lie."""

    code = "not_yet"


class NotFound(NightporterError):
    """Nothing, or more than one thing, answers to that name."""

    code = "not_found"
    exit_code = 3


class Conflict(NightporterError):
    """Somebody else was first, or things are already so."""

    code = "conflict"
    exit_code = 4


class MayHaveHappened(Conflict):
    """An effect was intended by an earlier attempt that did not come back to say that it was done: ask a person."""

    code = "may_have_happened"


class NotPermitted(NightporterError):
    """The guard of the outside world refused."""

    code = "not_permitted"
    exit_code = 5


class StoreError(NightporterError):
    """The ledger cannot be used."""

    code = "store"
    exit_code = 6


class StoreLocked(StoreError):
    """Another process holds the store for longer than we wait."""

    code = "store_locked"


class StoreEntangled(StoreLocked):
    """Two processes waited for one another, and the database undid this write: it was tried again, and again."""

    code = "store_entangled"


class StoreNewer(StoreError):
    """The store was written by a newer program; this one would damage it."""

    code = "store_newer"


class StoreUnwritable(StoreError):
    """The store is read-only, its disk is full, or it belongs to somebody else."""

    code = "store_unwritable"


class StoreCorrupt(StoreError):
    """What is in the store cannot be read; nothing was overwritten."""

    code = "store_corrupt"


class StoreRefused(StoreError):
    """The store is well and refused what was to be written: the same write never works, others do."""

    code = "store_refused"


class LostClaim(NightporterError):
    """This worker's claim on a run is no longer the current one; its write changed nothing."""

    code = "lost_claim"
    exit_code = 4


class LostLead(NightporterError):
    """This process is not the one whose sources run, or is it no more; its write moved no slot."""

    code = "lost_lead"
    exit_code = 4


class IllegalStep(NightporterError):
    """A change of state that the machine does not have; nothing was changed."""

    code = "illegal_step"

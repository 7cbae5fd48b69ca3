"""The folder of definition files: where it is, and what stands in it now.

One broken file is one `Found` with an error; it never hides another file.
"""

from __future__ import annotations

import hashlib
import os
import re
import stat
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from types import MappingProxyType
from typing import Final

from nightporter import logs
from nightporter.clock import Instant
from nightporter.definitions.calendars import LARGEST as CALENDAR
from nightporter.definitions.carrying import Checks
from nightporter.definitions.front_matter import Format, place_at
from nightporter.definitions.reading import read
from nightporter.definitions.triggers import as_name
from nightporter.definitions.written import Place
from nightporter.errors import BadDefinition, BadInput
from nightporter.outside.files import read_regular
from nightporter.words import Definition

log = logs.get(__name__)

LARGEST: Final = 1_000_000
"""Bytes of one file."""

_FORMATS: Final[Mapping[str, Format]] = {".md": "markdown", ".yaml": "yaml", ".yml": "yaml"}
_PARTIAL: Final = (".tmp", ".part", ".partial", ".swp", ".bak")
_NAME_LINE: Final = re.compile(r"""^name:[ \t]*(["']?)([a-z0-9][a-z0-9-]{0,63})\1[ \t]*(?:#.*)?$""", re.MULTILINE)
_READING: Final = 1
"""Raised when the same text comes to mean something else, so that what was read before is not taken for it."""

Owned = tuple[str, str]
"""A workspace, and the name of an automation in it."""


@dataclass(frozen=True, slots=True)
class Found:
    """One file: its definition or what is wrong with it, never both."""

    path: Path
    digest: str
    """Of the content; empty where there is none to be had."""
    name: str
    """The automation's name. Of a broken file: the name it had, else the one it seems to have, and empty where
    another file owns that one."""
    workspace: str = "default"
    definition: Definition | None = None
    error: BadDefinition | None = None
    was_good: bool = False
    """It has had a definition under this name."""
    named_at: Place | None = None
    beside: tuple[Path, ...] = ()
    """Files that were read with it: when one of them changes, it is read again."""


def definition_folder(config: str | Path | None, environ: Mapping[str, str], cwd: Path) -> Path:
    """Where definitions are looked for; the folder need not exist.

    The first of: `config` (the flag `--config`), $NIGHTPORTER_CONFIG, $NIGHTPORTER_HOME/automations,
    ./.nightporter/automations when it is there, and $XDG_CONFIG_HOME/nightporter/automations (~/.config where that
    is not set). Raises BadInput when what was asked for is a file.
    """
    home = Path(environ.get("HOME") or "~").expanduser()
    asked = str(config) if config is not None else environ.get("NIGHTPORTER_CONFIG")
    if asked:
        folder = _below(asked, cwd, home)
        if folder.is_file():
            raise BadInput(f"{str(folder)!r} is a file", why="definitions are looked for in a folder",
                           next=f"name the folder: {str(folder.parent)!r}")
        return folder
    if fold := environ.get("NIGHTPORTER_HOME"):
        return _below(fold, cwd, home) / "automations"
    project = cwd / ".nightporter" / "automations"
    if project.is_dir():
        return project
    base = environ.get("XDG_CONFIG_HOME", "")
    # The XDG specification has relative paths ignored.
    return (Path(base) if base.startswith("/") else home / ".config") / "nightporter" / "automations"


def _below(path: str, cwd: Path, home: Path) -> Path:
    if path == "~" or path.startswith("~/"):
        return home / path[2:]
    return Path(os.path.normpath(cwd / path))


def scan(
    folder: Path, previous: Iterable[Found] = (), *, default_timezone: str, now: Instant, checks: Checks | None = None,
    owners: Mapping[str, Owned] = MappingProxyType({}),
) -> list[Found]:
    """What stands in the folder now, by path. No folder is an empty one.

    Files whose content is that of a good one in `previous` are not read again, and keep their zone and their name
    against newcomers; so do the `owners`, by path, of what was made of them at another time. Raises BadInput when the
    folder cannot be listed; never for one bad file.
    """
    known = {found.path: found for found in previous}
    answers = [
        look(path, known.get(path), default_timezone=default_timezone, now=now, checks=checks)
        for path in (Path(folder, name) for name in definition_names(folder))
    ]
    return one_owner_each([found for found in answers if found is not None], known, owners)


def definition_names(folder: Path) -> list[str]:
    """The names of the definition files in a folder, sorted. Raises BadInput when it cannot be listed."""
    try:
        names = os.listdir(folder)  # noqa: PTH208 - called ten times a second; plain names are enough
    except FileNotFoundError:
        return []
    except OSError as error:
        raise BadInput(f"the folder {str(folder)!r} cannot be listed", why=error.strerror or str(error),
                       next="check that it is a folder and may be read") from error
    return sorted(filter(is_definition, names))


@lru_cache(maxsize=16_384)
def is_definition(name: str) -> bool:
    """Whether a file of that name is read: *.md, *.yaml, *.yml, but no hidden or partial one and no README."""
    stem, suffix = os.path.splitext(name)  # noqa: PTH122 - as above
    return (
        suffix.lower() in _FORMATS
        and not name.startswith((".", "#", "~"))
        and not stem.endswith(_PARTIAL)
        and stem.lower() != "readme"
    )


def look(
    path: Path, previous: Found | None, *, default_timezone: str, now: Instant, checks: Checks | None = None
) -> Found | None:
    """Read one file; None when it is gone. Raises nothing for what is wrong with it."""
    text, digest = "", ""
    beside: list[Path] = []
    try:
        content = _content(path)
        if content is None:
            return None
        digest = _digest(content, previous.beside if previous is not None else ())
        if previous is not None and previous.definition is not None and previous.digest == digest:
            return previous
        text = _decoded(content)
        format = _FORMATS[path.suffix.lower()]
        definition = read(
            text, path=str(path), format=format, default_timezone=default_timezone, now=now, checks=checks,
            beside=beside,
        )
        digest = _digest(content, beside)
    except Exception as raised:
        error = _as_definition_error(raised, path)
        if previous is not None and previous.was_good:
            return replace(previous, digest=digest, definition=None, error=error, beside=tuple(beside))
        seems = _NAME_LINE.search(text)
        name = seems[2] if seems else as_name(path.stem)
        return Found(path, digest, name, error=error, beside=tuple(beside))
    seems = _NAME_LINE.search(text)
    place = place_at(text, seems.start()) if seems and seems[2] == definition.name else None
    return Found(path, digest, definition.name, definition.workspace, definition, was_good=True, named_at=place,
                 beside=tuple(dict.fromkeys(beside)))


def _digest(content: bytes, beside: Iterable[Path]) -> str:
    """Of a file and of those that are read with it."""
    digest = hashlib.sha256(b"%d\n" % _READING + content)
    for path in dict.fromkeys(beside):
        try:
            digest.update(b"\0" + read_regular(path, CALENDAR + 1))
        except (OSError, ValueError):
            digest.update(b"\1")
    return digest.hexdigest()


def _as_definition_error(raised: Exception, path: Path) -> BadDefinition:
    """What is wrong with a file. What nobody thought of is an error of that file too, and in the log as what it is."""
    if isinstance(raised, BadDefinition):
        raised.path = str(path)
        return raised
    log.error("definition.unreadable", path=str(path), error=str(raised), exc_info=raised)
    return BadDefinition("the file cannot be read", why=f"{type(raised).__name__}: {raised}"[:500], path=str(path))


def _content(path: Path) -> bytes | None:
    try:
        # Without O_NONBLOCK a named pipe would hold us until somebody writes to it.
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    except FileNotFoundError:
        if path.is_symlink():
            raise BadDefinition("the file is a link to nothing", next="mend the link or remove it") from None
        return None
    except OSError as error:
        raise BadDefinition("the file cannot be read", why=error.strerror or str(error),
                            next="check its owner and mode") from error
    about = os.fstat(descriptor)
    if not stat.S_ISREG(about.st_mode):
        os.close(descriptor)
        raise BadDefinition("it is not a file with content", next="remove it from the folder")
    with os.fdopen(descriptor, "rb") as file:
        try:
            content = file.read(LARGEST + 1)
        except OSError as error:
            raise BadDefinition("the file cannot be read", why=error.strerror or str(error)) from error
    if len(content) > LARGEST:
        raise BadDefinition(f"the file has {about.st_size} bytes", why=f"{LARGEST} are read",
                            next="keep long texts in a file of their own")
    return content


def _decoded(content: bytes) -> str:
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError as error:
        place = place_at(content[: error.start].decode("utf-8"), error.start)
        wide = content.startswith((b"\xff\xfe", b"\xfe\xff"))
        raise BadDefinition(
            "the file is UTF-16" if wide else f"the byte 0x{content[error.start]:02x} is not UTF-8",
            why="definitions are read as UTF-8", next="save it as UTF-8",
            line=place.line, column=place.column,
        ) from None


def one_owner_each(
    found: Iterable[Found], previous: Mapping[Path, Found], made: Mapping[str, Owned] = MappingProxyType({})
) -> list[Found]:
    """The same files, by path, each name owned by one of them; later ones become errors naming the owner.

    Who had a name before keeps it, broken or not; then good files come before broken ones, and both by path.
    """
    ordered = sorted(found, key=lambda each: each.path)
    owners: dict[Owned, Path] = {}
    for each in ordered:
        before = previous.get(each.path)
        if before is not None and before.was_good and _key(before) == _key(each) and each.was_good:
            owners.setdefault(_key(each), each.path)
    for each in ordered:
        if made.get(str(each.path)) == _key(each):
            owners.setdefault(_key(each), each.path)
    for each in sorted(ordered, key=lambda each: each.definition is None):
        owners.setdefault(_key(each), each.path)
    return [each if owners[_key(each)] == each.path else _taken(each, owners[_key(each)]) for each in ordered]


def _key(found: Found) -> Owned:
    return found.workspace, found.name


def _taken(found: Found, owner: Path) -> Found:
    if found.definition is None:
        return replace(found, name="", was_good=False)
    place = found.named_at or Place(1, 1)
    error = BadDefinition(
        f"the name `{found.name}` is taken", why=f"{owner.name} has it", next="give one of the two another `name:`",
        path=str(found.path), line=place.line, column=place.column,
    )
    return replace(found, name="", definition=None, error=error, was_good=False)


"""A definition file's text -> a Definition, complete with its defaults, or the error with its line and column."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from nightporter.clock import Instant
from nightporter.definitions import grammar
from nightporter.definitions.carrying import Checks, destinations_of, look_of, target_of
from nightporter.definitions.failing import alerts_of, failures_of
from nightporter.definitions.front_matter import Format, take_apart
from nightporter.definitions.guards import quiet_hours_of
from nightporter.definitions.missed import missed_of
from nightporter.definitions.policy import cooldown_of, expiry_of, limits_of, retry_of
from nightporter.definitions.triggers import NAME, Setting, as_name, name_of, overlap_of, timezone_of, triggers_of
from nightporter.definitions.written import Entries, Place, bad, choice_of, flag_of, text_of, whole_number_of
from nightporter.errors import BadDefinition
from nightporter.rules.stagger import staggered
from nightporter.words import Definition


def read(
    text: str, *, path: str = "", format: Format, default_timezone: str, now: Instant, checks: Checks | None = None,
    read_once: bool = False, beside: list[Path] | None = None,
) -> Definition:
    """The definition in a file's text.

    `path` names the file in errors, gives the default name, and its folder is where relative scripts are looked for.
    `default_timezone` serves where none is written. `checks` are the kinds of targets and destinations there are;
    None takes those that come with the program. `read_once` says that the text is not kept and read again, so that
    `tomorrow at 9` may be counted from now. Calendars that are read are added to `beside`.

    Raises NotYet for what a later release brings, else BadDefinition;
    both name line and column, from 1.
    """
    try:
        return _read(
            text, path, format, default_timezone, now, checks or Checks.shipped(), read_once,
            [] if beside is None else beside,
        )
    except BadDefinition as error:
        error.path = path
        raise


def _read(
    text: str, path: str, format: Format, default_timezone: str, now: Instant, checks: Checks, read_once: bool,
    beside: list[Path],
) -> Definition:
    page = take_apart(text, format)
    root = page.root
    grammar.check_keys(root, grammar.KEYS, "", grammar.NOT_YET)
    chosen: dict[str, Any] = {}
    if (workspace := root.get("workspace")) is not None:
        chosen["workspace"] = name_of(workspace)
    if (limits := root.get("limits")) is not None:
        chosen["limits"] = limits_of(limits)
    if (retry := root.get("retry")) is not None:
        chosen["retry"] = retry_of(retry)
    if (cooldown := root.get("cooldown")) is not None:
        chosen["cooldown"] = cooldown_of(cooldown)
    if (failures := root.get("failures")) is not None:
        chosen["failures"] = failures_of(failures)
    if (alerts := root.get("alerts")) is not None:
        chosen["alerts"] = alerts_of(alerts, checks)
    if (priority := root.get("priority")) is not None:
        chosen["priority"] = whole_number_of("priority", priority, least=0, most=100)
    if (idempotent := root.get("idempotent")) is not None:
        chosen["idempotent"] = flag_of("idempotent", idempotent)
    if (on_crash := root.get("on_crash")) is not None:
        chosen["on_crash"] = choice_of("on_crash", on_crash, ("retry", "review"))
    for key in ("description", "owner"):
        if (words := root.get(key)) is not None:
            chosen[key] = text_of(key, words)
    zone = root.get("timezone")
    timezone = default_timezone if zone is None else timezone_of(zone)
    if (expires := root.get("expires")) is not None:
        chosen |= expiry_of(expires, timezone)
    folder = Path(path).absolute().parent if path else None
    if (look := root.get("if")) is not None:
        chosen["look"] = look_of(look, checks, folder)
    if (quiet := root.get("quiet_hours")) is not None and (hours := quiet_hours_of(quiet, timezone)).spans:
        chosen["quiet_hours"] = hours
    if (hold := root.get("hold_on_incident")) is not None:
        chosen["hold_on_incident"] = flag_of("hold_on_incident", hold)
    overlap, missed = root.get("overlap"), root.get("missed")
    folder = Path(path).absolute().parent if path else None
    setting = Setting(
        timezone, now, read_once, overlap=None if overlap is None else overlap_of(overlap),
        missed=None if missed is None else missed_of(missed), folder=folder, beside=beside,
        look=lambda look: look_of(look, checks, folder),
    )
    return staggered(Definition(
        name=_name(root, path),
        target=target_of(root, page, checks, folder),
        triggers=triggers_of(root, setting),
        timezone=timezone,
        deliver=destinations_of(root, checks, timezone),
        **chosen,
    ))


def _name(root: Entries, path: str) -> str:
    written = root.get("name")
    if written is not None:
        return name_of(written)
    stem = Path(path).stem
    if not NAME.fullmatch(stem):
        raise bad(
            Place(1, 1), f"{stem!r} cannot be the automation's name" if stem else "the automation has no name",
            why="without `name:` it is the file's name, of small letters, digits and dashes",
            next=f"write `name: {as_name(stem) or 'morning-brief'}`",
        )
    return stem

"""The anacrontab: jobs that are to run once in so many days, whenever the machine is on."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

from nightporter.exchange.crontab import PATH, variable_of
from nightporter.exchange.entry import Entry, Leftover, Reading, Source, Timing
from nightporter.exchange.people import Person
from nightporter.exchange.shell_line import SH, label_of, to_run
from nightporter.exchange.spreading import random_delay

_FILE: Final = "/etc/anacrontab"
_LINE: Final = re.compile(r"(@\w+|[0-9]{1,5})\s+([0-9]{1,4})\s+(\S+)\s+(\S.*)")
_HOURS: Final = re.compile(r"\s*([0-9]{1,2})\s*-\s*([0-9]{1,2})\s*")
_NAMED: Final = {"@daily": 1, "@weekly": 7, "@monthly": 30, "@yearly": 365, "@annually": 365}


def anacron_jobs(
    content: bytes | None, timezone: str, people: Mapping[str, Person], *, debian: bool
) -> Reading:
    """The jobs of the file, each at one time of day that anacron could start it at. Never raises."""
    entries: list[Entry] = []
    counted = {"variables": 0, "comments": 0}
    variables: dict[str, str] = {}
    lines = (content or b"").decode("utf-8", "replace").split("\n")
    if lines[-1] == "":
        lines.pop()
    for number, line in enumerate(lines, 1):
        text = line.strip()
        if not text or text.startswith("#"):
            counted["comments"] += 1
        elif (found := variable_of(text)) is not None:
            variables[found[0]] = found[1]
            counted["variables"] += 1
        else:
            entries.append(_entry(text, Source("anacron", _FILE, number), variables, timezone, people, debian))
    return Reading(_FILE, tuple(entries), lines=len(lines), **counted)


def _entry(
    text: str, source: Source, variables: Mapping[str, str], timezone: str, people: Mapping[str, Person], debian: bool
) -> Entry:
    entry = Entry(source, text, user="root")
    match = _LINE.fullmatch(text)
    if match is None:
        return entry.refuse("it is neither a variable nor a period, a delay, a name and a command")
    period, delay, name, command = match.groups()
    days = _NAMED.get(period) or (int(period) if period.isdigit() else 0)
    if not 1 <= days <= 365:
        return entry.refuse(f"anacron's period {period} is none of 1 to 365 days")
    if "\0" in command or "�" in command:
        return entry.refuse("it has signs that a definition cannot keep")
    hours = _HOURS.fullmatch(variables.get("START_HOURS_RANGE", ""))
    # Debian starts anacron at half past seven; elsewhere it is looked at each hour, within the hours it is given.
    start = int(hours[1]) * 60 if hours and int(hours[1]) < 24 else (7 * 60 + 30 if debian else 0)
    minute = (start + int(delay)) % 1440
    leftovers = [Leftover("days since it last ran", "anacron counts those, and starts a job when the machine is on; "
                          "here it has a time of day, and one that was missed is made up for")]
    options = random_delay(variables.get("RANDOM_DELAY", "0"), leftovers)
    person = people.get("root")
    home = variables.get("HOME") or (person.home if person else "/root")
    environment: dict[str, Any] = {
        "PATH": PATH, "SHELL": SH, "HOME": home, "LOGNAME": "root",
        **{key: value for key, value in variables.items()
           if re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", key)
           and key not in ("MAILTO", "MAILFROM", "RANDOM_DELAY", "START_HOURS_RANGE", "NO_MAIL_OUTPUT")},
    }
    if variables.get("MAILTO"):
        leftovers.append(Leftover(f"MAILTO={variables['MAILTO'][:120]}", "results by mail come with a later release; "
                                  "the inbox has them"))
    return replace(
        entry, label=label_of(command) if "run-parts" not in command else name, shown=command,
        timings=(replace(_timing(period, days, minute, timezone), options=options),),
        command=to_run(command, variables.get("SHELL", SH)), environment=environment,
        cwd=home if home.startswith("/") else "/",
        keys={"retry": "none", "limits": {"timeout": "none"},
              "missed": {"policy": "run_once", "within": f"{days}d"}},
        carried=("PATH" if "PATH" in variables else "cron's own PATH",
                 f"a missed time is made up for within {days} days" if days > 1 else
                 "a missed time is made up for within a day", *(["RANDOM_DELAY as stagger"] if options else [])),
        leftovers=tuple(leftovers),
    )


def _timing(period: str, days: int, minute: int, timezone: str) -> Timing:
    clock = f"{minute % 60} {minute // 60}"
    if days == 1:
        return Timing("cron", f"{clock} * * *", timezone)
    if days == 7:
        return Timing("cron", f"{clock} * * 0", timezone, warning="anacron has no weekday: Sunday was chosen")
    if period == "@monthly" or days in (30, 31):
        return Timing("cron", f"{clock} 1 * *", timezone, warning="anacron has no day of the month: the first was "
                                                                  "chosen")
    return Timing("every", f"{days}d", timezone, warning="counted from the moment it is brought over")

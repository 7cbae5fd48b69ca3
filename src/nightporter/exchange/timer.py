"""The `[Timer]` of a unit: its times in our words, and what of it has no place here."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, Final

from nightporter.clock import Instant
from nightporter.errors import BadSchedule
from nightporter.exchange.entry import Leftover, Timing
from nightporter.exchange.spreading import spread
from nightporter.exchange.unit_file import Settings, span_of
from nightporter.rules.durations import format_duration
from nightporter.rules.on_calendar import on_calendar
from nightporter.rules.schedule import next_due, parse

_MOST: Final = 50
"""Times of one timer."""
_EVER: Final = "365d"
_FROM_A_START: Final = ("OnActiveSec", "OnBootSec", "OnStartupSec")
_REPEATED: Final = ("OnUnitActiveSec", "OnUnitInactiveSec")
_KNOWN: Final = frozenset({
    *_FROM_A_START, *_REPEATED, "OnCalendar", "Persistent", "RandomizedDelaySec", "RandomizedOffsetSec",
    "FixedRandomDelay", "AccuracySec", "WakeSystem", "RemainAfterElapse", "Unit", "OnClockChange", "OnTimezoneChange",
    "DeferReactivation",
})


@dataclass(slots=True)
class Times:
    """When a timer has its unit started."""

    timings: list[Timing] = field(default_factory=list)
    carried: list[str] = field(default_factory=list)
    leftovers: list[Leftover] = field(default_factory=list)
    refused: str = ""


def times_of(unit: Settings, timezone: str, now: Instant) -> Times:
    """The schedules of a timer. What cannot be one is said beside them; where none is left it is refused."""
    made = Times()
    if sum(len(unit.all("Timer", key)) for key in ("OnCalendar", *_FROM_A_START, *_REPEATED)) > _MOST:
        made.refused = f"it has more than {_MOST} times"
        return made
    persistent = unit.yes("Timer", "Persistent")
    options = spread(_spreads(unit, made), made.leftovers)
    for text in unit.all("Timer", "OnCalendar"):
        _add_calendar(made, text, timezone, now, options, persistent=persistent)
    calendars = len(made.timings)
    _add_interval(made, unit, timezone, options)
    _say_starts(made, unit, has_interval=len(made.timings) > calendars)
    if not made.timings:
        said = "; ".join(f"{each.what}: {each.why}" for each in made.leftovers)
        made.refused = said or "it has no time at all"
        return made
    if calendars:
        made.carried.append("Persistent: what was missed is made up for once" if persistent else
                            "no Persistent: what was missed is left out")
    if options:
        made.carried.append("RandomizedDelaySec as stagger")
    _say_the_rest(made, unit)
    return made


def _add_calendar(
    made: Times, text: str, timezone: str, now: Instant, options: Mapping[str, Any], *, persistent: bool
) -> None:
    said = f"OnCalendar={text[:100]}"
    try:
        schedule = on_calendar(text, timezone).schedule
    except BadSchedule as error:
        made.leftovers.append(Leftover(said, _why(error)))
        return
    if next_due(schedule, now) is None:
        made.leftovers.append(Leftover(said, "its time has passed, and it does not come again"))
        return
    chosen: dict[str, Any] = {"missed": {"policy": "run_once", "within": _EVER} if persistent else "skip"}
    if schedule.kind in ("cron", "every"):
        chosen |= options
    elif options:
        made.leftovers.append(Leftover(f"the random delay of {said}", f"{schedule.kind} takes no stagger"))
    made.timings.append(Timing(schedule.kind, schedule.expression, schedule.timezone, chosen))


def _add_interval(made: Times, unit: Settings, timezone: str, options: Mapping[str, Any]) -> None:
    """One interval: of several the one that ends first is what counts there too."""
    spans = []
    for key in _REPEATED:
        for text in unit.all("Timer", key):
            try:
                micros = span_of(text)
                if micros is None:
                    continue
                written = format_duration(timedelta(microseconds=micros))
                parse("every", written, timezone)
                spans.append((micros, key, text, written))
            except (BadSchedule, OverflowError) as error:
                why = _why(error) if isinstance(error, BadSchedule) else "it is too long"
                made.leftovers.append(Leftover(f"{key}={text[:60]}", why))
    if not spans:
        return
    _, key, text, written = min(spans)
    warning = "counted from the moment it is brought over, and not anew from each run"
    if key == "OnUnitInactiveSec":
        warning = "counted from start to start, in an even grid; there it is from the end of a run"
    made.timings.append(Timing("every", written, timezone, {"missed": "skip", **options}, warning))
    for each in sorted(spans)[1:]:
        made.leftovers.append(Leftover(f"{each[1]}={each[2][:60]}", f"the shorter {key}={text} is kept alone"))


def _say_starts(made: Times, unit: Settings, *, has_interval: bool) -> None:
    whens = {"OnActiveSec": "the timer is started", "OnBootSec": "the machine starts",
             "OnStartupSec": "its systemd starts"}
    for key in _FROM_A_START:
        for text in unit.all("Timer", key):
            why = f"it runs {text[:60]} after {whens[key]}: that is no clock time"
            if has_interval:
                why = f"here it begins one interval after it is brought over, not {text[:60]} after {whens[key]}"
            made.leftovers.append(Leftover(f"{key}={text[:60]}", why))
    if has_interval and not any(unit.all("Timer", key) for key in (*_FROM_A_START, "OnCalendar")):
        made.leftovers.append(Leftover("a first time", "under systemd nothing starts it before it was started by hand "
                                       "once; here it begins by itself"))


def _spreads(unit: Settings, made: Times) -> list[tuple[str, int]]:
    found = []
    for key in ("RandomizedDelaySec", "RandomizedOffsetSec"):
        text = unit.last("Timer", key)
        try:
            micros = span_of(text) if text else 0
        except BadSchedule as error:
            made.leftovers.append(Leftover(f"{key}={text[:60]}", _why(error)))
            continue
        if micros:
            fixed = key == "RandomizedOffsetSec" or unit.yes("Timer", "FixedRandomDelay")
            found.append((f"{key}={text[:60]}", micros))
            if not fixed:
                made.leftovers.append(Leftover("another delay each time", "here it is drawn once, from its name"))
    return found


def _say_the_rest(made: Times, unit: Settings) -> None:
    accuracy = unit.last("Timer", "AccuracySec")
    if accuracy:
        made.leftovers.append(Leftover(f"AccuracySec={accuracy[:60]}", "systemd may be later by so much; here it "
                                       "starts at its time"))
    for key, why in (
        ("WakeSystem", "nothing here wakes a machine that sleeps"),
        ("OnClockChange", "that is no clock time"), ("OnTimezoneChange", "that is no clock time"),
        ("DeferReactivation", "a time that comes while it runs is skipped, as is usual"),
    ):
        if unit.yes("Timer", key):
            made.leftovers.append(Leftover(f"{key}=yes", why))
    unknown = [key for key in unit.keys("Timer") if key not in _KNOWN]
    if unknown:
        made.leftovers.append(Leftover(", ".join(unknown)[:200], "not known in a [Timer]; systemd passes it over"))


def _why(error: BadSchedule) -> str:
    return ": ".join(part for part in (error.what, error.why) if part)

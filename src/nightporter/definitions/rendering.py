"""A Definition -> the text of a file that reads as the same definition."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import fields, replace
from datetime import timedelta
from typing import Any, Final

from nightporter.clock import rfc3339
from nightporter.definitions.bounding import written_bounds
from nightporter.definitions.carrying import Check, Checks
from nightporter.definitions.grammar import MAIN_WORD
from nightporter.errors import BadInput
from nightporter.rules.durations import format_duration
from nightporter.words import (
    Alerts,
    Coalesce,
    Definition,
    Destination,
    Failures,
    Limits,
    Look,
    Missed,
    QuietHours,
    Retry,
    Schedule,
    TriggerSpec,
)

_PLAIN: Final = re.compile(r"(?i:[a-z][a-z0-9]*(?:[-_/ ][a-z0-9]+)*)|(?:[0-9]+(?:ms|[wdhms]))+")
_RESERVED: Final = frozenset({"true", "false", "null", "yes", "no", "on", "off", "y", "n", "inf", "nan"})
_UNPRINTABLE: Final = re.compile("[\x7f-\x9f\u2028\u2029\ufeff\ufffe\uffff]")


def render(definition: Definition, *, checks: Checks | None = None) -> str:
    """Markdown with front matter. `read` of it, with the same checks, gives an equal definition.

    What equals its default is left out, but for the zone, which is always written. `checks` are those that complete
    the configs; None takes those that come with the program.
    """
    checks = checks or Checks.shipped()
    target = definition.target
    definition = replace(
        definition,
        target=replace(target, config=_least(checks.targets.get(target.kind), target.config)),
        deliver=tuple(
            replace(each, config=_least(checks.destinations.get(each.kind), each.config))
            for each in definition.deliver
        ),
        look=_shortened(definition.look, checks),
        triggers=tuple(replace(each, look=_shortened(each.look, checks)) for each in definition.triggers),
        alerts=replace(definition.alerts, to=None if definition.alerts.to is None else tuple(
            replace(each, config=_least(checks.destinations.get(each.kind), each.config))
            for each in definition.alerts.to
        )),
    )
    body = _body(definition)
    keys = "".join(line + "\n" for line in _keys(definition, body))
    return f"---\n{keys}---\n" + (body + "\n" if body else "")


def _shortened(look: Look | None, checks: Checks) -> Look | None:
    return None if look is None else Look(look.kind, _least(checks.looks.get(look.kind), look.config))


def _least(check: Check | None, config: Mapping[str, Any]) -> Mapping[str, Any]:
    """The config less what its check fills in again."""
    if check is None:
        return config
    least = dict(config)
    for key in config:
        shorter = {name: value for name, value in least.items() if name != key}
        try:
            completed = check(shorter, None)
        except BadInput:
            continue
        if completed == config:
            least = shorter
    return least


def _body(definition: Definition) -> str:
    target = definition.target
    text = target.config.get("prompt")
    if target.kind != "echo" or set(target.config) != {"prompt"} or not isinstance(text, str):
        return ""
    unclean = text != text.strip() or "\r" in text or _UNPRINTABLE.search(text)
    return "" if unclean else text


def _keys(definition: Definition, body: str) -> Iterator[str]:
    plain = Definition(definition.name, definition.target)
    yield f"name: {_word(definition.name)}"
    for key in ("description", "owner", "workspace"):
        if getattr(definition, key) != getattr(plain, key):
            yield f"{key}: {_word(getattr(definition, key))}"
    yield f"timezone: {_word(definition.timezone)}"
    if not body:
        yield f"target: {_flow({definition.target.kind: dict(definition.target.config)})}"
    when = _when(definition)
    if when:
        yield f"when: {_word(when)}"
    elif definition.triggers:
        yield "triggers:"
        yield from (f"  - {_trigger(trigger, definition.timezone)}" for trigger in definition.triggers)
    if definition.limits != plain.limits:
        yield f"limits: {_flow(_changed(definition.limits, Limits()))}"
    if definition.retry != plain.retry:
        yield f"retry: {_flow(_changed(definition.retry, Retry()))}"
    if definition.cooldown != plain.cooldown:
        yield f"cooldown: {format_duration(definition.cooldown)}"
    for key in ("priority", "idempotent", "on_crash"):
        if getattr(definition, key) != getattr(plain, key):
            yield f"{key}: {_flow(getattr(definition, key))}"
    if definition.look is not None:
        yield f"if: {_look(definition.look)}"
    if definition.lasts is not None:
        yield f"expires: {format_duration(definition.lasts)}"
    if definition.expires is not None:
        yield f"expires: {_word(rfc3339(definition.expires) or '')}"
    yield from _deliver(definition.deliver, definition.timezone)
    if definition.failures != plain.failures:
        yield f"failures: {_flow(_changed(definition.failures, Failures()))}"
    yield from _alerts(definition.alerts)
    if definition.quiet_hours is not None:
        yield f"quiet_hours: {_flow(_quiet(definition.quiet_hours, definition.timezone))}"
    if definition.hold_on_incident:
        yield "hold_on_incident: true"


def _when(definition: Definition) -> str | None:
    """The short form of a single schedule that needs no option."""
    if len(definition.triggers) != 1 or definition.triggers[0].schedule is None:
        return None
    schedule = definition.triggers[0].schedule
    bare = TriggerSpec("clock", "clock", Schedule(schedule.kind, schedule.expression, definition.timezone))
    if definition.triggers[0] != bare or schedule.kind == "rrule":
        return None
    return schedule.expression if schedule.kind == "cron" else f"{schedule.kind} {schedule.expression}"


def _trigger(trigger: TriggerSpec, timezone: str) -> str:
    options: dict[str, Any] = {}
    kind = trigger.kind
    schedule = trigger.schedule
    if schedule is not None:
        kind = schedule.kind
        options["expression"] = schedule.expression
        if schedule.timezone != timezone:
            options["timezone"] = schedule.timezone
        if schedule.anchor is not None:
            options["anchor"] = rfc3339(schedule.anchor)
        if schedule.bounds is not None:
            options.update(written_bounds(schedule.bounds, rfc3339))
        if trigger.name != "clock":
            options["name"] = trigger.name
    if not trigger.enabled:
        options["enabled"] = False
    if trigger.overlap is not None and kind != "manual":  # earlier releases took it there, where it says nothing
        options["overlap"] = str(trigger.overlap)
    if trigger.look is not None:
        options["if"] = {trigger.look.kind: dict(trigger.look.config)}
    if trigger.missed is not None:
        options["missed"] = _missed(trigger.missed)
    if trigger.quiet_hours is not None:
        options["quiet_hours"] = _quiet(trigger.quiet_hours, timezone)
    if trigger.threshold is not None:
        counts = trigger.threshold
        options["threshold"] = counts.every if counts.within is None else {"every": counts.every,
                                                                           "within": counts.within}
    if trigger.stagger is not None:
        options["stagger"] = trigger.stagger
    if trigger.exact:
        options["exact"] = True
    if trigger.coalesce is not None:
        options.update(_gathered(trigger.coalesce))
    return _entry(kind, options)


def _look(look: Look) -> str:
    return _flow({look.kind: dict(look.config)})


def _missed(missed: Missed) -> Any:
    policy = str(missed.policy)
    return policy if missed.within is None else {"policy": policy, "within": missed.within}


def _quiet(quiet: QuietHours, timezone: str) -> Any:
    hours: Any = "none" if not quiet.spans else quiet.spans[0] if len(quiet.spans) == 1 else list(quiet.spans)
    if quiet.timezone == timezone and not quiet.failures:
        return hours
    return {"hours": hours, **({} if quiet.timezone == timezone else {"timezone": quiet.timezone}),
            **({"failures": True} if quiet.failures else {})}


def _gathered(coalesce: Coalesce) -> dict[str, Any]:
    if coalesce.joins:
        return {"debounce": coalesce.window}
    return {"coalesce": {"window": coalesce.window, "max_wait": coalesce.max_wait,
                         **({"key": coalesce.key} if coalesce.key else {})}}


def _deliver(destinations: tuple[Destination, ...], timezone: str) -> Iterator[str]:
    if destinations == (Destination("announce", "announce"),):
        return
    if not destinations:
        yield "deliver: none"
        return
    yield "deliver:"
    for destination in destinations:
        plain = Destination(destination.name, destination.kind)
        options: dict[str, Any] = dict(destination.config)
        if destination.name != destination.kind:
            options["name"] = destination.name
        if destination.on != plain.on:
            options["on"] = sorted(destination.on)
        if destination.best_effort:
            options["best_effort"] = True
        if destination.quiet_hours is not None:
            options["quiet_hours"] = _quiet(destination.quiet_hours, timezone)
        yield f"  - {_entry(destination.kind, options)}"


def _alerts(alerts: Alerts) -> Iterator[str]:
    plain = Alerts()
    if alerts == replace(plain, to=()):
        yield "alerts: none"
    elif alerts != plain:
        yield "alerts:"
        if alerts.to is not None:
            yield "  to:"
        for route in alerts.to or ():
            named = {} if route.name == route.kind else {"name": route.name}
            yield f"    - {_entry(route.kind, {**route.config, **named})}"
        if alerts.after != plain.after:
            yield f"  after: {alerts.after}"
        if alerts.cooldown != plain.cooldown:
            yield f"  cooldown: {format_duration(alerts.cooldown)}"


def _entry(kind: str, options: Mapping[str, Any]) -> str:
    if not options:
        return kind
    main = MAIN_WORD.get(kind)
    if main and list(options) == [main] and not isinstance(options[main], Mapping):
        return f"{kind}: {_flow(options[main])}"
    return f"{kind}: {_flow(options)}"


def _changed(value: Limits | Retry | Failures, plain: Limits | Retry | Failures) -> dict[str, Any]:
    return {
        field.name: "none" if (chosen := getattr(value, field.name)) is None else chosen
        for field in fields(value)
        if getattr(value, field.name) != getattr(plain, field.name)
    }


def _flow(value: Any) -> str:
    """A value on one line, as YAML."""
    match value:
        case Mapping():
            return "{" + ", ".join(f"{_key(key)}: {_flow(item)}" for key, item in value.items()) + "}"
        case frozenset():
            return _flow(sorted(value))
        case list() | tuple():
            return "[" + ", ".join(_flow(item) for item in value) + "]"
        case timedelta():
            return format_duration(value)
        case str():
            return _word(value)
        case _:
            return json.dumps(value)


def _key(text: str) -> str:
    return text if text == "on" else _word(text)


def _word(text: str) -> str:
    if _PLAIN.fullmatch(text) and text.lower() not in _RESERVED:
        return text
    # JSON's quoted form is YAML's too, but for what YAML calls unprintable, which it wants escaped.
    return _UNPRINTABLE.sub(lambda found: f"\\u{ord(found.group()):04x}", json.dumps(text, ensure_ascii=False))

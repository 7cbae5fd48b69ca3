"""The keys a definition may have, place by place, and those that a later release brings.

docs/definition.md explains every key and automation.schema.json offers it to editors; a test compares all three.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from nightporter.definitions.written import Entries, bad, unknown
from nightporter.errors import NotYet

KEYS: Final = (
    "name", "description", "owner", "workspace", "timezone", "target", "when", "triggers", "overlap", "missed",
    "cooldown", "limits", "retry", "priority", "idempotent", "on_crash", "if", "expires", "deliver", "failures",
    "alerts", "quiet_hours", "hold_on_incident", "start", "end", "season", "exclude",
)
LIMITS: Final = ("per_hour", "queued", "concurrent", "timeout", "output", "max_runs")
RETRY: Final = ("attempts", "delays", "on")
QUIET_HOURS: Final = ("hours", "timezone", "failures")
THRESHOLD: Final = ("every", "within")
COALESCE: Final = ("window", "max_wait", "key")
MISSED: Final = ("policy", "within")
BOUNDS: Final = ("start", "end", "season", "exclude")
EXCLUDE: Final = ("days", "hours", "calendar", "name")
FAILURES: Final = ("pause_after", "pause_after_schedule_errors")
ALERTS: Final = ("to", "after", "cooldown")

SCHEDULES: Final = ("cron", "every", "at", "rrule")
TRIGGERS: Final = (*SCHEDULES, "manual", "call")
TRIGGER_OPTIONS: Final = ("name", "enabled", "overlap", "missed", "quiet_hours", "threshold", "if")
TRIGGER_KEYS: Final[Mapping[str, tuple[str, ...]]] = {
    "cron": ("expression", "timezone", *BOUNDS, *TRIGGER_OPTIONS, "stagger", "exact"),
    "every": ("expression", "timezone", "anchor", *BOUNDS, *TRIGGER_OPTIONS, "stagger", "exact"),
    "at": ("expression", "timezone", *BOUNDS, *TRIGGER_OPTIONS),
    "rrule": ("expression", "timezone", "anchor", *BOUNDS, *TRIGGER_OPTIONS, "stagger", "exact"),
    "manual": ("enabled", "debounce", "if"),
    "call": ("enabled", "overlap", "quiet_hours", "threshold", "coalesce", "debounce", "if"),
}
DELIVER_OPTIONS: Final = ("name", "on", "best_effort", "quiet_hours")

MAIN_WORD: Final[Mapping[str, str]] = {
    "cron": "expression", "every": "expression", "at": "expression", "rrule": "expression",
    "command": "command", "script": "command", "python": "call", "sql": "query", "http": "url", "echo": "text",
    "file": "path", "webhook": "url",
}
"""What the value of a kind's key means when it is not a map: `file: out.md` is `file: {path: out.md}`."""

_PROCESS = ("env", "secrets", "cwd", "memory", "files", "cpu")
TARGET_KEYS: Final[Mapping[str, tuple[str, ...]]] = {
    "script": ("command", "file", "args", *_PROCESS),
    "python": ("call", "args", "path", *_PROCESS),
    "http": ("url", "method", "headers", "secret_headers", "json", "body", "expect", "allow_hosts"),
    "echo": ("text", "prompt"),
    "noop": (),
}
LOOK_KEYS: Final[Mapping[str, tuple[str, ...]]] = {
    "command": TARGET_KEYS["script"],
    "script": TARGET_KEYS["script"],
    "python": TARGET_KEYS["python"],
    "sql": ("query", "store"),
    "http": ("url", "headers", "secret_headers", "part", "first", "allow_hosts"),
    "file": ("path", "wake_on", "by", "first"),
}
DESTINATION_KEYS: Final[Mapping[str, tuple[str, ...]]] = {
    "file": ("path", "format"),
    "webhook": ("url", "secret", "unsigned", "flat", "allow_hosts"),
    "announce": (),
    "silent": (),
    "none": (),
}

_GUARDS = {
    "expect": "an alarm for what did not come, and a form for what a model answers",
    "inputs": "fixed values for a trigger's prompt",
    "payload": "a form that a payload must have",
    "allow_frequent": "a way below the floor for work that costs money; nothing has that floor now",
}
_MONEY = {
    "monthly_cost": "a ceiling on the money of a month",
    "cost_per_run": "a ceiling on the money of one run",
    "tool_calls": "a ceiling on a model's tool calls",
    "tokens": "a ceiling on a model's tokens",
}

NOT_YET: Final[Mapping[str, str]] = {
    **_GUARDS,
    **_MONEY,
    "permissions": "a profile of what a run may do",
    "claims": "resources that only one run may hold",
    "session": "a conversation that runs share",
    "yields": "work that steps back when a person is there",
    "model": "the model that an agent thinks with",
    "tools": "the tools an agent may use",
    "mcp": "servers an agent may use",
    "memory": "what an automation remembers from run to run",
    "persist_memory": "what an automation remembers from run to run",
    "standing_orders": "documents an agent works by",
    "tags": "words to find automations by",
}
"""Keys of the whole definition."""
NOT_YET_TRIGGERS: Final[Mapping[str, str]] = {
    "webhook": "runs started by a POST; `nightporter run` and `porter.fire()` start one now",
    "email": "runs started by a mail",
    "file": "runs started by a new or changed file",
    "event": "runs started by something on the bus",
    "chain": "runs started by the end of another",
    "recency": "runs started when the last success is too long ago",
    "idle": "runs started when nobody is active",
    "view": "runs started when a tile is looked at",
    "heartbeat": "a beat with a checklist",
    "monitor": "runs started by a changed value",
    "feed": "runs started by a new item of a feed",
    "ping": "runs started by a ping that did not come",
}
NOT_YET_TRIGGER_KEYS: Final = {**_GUARDS}
NOT_YET_TARGETS: Final[Mapping[str, str]] = {
    "agent": "work done by a model agent",
    "cli_agent": "work done by an installed coding agent",
    "workflow": "work in ordered steps",
}
NOT_YET_DESTINATIONS: Final[Mapping[str, str]] = {
    "email": "results by mail",
    "chat": "results in a chat",
    "origin": "results where the request came from",
}
NOT_YET_DELIVER_KEYS: Final[Mapping[str, str]] = {
    "done_only": "only what was done; `on:` chooses by outcome now",
    "state_changes": "only when the state changes",
}
NOT_YET_LIMITS: Final = {**_MONEY, "inactive": "an end for work that says nothing for long"}

_ELSEWHERE: Final[Mapping[str, str]] = {
    **dict.fromkeys(LIMITS, "limits"),
    **dict.fromkeys(("attempts", "delays"), "retry"),
    **dict.fromkeys((*SCHEDULES, "manual", "call"), "triggers"),
    **dict.fromkeys(("threshold", "coalesce", "debounce", "stagger", "exact"), "triggers"),
    **dict.fromkeys((*TARGET_KEYS, *NOT_YET_TARGETS), "target"),
}


def check_keys(entries: Entries, known: tuple[str, ...], where: str, later: Mapping[str, str]) -> None:
    """Refuse keys that are not known here. Raises NotYet for those a later release brings, else BadDefinition."""
    for key, place in entries.keys.items():
        if key in known:
            continue
        if key in later:
            raise not_yet(entries, key, later[key])
        home = _ELSEWHERE.get(key) if known is KEYS else None
        if home:
            example = f"{home}: [{{{key}: ...}}]" if home == "triggers" else f"{home}: {{{key}: ...}}"
            raise bad(place, f"`{key}` stands under `{home}`", next=f"write `{example}`")
        if known is not KEYS and key in KEYS:
            raise bad(place, f"`{key}` does not stand {where}", next="move it out, to the first column of the keys")
        if not known:
            raise bad(place, f"unknown key `{key}` {where}", next=f"nothing can stand {where}")
        raise unknown(place, "key", key, known, where)


def not_yet(entries: Entries, key: str, sentence: str) -> NotYet:
    """The refusal of a key that a later release brings."""
    place = entries.keys[key]
    return NotYet(
        f"`{key}` is not there yet",
        why=f"a later release brings it: {sentence}",
        next="remove it; ignoring it would make the file say what is not done",
        line=place.line, column=place.column,
    )

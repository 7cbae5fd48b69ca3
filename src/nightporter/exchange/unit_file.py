"""Unit files of systemd: text in, settings out. What is no setting is passed over, as systemd passes it over."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final

from nightporter.errors import BadSchedule

_YES: Final = frozenset({"1", "yes", "y", "true", "t", "on"})
_TIMES: Final = frozenset({
    "OnActiveSec", "OnBootSec", "OnStartupSec", "OnUnitActiveSec", "OnUnitInactiveSec", "OnCalendar",
})
LISTS: Final = frozenset({
    *_TIMES, "ExecStart", "ExecStartPre", "ExecStartPost", "ExecCondition", "ExecStop", "ExecStopPost", "ExecReload",
    "Environment", "EnvironmentFile", "PassEnvironment", "UnsetEnvironment", "Requires", "Wants", "BindsTo",
    "Requisite", "OnFailure", "OnSuccess", "Upholds",
})
"""Settings that may stand several times; of every other one the last holds."""
_UNITS: Final[Mapping[str, int]] = {
    word: micros
    for words, micros in (
        ("usec us µs μs", 1), ("msec ms", 1_000), ("seconds second sec s", 1_000_000),
        ("minutes minute min m", 60_000_000), ("hours hour hr h", 3_600_000_000), ("days day d", 86_400_000_000),
        ("weeks week w", 604_800_000_000), ("months month M", 2_629_800_000_000), ("years year y", 31_557_600_000_000),
    )
    for word in words.split()
}


@dataclass(frozen=True, slots=True)
class Setting:
    """One line of a section."""

    section: str
    key: str
    value: str


@dataclass(slots=True)
class Settings:
    """All that a unit says, drop-ins included, as it holds in the end."""

    found: dict[str, dict[str, list[str]]] = field(default_factory=dict)

    def all(self, section: str, key: str) -> list[str]:
        return self.found.get(section, {}).get(key, [])

    def last(self, section: str, key: str, otherwise: str = "") -> str:
        """The value that holds; an empty one is as none."""
        values = self.all(section, key)
        return values[-1] if values and values[-1] else otherwise

    def yes(self, section: str, key: str) -> bool:
        return self.last(section, key).lower() in _YES

    def keys(self, section: str) -> list[str]:
        return [key for key, values in self.found.get(section, {}).items() if any(values)]

    def lines(self, *sections: str) -> list[str]:
        """What holds, one setting a line."""
        return [f"{key}={value}" for section in sections for key in self.keys(section)
                for value in self.all(section, key) if value]


def settings_in(content: bytes) -> list[Setting]:
    """The settings of one file, in its order. Never raises."""
    found: list[Setting] = []
    section, before = "", ""
    for raw in content.decode("utf-8", "surrogateescape").removeprefix("\N{BYTE ORDER MARK}").split("\n"):
        line = raw.strip(" \t\r")
        if line.startswith(("#", ";")) or (not line and not before):
            continue
        if line.endswith("\\"):
            before += line[:-1] + " "
            continue
        line, before = (before + line).strip(), ""
        if line.startswith("[") and line.endswith("]"):
            section = line[1:-1]
        elif "=" in line:
            key, _, value = line.partition("=")
            found.append(Setting(section, key.strip(), value.strip()))
    if "=" in before:  # a last line that would go on
        key, _, value = before.partition("=")
        found.append(Setting(section, key.strip(), value.strip()))
    return found


def held(files: Iterable[list[Setting]]) -> Settings:
    """What holds of several files, the later ones on top: an empty value takes back what was said before it."""
    made = Settings()
    for settings in files:
        for each in settings:
            section = made.found.setdefault(each.section, {})
            if each.key in LISTS or each.key.startswith(("Condition", "Assert")):
                if each.value:
                    section.setdefault(each.key, []).append(each.value)
                else:
                    for key in _TIMES if each.key in _TIMES else (each.key,):
                        section.pop(key, None)
            else:
                section[each.key] = [each.value]
    return made


def span_of(text: str) -> int | None:
    """A span of time in microseconds; None where it is without end. A number alone is seconds. Raises BadSchedule."""
    rest = text.strip()
    if rest == "infinity":
        return None
    total, parts = 0, 0
    while rest:
        digits = _leading(rest, "0123456789.")
        after = rest[len(digits):].lstrip()
        unit = _leading(after, "abcdefghijklmnopqrstuvwxyzMµμ")
        whole, _, fraction = digits.partition(".")
        if not (whole + fraction).isdigit() or (unit and unit not in _UNITS) or len(digits) > 20:
            break
        micros = _UNITS[unit] if unit else 1_000_000
        total += int(whole or 0) * micros + (int(fraction) * micros // 10 ** len(fraction) if fraction else 0)
        parts += 1
        rest = after[len(unit):].lstrip()
    if rest or not parts:
        raise BadSchedule(f"{text[:40]!r} is no span of time", next="write it like 15min or 1h 30min")
    return total


def _leading(text: str, signs: str) -> str:
    return text[: len(text) - len(text.lstrip(signs))]

"""Writes the pages that are made from the code: `make docs`. A test fails while one of them is not current.

    docs/states.md     from the tables of `nightporter.states` and the headers of the named queries
    docs/reasons.md    from `nightporter.words.reason`, and what `explain` says there is to do
    docs/cli.md        the part between its two marks, from the verbs and their arguments
"""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Callable, Iterable, Mapping
from enum import StrEnum
from itertools import product
from pathlib import Path
from textwrap import fill
from typing import Any

from nightporter import states
from nightporter.ledger.why import remedy
from nightporter.states import (
    AUTOMATION_TRANSITIONS,
    DELIVERY_TRANSITIONS,
    TRANSITIONS,
    AutomationEvent,
    AutomationState,
    DeliveryEvent,
    DeliveryState,
    RunEvent,
    RunState,
)
from nightporter.store.named import queries
from nightporter.surfaces.cli.app import build
from nightporter.surfaces.cli.place import Common
from nightporter.surfaces.cli.verbs import VERBS, Verb
from nightporter.words import Outcome, Reason, Verdict

HERE = Path(__file__).parent
NOTE = "<!-- Made by `make docs` from {source}. Edit that, not this. -->"

Transitions = Iterable[tuple[StrEnum, StrEnum, StrEnum]]
"""`(from, event, to)`."""


def docstrings(enum: type[StrEnum]) -> dict[str, str]:
    """What stands below each member of an enum in its source, as one line; empty where nothing stands."""
    declared = ast.parse(inspect.getsource(enum)).body[0]
    assert isinstance(declared, ast.ClassDef)
    found: dict[str, str] = {}
    value = ""
    for line in declared.body:
        match line:
            case ast.Assign(value=ast.Constant(value=str(text))):
                value = text
                found[value] = ""
            case ast.Expr(value=ast.Constant(value=str(text))) if value:
                found[value] = " ".join(text.split())
    return found


def groups(enum: type[StrEnum]) -> dict[str, list[str]]:
    """The members of an enum under the comment lines that head them in its source."""
    found: dict[str, list[str]] = {}
    heading = ""
    for line in inspect.getsource(enum).splitlines():
        if comment := re.fullmatch(r"    # (.+)", line):
            heading = comment[1]
        elif member := re.fullmatch(r'    [A-Z_]+ = "(\w+)"', line):
            found.setdefault(heading, []).append(member[1])
    return found


def table(head: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> str:
    lines = [head, tuple("---" for _ in head), *rows]
    return "\n".join("| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |" for row in lines)


# -- states.md ----------------------------------------------------------------------------------------------------


def drawing(transitions: Transitions, first: Iterable[str], states: Iterable[str]) -> str:
    """A state diagram in the language of Mermaid."""
    steps = list(transitions)
    left = {state for state, _, _ in steps}
    reached = {to for _, _, to in steps}
    lines = [f"    [*] --> {state}" for state in first]
    lines += [f"    {state} --> {to}: {event}" for state, event, to in steps]
    lines += [f"    {state} --> [*]" for state in states if state in reached and state not in left]
    return "\n".join(["```mermaid", "stateDiagram-v2", *lines, "```"])


def query_of(machine: str, state: str, event: str, to: str) -> str:
    """The named query that takes this step, by the arrow in its header."""
    takes = []
    for query in queries("sqlite").values():
        if query.change and query.name.startswith(f"{machine}_"):
            before, after = ([word.strip() for word in side.split("|")] for side in query.change.split("->"))
            if (state, to) in product(before, after):
                takes.append(query.name)
    return f"{machine}_{event}" if f"{machine}_{event}" in takes else takes[0]


def machine(
    name: str, table_of: Mapping[tuple[Any, Any], Any], states: type[StrEnum], events: type[StrEnum],
    first: tuple[StrEnum, ...], intro: str,
) -> str:
    steps: list[tuple[StrEnum, StrEnum, StrEnum]] = [(state, event, to) for (state, event), to in table_of.items()]
    said, told = docstrings(states), docstrings(events)
    final = {to for _, _, to in steps} - {state for state, _, _ in steps}
    can = {state: [f"`{event}`" for s, event, _ in steps if s == state] for state in states}
    ways: dict[tuple[str, str, str], list[str]] = {}
    for state, event, to in steps:
        ways.setdefault((event, to, query_of(name, state, event, to)), []).append(f"`{state}`")
    return "\n\n".join([
        f"## {name.capitalize()}", intro, drawing(steps, first, states),
        table(("state", "what it says", "what can happen to it"),
              ((f"`{state}`", said[state],
                ", ".join(can[state]) or ("nothing, it is final" if state in final else "nothing yet"))
               for state in states)),
        table(("event", "what happens"), ((f"`{event}`", told[event]) for event in events)),
        table(("event", "from", "to", "named query"),
              ((f"`{event}`", ", ".join(before), f"`{to}`", f"`{query}`")
               for (event, to, query), before in ways.items())),
    ])


def states_page() -> str:
    told = inspect.getdoc(states) or ""
    picture, _, rules = told.partition("\n\n")[2].partition("\nRule 1.")
    rules = re.sub(r"\s*\nRule (\d)\.\s+", r"\n\1. ", "\nRule 1." + rules)
    rules = re.sub(r"\n {2,}", "\n   ", rules).strip()
    return "\n\n".join([
        "# States", NOTE.format(source="`src/nightporter/states.py` and the headers of the named queries"),
        "What may happen to a run, a delivery and an automation, and nothing else.",
        f"```text\n{picture.rstrip()}\n```", rules,
        machine("run", TRANSITIONS, RunState, RunEvent, (RunState.QUEUED,),
                "One piece of work. Every step leaves a line in the table `transition`."),
        machine("delivery", DELIVERY_TRANSITIONS, DeliveryState, DeliveryEvent, (DeliveryState.PENDING,),
                "One result on its way to one destination. `announce` and `silent` are `delivered` from the start, in "
                "the\ntransaction that ends the run. Every try leaves a line in the table `delivery_try`; one that is "
                "given back is none."),
        machine("automation", AUTOMATION_TRANSITIONS, AutomationState, AutomationEvent,
                (AutomationState.ACTIVE, AutomationState.PROPOSED, AutomationState.CONFIG_ERROR),
                "Whether a definition acts. Who changed it, and when, is in the table `definition_change`."),
    ]) + "\n"


# -- reasons.md ---------------------------------------------------------------------------------------------------


def reasons_page() -> str:
    verdicts, outcomes = docstrings(Verdict), docstrings(Outcome)
    parts = [
        "# Verdicts, reasons and outcomes", NOTE.format(source="`src/nightporter/words/` and what `explain` says"),
        "A line of the ledger has a verdict: what admission made of the firing. Where that is not a run, it has a "
        "reason\ntoo. Runs that did not end well and deliveries that did not arrive have their reason from the same "
        "list. The list is\nclosed: a new reason needs a sentence, and this page.",
        "## Verdicts", table(("verdict", "what it says"), ((f"`{v}`", verdicts[v]) for v in Verdict)),
    ]
    for heading, codes in groups(Reason).items():
        rows = [(f"`{code}`", Reason(code).sentence, remedy(code, name="NAME", run="RUN")) for code in codes]
        parts += [f"## Reasons: {heading}", table(("reason", "in a sentence", "what to do"), rows)]
    return "\n\n".join([
        *parts, "## Outcomes",
        "What a run that ended amounted to. `on:` of a destination chooses by it; what was cancelled has none.",
        table(("outcome", "what it says"), ((f"`{o}`", outcomes[o]) for o in Outcome)),
    ]) + "\n"


# -- cli.md -------------------------------------------------------------------------------------------------------

BEGIN = "<!-- From here to the next mark: made by `make docs` from the verbs. Edit them, not this. -->"
END = "<!-- The end of what `make docs` makes. -->"


def arguments(verb: Verb) -> list[Any]:
    """What a verb takes of its own, as cyclopts sees it."""
    taken = build()[verb.name].assemble_argument_collection()
    return [argument for argument in taken if argument.field_info.name not in COMMON and argument.names != ("*",)]


COMMON = frozenset({*Common.__dataclass_fields__, "common"})
"""What every verb takes."""


def shown(argument: Any) -> str:
    """How an argument is written: `NAME`, `--count, -n`."""
    if argument.index is not None:
        word = str(argument.names[0]).lstrip("-").upper()
        return f"`{word}`" if argument.required else f"`[{word}]`"
    return ", ".join(f"`{name}`" for name in argument.names if name not in argument.negatives)


def verb_section(verb: Verb) -> str:
    function = build()[verb.name].default_command
    told = " ".join((inspect.getdoc(function) or verb.summary).split())
    own = arguments(verb)
    usage = " ".join(["nightporter", verb.name, *(shown(one).strip("`") for one in own if one.index is not None)])
    also = f" Also: {', '.join(f'`{alias}`' for alias in verb.aliases)}." if verb.aliases else ""
    parts = [f"### {verb.name}", f"`{usage}`", fill(told + also, 118, break_on_hyphens=False)]
    if own:
        rows = ((shown(one), str(one.parameter.help or "")) for one in own)
        parts.append(table(("argument", "what it says"), rows))
    return "\n\n".join(parts)


def verbs_part() -> str:
    parts = []
    for group in dict.fromkeys(verb.group for verb in VERBS):
        parts.append(f"## {group}")
        parts += [verb_section(verb) for verb in VERBS if verb.group == group]
    return "\n\n".join(parts)


def cli_page() -> str:
    """The page as it stands, with the part between the marks made new."""
    before, begin, rest = (HERE / "cli.md").read_text(encoding="utf-8").partition(BEGIN)
    _, end, after = rest.partition(END)
    return f"{before}{begin}\n\n{verbs_part()}\n\n{end}{after}"


PAGES: dict[Path, Callable[[], str]] = {
    HERE / "states.md": states_page, HERE / "reasons.md": reasons_page, HERE / "cli.md": cli_page,
}


def write() -> list[Path]:
    """Bring every page up to date; those that changed."""
    changed = []
    for path, page in PAGES.items():
        text = page()
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            path.write_text(text, encoding="utf-8")
            changed.append(path)
    return changed


if __name__ == "__main__":
    for path in write():
        print(f"wrote {path.relative_to(HERE.parent)}")

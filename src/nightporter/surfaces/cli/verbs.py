"""The verbs: what each is for, and where it is."""

from __future__ import annotations

from typing import NamedTuple


class Verb(NamedTuple):
    """One command."""

    name: str
    summary: str
    where: str
    """Module and function within this package."""
    group: str
    aliases: tuple[str, ...] = ()


_DESK, _AUTOMATIONS, _RUNS, _RESULTS = "The desk", "Automations", "Runs", "Results and records"

VERBS: tuple[Verb, ...] = (
    Verb("init", "Make the folders and the store; --example adds an automation that works.", "desk:init", _DESK),
    Verb("up", "Run the whole desk in this process.", "desk:up", _DESK),
    Verb("worker", "Run and deliver what is queued, beside a desk.", "desk:worker", _DESK),
    Verb("tick", "One pass: answer what is due, run and deliver it, and leave.", "desk:tick", _DESK),
    Verb("status", "Who is alive, what waits, what runs, what wants a person.", "health:status", _DESK),
    Verb("stop", "Stop everything at once, until --lift.", "desk:stop", _DESK),
    Verb("doctor", "What is wrong here, why, and what to do.", "health:doctor", _DESK),
    Verb("audit", "Check the record: every slot answered once, nothing lost or doubled.", "health:audit", _DESK),
    Verb("add", "Make an automation, from words or from a definition file.", "adding:add", _AUTOMATIONS, ("create",)),
    Verb("import", "Bring over what cron, systemd or at have to do, paused.", "importing:import_", _AUTOMATIONS),
    Verb("list", "All automations, paused and broken ones too.", "listing:list_", _AUTOMATIONS, ("ls",)),
    Verb("show", "One automation: its definition, what comes, what was.", "automations:show", _AUTOMATIONS),
    Verb("next", "When it fires next; or any schedule, without a store.", "preview:next_", _AUTOMATIONS),
    Verb("enable", "Let an automation act again.", "automations:enable", _AUTOMATIONS, ("resume",)),
    Verb("disable", "Pause an automation, with a reason and perhaps an end.", "automations:disable", _AUTOMATIONS,
         ("pause",)),
    Verb("renew", "Let an automation that expires go on.", "renewing:renew", _AUTOMATIONS),
    Verb("remove", "Take an automation out of the lists; its history stays.", "automations:remove", _AUTOMATIONS,
         ("rm",)),
    Verb("run", "Run an automation now.", "running:run", _RUNS),
    Verb("runs", "Runs, newest first.", "runs:runs", _RUNS),
    Verb("logs", "A run step by step, with what it said and printed.", "runs:logs", _RUNS),
    Verb("explain", "Why it ran, ran late, or did not.", "runs:explain", _RUNS, ("why",)),
    Verb("cancel", "End a run.", "runs:cancel", _RUNS),
    Verb("review", "Decide about a run that may have acted: retry or dismiss.", "runs:review", _RUNS),
    Verb("missed", "Times that were missed and wait for you: list, run, dismiss.", "missed:missed", _RUNS),
    Verb("replay", "Run the same work again as a new run.", "running:replay", _RUNS),
    Verb("dead", "Dead letters: runs that failed for good.", "failing:dead", _RUNS),
    Verb("incidents", "Faults that recur, each once: you know of one, or it is over.", "failing:incidents_", _RUNS),
    Verb("inbox", "Messages from the desk: results, notices.", "records:inbox", _RESULTS),
    Verb("firings", "The ledger: every arrival, with those that did not run.", "records:firings", _RESULTS),
    Verb("deliveries", "Results on their way.", "records:deliveries", _RESULTS),
    Verb("deliver", "Send a run's result again; the work is not repeated.", "running:deliver", _RESULTS),
)


def overview() -> str:
    """What `nightporter` says about itself."""
    lines = ["The night desk for AI agents: starts work when nobody is typing, and accounts for all of it.", "",
             "Usage: nightporter VERB [ARGUMENTS] [--json] [--home FOLDER]", ""]
    for group in dict.fromkeys(verb.group for verb in VERBS):
        lines.append(f"{group}:")
        lines += [f"  {verb.name:<11} {verb.summary}" for verb in VERBS if verb.group == group]
        lines.append("")
    lines.append("`nightporter VERB --help` says more. First: nightporter init --example, then nightporter up")
    return "\n".join(lines)

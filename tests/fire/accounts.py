"""Accounts: the ledger compared with the books of those outside. Each finding is a sentence that begins with the name
of the account that found it; none is how it should be.

Written against the schema and not through the engine's own reading functions: what checks must not share its blind
spots. `audited` asks the program's own audit as well.
"""

from __future__ import annotations

import contextlib
import json
from collections import Counter
from collections.abc import Iterable
from itertools import pairwise

from fire.house import House
from nightporter.clock import SystemClock
from nightporter.ledger.audit import audit
from nightporter.store import open_store

SECOND = 1_000_000
LEGAL = {
    (None, "queued"), ("queued", "running"), ("queued", "cancelled"), ("running", "succeeded"), ("running", "failed"),
    ("running", "timed_out"), ("running", "cancelled"), ("running", "skipped"), ("running", "queued"),
    ("running", "review"), ("running", "lost"), ("lost", "queued"), ("lost", "review"), ("lost", "failed"),
}
ENDED = {"succeeded", "failed", "timed_out", "cancelled", "skipped"}
PERIODS = {("every", "1s"): 1, ("every", "2s"): 2, ("cron", "* * * * * *"): 1}
"""Seconds between the slots of schedules that these accounts can count; those of cron stand on full seconds."""
REPORTING = {"once", "again", "flaky", "newest", "family", "stubborn", "heir", "child"}
"""Automations whose programs write down that they start."""
ONCE = {"once", "child"}
"""Of those, the ones that may not be repeated unasked."""


def findings(house: House, *, alive: bool = False) -> list[str]:
    """All that does not add up, once nothing goes on any more. `alive`: desks are still there, idle."""
    found = [f"{account.__name__}: {finding}" for account in ACCOUNTS if not (alive and account is remains)
             for finding in account(house)]
    return audited(house) + found + ([] if alive else untouched(house))


def audited(house: House) -> list[str]:
    """What the program's own audit finds, asked from this process; a desk may be at work beside it."""
    now = SystemClock().now()
    with contextlib.closing(open_store(house.store, now=now)) as store:
        report = store.read(lambda tx: audit(tx, now=SystemClock().now()))
    return [f"audit {check.id}: {check.title}: {example}" for check in report.findings for example in check.examples]


def untouched(house: House) -> list[str]:
    """An audit, and another one, change no row."""
    before = house.ledger.dump()
    audited(house)
    after = house.ledger.dump()
    return [f"audit: it changed rows of {table}" for table in before if before[table] != after[table]]


def slots(house: House) -> Iterable[str]:
    """Every slot of every schedule in force has exactly one line, and no line is of a slot that never was."""
    answered: dict[str, Counter[int]] = {}
    for trigger, slot in house.ledger.rows(
        "SELECT trigger_id, scheduled_for FROM firing WHERE source = 'clock' AND scheduled_for IS NOT NULL"
    ):
        answered.setdefault(trigger, Counter())[slot] += 1
    if collapsed := house.ledger.count("firing WHERE slots IS NOT NULL"):
        yield f"{collapsed} lines answer several slots, though the desk was never away for long"
    owed: dict[str, set[int]] = {}
    for trigger, schedule, valid_from, valid_to in house.ledger.rows(
        "SELECT trigger_id, schedule, valid_from, valid_to FROM trigger_version"
    ):
        kind, expression, _, anchor = json.loads(schedule)
        if (kind, expression) not in PERIODS:
            yield f"{trigger} has a schedule these accounts cannot count: {schedule}"
            continue
        if valid_to is None:
            yield f"{trigger} is still in force"
            continue
        period = PERIODS[kind, expression] * SECOND
        phase = anchor % period if kind == "every" else 0
        first = valid_from + 1 + (phase - valid_from - 1) % period
        owed.setdefault(trigger, set()).update(range(first, valid_to + 1, period))
    for trigger in owed.keys() | answered.keys():
        lines, due = answered.get(trigger, Counter()), owed.get(trigger, set())
        for slot in sorted(due - lines.keys()):
            yield f"{trigger}: slot {slot} has no line"
        for slot in sorted(lines.keys() - due):
            yield f"{trigger}: a line answers {slot}, which was no slot"
        for slot, n in lines.items():
            if n > 1:
                yield f"{trigger}: slot {slot} has {n} lines"


def runs(house: House) -> Iterable[str]:
    """Runs and ledger lines name one another, and a run's log is a path through the machine that ends where it is."""
    ledger = house.ledger
    for (line,) in ledger.rows(
        "SELECT f.id FROM firing f LEFT JOIN run r ON r.id = f.run_id AND r.firing_id = f.id "
        "WHERE f.verdict = 'admitted' AND r.id IS NULL"
    ):
        yield f"line {line} admitted a run that is not there"
    for (run,) in ledger.rows(
        "SELECT r.id FROM run r LEFT JOIN "
        "(SELECT run_id, count(*) AS n FROM firing WHERE verdict = 'admitted' GROUP BY run_id) f ON f.run_id = r.id "
        "WHERE coalesce(f.n, 0) <> 1"
    ):
        yield f"run {run} was not admitted by exactly one line"
    logs: dict[str, list[tuple[int, str | None, str, int, int]]] = {}
    for run, seq, was, now, at, attempt in ledger.rows(
        "SELECT run_id, seq, from_state, to_state, at, attempt FROM transition ORDER BY 1, 2"
    ):
        logs.setdefault(run, []).append((seq, was, now, at, attempt))
    for run, state, attempt, ended in ledger.rows("SELECT id, state, attempt, ended_at FROM run"):
        log = logs.pop(run, [])
        if [seq for seq, *_ in log] != list(range(1, len(log) + 1)):
            yield f"run {run}: its log has a gap: {log}"
        for _, was, now, _, _ in log:
            if (was, now) not in LEGAL:
                yield f"run {run} went from {was} to {now}"
        for before, after in pairwise(log):
            if before[2] != after[1] or before[3] > after[3]:
                yield f"run {run}: {before} is followed by {after}"
        if not log or log[-1][2] != state or log[-1][4] != attempt:
            yield f"run {run} is {state} in attempt {attempt}, and its log ends with {log[-1:]}"
        if (state in ENDED) != (ended is not None):
            yield f"run {run} is {state} and ended at {ended}"
        if state not in ENDED and state != "review":
            yield f"run {run} is {state}, though nothing goes on"
    for run in logs:
        yield f"there is a log of {run}, which is no run"


def books(house: House) -> Iterable[str]:
    """Every line is one of those by verdict, every admitted one is a run, and every run is in a state; those that have
    ended are what the months add up to."""
    ledger = house.ledger
    lines = dict(ledger.rows("SELECT verdict, count(*) FROM firing GROUP BY verdict"))
    states = dict(ledger.rows("SELECT state, count(*) FROM run GROUP BY state"))
    if lines.get("admitted", 0) != sum(states.values()):
        yield f"{lines.get('admitted', 0)} lines were admitted, and there are {sum(states.values())} runs"
    if unanswered := ledger.count("firing WHERE verdict NOT IN ('admitted', 'repeated') AND run_id IS NOT NULL"):
        yield f"{unanswered} lines that admitted nothing name a run"
    [months] = ledger.rows("SELECT coalesce(sum(runs), 0), coalesce(sum(succeeded), 0), coalesce(sum(quiet), 0), "
                           "coalesce(sum(failed), 0), coalesce(sum(cancelled), 0) FROM rollup_month")
    counted = (sum(states.get(state, 0) for state in ENDED), states.get("succeeded", 0), states.get("skipped", 0),
               states.get("failed", 0) + states.get("timed_out", 0), states.get("cancelled", 0))
    if tuple(map(int, months)) != counted:
        yield f"the months count {months} runs, succeeded, quiet, failed, cancelled; the ledger has {counted}"


def starts(house: House) -> Iterable[str]:
    """What may not be repeated was started once, each start that was seen is an attempt of a run, and no attempt still
    acts after a later one began."""
    lines = [tuple(line.split()) for line in house.lines("starts")]
    latest: dict[str, int] = {}
    for run, attempt, *acted in lines:
        if int(attempt) < latest.get(run, 0):
            yield f"attempt {attempt} of {run} {'acted' if acted else 'began'} after attempt {latest[run]} had begun"
        latest[run] = max(latest.get(run, 0), int(attempt))
    seen = Counter((run, attempt) for run, attempt, *acted in lines if not acted)
    claims = Counter(house.ledger.rows("SELECT run_id, attempt FROM transition WHERE to_state = 'running'"))
    state = {
        run: (name, state, attempt) for run, name, state, attempt in house.ledger.rows(
            "SELECT run.id, a.name, run.state, run.attempt FROM run JOIN automation a ON a.id = run.automation_id"
        )
    }
    repeated = set(house.ledger.rows(
        "SELECT run_id, attempt FROM transition WHERE from_state = 'lost' AND to_state = 'queued'"
    ))
    by_run: Counter[str] = Counter()
    for (run, attempt), n in seen.items():
        by_run[run] += n
        if run not in state:
            yield f"{run} was started, and is not in the ledger"
        elif n > claims[run, int(attempt)]:
            yield f"attempt {attempt} of {run} was started {n} times and claimed {claims[run, int(attempt)]} times"
        elif state[run][0] in {*ONCE, "flaky"} and (run, int(attempt)) in repeated:
            yield f"attempt {attempt} of {run} was started and cut short, and it was repeated unasked"
        elif int(attempt) > state[run][2]:
            yield f"attempt {attempt} of {run} was started, and the ledger knows {state[run][2]}"
    for run, (name, state_, _) in state.items():
        if name in ONCE and by_run[run] > 1:
            yield f"{run} may not be repeated, and was started {by_run[run]} times"
        if name in REPORTING and state_ == "succeeded" and not by_run[run]:
            yield f"{run} succeeded without having been started"


def effects(house: House) -> Iterable[str]:
    """Each effect happened once at most, none without its intent, and what is written as done happened."""
    happened = house.outside.effects()
    written = {
        f"{run}:{key}": state for run, key, state in
        house.ledger.rows("SELECT run_id, key, state FROM effect WHERE name <> 'started'")
    }
    for key, times in happened.items():
        if len(times) > 1:
            yield f"effect {key} happened {len(times)} times"
        if key not in written and not key.endswith(":bare"):
            yield f"effect {key} happened without an intent"
    for key, state in written.items():
        if state == "done" and key not in happened:
            yield f"effect {key} is written as done and did not happen"
    for (run,) in house.ledger.rows(
        "SELECT run.id FROM run JOIN automation a ON a.id = run.automation_id "
        "WHERE a.name = 'acts' AND run.state = 'succeeded' "
        "AND (SELECT count(*) FROM effect e WHERE e.run_id = run.id AND e.state = 'done' AND e.name <> 'started') <> 2"
    ):
        yield f"{run} succeeded without both of its effects"
    for (run,) in house.ledger.rows("SELECT run.id FROM run JOIN automation a ON a.id = run.automation_id "
                                    "WHERE a.name = 'bare' AND run.state = 'succeeded'"):
        if f"{run}:bare" not in happened:
            yield f"{run} succeeded and did nothing"


def work(house: House) -> Iterable[str]:
    """Who asked others to work is a run, and asked once where that may not be repeated unasked."""
    asked = house.outside.work()
    known = {run: (name, state) for run, name, state in house.ledger.rows(
        "SELECT run.id, a.name, run.state FROM run JOIN automation a ON a.id = run.automation_id "
        "WHERE a.name IN ('asks', 'asks-again')")}
    for run, times in asked.items():
        if run not in known:
            yield f"{run} asked for work, and is not in the ledger"
        elif known[run][0] == "asks" and times > 1:
            yield f"{run} may not be repeated, and asked {times} times"
    for run, (_, state) in known.items():
        if state == "succeeded" and not asked[run]:
            yield f"{run} succeeded and did not ask"


def deliveries(house: House) -> Iterable[str]:
    """What is written as delivered arrived; what arrived twice was the same both times; nothing came from nowhere."""
    received = house.outside.deliveries()
    known: set[str] = set()
    for run, kind, state, event, evidence, said in house.ledger.rows(
        "SELECT d.run_id, d.kind, d.state, d.event_id, d.evidence, coalesce(o.text, r.error) FROM delivery d "
        "JOIN run r ON r.id = d.run_id LEFT JOIN run_output o ON o.run_id = d.run_id"
    ):
        known.add(event)
        if state != "delivered":
            yield f"the {kind} of {run} is {state}"
        elif kind == "webhook" and event not in received:
            yield f"the webhook {event} of {run} is delivered and did not arrive"
        elif kind == "file":
            path = house.home / "outputs" / evidence.rpartition(" ")[0]
            if not path.is_file() or path.read_text().strip() != said.strip():
                yield f"the file of {run} is delivered and is not at {path}"
    for event, tries in received.items():
        if event not in known:
            yield f"webhook {event} arrived, and is not in the ledger"
        if len({one["hash"] for one in tries}) > 1 or len({one["run"] for one in tries}) > 1:
            yield f"webhook {event} arrived with different bodies"
        if not all(one["verified"] for one in tries):
            yield f"webhook {event} arrived with a wrong signature"
    for (run,) in house.ledger.rows(
        "SELECT r.id FROM run r WHERE r.state = 'succeeded' "
        "AND NOT EXISTS (SELECT 1 FROM delivery d WHERE d.run_id = r.id)"
    ):
        yield f"{run} succeeded and nothing was to be delivered"


def arrivals(house: House) -> Iterable[str]:
    """What the desk said it took is in the ledger, once, with the run it named."""
    path = house.folder / "told"
    told = [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []
    admitted: dict[str, list[str]] = {}
    for external, run in house.ledger.rows(
        "SELECT external_id, run_id FROM firing WHERE source = 'call' AND verdict = 'admitted'"
    ):
        admitted.setdefault(external, []).append(run)
    for one in told:
        if admitted.get(one["id"]) != [one["run"]]:
            yield f"{one['id']} was taken as {one['run']}, and the ledger has {admitted.get(one['id'])}"


def remains(house: House) -> Iterable[str]:
    """Killed desks leave nothing behind that grows with their number."""
    for name in ("locks", "kicks"):
        if left := sorted(path.name for path in (house.home / name).glob("*")):
            yield f"in {name} there is left: {left[:5]}, {len(left)} in all"
    if children := house.ledger.rows("SELECT run_id FROM child c WHERE NOT EXISTS "
                                     "(SELECT 1 FROM run r WHERE r.id = c.run_id AND r.state = 'review')"):
        yield f"children are written down of runs that do not go on: {children[:5]}"


ACCOUNTS = (slots, runs, books, starts, effects, work, deliveries, arrivals, remains)
"""All but the audit."""
_LOST = ("has no line", "admitted a run that is not there", "not in the ledger", "the ledger has None", "settling:",
         "did not arrive", "is not at", "did not happen", "did not ask", "did nothing", "without both",
         "without having been")
_DOUBLED = ("lines answer", "has 2 lines", " times", "exactly one line", "repeated unasked", "had begun", "no slot")


def counts(found: Iterable[str]) -> dict[str, int]:
    """How many findings say that something was lost, and how many that it was done twice; of how many in all."""
    said = list(found)
    return {
        "lost": sum(any(word in one for word in _LOST) for one in said),
        "doubled": sum(any(word in one for word in _DOUBLED) for one in said), "findings": len(said),
    }

"""What the definitions that runs ran with asked for: a delivery to each destination, and a ceiling by the hour.

Goes through the automations page by page, because only their definitions can tell.
"""

from __future__ import annotations

import contextlib
from collections.abc import Sequence

from nightporter.clock import rfc3339
from nightporter.ledger.audit.check import Tally
from nightporter.ledger.audit.definitions import readable
from nightporter.ledger.audit.report import CheckResult
from nightporter.rules.ending import destinations_for
from nightporter.store import Tx
from nightporter.words import Definition, Outcome, Policy

PAGE = 500

_OUTCOMES = frozenset(Outcome)


class Owed:
    """One walk over the automations."""

    def __init__(self, tx: Tx) -> None:
        self._tx = tx
        self._missing, self._strange, self._above = Tally(), Tally(), Tally()

    def results(self) -> list[CheckResult]:
        after = ""
        while page := self._tx.audited_automations(after=after, room=PAGE):
            after = page[-1][0]
            self._deliveries([automation for automation, _ in page])
            self._ceilings(page)
        return [
            self._missing.result("I-46a", "an ended run has a delivery for each destination that its outcome has"),
            self._strange.result("I-46b", "a run has no delivery that its definition does not ask for"),
            self._above.result("I-53", "no more runs are admitted in an hour than its ceiling allows"),
        ]

    def _deliveries(self, automation_ids: Sequence[str]) -> None:
        ended = {(a, v, o): n for a, v, o, n in self._tx.ended_groups(automation_ids)}
        there = {(a, v, o, d, k): (n, one) for a, v, o, d, k, n, one in self._tx.delivery_groups(automation_ids)}
        definitions = readable(self._tx, {(a, v) for a, v, *_ in (*ended, *there)})
        for (automation, version, outcome), count in ended.items():
            for destination, kind in _destinations(definitions.get((automation, version)), outcome):
                if there.get((automation, version, outcome, destination, kind), (0, ""))[0] < count:
                    self._lacking(automation, version, outcome, destination, kind)
        for (automation, version, outcome, destination, kind), (count, one) in there.items():
            definition = definitions.get((automation, version))
            if definition is not None and (destination, kind) not in _destinations(definition, outcome):
                self._strange.add(f"{one}, one of {count}, goes to {destination!r} ({kind}), which a run of "
                                  f"{automation} with the outcome {outcome or 'none'} does not ask for", count)

    def _lacking(self, automation: str, version: int, outcome: str, destination: str, kind: str) -> None:
        count, rows = self._tx.violations("audit_undelivered", {
            "automation_id": automation, "version": version, "outcome": outcome, "destination": destination,
            "kind": kind,
        })
        for (run,) in rows:
            self._missing.add(f"{run} of {automation} ended with {outcome} and has no delivery to {destination!r}")
        self._missing.count += count - len(rows)

    def _ceilings(self, page: Sequence[tuple[str, int]]) -> None:
        policies = self._tx.policies([automation for automation, _ in page])
        rows = []
        for automation, version in page:
            with contextlib.suppress(ValueError, TypeError, KeyError):  # a policy that cannot be read admits nothing
                ceiling = Policy.from_json(policies[automation]).per_hour
                if ceiling is not None:
                    rows.append((automation, version, ceiling))
        for automation, run, at, reached, ceiling in self._tx.over_ceiling(rows):
            self._above.add(f"{run} of {automation} was admitted at {rfc3339(at)}; {ceiling} an hour are allowed, and "
                            f"as many were since {rfc3339(reached)}")


def _destinations(definition: Definition | None, outcome: str) -> set[tuple[str, str]]:
    if definition is None or outcome not in _OUTCOMES:
        return set()
    return {(d.name, d.kind) for d in destinations_for(definition, Outcome(outcome))}

"""`missed:`: what becomes of slots that passed while nothing was running."""

from __future__ import annotations

from datetime import timedelta
from typing import Final

from nightporter.definitions import grammar
from nightporter.definitions.policy import duration_of
from nightporter.definitions.written import Entries, Place, Scalar, Value, bad, choice_of, wrong_type
from nightporter.words import Missed, MissedPolicy, Overlap, TriggerSpec

_SHORTEST: Final = timedelta(seconds=1)
_POLICIES: Final = [str(each) for each in MissedPolicy]


def missed_of(value: Value) -> Missed:
    """A policy alone, or a map of `policy` and `within`."""
    if isinstance(value, Scalar) and value.kind == "text":
        return Missed(MissedPolicy(choice_of("missed", value, _POLICIES)))
    if not isinstance(value, Entries):
        raise wrong_type("missed", value, "a policy, or a map", next="write `missed: {policy: run_once, within: 3h}`")
    grammar.check_keys(value, grammar.MISSED, "in `missed`", {})
    written, within = value.get("policy"), value.get("within")
    if written is None:
        raise bad(value.place, "`missed` has no policy", next="write `missed: {policy: run_once, within: 3h}`")
    policy = MissedPolicy(choice_of("policy", written, _POLICIES))
    if within is None:
        return Missed(policy)
    if policy is MissedPolicy.SKIP:
        raise bad(value.keys["within"], "`within` says nothing for `skip`", why="no missed time runs, however young",
                  next="remove it, or write another policy")
    return Missed(policy, duration_of("within", within, least=_SHORTEST))


def check_overlap(trigger: TriggerSpec, place: Place) -> None:
    """Refuse what would drop the very runs that are to be made up for."""
    runs_all = trigger.missed is not None and trigger.missed.policy is MissedPolicy.RUN_ALL
    if runs_all and trigger.overlap in (Overlap.SKIP, Overlap.REPLACE):
        raise bad(place, f"`missed: run_all` and `overlap: {trigger.overlap}` cannot stand together",
                  why=f"of the runs made up for, {trigger.overlap} would keep one",
                  next="leave `overlap` out, which means `queue` then, or write `missed: run_once`")

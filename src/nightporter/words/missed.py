"""Missed: what becomes of slots that passed while nothing was running."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum
from typing import Any

WITHIN = timedelta(hours=3)
"""How old a missed slot may be that is caught up, where nothing else is said."""


class MissedPolicy(StrEnum):
    """What becomes of missed slots."""

    RUN_ONCE = "run_once"
    """The newest one runs late; one line answers the others."""
    SKIP = "skip"
    """None runs; one line answers all."""
    REVIEW = "review"
    """The newest ones wait for a person, each as a card; one line answers the others."""
    RUN_ALL = "run_all"
    """Each one runs late, in order."""


CATCHES_UP = frozenset({MissedPolicy.RUN_ONCE, MissedPolicy.RUN_ALL})
"""Policies that run missed slots by themselves."""


@dataclass(frozen=True, slots=True)
class Missed:
    """The policy of one trigger."""

    policy: MissedPolicy
    within: timedelta | None = None
    """Only slots missed less than this ago are run or put before a person. None: three hours where the desk runs them
    by itself, without a bound where a person is asked."""

    @property
    def reach(self) -> timedelta | None:
        """`within`, with its default."""
        return WITHIN if self.within is None and self.policy in CATCHES_UP else self.within

    @staticmethod
    def read(raw: Mapping[str, Any] | None) -> Missed | None:
        """Of plain JSON. Raises ValueError, TypeError or KeyError where it is none."""
        if raw is None:
            return None
        within = raw["within"]
        return Missed(MissedPolicy(raw["policy"]), None if within is None else timedelta(seconds=within))

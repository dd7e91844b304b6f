"""What is left to do, when it will be done, what it costs, and what another overlap would give.

Pure: numpy, no Django, no models.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from math import ceil, comb

import numpy as np

LEVEL = 0.95
REPLICATES = 2000
SEED = 20_261_129
WINDOW = 14  # days that the pace is taken from
FEWEST_DAYS = 3  # whole days since the first label
MOST_DAYS = 3650  # what lies beyond is not a date
OVERLAPS = (1, 2, 3, 4, 5)


class Unknown(StrEnum):
    """Why no date can be told."""

    NOTHING_LEFT = "nothing_left"
    NOT_OPEN = "not_open"
    FEW_DAYS = "few_days"
    NO_WORK = "no_work"


@dataclass(frozen=True)
class Workload:
    """Where a project stands. `by_done`: open items by their number of labels (keys are texts, as
    JSON has them); `needed`: places still free or leased on them; `settled` items have `labels`
    labels together.
    """

    by_done: Mapping[str, int]
    needed: int
    settled: int
    labels: int
    base: int
    most: int

    @property
    def open_items(self) -> int:
        return sum(self.by_done.values())

    @property
    def raised(self) -> float:
        """Labels beyond the base that an item took on average, 0 where none is settled."""
        if not self.settled:
            return 0.0
        return min(max(self.labels / self.settled - self.base, 0.0), float(self.most - self.base))

    @property
    def expected(self) -> int:
        """Labels to the end, with those that disagreement will ask for.

        Items that still lack base labels are expected to be raised as often as settled ones were.
        """
        fresh = sum(n for done, n in self.by_done.items() if int(done) < self.base)
        return self.needed + round(self.raised * fresh)


@dataclass(frozen=True)
class Finish:
    """Whole days from today until the last label; `hi` None: too far to tell. Or why not."""

    days: int | None = None
    lo: int | None = None
    hi: int | None = None
    pace: float = 0.0  # labels a day
    unknown: Unknown | None = None


def finish(left: int, per_day: Sequence[int], *, is_open: bool) -> Finish:
    """When `left` labels are done at the pace of the last whole days (oldest first).

    Days are drawn with replacement to see how far the pace can be trusted: days without work
    count, so weekends are in it.
    """
    days = np.asarray(per_day[-WINDOW:], dtype=np.float64)
    if left <= 0:
        return Finish(unknown=Unknown.NOTHING_LEFT)
    if not is_open:
        return Finish(unknown=Unknown.NOT_OPEN)
    if len(days) < FEWEST_DAYS:
        return Finish(unknown=Unknown.FEW_DAYS)
    pace = float(days.mean())
    if pace == 0:
        return Finish(unknown=Unknown.NO_WORK)
    rng = np.random.default_rng(SEED)
    drawn = rng.choice(days, size=(REPLICATES, len(days))).mean(axis=1)
    slow, fast = np.percentile(drawn, [100 * (1 - LEVEL) / 2, 100 * (1 + LEVEL) / 2])
    return Finish(_days(left, pace), _days(left, fast), _days(left, slow), pace)


def _days(left: int, pace: float) -> int | None:
    if pace <= 0 or left / pace > MOST_DAYS:
        return None
    return ceil(left / pace)


@dataclass(frozen=True)
class WhatIf:
    """With `overlap` labels for every open item and none beyond: `labels` to the end; the share
    of items whose majority is right, wrong, or that have none.
    """

    overlap: int
    labels: int
    right: float | None
    wrong: float | None
    none: float | None


def what_if(load: Workload, accuracy: float | None, choices: int) -> list[WhatIf]:
    """Every overlap from 1 to 5 for the items that are open now."""
    found = []
    for overlap in OVERLAPS:
        labels = sum(n * max(overlap - int(done), 0) for done, n in load.by_done.items())
        right = wrong = none = None
        if accuracy is not None:
            right, wrong = majority_right(overlap, accuracy, choices)
            none = max(1 - right - wrong, 0.0)
        found.append(WhatIf(overlap, labels, right, wrong, none))
    return found


def majority_right(labels: int, accuracy: float, choices: int) -> tuple[float, float]:
    """Probability that more than half of the labels give the right verdict, and a wrong one.

    Labels are taken as independent, each right with `accuracy`, each wrong verdict equally likely.
    """
    more = range(labels // 2 + 1, labels + 1)
    wrong = (1 - accuracy) / (choices - 1)
    right = sum(_binomial(labels, k, accuracy) for k in more)
    return right, (choices - 1) * sum(_binomial(labels, k, wrong) for k in more)


def _binomial(n: int, k: int, p: float) -> float:
    return float(comb(n, k) * p**k * (1 - p) ** (n - k))

"""What labels tell about those who gave them: sides, lengths, repeats, pace. Pure.

Every signal is counted per annotator as (hits, chances), so that a share always comes with its
interval: the Beta posterior of `annotation.gold`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

import numpy as np

from annotation.gold import interval
from annotation.tables import CLASSES, FIRST, FLIPPED, SECOND, Codes, Floats, Ints, LabelArrays

FEWEST = 20  # labels before a pace is judged
SIDES = (0.4, 0.6)  # a share of left choices that needs no explanation
LENGTH_MARGIN = 0.15  # around the share of everybody
AGREEMENT_MARGIN = 0.10  # below everybody's
CONSISTENT = 0.7
LATE = 0.2
HASTE = 3  # times as fast as everybody


class Flag(StrEnum):
    GOLD = "gold"
    LEFT = "left"
    RIGHT = "right"
    LONGER = "longer"
    SHORTER = "shorter"
    INCONSISTENT = "inconsistent"
    ALONE = "alone"
    LATE = "late"
    FAST = "fast"


@dataclass(frozen=True)
class Share:
    """`hits` of `chances`; not whole where a hit is a share itself."""

    hits: float
    chances: float

    @property
    def value(self) -> float | None:
        return self.hits / self.chances if self.chances else None

    @property
    def bounds(self) -> tuple[float, float] | None:
        if not self.chances:
            return None
        return interval(self.hits, self.chances)

    def above(self, limit: float) -> bool:
        """Whether all of the interval lies above."""
        return self.bounds is not None and self.bounds[0] > limit

    def below(self, limit: float) -> bool:
        return self.bounds is not None and self.bounds[1] < limit


Counted = tuple[Floats, Ints]  # per annotator: hits, chances


def left_chosen(labels: LabelArrays, code: Codes, n: int) -> Counted:
    """Of the labels that prefer a side: those that prefer the left one."""
    sided = labels.ours & ((code == FIRST) | (code == SECOND))
    left = (code == FIRST) == labels.first_left
    return _tally(labels.member, sided, left, n)


def longer_chosen(labels: LabelArrays, code: Codes, longer: Codes, n: int) -> Counted:
    """Of the labels that prefer a side where lengths differ: those that prefer the longer one.

    `longer` is per item.
    """
    which = longer[labels.item]
    sided = ((code == FIRST) | (code == SECOND)) & (which != 0)
    return _tally(labels.member, sided, (code == FIRST) == (which == 1), n)


def agreeing(labels: LabelArrays, code: Codes, n_items: int, n: int) -> Counted:
    """Over the items that others labelled too: the share of those others who say the same."""
    keep = code >= 0
    item, given = labels.item[keep], code[keep]
    c = len(CLASSES)
    counts = np.bincount(item * c + given, minlength=n_items * c).reshape(-1, c)
    others = counts.sum(axis=1)[item] - 1
    same = (counts[item, given] - 1) / np.maximum(others, 1)
    member, shared = labels.member[keep], others > 0
    hits = np.bincount(member[shared], weights=same[shared], minlength=n)
    return hits.astype(np.float64), np.bincount(member[shared], minlength=n)


def repeated_alike(first: LabelArrays, again: LabelArrays, axis: str, n: int) -> Counted:
    """Of the items shown twice to the same annotator: those that got the same verdict."""
    key = first.item * n + first.member
    order = np.argsort(key)
    wanted = again.item * n + again.member
    at = np.minimum(np.searchsorted(key, wanted, sorter=order), max(len(key) - 1, 0))
    if not len(key) or not len(wanted):
        return np.zeros(n), np.zeros(n, dtype=np.int64)
    found = order[at]
    before, after = first.verdict[axis][found], again.verdict[axis]
    both = (key[found] == wanted) & (before >= 0) & (after >= 0)
    return _tally(again.member, both, before == after, n)


def _tally(member: Ints, chance: object, hit: object, n: int) -> Counted:
    chances = np.asarray(chance)
    hits = chances & np.asarray(hit)
    return (
        np.bincount(member[hits], minlength=n).astype(np.float64),
        np.bincount(member[chances], minlength=n),
    )


def canonical(code: Codes, swapped: object) -> Codes:
    """Verdicts with the two answers the other way round where `swapped`."""
    turned = np.where(code >= 0, FLIPPED[np.maximum(code, 0)], code)
    return np.where(np.asarray(swapped), turned, code).astype(np.int8)


@dataclass(frozen=True)
class Signals:
    """What is known of one annotator on one axis, and of everybody for comparison."""

    gold: Share
    left: Share
    longer: Share
    consistent: Share
    agrees: Share
    late: Share
    timed: int  # labels with a time
    median_ms: int


def flags(one: Signals, everybody: Signals, gold_floor: float) -> list[Flag]:
    """What should be looked at: an interval that lies wholly outside of what needs no reason."""
    usual = everybody.longer.value if everybody.longer.value is not None else 0.5
    others = everybody.agrees.value or 0.0
    tests: Mapping[Flag, bool] = {
        Flag.GOLD: one.gold.below(gold_floor),
        Flag.LEFT: one.left.above(SIDES[1]),
        Flag.RIGHT: one.left.below(SIDES[0]),
        Flag.LONGER: one.longer.above(min(usual + LENGTH_MARGIN, 0.99)),
        Flag.SHORTER: one.longer.below(max(usual - LENGTH_MARGIN, 0.01)),
        Flag.INCONSISTENT: one.consistent.below(CONSISTENT),
        Flag.ALONE: one.agrees.below(others - AGREEMENT_MARGIN),
        Flag.LATE: one.late.above(LATE),
        Flag.FAST: one.timed >= FEWEST and one.median_ms * HASTE < everybody.median_ms,
    }
    return [flag for flag, found in tests.items() if found]

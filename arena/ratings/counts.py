"""Votes collapsed to K×K matrices: all that a point fit needs to know."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Self

import numpy as np

from arena.ratings.votes import BoolArray, FloatArray, IntArray, Outcome, VoteTable


class BothBad(StrEnum):
    """How "both bad" enters the fit; either way its rate is reported."""

    AS_TIE = "tie"
    DROP = "drop"


@dataclass(frozen=True, eq=False)
class Counts:
    """Directed counts; entry [..., i, j] has contestant i on the left and j on the right.

    `left`, `right`, `tie` have shape (..., K, K): how often the left one won, the right one won,
    and neither. Leading axes are batches (raters, bootstrap replicates).
    """

    left: FloatArray
    right: FloatArray
    tie: FloatArray

    @classmethod
    def of(cls, cube: FloatArray, both_bad: BothBad = BothBad.AS_TIE) -> Self:
        """From a cube (..., K, K, 4) of counts by outcome."""
        tie = cube[..., Outcome.TIE]
        if both_bad is BothBad.AS_TIE:
            tie = tie + cube[..., Outcome.BOTH_BAD]
        return cls(left=cube[..., Outcome.LEFT], right=cube[..., Outcome.RIGHT], tie=tie)

    @property
    def total(self) -> FloatArray:
        """(..., K, K) votes per directed pair."""
        return self.left + self.right + self.tie

    @property
    def points(self) -> FloatArray:
        """(..., K, K) the left contestant's points: one per win, half per tie."""
        return self.left + 0.5 * self.tie

    @property
    def wins(self) -> FloatArray:
        """(..., K, K) points of i against j from either side; a tie is half a win for each."""
        against = self.right + 0.5 * self.tie
        return self.points + np.swapaxes(against, -1, -2)

    def add(self, virtual: FloatArray) -> Counts:
        """With `virtual[i, j]` wins to the left and as many to the right."""
        return Counts(left=self.left + virtual, right=self.right + virtual, tie=self.tie)

    def pick(self, mask: BoolArray) -> Counts:
        """Some of the batches."""
        return Counts(left=self.left[mask], right=self.right[mask], tie=self.tie[mask])

    def take(self, members: IntArray) -> Counts:
        """The counts among some contestants only."""
        grid = np.ix_(members, members)
        return Counts(left=self.left[grid], right=self.right[grid], tie=self.tie[grid])


def outcome_cube(votes: VoteTable) -> FloatArray:
    """(K, K, 4) weighted counts by left contestant, right contestant and outcome."""
    return votes.cube


def grouped_cube(votes: VoteTable, group: IntArray, groups: int) -> FloatArray:
    """(G, K, K, 4) the same, split by a grouping such as the rater."""
    k = len(votes.contestants)
    size = k * k * 4
    keys = group * size + votes.cells
    cells = np.bincount(keys, weights=votes.weight, minlength=groups * size)
    return cells.astype(np.float64, copy=False).reshape(groups, k, k, 4)


def cube_from_cells(
    contestants: Sequence[str], cells: Iterable[tuple[str, str, str | int, float]]
) -> FloatArray:
    """(K, K, 4) from aggregated rows (left, right, outcome, count), as a GROUP BY gives them."""
    index = {name: i for i, name in enumerate(contestants)}
    cube = np.zeros((len(index), len(index), 4))
    for left, right, outcome, count in cells:
        if left == right:
            raise ValueError(f"{left!r} meets itself")
        cube[index[left], index[right], Outcome.parse(outcome)] += count
    return cube


def collapse(votes: VoteTable, both_bad: BothBad = BothBad.AS_TIE) -> Counts:
    """The directed K×K counts of a table."""
    return Counts.of(outcome_cube(votes), both_bad)

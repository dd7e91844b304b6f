"""Votes that are not independent: sums of scores over raters, contexts and their meetings."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property

import numpy as np
from scipy.sparse import csc_array, csr_array

from arena.ratings.counts import BothBad, grouped_cube, outcome_cube
from arena.ratings.fit import Fit
from arena.ratings.model import moments
from arena.ratings.votes import FloatArray, IntArray, Outcome, VoteTable, sorted_order

DENSE_CELLS = 4_000_000
CROWD = 8  # votes of one rater on one context, up to which pairs of them are cheaper


class Cluster(StrEnum):
    """What votes are allowed to have in common; everything else is taken as independent."""

    BOTH = "both"  # two votes by one rater, or two votes on one context
    RATER = "rater"  # two votes by one rater
    CONTEXT = "context"  # two votes on one context
    NONE = "none"  # nothing: every vote stands alone


@dataclass(frozen=True, eq=False)
class Grouping:
    """`code` (N,) in 0..size−1; the groups that have no vote are harmless."""

    code: IntArray
    size: int


@dataclass(frozen=True, eq=False)
class ScoreTable:
    """Score of one vote by directed pair and outcome, and the votes to which it belongs.

    `left` (K, K, 4): residual points of the left contestant, which is also minus that of the
    right one. `tie` (K, K, 4): residual of the tie indicator. Zero for outcomes that the fit
    dropped.
    """

    votes: VoteTable
    fit: Fit
    left: FloatArray
    tie: FloatArray

    def summed(self, group: Grouping) -> FloatArray:
        """(G, P) scores summed over each group."""
        k, votes = len(self.votes.contestants), self.votes
        residual = self.residual
        base = group.code * k
        size = group.size * k
        gained = np.bincount(base + votes.left, weights=residual, minlength=size)
        cells = gained - np.bincount(base + votes.right, weights=residual, minlength=size)
        extras = [
            np.bincount(group.code, weights=extra, minlength=group.size) for extra in self._extra()
        ]
        summed = np.asarray(cells, dtype=np.float64).reshape(group.size, k)
        return np.column_stack([summed, *extras]) if extras else summed

    def sparse(self, group: Grouping) -> csr_array:
        """(G, P) the same as a sparse matrix, for very many groups."""
        n = len(self.votes)
        where = (np.ones(n), group.code, np.arange(n + 1))
        members = csc_array(where, shape=(group.size, n))
        return csr_array(members @ self.rows())

    def rows(self) -> csr_array:
        """(N, P) the score of every vote."""
        columns, values = self.entries()
        entries = columns.T.ravel(), values.T.ravel()
        ends = np.arange(len(self.votes) + 1) * len(columns)
        return csr_array((entries[1], entries[0], ends), shape=(len(self.votes), self._width))

    def entries(self) -> tuple[IntArray, FloatArray]:
        """(m, N) the parameters that each vote's score touches, and by how much."""
        k, votes = len(self.votes.contestants), self.votes
        residual = self.residual
        extras = self._extra()
        fixed = [np.full(len(votes), k + i, dtype=np.int64) for i in range(len(extras))]
        columns = np.stack([votes.left, votes.right, *fixed])
        return columns, np.stack([residual, -residual, *extras])

    @property
    def _width(self) -> int:
        return self.fit.shape.size

    def by_vote(self) -> FloatArray:
        """(P, P) the sum of s s′ over single votes, from the counts by pair and outcome."""
        votes = self.votes
        squares = votes if votes.weight is None else _reweighted(votes, votes.weight**2)
        cube = outcome_cube(squares)
        used = np.flatnonzero(cube)
        left, right, outcome = np.unravel_index(used, cube.shape)
        codes = [np.asarray(c, dtype=np.int64) for c in (left, right, outcome)]
        single = VoteTable(votes.contestants, codes[0], codes[1], codes[2])
        table = ScoreTable(single, self.fit, self.left, self.tie)
        columns, values = table.entries()
        return _products(columns, values * cube.ravel()[used], columns, values, self._width)

    def subset(self, where: IntArray) -> ScoreTable:
        """The scores of some votes, without saying who voted or on what."""
        votes = self.votes
        some = VoteTable(
            contestants=votes.contestants,
            left=votes.left[where],
            right=votes.right[where],
            outcome=votes.outcome[where],
            weight=None if votes.weight is None else votes.weight[where],
        )
        return ScoreTable(some, self.fit, self.left, self.tie)

    @cached_property
    def residual(self) -> FloatArray:
        """(N,) the residual points of every vote's left contestant."""
        return self._of_votes(self.left)

    def _of_votes(self, table: FloatArray) -> FloatArray:
        picked: FloatArray = table.ravel()[self.votes.cells]
        return picked if self.votes.weight is None else picked * self.votes.weight

    def _extra(self) -> list[FloatArray]:
        extras = []
        if self.fit.log_nu is not None:
            extras.append(self._of_votes(self.tie))
        if self.fit.side is not None:
            extras.append(self.residual)
        return extras


def score_table(votes: VoteTable, fit: Fit, both_bad: BothBad) -> ScoreTable:
    """The scores of all votes at a fit; `both_bad` as in the fit."""
    mom = moments(fit.params, fit.shape)
    points = np.array([1.0, 0.0, 0.5, 0.5])
    ties = np.array([0.0, 0.0, 1.0, 1.0])
    left = points - mom.points[:, :, None]
    tie = ties - np.broadcast_to(mom.tie, mom.points.shape)[:, :, None]
    if both_bad is BothBad.DROP:
        left[:, :, Outcome.BOTH_BAD] = 0.0
        tie[:, :, Outcome.BOTH_BAD] = 0.0
    return ScoreTable(votes, fit, left, tie)


def rater_grouping(votes: VoteTable) -> Grouping | None:
    return None if votes.rater is None else Grouping(votes.rater, len(votes.raters))


def context_grouping(votes: VoteTable) -> Grouping | None:
    return None if votes.context is None else Grouping(votes.context, len(votes.contexts))


def meeting_grouping(votes: VoteTable) -> Grouping:
    """Groups by (rater, context); both columns must be there. Most groups hold no vote."""
    return Grouping(_meeting_key(votes), len(votes.raters) * len(votes.contexts))


def joint_meetings(tables: Sequence[VoteTable]) -> list[Grouping]:
    """Groups by (rater, context) with the same codes in every table."""
    keys = [_meeting_key(votes) for votes in tables]
    size = len(tables[0].raters) * len(tables[0].contexts)
    if size <= DENSE_CELLS:
        return [Grouping(key, size) for key in keys]
    found, code = np.unique(np.concatenate(keys), return_inverse=True)
    ends = np.cumsum([len(key) for key in keys])[:-1]
    return [Grouping(part, len(found)) for part in np.split(code, ends)]


def _meeting_key(votes: VoteTable) -> IntArray:
    if votes.rater is None or votes.context is None:
        raise ValueError("the votes must name their raters and contexts")
    return votes.rater * len(votes.contexts) + votes.context


def group_totals(votes: VoteTable, group: Grouping, both_bad: BothBad) -> FloatArray:
    """(G, K, K) votes that the fit counts, per group and directed pair."""
    cube = grouped_cube(votes, group.code, group.size)
    last = Outcome.BOTH_BAD if both_bad is BothBad.DROP else len(Outcome)
    total: FloatArray = cube[..., :last].sum(-1)
    return total


def meat(scores: ScoreTable, group: Grouping | None) -> FloatArray:
    """(P, P) Σ over groups of s s′; over single votes where `group` is None."""
    if group is None:
        return scores.by_vote()
    if group.size * scores.fit.shape.size <= DENSE_CELLS:
        summed = scores.summed(group)
        dense: FloatArray = summed.T @ summed
        return dense
    rows = scores.sparse(group)
    return _product(rows, rows)


def meeting_meat(scores: ScoreTable, group: Grouping, by_vote: FloatArray) -> FloatArray:
    """(P, P) the same over (rater, context).

    Most such groups hold one vote, or few: the sum over single votes, given as `by_vote`, lacks
    only the products of different votes of one group.
    """
    bucket = group.code if group.size <= DENSE_CELLS else group.code % DENSE_CELLS
    size = np.bincount(bucket, minlength=min(group.size, DENSE_CELLS))
    if int(size.max(initial=0)) > CROWD:
        found, code = np.unique(group.code, return_inverse=True)
        return meat(scores, Grouping(code, len(found)))
    shared = np.flatnonzero((size > 1)[bucket])
    code = group.code[shared]
    order = sorted_order(code)
    cross = _cross_products(scores.subset(shared[order]), code[order])
    return by_vote + cross + cross.T


def _cross_products(scores: ScoreTable, code: IntArray) -> FloatArray:
    """(P, P) Σ s_a s_b′ over pairs of votes a < b with one code; the codes are sorted."""
    width = scores.fit.shape.size
    total = np.zeros((width, width))
    columns, values = scores.entries()
    for lag in range(1, len(code)):
        first = np.flatnonzero(code[lag:] == code[:-lag])
        if not len(first):
            break
        then = first + lag
        total += _products(
            columns[:, first], values[:, first], columns[:, then], values[:, then], width
        )
    return total


def _products(
    columns: IntArray, values: FloatArray, others: IntArray, factors: FloatArray, width: int
) -> FloatArray:
    """(P, P) Σ a b′ over pairs of sparse vectors, both given as entries (m, pairs)."""
    total = np.zeros(width * width)
    for column, value in zip(columns * width, values, strict=True):
        for other, factor in zip(others, factors, strict=True):
            total += np.bincount(column + other, weights=value * factor, minlength=width * width)
    return total.reshape(width, width)


def _product(a: csr_array, b: csr_array) -> FloatArray:
    product: FloatArray = np.asarray((a.T @ b).todense())
    return product


def _reweighted(votes: VoteTable, weight: FloatArray) -> VoteTable:
    return VoteTable(votes.contestants, votes.left, votes.right, votes.outcome, weight=weight)

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
from arena.ratings.votes import FloatArray, IntArray, Outcome, VoteTable

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
        place = base + votes.left
        gained = np.bincount(place, weights=residual, minlength=group.size * k)
        cells: FloatArray = np.asarray(gained, dtype=np.float64)
        np.add(base, votes.right, out=place)
        cells -= np.bincount(place, weights=residual, minlength=group.size * k)
        extras = [
            np.bincount(group.code, weights=extra, minlength=group.size) for extra in self._extra()
        ]
        summed = cells.reshape(group.size, k)
        return np.column_stack([summed, *extras]) if extras else summed

    def sparse(self, group: Grouping) -> csr_array:
        """(G, P) the same as a sparse matrix, for very many groups."""
        n = len(self.votes)
        where = (np.ones(n), group.code, np.arange(n + 1))
        members = csc_array(where, shape=(group.size, n))
        return csr_array(members @ self.rows())

    def rows(self) -> csr_array:
        """(N, P) the score of every vote."""
        columns, values = (np.stack(part) for part in self.entries(slice(None)))
        ends = np.arange(len(self.votes) + 1) * len(columns)
        entries = values.T.ravel(), columns.T.ravel(), ends
        return csr_array(entries, shape=(len(self.votes), self._width))

    def entries(self, where: IntArray | slice) -> tuple[list[IntArray], list[FloatArray]]:
        """m columns: the parameters that some votes' scores touch, and by how much."""
        k, votes = len(self.votes.contestants), self.votes
        left, residual = votes.left[where], self.residual[where]
        extras = [extra[where] for extra in self._extra()]
        fixed = [np.full(len(left), k + i, dtype=np.int64) for i in range(len(extras))]
        return [left, votes.right[where], *fixed], [residual, -residual, *extras]

    @property
    def _width(self) -> int:
        return self.fit.shape.size

    def by_vote(self) -> FloatArray:
        """(P, P) the sum of s s′ over single votes, from the counts by pair and outcome."""
        votes = self.votes
        squares = votes if votes.weight is None else _reweighted(votes, votes.weight**2)
        cube = outcome_cube(squares)
        k = len(votes.contestants)
        weighed = cube * self.left
        points = (weighed * self.left).sum(-1)
        total = np.zeros((self._width, self._width))
        total[:k, :k] = np.diag(points.sum(1) + points.sum(0)) - points - points.T
        extras = [self.tie] if self.fit.log_nu is not None else []
        extras += [self.left] if self.fit.side is not None else []
        for i, extra in enumerate(extras, start=k):
            cross = (weighed * extra).sum(-1)
            total[i, :k] = total[:k, i] = cross.sum(1) - cross.sum(0)
            for j, other in enumerate(extras, start=k):
                total[i, j] = (cube * extra * other).sum()
        return total

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
    shared, where = _shared(group)
    pairs = _pairs(shared)
    if pairs is None:
        found, code = np.unique(group.code, return_inverse=True)
        return meat(scores, Grouping(code, len(found)))
    first, then = pairs
    if where is not None:
        first, then = where[first], where[then]
    cross = _cross_products(scores, first, then)
    return by_vote + cross + cross.T


def _shared(group: Grouping) -> tuple[Grouping, IntArray | None]:
    """The grouping with few enough codes for a table of them, and of which votes (None: all).

    Votes whose code is surely their own are left out where there are too many codes.
    """
    if group.size <= DENSE_CELLS:
        return group, None
    bucket = group.code % DENSE_CELLS
    where = np.flatnonzero((np.bincount(bucket, minlength=DENSE_CELLS) > 1)[bucket])
    found, code = np.unique(group.code[where], return_inverse=True)
    return Grouping(code.astype(np.int64, copy=False), len(found)), where


def _pairs(group: Grouping) -> tuple[IntArray, IntArray] | None:
    """All pairs of different votes of one group; None where some group holds a crowd.

    Each turn takes one vote out of every group and pairs it with the votes left in it.
    """
    code = group.code
    last = np.empty(group.size, dtype=np.int64)
    rest = np.arange(len(code), dtype=last.dtype)
    firsts, thens = [rest[:0]], [rest[:0]]
    for _ in range(CROWD):
        last[code] = rest
        taken = np.take(last, code, mode="clip")
        left = np.flatnonzero(taken != rest)
        if not len(left):
            return np.concatenate(firsts, dtype=np.int64), np.concatenate(thens, dtype=np.int64)
        if len(left) > (CROWD - 1) * (len(rest) - len(left)):
            return None
        rest, code = rest[left], code[left]
        firsts.append(rest)
        thens.append(taken[left])
    return None


def _cross_products(scores: ScoreTable, first: IntArray, then: IntArray) -> FloatArray:
    """(P, P) Σ s_a s_b′ over pairs of votes a, b."""
    width = scores.fit.shape.size
    return _products(*scores.entries(first), *scores.entries(then), width)


def _products(
    columns: Sequence[IntArray],
    values: Sequence[FloatArray],
    others: Sequence[IntArray],
    factors: Sequence[FloatArray],
    width: int,
) -> FloatArray:
    """(P, P) Σ a b′ over pairs of sparse vectors, both given as m columns of entries."""
    total = np.zeros(width * width)
    for column, value in zip(columns, values, strict=True):
        row = column * width
        for other, factor in zip(others, factors, strict=True):
            total += np.bincount(row + other, weights=value * factor, minlength=width * width)
    return total.reshape(width, width)


def _product(a: csr_array, b: csr_array) -> FloatArray:
    product: FloatArray = np.asarray((a.T @ b).todense())
    return product


def _reweighted(votes: VoteTable, weight: FloatArray) -> VoteTable:
    return VoteTable(votes.contestants, votes.left, votes.right, votes.outcome, weight=weight)

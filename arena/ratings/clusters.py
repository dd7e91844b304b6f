"""Votes that are not independent: sums of scores over raters, contexts and their meetings."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

import numpy as np
from scipy.sparse import csc_array, csr_array

from arena.ratings.counts import BothBad, grouped_cube, outcome_cube
from arena.ratings.fit import Fit
from arena.ratings.model import moments
from arena.ratings.votes import FloatArray, IntArray, Outcome, VoteTable

DENSE_CELLS = 8_000_000


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
        residual = self._of_votes(self.left)
        base = group.code * k
        cells = np.bincount(base + votes.left, weights=residual, minlength=group.size * k)
        cells -= np.bincount(base + votes.right, weights=residual, minlength=group.size * k)
        extras = [
            np.bincount(group.code, weights=extra, minlength=group.size)
            for extra in self._extra(residual)
        ]
        return np.column_stack([cells.reshape(group.size, k), *extras])

    def sparse(self, group: Grouping) -> csr_array:
        """(G, P) the same as a sparse matrix, for very many groups."""
        n = len(self.votes)
        where = (np.ones(n), group.code, np.arange(n + 1))
        members = csc_array(where, shape=(group.size, n))
        return csr_array(members @ self.rows())

    def rows(self) -> csr_array:
        """(N, P) the score of every vote."""
        k, votes = len(self.votes.contestants), self.votes
        residual = self._of_votes(self.left)
        extras = self._extra(residual)
        fixed = [np.full(len(votes), k + i, dtype=np.int64) for i in range(len(extras))]
        columns = np.column_stack([votes.left, votes.right, *fixed]).ravel()
        values = np.column_stack([residual, -residual, *extras]).ravel()
        ends = np.arange(len(votes) + 1) * (2 + len(extras))
        return csr_array((values, columns, ends), shape=(len(votes), self.fit.shape.size))

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
        rows = table.rows()
        return _product(csr_array(rows.multiply(cube.ravel()[used][:, None])), rows)

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

    def _of_votes(self, table: FloatArray) -> FloatArray:
        votes = self.votes
        picked: FloatArray = table[votes.left, votes.right, votes.outcome]
        return picked if votes.weight is None else picked * votes.weight

    def _extra(self, residual: FloatArray) -> list[FloatArray]:
        extras = []
        if self.fit.log_nu is not None:
            extras.append(self._of_votes(self.tie))
        if self.fit.side is not None:
            extras.append(residual)
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
    """Groups by (rater, context); both columns must be there."""
    return joint_meetings([votes])[0]


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


def meeting_meat(scores: ScoreTable, group: Grouping) -> FloatArray:
    """(P, P) the same over (rater, context): most hold one vote, which the counts cover."""
    every = scores.by_vote()
    several = np.bincount(group.code, minlength=group.size) > 1
    shared = np.flatnonzero(several[group.code])
    if not len(shared):
        return every
    found = np.flatnonzero(several)
    place = np.empty(group.size, dtype=np.int64)
    place[found] = np.arange(len(found))
    rest = scores.subset(shared)
    return every - rest.by_vote() + meat(rest, Grouping(place[group.code[shared]], len(found)))


def _product(a: csr_array, b: csr_array) -> FloatArray:
    product: FloatArray = np.asarray((a.T @ b).todense())
    return product


def _reweighted(votes: VoteTable, weight: FloatArray) -> VoteTable:
    return VoteTable(votes.contestants, votes.left, votes.right, votes.outcome, weight=weight)

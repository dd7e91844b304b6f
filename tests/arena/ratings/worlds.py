"""Self-made votes with known truth, for every test of the rating arithmetic."""

from __future__ import annotations

import numpy as np

from arena.ratings import Outcome, VoteTable
from arena.ratings.votes import FloatArray


def planted(k: int, spread: float = 0.5) -> FloatArray:
    """(K,) evenly spaced log strengths with mean 0, the first contestant the strongest."""
    return np.linspace(spread, -spread, k)


def draw(
    theta: FloatArray,
    votes: int,
    *,
    seed: int = 1,
    raters: int = 20,
    contexts: int = 50,
    nu: float = 0.6,
    side: float = 0.0,
    rater_sd: float = 0.0,
    context_sd: float = 0.0,
    both_bad: float = 0.0,
) -> VoteTable:
    """Votes from Davidson's model; a share `both_bad` of the ties is called both bad."""
    rng = np.random.default_rng(seed)
    k = len(theta)
    left = rng.integers(0, k, votes)
    right = (left + rng.integers(1, k, votes)) % k
    rater, context = rng.integers(0, raters, votes), rng.integers(0, contexts, votes)
    taste = rng.normal(0.0, 1.0, (raters, k)) * rater_sd
    topic = rng.normal(0.0, 1.0, (contexts, k)) * context_sd
    merit = theta + taste[rater] + topic[context]
    rows = np.arange(votes)
    half = np.exp(0.5 * (merit[rows, left] - merit[rows, right] + side))
    parts = np.stack([half, 1.0 / half, np.full(votes, nu)])
    outcome = (rng.random(votes) > np.cumsum(parts / parts.sum(0), axis=0)[:2]).sum(0)
    bad = (outcome == Outcome.TIE) & (rng.random(votes) < both_bad)
    return VoteTable(
        contestants=tuple(f"c{i:02}" for i in range(k)),
        left=left,
        right=right,
        outcome=np.where(bad, int(Outcome.BOTH_BAD), outcome),
        rater=rater,
        context=context,
        raters=tuple(f"rater-{i:02}" for i in range(raters)),
        contexts=tuple(f"context-{i:03}" for i in range(contexts)),
    )


def shuffled(votes: VoteTable, seed: int = 7) -> VoteTable:
    return votes.subset(np.random.default_rng(seed).permutation(len(votes)))


def mirrored(votes: VoteTable) -> VoteTable:
    """The same judgements with left and right exchanged."""
    swap = np.array([Outcome.RIGHT, Outcome.LEFT, Outcome.TIE, Outcome.BOTH_BAD])
    return VoteTable(
        contestants=votes.contestants,
        left=votes.right,
        right=votes.left,
        outcome=swap[votes.outcome],
        rater=votes.rater,
        context=votes.context,
        raters=votes.raters,
        contexts=votes.contexts,
    )


def as_rows(votes: VoteTable) -> list[tuple[str, str, int, str, str]]:
    """Rows (left, right, outcome code, rater, context) in the order of the table."""
    assert votes.rater is not None
    assert votes.context is not None
    names, columns = votes.contestants, (votes.left, votes.right, votes.outcome)
    return [
        (names[a], names[b], int(o), votes.raters[r], votes.contexts[x])
        for a, b, o, r, x in zip(*columns, votes.rater, votes.context, strict=True)
    ]

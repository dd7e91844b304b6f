"""The Elo scale, and sequential online Elo as a diagnostic.

Ratings are fitted log strengths on the Elo scale: 400 points are odds of 10 to 1. The anchor says
which rating is `base`: the mean of the rated contestants, or one of them. It shifts ratings and
nothing else; intervals stay those of centred strengths, so the anchor keeps its own interval.
"""

from __future__ import annotations

from math import log

import numpy as np

from arena.ratings.votes import FloatArray, Outcome, VoteTable

ELO_PER_LOG = 400.0 / log(10.0)
BASE = 1000.0


def to_elo(strength: FloatArray, *, anchor: int | None = None, base: float = BASE) -> FloatArray:
    """(K,) ratings of log strengths; `anchor` is the index that gets `base`, None the mean.

    Raises ValueError where the anchor has no strength, or no such contestant exists.
    """
    return base + ELO_PER_LOG * (strength - shift(strength, anchor))


def shift(strength: FloatArray, anchor: int | None) -> float:
    """The log strength that becomes the base."""
    if anchor is None:
        return float(np.nanmean(strength)) if np.isfinite(strength).any() else 0.0
    if not 0 <= anchor < len(strength):
        raise ValueError(f"anchor {anchor} is not one of {len(strength)} contestants")
    if not np.isfinite(strength[anchor]):
        raise ValueError("the anchor has no votes, so it cannot carry the scale")
    return float(strength[anchor])


def online_elo(votes: VoteTable, *, k: float = 4.0, base: float = BASE) -> FloatArray:
    """(K,) sequential Elo after all votes in their given order; K-factor `k`.

    R_a += k (s − 1/(1 + 10^((R_b − R_a)/400))). A diagnostic only: it depends on the order of the
    votes and has no interval. NaN for contestants without votes.
    """
    ratings = [base] * len(votes.contestants)
    scores = {Outcome.LEFT: 1.0, Outcome.RIGHT: 0.0, Outcome.TIE: 0.5, Outcome.BOTH_BAD: 0.5}
    points = [scores[outcome] for outcome in Outcome]
    columns = (votes.left.tolist(), votes.right.tolist(), votes.outcome.tolist())
    for left, right, outcome in zip(*columns, strict=True):
        expected = 1.0 / (1.0 + 10.0 ** ((ratings[right] - ratings[left]) / 400.0))
        change = k * (points[outcome] - expected)
        ratings[left] += change
        ratings[right] -= change
    final = np.array(ratings)
    seen = np.zeros(len(final), dtype=np.bool_)
    seen[votes.left] = seen[votes.right] = True
    return np.where(seen, final, np.nan)

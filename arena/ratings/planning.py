"""How wide the intervals will be, before the first vote.

With n votes spread evenly over K contestants, every pair has m = 2n/(K(K − 1)) votes and every
vote carries the information w = p(1 − p), so a centred strength has variance
(K − 1)/(K · w · m · K) before ties and clusters. Ties are half wins, whose variance is smaller by
the tie rate. Raters and contexts with tastes of their own add what no number of votes averages
out: σ_r²/R + σ_c²/C, times (K − 1)/K.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil, exp, sqrt

import numpy as np

from arena.ratings.elo import ELO_PER_LOG
from arena.ratings.interval import quantile


@dataclass(frozen=True)
class Assumptions:
    """What planning takes for granted, to be shown beside its answer.

    Standard deviations on the Elo scale: of the true strengths, of what one rater adds to one
    contestant, of what one context adds to one contestant; the last two are about what 8,931
    public votes of 124 people on 59 models show. `tie_rate`: share of votes without a winner.
    """

    strength_sd: float = 70.0
    rater_sd: float = 40.0
    context_sd: float = 100.0
    tie_rate: float = 0.0
    confidence: float = 0.95


DEFAULT = Assumptions()


@dataclass(frozen=True)
class Plan:
    """What to expect. `half_width`: of an interval, Elo; `design_effect`: variance compared with
    that of independent votes; `votes_per_contestant`; `df`: infinite without clusters."""

    half_width: float
    design_effect: float
    votes_per_contestant: float
    df: float


def expect(
    contestants: int,
    votes: int,
    *,
    raters: int | None = None,
    contexts: int | None = None,
    assuming: Assumptions = DEFAULT,
) -> Plan:
    """The interval to expect of a contestant of middling strength.

    `raters`, `contexts`: how many there will be, None for independent votes. Raises ValueError
    on fewer than two contestants, raters or contexts, or less than one vote.
    """
    _check(contestants, votes, raters, contexts, assuming)
    alone = _independent_variance(contestants, votes, assuming)
    share = (contestants - 1) / contestants
    tastes = 0.0
    if raters is not None:
        tastes += (assuming.rater_sd / ELO_PER_LOG) ** 2 / raters
    if contexts is not None:
        tastes += (assuming.context_sd / ELO_PER_LOG) ** 2 / contexts
    variance = alone + share * tastes
    df = min((n - 1.0 for n in (raters, contexts) if n is not None), default=float("inf"))
    return Plan(
        half_width=quantile(df, assuming.confidence) * sqrt(variance) * ELO_PER_LOG,
        design_effect=variance / alone,
        votes_per_contestant=2.0 * votes / contestants,
        df=df,
    )


def votes_needed(
    contestants: int,
    half_width: float,
    *,
    raters: int | None = None,
    contexts: int | None = None,
    assuming: Assumptions = DEFAULT,
) -> int | None:
    """The fewest votes whose expected half-width is at most `half_width` (Elo).

    None where these raters and contexts cannot give it, however often they vote.
    """
    if not half_width > 0:
        raise ValueError("the half-width must be positive")
    one = expect(contestants, 1, raters=raters, contexts=contexts, assuming=assuming)
    target = (half_width / ELO_PER_LOG / quantile(one.df, assuming.confidence)) ** 2
    alone = _independent_variance(contestants, 1, assuming)
    left = target - alone * (one.design_effect - 1.0)
    return ceil(alone / left - 1e-9) if left > 0 else None


def _independent_variance(contestants: int, votes: int, assuming: Assumptions) -> float:
    """Variance of a centred log strength from independent votes."""
    per_pair = 2.0 * votes / (contestants * (contestants - 1))
    weight = _mean_weight(assuming.strength_sd)
    fair = (contestants - 1) / contestants
    return (1.0 - assuming.tie_rate) * fair / (weight * per_pair * contestants)


def _mean_weight(strength_sd: float) -> float:
    """The mean of p(1 − p) over two contestants drawn from normal strengths (Gauss–Hermite)."""
    nodes, weights = np.polynomial.hermite_e.hermegauss(31)
    gaps = sqrt(2.0) * strength_sd / ELO_PER_LOG * nodes
    values = [1.0 / (2.0 + exp(gap) + exp(-gap)) for gap in gaps]
    return float(np.dot(weights, values) / weights.sum())


def _check(
    contestants: int,
    votes: int,
    raters: int | None,
    contexts: int | None,
    assuming: Assumptions,
) -> None:
    if contestants < 2:
        raise ValueError("a comparison takes at least two contestants")
    if votes < 1:
        raise ValueError("plan at least one vote")
    if (raters is not None and raters < 2) or (contexts is not None and contexts < 2):
        raise ValueError("an interval takes at least two raters and two contexts")
    if not 0.0 <= assuming.tie_rate < 1.0:
        raise ValueError("the tie rate lies between 0 and 1")

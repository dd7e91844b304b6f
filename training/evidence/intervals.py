"""Means of verdicts with honest intervals: neither the votes of one person nor those on one
question are independent.

Two-way clustered variance (Cameron, Gelbach, Miller 2011): products of residuals over all pairs of
votes that share a rater or a context. Student's t with one degree of freedom less than the fewer of
the two counts its people or questions. A share gets Wilson's interval with as many votes as would
be worth the same, so that ten wins of ten do not look certain.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri, stdtrit

CONFIDENCE = 0.95
Array = NDArray[np.float64]


@dataclass(frozen=True)
class Interval:
    """A mean over n votes. Bounds are None with fewer than two raters or contexts."""

    mean: float | None
    low: float | None
    high: float | None
    n: int
    raters: int
    contexts: int


NOTHING = Interval(None, None, None, 0, 0, 0)


@dataclass(frozen=True, eq=False)
class Votes:
    """n values with who gave them and on what, as equally long columns."""

    values: Array
    rater: NDArray[np.int64]
    context: NDArray[np.int64]

    @classmethod
    def of(cls, values: Sequence[float], rater: Sequence[Any], context: Sequence[Any]) -> Votes:
        """Columns; people and questions may be named by anything that can be sorted."""
        codes = [np.unique(np.array(c), return_inverse=True)[1] for c in (rater, context)]
        return cls(np.asarray(values, dtype=float), codes[0], codes[1])

    @property
    def raters(self) -> int:
        return int(self.rater.max()) + 1 if len(self.rater) else 0

    @property
    def contexts(self) -> int:
        return int(self.context.max()) + 1 if len(self.context) else 0

    @property
    def clusters(self) -> int:
        return min(self.raters, self.contexts)


def variance(votes: Votes) -> float:
    """Of the mean. Never less than if all votes were independent."""
    n, clusters = len(votes.values), votes.clusters
    if n < 2 or clusters < 2:
        return 0.0
    residual = votes.values - votes.values.mean()
    both = votes.rater * votes.contexts + votes.context
    total = sum(_squares(residual, code) for code in (votes.rater, votes.context))
    clustered = (total - _squares(residual, both)) / n**2 * clusters / (clusters - 1)
    alone = float(votes.values.var(ddof=1)) / n
    return max(clustered, alone)


def _squares(residual: Array, code: NDArray[np.int64]) -> float:
    """Σ over groups of (Σ residuals)²."""
    return float((np.bincount(code, weights=residual) ** 2).sum())


def critical(clusters: int, confidence: float) -> float:
    """How many standard errors lie on either side."""
    return float(stdtrit(clusters - 1, (1 + confidence) / 2))


def share(votes: Votes, confidence: float = CONFIDENCE) -> Interval:
    """Of values in [0, 1]."""
    n = len(votes.values)
    if not n:
        return NOTHING
    p = float(votes.values.mean())
    if votes.clusters < 2:
        return Interval(p, None, None, n, votes.raters, votes.contexts)
    spread = variance(votes)
    if spread > 0:
        low, high = wilson(p, p * (1 - p) / spread, critical(votes.clusters, confidence))
    else:  # all alike: how much they share cannot be seen, so each person counts as one vote
        low, high = wilson(p, votes.clusters, float(ndtri((1 + confidence) / 2)))
    return Interval(p, low, high, n, votes.raters, votes.contexts)


def wilson(p: float, n: float, z: float) -> tuple[float, float]:
    """Wilson's score interval of a share over n votes, at z standard errors."""
    scale = 1 + z * z / n
    half = z * math.sqrt(p * (1 - p) / n + z * z / (4 * n * n)) / scale
    centre = (p + z * z / (2 * n)) / scale
    return max(0.0, centre - half), min(1.0, centre + half)


def gap(predicted: Sequence[float], votes: Votes, confidence: float = CONFIDENCE) -> Interval:
    """Mean of predicted − value. Values in [0, 1] that are all alike keep Wilson's doubt."""
    n = len(votes.values)
    if not n:
        return NOTHING
    said = np.asarray(predicted, dtype=float)
    gaps = Votes(said - votes.values, votes.rater, votes.context)
    mean = float(gaps.values.mean())
    if gaps.clusters < 2:
        return Interval(mean, None, None, n, gaps.raters, gaps.contexts)
    half = critical(gaps.clusters, confidence) * math.sqrt(variance(gaps))
    low, high = mean - half, mean + half
    if np.ptp(votes.values) == 0:
        least, most = share(votes, confidence).low or 0.0, share(votes, confidence).high or 1.0
        low, high = min(low, float(said.mean()) - most), max(high, float(said.mean()) - least)
    return Interval(mean, low, high, n, gaps.raters, gaps.contexts)

"""Rank intervals: who is surely above whom, all pairs at once.

A pair is separated when |θ_i − θ_j| exceeds c times the standard error of the difference, with c
the quantile of the largest |t| over all pairs (Hothorn, Bretz & Westfall 2008), simulated from a
multivariate t with the fitted covariance and a fixed seed. So with the stated confidence every
rank interval is right at the same time.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from arena.ratings.votes import BoolArray, FloatArray, IntArray

DRAWS = 10_000
CHUNK_CELLS = 4_000_000


@dataclass(frozen=True, eq=False)
class Ranks:
    """`lo`, `hi` (K,): best and worst rank that the votes allow, 0 where unrated.

    `critical`: the multiplier c, NaN where no pair could be tested. `above` (K, K): whether i is
    surely above j.
    """

    lo: IntArray
    hi: IntArray
    critical: float
    above: BoolArray

    @property
    def first(self) -> int | None:
        """The index of the one contestant that is surely above all others, if there is one."""
        sure = np.flatnonzero((self.lo == 1) & (self.hi == 1))
        return int(sure[0]) if len(sure) == 1 and (self.lo > 0).sum() > 1 else None


def rank_intervals(
    strength: FloatArray,
    covariance: FloatArray,
    df: float,
    *,
    component: IntArray,
    confidence: float = 0.95,
    seed: int = 0,
) -> Ranks:
    """Simultaneous rank intervals.

    `strength` (K,) with NaN where unrated; `covariance` (K, K); `component` (K,) as in
    `Connectivity`: contestants of different groups are never separated. Without degrees of
    freedom everybody may have any rank.
    """
    rated = component >= 0
    same = (component[:, None] == component[None, :]) & rated[:, None] & rated[None, :]
    errors = contrast_errors(covariance)
    testable = same & (errors > 0) & bool(df > 0)
    critical = max_t(covariance, errors, testable, df, confidence, seed)
    gap = np.nan_to_num(strength[:, None] - strength[None, :])
    above = testable & (gap > critical * errors)
    lo = np.where(rated, 1 + above.sum(0), 0)
    hi = np.where(rated, rated.sum() - above.sum(1), 0)
    return Ranks(lo.astype(np.int64), hi.astype(np.int64), critical, above)


def contrast_errors(covariance: FloatArray) -> FloatArray:
    """(K, K) standard errors of θ_i − θ_j, 0 where rounding leaves nothing."""
    variance = np.diag(covariance)
    spread = variance[:, None] + variance[None, :] - 2.0 * covariance
    floor = 1e-12 * max(float(variance.max(initial=0.0)), 1e-300)
    errors: FloatArray = np.sqrt(np.where(spread > floor, spread, 0.0))
    return errors


def max_t(
    covariance: FloatArray,
    errors: FloatArray,
    testable: BoolArray,
    df: float,
    confidence: float,
    seed: int,
) -> float:
    """The `confidence` quantile of the largest |t| over the testable pairs; NaN without any."""
    pairs = np.argwhere(np.triu(testable, 1))
    if not len(pairs):
        return float("nan")
    rng = np.random.default_rng(seed)
    k = len(covariance)
    draws = DRAWS if k <= 64 else DRAWS // 4
    noise = rng.standard_normal((draws, k)) @ _root(covariance)
    if np.isfinite(df):
        noise /= np.sqrt(rng.chisquare(df, (draws, 1)) / df)
    i, j = pairs[:, 0], pairs[:, 1]
    scale = 1.0 / errors[i, j]
    step = max(1, CHUNK_CELLS // len(pairs))
    largest = np.concatenate(
        [
            np.abs((noise[at : at + step, i] - noise[at : at + step, j]) * scale).max(1)
            for at in range(0, draws, step)
        ]
    )
    return float(np.quantile(largest, confidence))


def _root(covariance: FloatArray) -> FloatArray:
    """The symmetric square root, which unlike eigenvectors does not jump with rounding."""
    values, vectors = np.linalg.eigh(0.5 * (covariance + covariance.T))
    root: FloatArray = (vectors * np.sqrt(np.maximum(values, 0.0))) @ vectors.T
    return root

"""One-sided bounds of the mean of paired differences. Pure.

Of BCa (Efron 1987, scipy.stats.bootstrap) and Student's t the more cautious one counts: the
bootstrap is too sure of few values, t of skewed ones. Neither sees what did not happen: where
nearly all differences are alike, the bound for rare events counts as well (Stringer 1963, of which
Clopper and Pearson's is the case of losses of one size).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy.special import betaincinv, stdtrit

from training.gating.rules import Rules

ALIKE = 0.01  # differences this close to the middle one are alike
FEW = 5  # fewer prompts than this that are not alike say too little of how often it happens
Bounds = tuple[float | None, float | None, float | None]


def bounds(values: Any, rules: Rules, comparisons: int = 1) -> Bounds:
    """Lower and upper bound of the mean, and the upper one corrected (Bonferroni).

    Values lie in [-1, 1]. None below 2 of them.
    """
    gaps = np.asarray(values, dtype=float)
    if len(gaps) < 2:
        return None, None, None
    once, corrected = rules.level, 1 - (1 - rules.level) / comparisons
    found = [[t_interval(gaps, level) for level in (once, corrected)]]
    if np.ptp(gaps) > 0:
        found.append(bootstrap_intervals(gaps, (once, corrected), rules))
    if nearly_alike(gaps):
        found.append([rare_interval(gaps, level) for level in (once, corrected)])
    low = min(pair[0][0] for pair in found)
    high, worst = (max(pair[n][1] for pair in found) for n in (0, 1))
    return low, high, worst


def t_interval(gaps: Any, level: float) -> tuple[float, float]:
    """Student's bounds of the mean."""
    half = float(stdtrit(len(gaps) - 1, level) * gaps.std(ddof=1) / math.sqrt(len(gaps)))
    mean = float(gaps.mean())
    return mean - half, mean + half


def bootstrap_intervals(
    gaps: Any, levels: Sequence[float], rules: Rules
) -> list[tuple[float, float]]:
    """One draw, read at every level; percentiles where BCa is undefined."""
    from scipy.stats import bootstrap  # half a second that other processes need not spend

    for method in ("BCa", "percentile"):
        drawn, found = None, []
        for level in levels:
            drawn = bootstrap(
                (gaps,),
                np.mean,
                confidence_level=2 * level - 1,
                n_resamples=0 if drawn else rules.resamples,
                bootstrap_result=drawn,
                method=method,
                rng=np.random.default_rng(rules.seed),
            )
            found.append(
                (float(drawn.confidence_interval.low), float(drawn.confidence_interval.high))
            )
        if all(math.isfinite(end) for pair in found for end in pair):
            return found
    raise ValueError("no interval for these values")


def nearly_alike(gaps: Any) -> bool:
    """Whether so few prompts differ from the middle one that nobody knows how many more would."""
    apart = int((np.abs(gaps - np.median(gaps)) > ALIKE).sum())
    return apart < min(FEW, len(gaps) / 2)


def rare_interval(gaps: Any, level: float) -> tuple[float, float]:
    """From the middle difference down by losses alone and up by gains alone, seen and unseen."""
    middle = float(np.median(gaps))
    down, up = 1 + middle, 1 - middle  # what a prompt could lose and gain at the most
    low = middle - down * rare_mean((middle - gaps) / (down or 1.0), level)
    return low, middle + up * rare_mean((gaps - middle) / (up or 1.0), level)


def rare_mean(values: Any, level: float) -> float:
    """Upper bound of the mean of values in [0, 1] that are nearly all 0; below 0 counts as 0."""
    n = len(values)
    sizes = np.sort(np.clip(values, 0, 1))[::-1]
    share = np.append(betaincinv(np.arange(1, n + 1), np.arange(n, 0, -1), level), 1.0)
    return float(share[0] + (np.diff(share) * sizes).sum())

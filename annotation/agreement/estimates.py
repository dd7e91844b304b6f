"""The measures of a set of items with bootstrap intervals over items.

Items are drawn with replacement, `REPLICATES` times from a fixed seed; the interval is between the
percentiles that leave `LEVEL` inside. Where a value or an interval cannot be told, `Reason` says
why.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

import krippendorff
import numpy as np

from annotation.agreement import sums
from annotation.tables import CLASSES, ORDERED, Floats, Ints

REPLICATES = 1000
LEVEL = 0.95
SEED = 20_261_129
MOST_UNDEFINED = 0.05  # of the replicates; above that there is no interval
FEW = 10  # paired items; below that an interval of resampled items means nothing


class Measure(StrEnum):
    PERCENT = "percent"
    FLEISS = "fleiss"
    ALPHA_NOMINAL = "alpha_nominal"
    ALPHA_ORDINAL = "alpha_ordinal"
    AC1 = "ac1"


class Reason(StrEnum):
    """Why a value (the first two) or its interval (the others) is missing."""

    NO_PAIRS = "no_pairs"  # no item has two labels
    NO_VARIATION = "no_variation"  # all labels are the same
    ALL_AGREE = "all_agree"  # no disagreement was seen, so resampling shows none
    FEW_ITEMS = "few_items"


@dataclass(frozen=True)
class Estimate:
    """A value with its interval; None where it cannot be told, and then `reason` says why."""

    value: float | None
    lo: float | None = None
    hi: float | None = None
    reason: Reason | None = None


@dataclass(frozen=True)
class Agreement:
    """`items` with at least two labels, and the `labels` on them."""

    items: int
    labels: int
    estimates: Mapping[Measure, Estimate]


def formulas(choices: int) -> dict[Measure, Callable[[sums.Sums], Floats]]:
    return {
        Measure.PERCENT: sums.percent,
        Measure.FLEISS: sums.fleiss,
        Measure.ALPHA_NOMINAL: sums.alpha_nominal,
        Measure.ALPHA_ORDINAL: sums.alpha_ordinal,
        Measure.AC1: lambda found: sums.ac1(found, choices),
    }


def agreement(counts: Sequence[Ints], choices: int) -> Agreement:
    """The measures of items given as counts (N, 4) in the order of `CLASSES`, one array per axis.

    Several axes are taken together: an item gives one unit per axis, and is resampled with both.
    `choices`: how many of the classes annotators could choose from.
    """
    width = len(CLASSES)
    rows, weights = _patterns(np.concatenate(list(counts), axis=1))
    blocks = [rows[:, k : k + width] for k in range(0, rows.shape[1], width)]
    columns = sum((sums.item_columns(block) for block in blocks), np.zeros(()))
    once = sums.read_sums(weights @ columns)
    drawn = sums.read_sums(resampled(weights) @ columns)
    paired = [block[block.sum(axis=1) > 1] for block in counts]
    n = int(np.any([block.sum(axis=1) > 1 for block in counts], axis=0).sum())
    found = {
        measure: estimate(float(formula(once)), formula(drawn), n)
        for measure, formula in formulas(choices).items()
    }
    found[Measure.PERCENT] = _percent_bounds(found[Measure.PERCENT], n)
    for measure in (Measure.ALPHA_NOMINAL, Measure.ALPHA_ORDINAL):
        found[measure] = _by_library(measure, found[measure], np.concatenate(paired))
    ordered = float(once.ordered.sum())
    labels = int(sum(block.sum() for block in paired))
    return Agreement(n, labels, {m: _explained(m, row, n, ordered) for m, row in found.items()})


def _patterns(counts: Ints) -> tuple[Ints, Ints]:
    """The distinct rows and how often each occurs."""
    rated = counts[counts.sum(axis=1) > 0]
    if not len(rated):
        return np.zeros((1, counts.shape[1]), dtype=np.int64), np.ones(1, dtype=np.int64)
    rows, times = np.unique(rated, axis=0, return_counts=True)
    return rows, times


def resampled(times: Ints) -> Ints:
    """How often each pattern is drawn in each replicate (B, P)."""
    rng = np.random.default_rng(SEED)
    return rng.multinomial(int(times.sum()), times / times.sum(), size=REPLICATES)


def estimate(value: float, drawn: Floats, n: int) -> Estimate:
    """A value with the percentiles of its replicates, or why they do not say anything."""
    if not np.isfinite(value):
        return Estimate(None)
    known = drawn[np.isfinite(drawn)]
    if n < FEW or len(known) < (1 - MOST_UNDEFINED) * len(drawn):
        return Estimate(value, reason=Reason.FEW_ITEMS)
    if np.ptp(known) == 0:
        return Estimate(value, reason=Reason.ALL_AGREE if value == 1 else Reason.FEW_ITEMS)
    tail = 100 * (1 - LEVEL) / 2
    lo, hi = np.percentile(known, [tail, 100 - tail])
    return Estimate(value, float(lo), float(hi))


def _percent_bounds(found: Estimate, n: int) -> Estimate:
    """Where all agree: the exact lower bound (Clopper and Pearson) for n items without a miss."""
    if found.value != 1:
        return found
    return Estimate(1.0, ((1 - LEVEL) / 2) ** (1 / n), 1.0)


def _by_library(measure: Measure, found: Estimate, counts: Ints) -> Estimate:
    """The value as `krippendorff` computes it."""
    if found.value is None:
        return found
    ordinal = measure is Measure.ALPHA_ORDINAL
    counts = counts[:, :ORDERED] if ordinal else counts
    value = krippendorff.alpha(
        value_counts=counts[counts.sum(axis=1) > 1],
        level_of_measurement="ordinal" if ordinal else "nominal",
    )
    return Estimate(float(value), found.lo, found.hi, found.reason)


def _explained(measure: Measure, found: Estimate, items: int, ordered: float) -> Estimate:
    """A missing value says why: nothing to compare, or chance leaves nothing to agree beyond."""
    if found.value is not None:
        return found
    pairs = ordered if measure is Measure.ALPHA_ORDINAL else items
    return Estimate(None, reason=Reason.NO_VARIATION if pairs else Reason.NO_PAIRS)

"""Measures of agreement from sums over items, for many weightings of the items at once.

An item is a row of counts: how many annotators chose each class. Every measure here depends on the
items only through sums, so that a bootstrap replicate is one row of weights times one matrix, and
items with equal counts are one row.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from annotation.tables import CLASSES, ORDERED, Floats, Ints

TINY = 1e-12


@dataclass(frozen=True)
class Sums:
    """Sums over items, with any leading axes.

    `rated` items have a label, `paired` at least two. `shares` (…, C): each rated item gives each
    class its share of the item's labels. `agreed`: over paired items, the share of pairs of labels
    that agree. `pairs` (…, C, C) and `ordered` (…, 3, 3) are Krippendorff's coincidences, the
    latter of the ordered classes alone.
    """

    rated: Floats
    shares: Floats
    paired: Floats
    agreed: Floats
    pairs: Floats
    ordered: Floats


def item_columns(counts: Ints) -> Floats:
    """The contributions of each row of counts (P, 4) to the sums, side by side (P, D)."""
    total = counts.sum(axis=1)
    several = total > 1
    agreeing = (counts * (counts - 1)).sum(axis=1)
    agreed = np.divide(agreeing, total * (total - 1), out=np.zeros(len(total)), where=several)
    shares = np.divide(counts, total[:, None], out=np.zeros(counts.shape), where=total[:, None] > 0)
    parts = [
        (total > 0)[:, None],
        shares,
        several[:, None],
        agreed[:, None],
        coincidences(counts).reshape(len(counts), -1),
        coincidences(counts[:, :ORDERED]).reshape(len(counts), -1),
    ]
    return np.concatenate([part.astype(np.float64) for part in parts], axis=1)


def coincidences(counts: Ints) -> Floats:
    """Ordered pairs of labels within each item by class, each label weighing 1 (P, C, C)."""
    total = counts.sum(axis=1)
    equal = counts[:, :, None] * np.eye(counts.shape[1])
    products = counts[:, :, None] * counts[:, None, :] - equal
    return np.where(total > 1, 1 / np.maximum(total - 1, 1), 0.0)[:, None, None] * products


def read_sums(columns: Floats) -> Sums:
    """Summed columns (…, D) as what they are."""
    c, lead = len(CLASSES), columns.shape[:-1]
    ends = np.cumsum([1, c, 1, 1, c * c])
    return Sums(
        rated=columns[..., 0],
        shares=columns[..., 1 : ends[1]],
        paired=columns[..., ends[1]],
        agreed=columns[..., ends[2]],
        pairs=columns[..., ends[3] : ends[4]].reshape(*lead, c, c),
        ordered=columns[..., ends[4] :].reshape(*lead, ORDERED, ORDERED),
    )


def percent(sums: Sums) -> Floats:
    """The mean share of pairs of labels of an item that agree."""
    return _ratio(sums.agreed, sums.paired)


def fleiss(sums: Sums) -> Floats:
    """Fleiss (1971), as Gwet (2014, ch. 2) has it where the number of labels varies."""
    shares = _ratio(sums.shares, sums.rated[..., None])
    return _beyond(percent(sums), (shares**2).sum(axis=-1))


def ac1(sums: Sums, choices: int) -> Floats:
    """Gwet's AC1 (2008), where annotators had so many choices."""
    shares = _ratio(sums.shares, sums.rated[..., None])
    expected = (shares * (1 - shares)).sum(axis=-1) / (choices - 1)
    return _beyond(percent(sums), expected)


def alpha_nominal(sums: Sums) -> Floats:
    """Krippendorff (2011) with 0 for equal and 1 for different classes."""
    return _alpha(sums.pairs, 1 - np.eye(sums.pairs.shape[-1]))


def alpha_ordinal(sums: Sums) -> Floats:
    """Krippendorff (2011): the distance of two classes is the labels between them, squared."""
    return _alpha(sums.ordered, ordinal_distances(sums.ordered.sum(axis=-1)))


def ordinal_distances(totals: Floats) -> Floats:
    """(…, C) labels per class → (…, C, C) squared distances."""
    middle = np.cumsum(totals, axis=-1) - totals / 2
    return np.square(middle[..., :, None] - middle[..., None, :])


def _alpha(pairs: Floats, distance: Floats) -> Floats:
    totals = pairs.sum(axis=-1)
    n = totals.sum(axis=-1)
    observed = (pairs * distance).sum(axis=(-2, -1))
    product = totals[..., :, None] * totals[..., None, :]
    expected = _ratio((product * distance).sum(axis=(-2, -1)), n - 1)
    return 1 - _ratio(observed, expected)


def cohen(table: Floats) -> Floats:
    """Cohen (1960) from tables (…, C, C): one annotator's class by the other's."""
    n = table.sum(axis=(-2, -1))
    agreed = _ratio(np.trace(table, axis1=-2, axis2=-1), n)
    expected = _ratio((table.sum(axis=-1) * table.sum(axis=-2)).sum(axis=-1), n**2)
    return _beyond(agreed, expected)


def _beyond(agreed: Floats, expected: Floats) -> Floats:
    """Agreement beyond chance as a share of what chance leaves; NaN where it leaves nothing."""
    return _ratio(agreed - expected, 1 - expected)


def _ratio(above: Floats, below: Floats) -> Floats:
    below = np.asarray(below, dtype=np.float64)
    out = np.full(np.broadcast_shapes(np.shape(above), below.shape), np.nan)
    return np.asarray(np.divide(above, below, out=out, where=below > TINY))

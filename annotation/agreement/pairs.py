"""Agreement of two annotators on the items that both labelled: percent and Cohen's kappa."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from annotation.agreement.estimates import Estimate, Reason, estimate, resampled
from annotation.agreement.sums import cohen
from annotation.tables import CLASSES, Codes, Ints


@dataclass(frozen=True)
class PairAgreement:
    """Annotators `one` and `other` on `items` that both labelled; `agreed` of them alike."""

    one: int
    other: int
    items: int
    agreed: int
    kappa: Estimate


def pair_agreement(
    item: Ints, member: Ints, code: Codes, members: list[int]
) -> list[PairAgreement]:
    """Every pair of `members` (numbers as in `member`) that has an item in common."""
    seat = {number: place for place, number in enumerate(members)}
    keep = np.isin(member, members) & (code >= 0)
    rows, at = np.unique(item[keep], return_inverse=True)
    grid = np.full((len(members), len(rows)), -1, dtype=np.int8)
    grid[[seat[number] for number in member[keep].tolist()], at] = code[keep]
    found = []
    for i, one in enumerate(members):
        for j in range(i + 1, len(members)):
            table = cross_table(grid[i], grid[j])
            if table.sum():
                found.append(_compared(one, members[j], table))
    return found


def cross_table(one: Codes, other: Codes) -> Ints:
    """How often the two gave which verdicts (4, 4); -1 is no label."""
    both = (one >= 0) & (other >= 0)
    c = len(CLASSES)
    cells = one[both].astype(np.int64) * c + other[both]
    return np.bincount(cells, minlength=c * c).reshape(c, c)


def _compared(one: int, other: int, table: Ints) -> PairAgreement:
    n = int(table.sum())
    drawn = resampled(table.ravel()).reshape(-1, *table.shape).astype(np.float64)
    kappa = estimate(float(cohen(table.astype(np.float64))), cohen(drawn), n)
    if kappa.value is None:
        kappa = Estimate(None, reason=Reason.NO_VARIATION)
    return PairAgreement(one, other, n, int(np.trace(table)), kappa)

"""Whether people of different strata want different things, beyond what noise would show.

The same two answers (or the same two producers on the same prompt) are judged for several strata.
Within each stratum the labels have a majority; how often do the majorities differ? Mere noise
makes them differ, too: so labels of different strata are compared one with one, how often they
disagree, and then again with the labels of each pair shuffled among its strata.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations

import numpy as np

from annotation.agreement.estimates import LEVEL, SEED
from annotation.gold import interval
from annotation.tables import CLASSES, Codes, Ints

SHUFFLES = 200
MOST_SORTED = 4_000_000  # labels sorted over all shuffles together
NO_MAJORITY = -1


@dataclass(frozen=True)
class PairOfStrata:
    """`compared` pairs have a majority in both strata; they differ in `differ` of them."""

    one: int
    other: int
    compared: int
    differ: int


@dataclass(frozen=True)
class Difference:
    """`compared` pairs of answers have majorities in two or more strata; in `differ` of them
    the majorities are not the same, with the interval of that share.

    `across`, `within`: how often two labels of one pair disagree, given for different strata and
    for the same one. `by_chance`: the range of `across` if strata did not matter. None where
    there are no two such labels.
    """

    compared: int
    differ: int
    lo: float | None
    hi: float | None
    across: float | None
    within: float | None
    by_chance: tuple[float, float] | None
    strata: tuple[PairOfStrata, ...]

    @property
    def beyond_chance(self) -> bool:
        """Whether people of different strata disagree more than shuffled ones would."""
        chance, across = self.by_chance, self.across
        return chance is not None and across is not None and across > chance[1]


def segment_difference(group: Ints, stratum: Ints, code: Codes) -> Difference:
    """Labels (one entry each) of pairs numbered `group`, judged for `stratum`."""
    group, stratum, code = _in_several(group, stratum, code)
    cells, at = np.unique(np.stack([group, stratum]), axis=1, return_inverse=True)
    at = at.reshape(-1)
    majority = _majorities(at, code, cells.shape[1])
    compared, differ = _count(cells[0], majority)
    lo, hi = interval(differ, compared, LEVEL) if compared else (None, None)
    pairs = _LabelPairs.of(group, at, code)
    chance = _by_chance(pairs, group, at, code) if pairs.inside and pairs.outside else None
    across, within = pairs.disagreeing(at, code)
    return Difference(compared, differ, lo, hi, across, within, chance, _pairs(cells, majority))


def _in_several(group: Ints, stratum: Ints, code: Codes) -> tuple[Ints, Ints, Codes]:
    """Only what is judged for two or more strata, sorted by group."""
    keep = (group >= 0) & (code >= 0)
    group, stratum, code = group[keep], stratum[keep], code[keep]
    cells = np.unique(np.stack([group, stratum]), axis=1)
    several, times = np.unique(cells[0], return_counts=True)
    keep = np.isin(group, several[times > 1])
    order = np.argsort(group[keep], kind="stable")
    return group[keep][order], stratum[keep][order], code[keep][order]


def _majorities(cell: Ints, code: Codes, n: int) -> Ints:
    """The class with more than half of the labels of each cell, or NO_MAJORITY."""
    c = len(CLASSES)
    counts = np.bincount(cell * c + code, minlength=c * n).reshape(-1, c)
    top = counts.argmax(axis=1)
    return np.where(2 * counts.max(axis=1) > counts.sum(axis=1), top, NO_MAJORITY)


def _count(groups: Ints, majority: Ints) -> tuple[int, int]:
    """Groups (sorted, one entry per cell) with majorities in two cells, and that differ."""
    told = majority != NO_MAJORITY
    if not told.any():
        return 0, 0
    starts = np.flatnonzero(np.diff(groups[told], prepend=-1))
    cells = np.diff(np.append(starts, told.sum()))
    lowest = np.minimum.reduceat(majority[told], starts)
    highest = np.maximum.reduceat(majority[told], starts)
    return int((cells > 1).sum()), int(((cells > 1) & (lowest < highest)).sum())


@dataclass(frozen=True)
class _LabelPairs:
    """Pairs of labels on one pair of answers: `inside` one stratum, `outside`, and how many of
    all agree. Shuffling changes none of them, only which of the agreeing are inside.
    """

    inside: int
    outside: int
    agreeing: int

    @classmethod
    def of(cls, group: Ints, cell: Ints, code: Codes) -> _LabelPairs:
        everywhere = _twos(np.unique(group, return_counts=True)[1])
        inside = _twos(np.bincount(cell))
        return cls(inside, everywhere - inside, _twos_alike(group, code))

    def disagreeing(self, cell: Ints, code: Codes) -> tuple[float | None, float | None]:
        """The shares of pairs that disagree: across strata, and within them."""
        alike = _twos_alike(cell, code)
        across = 1 - (self.agreeing - alike) / self.outside if self.outside else None
        return across, 1 - alike / self.inside if self.inside else None


def _twos(counts: Ints) -> int:
    return int((counts * (counts - 1)).sum()) // 2


def _twos_alike(where: Ints, code: Codes) -> int:
    return _twos(np.unique(where * len(CLASSES) + code, return_counts=True)[1])


def _by_chance(pairs: _LabelPairs, group: Ints, cell: Ints, code: Codes) -> tuple[float, float]:
    """The range of the disagreement across strata after shuffling within each pair of answers."""
    rng = np.random.default_rng(SEED)
    times = max(20, min(SHUFFLES, MOST_SORTED // max(len(code), 1)))
    found = []
    for _ in range(times):
        order = np.lexsort((rng.random(len(code)), group))
        found.append(pairs.disagreeing(cell, code[order])[0] or 0.0)
    tail = 100 * (1 - LEVEL) / 2
    lo, hi = np.percentile(found, [tail, 100 - tail])
    return float(lo), float(hi)


def _pairs(cells: Ints, majority: Ints) -> tuple[PairOfStrata, ...]:
    told = majority != NO_MAJORITY
    by_stratum = {
        int(s): dict(zip(cells[0][k].tolist(), majority[k].tolist(), strict=True))
        for s in np.unique(cells[1])
        for k in [told & (cells[1] == s)]
    }
    found = []
    for one, other in combinations(sorted(by_stratum), 2):
        both = by_stratum[one].keys() & by_stratum[other].keys()
        differ = sum(by_stratum[one][g] != by_stratum[other][g] for g in both)
        if both:
            found.append(PairOfStrata(one, other, len(both), differ))
    return tuple(found)

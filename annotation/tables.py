"""Labels as arrays, the way the statistics read them. Pure: no Django, no models.

Items, members and strata are numbered from 0; verdicts are numbered as in `CLASSES`, -1 where an
axis was not answered.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.int64]
Codes = npt.NDArray[np.int8]
Bools = npt.NDArray[np.bool_]
Floats = npt.NDArray[np.float64]

CLASSES = ("first", "tie", "second", "both_bad")  # the first three in their order
FIRST, TIE, SECOND, BOTH_BAD = range(4)
ORDERED = 3  # how many of them have an order
FLIPPED = np.array([SECOND, TIE, FIRST, BOTH_BAD], dtype=np.int8)


@dataclass(frozen=True)
class ItemArrays:
    """One entry per item with labels.

    `working`: neither gold nor dropped. `texts`: items with the same prompt and the same two
    answers have the same number, `rivals`: those with the same prompt and the same two producers
    (-1: not known, or not to be told); `swapped` says that an item holds the two answers the other
    way round, `rivals_swapped` the two producers. `longer`: 1 where the first answer has more
    characters, -1 where the second has. `known`: the gold answer by axis, -1 where there is none.
    """

    pk: Ints
    stratum: Ints
    working: Bools
    texts: Ints
    swapped: Bools
    rivals: Ints
    rivals_swapped: Bools
    longer: Codes
    known: Mapping[str, Codes]


@dataclass(frozen=True)
class LabelArrays:
    """One entry per label that holds (the newest revision of a lease)."""

    item: Ints
    member: Ints
    verdict: Mapping[str, Codes]
    first_left: Bools
    active_ms: Ints
    late: Bools
    depends: Bools  # tagged: another person would choose otherwise
    counted: Bools
    ours: Bools  # given here, not imported
    day: Ints  # ordinal of the local date

    def only(self, keep: Bools) -> LabelArrays:
        return LabelArrays(
            item=self.item[keep],
            member=self.member[keep],
            verdict={axis: codes[keep] for axis, codes in self.verdict.items()},
            first_left=self.first_left[keep],
            active_ms=self.active_ms[keep],
            late=self.late[keep],
            depends=self.depends[keep],
            counted=self.counted[keep],
            ours=self.ours[keep],
            day=self.day[keep],
        )


@dataclass(frozen=True)
class LabelTable:
    """A project's labels. `first_time`: one per item and member; `repeats`: the same again."""

    axes: Sequence[str]
    allowed: Sequence[int]  # numbers of the verdicts that the project allows, and that occur
    strata: Sequence[str]
    members: Sequence[int]
    items: ItemArrays
    first_time: LabelArrays
    repeats: LabelArrays

    def working(self) -> LabelArrays:
        """The labels of ordinary items: no gold, nothing dropped."""
        return self.first_time.only(self.items.working[self.first_time.item])

"""Votes from a pandas frame: the only module that needs pandas, imported by nothing else here."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from arena.ratings.votes import IntArray, Outcome, VoteTable

ObjectArray = np.ndarray[tuple[int], np.dtype[np.object_]]
SAMPLE = 16384
SHARED = 0.9  # more distinct addresses than this in a sample: the strings are not shared
OBJECT_BITS = 4
SPREAD = 8  # sixteen-byte places per row, up to which a table of them beats hashing addresses


def votes_from_frame(
    frame: pd.DataFrame,
    *,
    left: str = "left",
    right: str = "right",
    outcome: str = "outcome",
    rater: str | None = None,
    context: str | None = None,
) -> VoteTable:
    """A table from a frame of strings; the keyword arguments name its columns.

    Raises KeyError on a missing column, ValueError on a missing value or an unknown outcome.
    """
    one, two, said = _factorize(frame[left]), _factorize(frame[right]), _factorize(frame[outcome])
    by = None if rater is None else _factorize(frame[rater])
    on = None if context is None else _factorize(frame[context])
    names = tuple(sorted({*one.labels, *two.labels}))
    raters = () if by is None else tuple(sorted(by.labels))
    contexts = () if on is None else tuple(sorted(on.labels))
    return VoteTable(
        contestants=names,
        left=one.recode(_places(names)),
        right=two.recode(_places(names)),
        outcome=said.recode({word: int(Outcome.parse(word)) for word in said.labels}),
        rater=None if by is None else by.recode(_places(raters)),
        context=None if on is None else on.recode(_places(contexts)),
        raters=raters,
        contexts=contexts,
    )


@dataclass(frozen=True, eq=False)
class _Column:
    """`code` (N,) holds some of the values `slots` (D,), whose text is `labels[label_of]` (D,)."""

    code: IntArray
    slots: IntArray
    label_of: IntArray
    labels: list[str]

    def recode(self, place: Mapping[str, int]) -> IntArray:
        """(N,) the place of every row's label, written over `code`."""
        if not len(self.code):
            return self.code
        places = np.array([place[label] for label in self.labels], dtype=np.int64)
        table = np.empty(int(self.slots.max()) + 1, dtype=np.int64)
        table[self.slots] = places[self.label_of]
        return np.take(table, self.code, out=self.code, mode="clip")


def _places(names: Sequence[str]) -> dict[str, int]:
    return {name: i for i, name in enumerate(names)}


def _factorize(column: pd.Series[str]) -> _Column:
    """The column's codes and labels; ValueError on what is not text.

    Strings are told apart by their address first, then by their text: in a frame that was read
    from a file equal strings are mostly one object, and comparing addresses is ten times faster
    than hashing text.
    """
    objects = column.to_numpy(dtype=object)
    code, slots, distinct = _by_address(objects)
    label_of, found = pd.factorize(distinct, use_na_sentinel=False)
    for label in found:
        if not isinstance(label, str):
            raise ValueError(f"column {column.name!r} holds {label!r}, which is not text")
    return _Column(code, slots, label_of.astype(np.int64, copy=False), list(found))


def _by_address(objects: ObjectArray) -> tuple[IntArray, IntArray, ObjectArray]:
    """Codes (N,), the distinct codes, and the object of each.

    Every row has its own code where the objects are not shared. Where they lie near each other
    in memory, the distance from the first of them is the code: an object takes sixteen bytes at
    least.
    """
    rows = len(objects)
    address = np.frombuffer(objects, dtype=np.intp) if rows else np.zeros(0, dtype=np.intp)
    sample = np.sort(address[:: max(1, rows // SAMPLE)])
    if np.count_nonzero(np.diff(sample)) + 1 >= SHARED * len(sample):
        code = np.arange(rows)
        return code, code.copy(), objects
    first = int(address.min())
    size = ((int(address.max()) - first) >> OBJECT_BITS) + 1
    if size <= SPREAD * rows:
        code = (address - first).astype(np.int64, copy=False)
        code >>= OBJECT_BITS
    else:
        code, found = pd.factorize(address)
        code, size = code.astype(np.int64, copy=False), len(found)
    row = np.arange(rows, dtype=np.int32 if rows < 2**31 else np.int64)
    last = np.empty(size, dtype=row.dtype)
    last[code] = row
    where = np.flatnonzero(np.take(last, code, mode="clip") == row)
    return code, code[where], objects[where]

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
    """`code` (N,) indexes `label_of`, which indexes the distinct `labels`."""

    code: IntArray
    label_of: IntArray
    labels: list[str]

    def recode(self, place: Mapping[str, int]) -> IntArray:
        """(N,) the place of every row's label, written over `code`."""
        if not len(self.code):
            return self.code
        places = np.array([place[label] for label in self.labels], dtype=np.int64)
        return np.take(places[self.label_of], self.code, out=self.code, mode="clip")


def _places(names: Sequence[str]) -> dict[str, int]:
    return {name: i for i, name in enumerate(names)}


def _factorize(column: pd.Series[str]) -> _Column:
    """The column's codes and labels; ValueError on what is not text.

    Strings are told apart by their address first, then by their text: in a frame that was read
    from a file equal strings are mostly one object, and comparing addresses is ten times faster
    than hashing text.
    """
    objects = column.to_numpy(dtype=object)
    code, distinct = _by_address(objects)
    label_of, found = pd.factorize(distinct, use_na_sentinel=False)
    for label in found:
        if not isinstance(label, str):
            raise ValueError(f"column {column.name!r} holds {label!r}, which is not text")
    return _Column(code, label_of.astype(np.int64, copy=False), list(found))


def _by_address(objects: ObjectArray) -> tuple[IntArray, ObjectArray]:
    """Codes (N,) into distinct objects; the objects themselves where they are not shared."""
    address = np.frombuffer(objects, dtype=np.intp) if len(objects) else np.zeros(0, dtype=np.intp)
    sample = address[:: max(1, len(address) // SAMPLE)]
    if len(np.unique(sample)) >= SHARED * len(sample):
        return np.arange(len(objects)), objects
    code, found = pd.factorize(address)
    where = np.empty(len(found), dtype=np.int64)
    where[code] = np.arange(len(code))
    return code.astype(np.int64, copy=False), objects[where]

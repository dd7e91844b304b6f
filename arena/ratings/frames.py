"""Votes from a pandas frame: the only module that needs pandas, imported by nothing else here."""

from __future__ import annotations

import numpy as np
import pandas as pd

from arena.ratings.votes import IntArray, Outcome, VoteTable

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
    left_codes, left_names = _factorize(frame[left])
    right_codes, right_names = _factorize(frame[right])
    names = tuple(sorted({*left_names, *right_names}))
    outcome_codes, words = _factorize(frame[outcome])
    outcomes = np.array([Outcome.parse(word) for word in words], dtype=np.int64)
    rater_codes, raters = (None, ()) if rater is None else _factorize_sorted(frame[rater])
    context_codes, contexts = (None, ()) if context is None else _factorize_sorted(frame[context])
    return VoteTable(
        contestants=names,
        left=_recode(left_codes, left_names, names),
        right=_recode(right_codes, right_names, names),
        outcome=outcomes[outcome_codes],
        rater=rater_codes,
        context=context_codes,
        raters=raters,
        contexts=contexts,
    )


def _factorize_sorted(column: pd.Series[str]) -> tuple[IntArray, tuple[str, ...]]:
    codes, labels = _factorize(column)
    names = tuple(sorted(set(labels)))
    return _recode(codes, labels, names), names


def _factorize(column: pd.Series[str]) -> tuple[IntArray, list[str]]:
    """Codes (N,) and the label of every code; labels may repeat."""
    objects = column.to_numpy(dtype=object)
    codes, labels = _factorize_objects(objects)
    for label in labels:
        if not isinstance(label, str):
            row = int(np.argmax(codes == labels.index(label)))
            raise ValueError(f"column {column.name!r}, row {row}: {label!r} is not text")
    return codes, [str(label) for label in labels]


def _factorize_objects(objects: np.ndarray[tuple[int], np.dtype[np.object_]]) -> tuple[
    IntArray, list[object]
]:
    """By the identity of the string objects where they are shared, as in a frame that was read
    from a file: comparing addresses is ten times faster than hashing text, and equal texts at
    different addresses only mean that a label comes twice."""
    if not len(objects):
        return np.zeros(0, dtype=np.int64), []
    address = np.frombuffer(objects, dtype=np.intp)
    sample = address[:: max(1, len(address) // SAMPLE)]
    if len(np.unique(sample)) > SHARED * len(sample):
        codes, labels = pd.factorize(objects, use_na_sentinel=False)
        return codes.astype(np.int64, copy=False), list(labels)
    codes, found = pd.factorize(address)
    where = np.empty(len(found), dtype=np.int64)
    where[codes] = np.arange(len(codes))
    return codes.astype(np.int64, copy=False), list(objects[where])


def _recode(codes: IntArray, labels: list[str], names: tuple[str, ...]) -> IntArray:
    place = {name: i for i, name in enumerate(names)}
    table = np.array([place[label] for label in labels], dtype=np.int64)
    return table[codes] if len(labels) else codes

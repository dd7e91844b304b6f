"""Votes as columns: the container that every rating starts from.

A vote is one rater's verdict, on one axis, on one battle of two contestants in one context.
`VoteTable` holds many of them as equal-length integer columns; names live once, in sorted
label tuples, so the order in which votes arrive can never change a rating.
"""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterable, Sequence
from dataclasses import dataclass
from enum import IntEnum
from functools import cached_property
from typing import Self

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
BoolArray = NDArray[np.bool_]


class Outcome(IntEnum):
    """What a rater said of a battle; the integer is the code in `VoteTable.outcome`."""

    LEFT = 0  # the left answer is better
    RIGHT = 1  # the right answer is better
    TIE = 2  # equally good
    BOTH_BAD = 3  # neither is acceptable

    @classmethod
    def parse(cls, word: str | int) -> Outcome:
        """The outcome of a word (`left`, `right`, `tie`, `both_bad`) or of its own code."""
        if isinstance(word, int):
            return cls(word)
        try:
            return cls[word.strip().upper()]
        except KeyError:
            raise ValueError(
                f"unknown outcome {word!r}: expected left, right, tie or both_bad"
            ) from None


@dataclass(frozen=True, eq=False)
class VoteTable:
    """N votes among K contestants, as columns.

    `left`, `right` (N,) index `contestants`; `outcome` (N,) holds `Outcome` codes; `rater` and
    `context` (N,) index `raters` and `contexts`, or are None where the source does not say who
    voted or on what. `weight` (N,) counts each row (None: 1 each). Labels are sorted. Rows keep
    the order in which they were given, which only the sequential Elo diagnostic looks at.
    """

    contestants: tuple[str, ...]
    left: IntArray
    right: IntArray
    outcome: IntArray
    rater: IntArray | None = None
    context: IntArray | None = None
    raters: tuple[str, ...] = ()
    contexts: tuple[str, ...] = ()
    weight: FloatArray | None = None

    def __post_init__(self) -> None:
        _check_columns(self)

    def __len__(self) -> int:
        return len(self.left)

    @property
    def weights(self) -> FloatArray:
        """(N,) the weight of each row, ones where none were given."""
        return np.ones(len(self)) if self.weight is None else self.weight

    @cached_property
    def cells(self) -> IntArray:
        """(N,) the place of every vote in the flattened `cube`."""
        cells: IntArray = (self.left * len(self.contestants) + self.right) * 4 + self.outcome
        return cells

    @cached_property
    def cube(self) -> FloatArray:
        """(K, K, 4) weighted counts by left contestant, right contestant and outcome; read only."""
        k = len(self.contestants)
        counts = np.bincount(self.cells, weights=self.weight, minlength=k * k * 4)
        cube = counts.astype(np.float64).reshape(k, k, 4)
        cube.flags.writeable = False
        return cube

    @classmethod
    def from_columns(
        cls,
        left: Sequence[str],
        right: Sequence[str],
        outcome: Sequence[str | int],
        *,
        rater: Sequence[str] | None = None,
        context: Sequence[str] | None = None,
        weight: Sequence[float] | None = None,
        contestants: Iterable[str] | None = None,
    ) -> Self:
        """A table from raw columns of names and outcome words.

        `contestants` lists names that must have a row even without votes. Raises ValueError on
        unequal lengths, an unknown outcome, a name missing from `contestants`, or a contestant
        that meets itself.
        """
        _check_lengths(left=left, right=right, outcome=outcome, rater=rater, context=context)
        given = None if contestants is None else set(contestants)
        names = _sorted_names(set(left) | set(right), given)
        index = {name: i for i, name in enumerate(names)}
        words = {word: int(Outcome.parse(word)) for word in set(outcome)}
        rater_codes, raters = (None, ()) if rater is None else encode(rater)
        context_codes, contexts = (None, ()) if context is None else encode(context)
        return cls(
            contestants=names,
            left=_look_up(left, index),
            right=_look_up(right, index),
            outcome=_look_up(outcome, words),
            rater=rater_codes,
            context=context_codes,
            raters=raters,
            contexts=contexts,
            weight=None if weight is None else np.asarray(weight, dtype=np.float64),
        )

    @classmethod
    def from_rows(
        cls,
        rows: Iterable[tuple[str, str, str | int, str, str]],
        *,
        contestants: Iterable[str] | None = None,
    ) -> Self:
        """A table from rows (left, right, outcome, rater, context)."""
        columns: tuple[Sequence[str], ...] = tuple(zip(*rows, strict=True)) or ((),) * 5
        left, right, outcome, rater, context = columns
        return cls.from_columns(
            left, right, outcome, rater=rater, context=context, contestants=contestants
        )

    def canonical(self) -> Self:
        """The same votes in one fixed order, so that sums come out the same to the last bit."""
        if not len(self):
            return self
        names, raters = len(self.contestants), max(len(self.raters), 1)
        key = 0 if self.context is None else self.context
        key = key * raters + (0 if self.rater is None else self.rater)
        key = ((key * names + self.left) * names + self.right) * 4 + self.outcome
        if self.weight is None:
            return self.subset(sorted_order(key))
        return self.subset(np.lexsort((self.weight, key)))

    def subset(self, mask: BoolArray | IntArray) -> Self:
        """The rows that a boolean mask or an index array picks; labels stay as they are."""
        return type(self)(
            contestants=self.contestants,
            left=self.left[mask],
            right=self.right[mask],
            outcome=self.outcome[mask],
            rater=None if self.rater is None else self.rater[mask],
            context=None if self.context is None else self.context[mask],
            raters=self.raters,
            contexts=self.contexts,
            weight=None if self.weight is None else self.weight[mask],
        )


def encode(values: Sequence[str]) -> tuple[IntArray, tuple[str, ...]]:
    """Codes (N,) of the values and their sorted distinct labels."""
    labels = tuple(sorted(set(values)))
    return _look_up(values, {label: i for i, label in enumerate(labels)}), labels


def sorted_order(keys: IntArray) -> IntArray:
    """(N,) the stable order that sorts keys that are not negative, sixteen bits at a time.

    NumPy sorts 16-bit integers by radix, which beats its comparison sort several times over.
    """
    order = np.argsort((keys & 0xFFFF).astype(np.uint16), kind="stable")
    rest = int(keys.max(initial=0)) >> 16
    shift = 16
    while rest:
        digit = ((keys[order] >> shift) & 0xFFFF).astype(np.uint16)
        order = order[np.argsort(digit, kind="stable")]
        rest, shift = rest >> 16, shift + 16
    return order


def _look_up(values: Sequence[Hashable], index: dict[str, int] | dict[str | int, int]) -> IntArray:
    find = index.__getitem__
    return np.fromiter(map(find, values), dtype=np.int64, count=len(values))  # type: ignore[arg-type]


def _sorted_names(seen: set[str], given: set[str] | None) -> tuple[str, ...]:
    if given is None:
        return tuple(sorted(seen))
    if unknown := sorted(seen - given):
        raise ValueError(f"votes name unknown contestants: {', '.join(map(repr, unknown))}")
    return tuple(sorted(given))


def _check_lengths(**columns: Collection[object] | None) -> None:
    lengths = {name: len(column) for name, column in columns.items() if column is not None}
    if len(set(lengths.values())) > 1:
        said = ", ".join(f"{name} {n}" for name, n in lengths.items())
        raise ValueError(f"columns differ in length: {said}")


def _check_columns(table: VoteTable) -> None:
    n = len(table.left)
    _check_lengths(
        left=table.left,
        right=table.right,
        outcome=table.outcome,
        rater=table.rater,
        context=table.context,
        weight=table.weight,
    )
    if not n:
        return
    _check_codes("left", table.left, len(table.contestants))
    _check_codes("right", table.right, len(table.contestants))
    _check_codes("outcome", table.outcome, len(Outcome))
    if table.rater is not None:
        _check_codes("rater", table.rater, len(table.raters))
    if table.context is not None:
        _check_codes("context", table.context, len(table.contexts))
    same = table.left == table.right
    if same.any():
        row = int(np.argmax(same))
        raise ValueError(f"row {row}: {table.contestants[table.left[row]]!r} meets itself")
    if table.weight is not None and not (np.isfinite(table.weight) & (table.weight >= 0)).all():
        raise ValueError("weights must be finite and not negative")


def _check_codes(name: str, codes: IntArray, labels: int) -> None:
    if int(codes.min()) < 0 or int(codes.max()) >= labels:
        raise ValueError(f"column {name} holds a code outside 0..{labels - 1}")

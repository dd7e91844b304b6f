"""Which strengths the comparisons can tell apart at all, and the sentences that say so.

Ford (1957): the Bradley–Terry maximum is finite and unique if and only if the graph "i beat (or
tied) j" is strongly connected.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.sparse.csgraph import connected_components

from arena.ratings.votes import BoolArray, FloatArray, IntArray


@dataclass(frozen=True)
class Note:
    """A statement about a rating: a stable code, an English sentence, the names it is about."""

    code: str
    text: str
    names: tuple[str, ...] = ()


@dataclass(frozen=True, eq=False)
class Connectivity:
    """How the comparisons hang together.

    `component` (K,): the group of contestants linked by comparisons, −1 without votes; groups are
    numbered by falling size. `strong` (groups,): whether plain maximum likelihood is finite
    there. `never_loses`, `never_wins` (K,): no vote, not even a tie, went the other way.
    """

    component: IntArray
    strong: BoolArray
    never_loses: BoolArray
    never_wins: BoolArray

    @property
    def groups(self) -> int:
        return len(self.strong)

    @property
    def rated(self) -> BoolArray:
        """(K,) who has votes at all."""
        return self.component >= 0

    @property
    def gauge(self) -> FloatArray:
        """(K, K) projection on what votes cannot see: group means and unrated contestants."""
        same = (self.component[:, None] == self.component[None, :]) & self.rated[:, None]
        size = np.maximum(same.sum(1, keepdims=True), 1)
        projection: FloatArray = same / size + np.diag((~self.rated).astype(np.float64))
        return projection

    def members(self, group: int) -> IntArray:
        return np.flatnonzero(self.component == group)


def connectivity(wins: FloatArray) -> Connectivity:
    """The groups of a (K, K) matrix of points of i against j."""
    k = len(wins)
    played = (wins.sum(0) + wins.sum(1)) > 0
    component = np.full(k, -1, dtype=np.int64)
    strong: list[bool] = []
    if k and played.any():
        graph = (wins > 0).astype(np.float64)
        _, weak = connected_components(graph, directed=False)
        _, tight = connected_components(graph, directed=True, connection="strong")
        for label in _by_size(weak[played]):
            inside = (weak == label) & played
            component[inside] = len(strong)
            strong.append(len(np.unique(tight[inside])) == 1)
    return Connectivity(
        component=component,
        strong=np.array(strong, dtype=np.bool_),
        never_loses=played & (wins.sum(0) == 0),
        never_wins=played & (wins.sum(1) == 0),
    )


def one_way(wins: FloatArray) -> bool:
    """Whether no chain of wins (K, K), ties left out, leads back to where it began.

    Then Davidson's maximum may run off to infinity, strengths and tie parameter together.
    """
    count, _ = connected_components((wins > 0).astype(np.float64), connection="strong")
    return bool(count == len(wins))


def describe(graph: Connectivity, names: Sequence[str]) -> tuple[Note, ...]:
    """What a reader of the ratings has to be told about the graph."""
    return (
        *_describe_missing(graph, names),
        *_describe_groups(graph, names),
        *_describe_extremes(graph, names),
    )


def pick(names: Sequence[str], mask: BoolArray) -> tuple[str, ...]:
    """The names where the mask is true."""
    return tuple(name for name, here in zip(names, mask, strict=True) if here)


def _by_size(labels: IntArray) -> list[int]:
    found, first, size = np.unique(labels, return_index=True, return_counts=True)
    return [int(found[i]) for i in np.lexsort((first, -size))]


def _describe_missing(graph: Connectivity, names: Sequence[str]) -> tuple[Note, ...]:
    if not graph.groups:
        return (Note("no_votes_at_all", "There are no votes, so nothing is rated."),)
    missing = pick(names, graph.component < 0)
    if not missing:
        return ()
    text = f"No votes, therefore no rating: {', '.join(missing)}."
    return (Note("no_votes", text, missing),)


def _describe_groups(graph: Connectivity, names: Sequence[str]) -> tuple[Note, ...]:
    if graph.groups < 2:
        return ()
    groups = [pick(names, graph.component == g) for g in range(graph.groups)]
    said = "; ".join(", ".join(group) for group in groups)
    text = (
        f"The comparisons fall into {graph.groups} groups with no vote between them, so ratings "
        f"compare only within a group, and each group is centred by itself: {said}."
    )
    return (Note("disconnected", text),)


def _describe_extremes(graph: Connectivity, names: Sequence[str]) -> tuple[Note, ...]:
    notes: list[Note] = []
    if unbeaten := pick(names, graph.never_loses):
        text = f"Never lost or tied, so the rating has no upper bound: {', '.join(unbeaten)}."
        notes.append(Note("never_loses", text, unbeaten))
    if winless := pick(names, graph.never_wins):
        text = f"Never won or tied, so the rating has no lower bound: {', '.join(winless)}."
        notes.append(Note("never_wins", text, winless))
    for group in np.flatnonzero(~graph.strong):
        members = pick(names, graph.component == group)
        text = (
            f"Votes run one way only between some of {', '.join(members)}, so maximum likelihood "
            "has no finite answer. The fit was regularised: every one of these contestants was "
            "given one virtual tie, spread evenly over the others."
        )
        notes.append(Note("regularised", text, members))
    return tuple(notes)

"""The overall rating: a weighted sum of the log strengths of several axes.

One rater judges a battle on all axes at once, so the axes are not independent. Their scores are
stacked per rater and per context, which gives the covariance between axes; the variance of the
sum then follows from the weights.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from arena.ratings.clusters import Cluster
from arena.ratings.fit import Fit
from arena.ratings.graph import Connectivity, Note, describe
from arena.ratings.interval import Axis, Covariance, stacked_covariance
from arena.ratings.votes import BoolArray, FloatArray, IntArray, VoteTable


@dataclass(frozen=True, eq=False)
class Composite:
    """`strength` (K,) centred per group, NaN unless rated on every axis; its covariance (K, K).

    `weights` by axis, scaled to the sum 1.
    """

    strength: FloatArray
    covariance: Covariance
    graph: Connectivity
    weights: dict[str, float]
    notes: tuple[Note, ...]


def compose(
    axes: Mapping[str, Axis], weights: Mapping[str, float], cluster: Cluster = Cluster.BOTH
) -> Composite:
    """The composite of axes whose tables share contestants, raters and contexts (see `align`).

    Weights are the pre-registered ones; they must be finite, not negative, not all zero, and
    name exactly the axes. They are scaled to the sum 1, so that the composite keeps the scale of
    its axes. Axes of weight 0 count for nothing. Raises ValueError otherwise.
    """
    scaled = scale_weights(axes, weights)
    names = [name for name, weight in scaled.items() if weight > 0]
    used = [axes[name] for name in names]
    _check_aligned(used)
    fits = [axis.fit for axis in used]
    graph = joint_graph(fits)
    cov = stacked_covariance(used, cluster)
    mix = _mixing(fits, [scaled[name] for name in names], graph)
    total = np.sum([scaled[n] * axes[n].fit.strength for n in names], axis=0)
    strength = np.where(graph.rated, total - graph.gauge @ np.nan_to_num(total), np.nan)
    notes = (*_axis_notes(names, fits), *describe(graph, used[0].votes.contestants), *cov.notes)
    matrix = mix @ cov.matrix @ mix.T
    return Composite(
        strength, Covariance(matrix, cov.df, cov.cluster, cov.notes), graph, scaled, notes
    )


def align(tables: Mapping[str, VoteTable]) -> dict[str, VoteTable]:
    """The same tables with shared contestants, raters and contexts, so that codes agree."""
    contestants = _union(table.contestants for table in tables.values())
    raters = _union(table.raters for table in tables.values())
    contexts = _union(table.contexts for table in tables.values())
    return {
        axis: VoteTable(
            contestants=contestants,
            left=_recode(table.left, table.contestants, contestants),
            right=_recode(table.right, table.contestants, contestants),
            outcome=table.outcome,
            rater=None if table.rater is None else _recode(table.rater, table.raters, raters),
            context=(
                None if table.context is None else _recode(table.context, table.contexts, contexts)
            ),
            raters=raters,
            contexts=contexts,
            weight=table.weight,
        )
        for axis, table in tables.items()
    }


def scale_weights(axes: Mapping[str, object], weights: Mapping[str, float]) -> dict[str, float]:
    """The weights scaled to the sum 1; ValueError where they do not fit the axes."""
    if set(axes) != set(weights):
        raise ValueError(f"weights name {sorted(weights)}, the axes are {sorted(axes)}")
    values = np.array([weights[name] for name in axes], dtype=np.float64)
    if not np.isfinite(values).all() or (values < 0).any() or not values.sum() > 0:
        raise ValueError("weights must be finite, not negative, and not all zero")
    return {name: float(v) for name, v in zip(axes, values / values.sum(), strict=True)}


def joint_graph(fits: Sequence[Fit]) -> Connectivity:
    """Contestants compare only where they are connected on every axis."""
    keys = np.stack([fit.graph.component for fit in fits], axis=1)
    rated: BoolArray = np.asarray((keys >= 0).all(1), dtype=np.bool_)
    component = np.full(len(keys), -1, dtype=np.int64)
    groups = np.zeros(0, dtype=np.bool_)
    if rated.any():
        _, code, size = np.unique(keys[rated], axis=0, return_inverse=True, return_counts=True)
        place = np.argsort(np.argsort(-size, kind="stable"), kind="stable")
        component[rated] = place[code.ravel()]
        groups = np.ones(len(size), dtype=np.bool_)
    never_loses = np.all([fit.graph.never_loses for fit in fits], axis=0)
    never_wins = np.all([fit.graph.never_wins for fit in fits], axis=0)
    return Connectivity(component, groups, never_loses, never_wins)


def _mixing(fits: Sequence[Fit], weights: Sequence[float], graph: Connectivity) -> FloatArray:
    """(K, ΣP) the matrix that takes stacked parameters to centred composite strengths."""
    k = fits[0].shape.contestants
    away = np.eye(k) - graph.gauge
    blocks = []
    for fit, weight in zip(fits, weights, strict=True):
        block = np.zeros((k, fit.shape.size))
        block[:, :k] = weight * away
        blocks.append(block)
    return np.concatenate(blocks, axis=1)


def _axis_notes(names: Sequence[str], fits: Sequence[Fit]) -> tuple[Note, ...]:
    return tuple(
        Note(note.code, f"{name}: {note.text}", note.names)
        for name, fit in zip(names, fits, strict=True)
        for note in fit.notes
    )


def _check_aligned(axes: Sequence[Axis]) -> None:
    first = axes[0].votes
    for axis in axes[1:]:
        votes = axis.votes
        if (votes.contestants, votes.raters, votes.contexts) != (
            first.contestants,
            first.raters,
            first.contexts,
        ):
            raise ValueError("the axes must share contestants, raters and contexts: align them")


def _union(labels: Iterable[tuple[str, ...]]) -> tuple[str, ...]:
    return tuple(sorted({label for group in labels for label in group}))


def _recode(codes: IntArray, old: tuple[str, ...], new: tuple[str, ...]) -> IntArray:
    place = {label: i for i, label in enumerate(new)}
    table = np.array([place[label] for label in old], dtype=np.int64)
    return table[codes] if len(table) else codes

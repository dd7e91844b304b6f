"""The bootstrap of raters, all replicates in one batch.

Raters are drawn with replacement; a replicate is the sum of its raters' K×K matrices, so no vote
is looked at again, and all replicates are fitted by one batched Newton iteration that starts at
the point fit. What contexts share is not resampled: the interval says how sure the rating is over
raters, given these contexts.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from arena.ratings.clusters import Cluster, Grouping, context_grouping, rater_grouping
from arena.ratings.counts import BothBad, Counts, grouped_cube, outcome_cube
from arena.ratings.fit import Fit
from arena.ratings.graph import Note
from arena.ratings.model import Shape, maximise
from arena.ratings.votes import FloatArray, IntArray, VoteTable

CLOSE = 1e-6  # a replicate needs no more digits than this, in log strength
WILD = 25.0  # a log strength beyond this is a replicate without a finite maximum


@dataclass(frozen=True, eq=False)
class Replicates:
    """`params` (B, P): refitted parameter vectors, strengths centred; and what to say of them."""

    params: FloatArray
    cluster: Cluster
    notes: tuple[Note, ...] = ()

    def interval(self, contestants: int, confidence: float) -> tuple[FloatArray, FloatArray]:
        """(K,), (K,) percentile interval of centred strengths, in log strength."""
        tail = 0.5 * (1.0 - confidence)
        theta = self.params[:, :contestants]
        low, high = np.quantile(theta, [tail, 1.0 - tail], axis=0)
        return low, high


def bootstrap(
    votes: VoteTable,
    fit: Fit,
    *,
    cluster: Cluster = Cluster.RATER,
    both_bad: BothBad = BothBad.AS_TIE,
    replicates: int = 1000,
    seed: int = 0,
) -> Replicates:
    """Refit `replicates` resamples of the raters (or contexts, or single votes).

    Deterministic in `seed`. A replicate without a finite maximum is regularised like a point fit
    would be, and counted in the notes.
    """
    rng = np.random.default_rng(seed)
    used, notes = _available(votes, cluster)
    if used is Cluster.NONE:
        cells = _resample_votes(votes, both_bad, replicates, rng)
    else:
        group = rater_grouping(votes) if used is Cluster.RATER else context_grouping(votes)
        assert group is not None, "checked by _available"
        cells = _resample_groups(votes, group, both_bad, replicates, rng)
    params, wild = _refit(cells, fit)
    if wild:
        text = f"{wild} of {replicates} replicates had no finite fit and were regularised."
        notes = (*notes, Note("bootstrap_regularised", text))
    return Replicates(params, used, notes)


def _available(votes: VoteTable, cluster: Cluster) -> tuple[Cluster, tuple[Note, ...]]:
    wanted = Cluster.RATER if cluster is Cluster.BOTH else cluster
    column = {Cluster.RATER: votes.rater, Cluster.CONTEXT: votes.context}.get(wanted, votes.left)
    if column is None:
        text = f"The votes do not name their {wanted}s, so single votes were resampled."
        return Cluster.NONE, (Note("cluster_unknown", text),)
    if cluster is Cluster.BOTH:
        text = "The bootstrap resamples raters only; what contexts share is not in the interval."
        return wanted, (Note("bootstrap_raters_only", text),)
    return wanted, ()


def _folded(cube: FloatArray, both_bad: BothBad, upper: tuple[IntArray, IntArray]) -> FloatArray:
    """(…, 3, pairs) wins of the first, wins of the second, ties of each unordered pair."""
    counts = Counts.of(cube, both_bad)
    i, j = upper
    first = counts.left[..., i, j] + counts.right[..., j, i]
    second = counts.right[..., i, j] + counts.left[..., j, i]
    return np.stack([first, second, counts.tie[..., i, j] + counts.tie[..., j, i]], axis=-2)


def _resample_groups(
    votes: VoteTable, group: Grouping, both_bad: BothBad, b: int, rng: np.random.Generator
) -> FloatArray:
    """(B, 3, pairs) from groups drawn with replacement; groups without votes are left out."""
    upper = np.triu_indices(len(votes.contestants), 1)
    own = _folded(grouped_cube(votes, group.code, group.size), both_bad, upper)
    own = own[np.bincount(group.code, minlength=group.size) > 0]
    g = len(own)
    drawn = rng.integers(0, g, (b, g)) + g * np.arange(b)[:, None]
    weight = np.bincount(drawn.ravel(), minlength=b * g).reshape(b, g).astype(np.float64)
    return (weight @ own.reshape(g, -1)).reshape(b, 3, -1)


def _resample_votes(
    votes: VoteTable, both_bad: BothBad, b: int, rng: np.random.Generator
) -> FloatArray:
    """(B, 3, pairs) from single votes drawn with replacement."""
    upper = np.triu_indices(len(votes.contestants), 1)
    own = _folded(outcome_cube(votes), both_bad, upper)
    total = own.sum()
    drawn = rng.multinomial(round(total), (own / total).ravel(), size=b)
    return drawn.astype(np.float64).reshape(b, *own.shape)


def _refit(cells: FloatArray, fit: Fit) -> tuple[FloatArray, int]:
    """(B, P) the refitted replicates and how many of them had to be regularised."""
    shape = Shape(fit.shape.contestants, ties=fit.shape.ties)
    start = np.broadcast_to(fit.params[: shape.size], (len(cells), shape.size)).copy()
    counts = _unfold(cells, shape.contestants).add(fit.virtual)
    solution = maximise(counts, start, shape, fit.graph.gauge, limit=25, tolerance=CLOSE)
    size = np.abs(solution.params).max(-1, initial=0.0)
    wild = ~solution.converged | (size > WILD)
    params = solution.params
    if wild.any():
        held = counts.pick(wild).add(_one_tie_each(fit))
        params[wild] = maximise(held, start[wild], shape, fit.graph.gauge, tolerance=CLOSE).params
    return params, int(wild.sum())


def _unfold(cells: FloatArray, k: int) -> Counts:
    """(B, K, K) counts with every pair's votes in the cell above the diagonal."""
    i, j = np.triu_indices(k, 1)
    full = np.zeros((3, len(cells), k, k))
    full[:, :, i, j] = np.moveaxis(cells, 1, 0)
    return Counts(left=full[0], right=full[1], tie=full[2])


def _one_tie_each(fit: Fit) -> FloatArray:
    """(K, K) the virtual wins of `virtual_ties`, for every group whether it needs them or not."""
    component = fit.graph.component
    same = (component[:, None] == component[None, :]) & (component >= 0)[:, None]
    np.fill_diagonal(same, False)
    share: FloatArray = 0.25 * same / np.maximum(same.sum(1, keepdims=True), 1)
    return share

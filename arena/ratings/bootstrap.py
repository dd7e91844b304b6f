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
from arena.ratings.votes import FloatArray, VoteTable

CLOSE = 1e-3  # the last Newton step; what remains after it is of the order of its square
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
        cells = _resample_votes(votes, both_bad, fit.shape.ties, replicates, rng)
    else:
        group = rater_grouping(votes) if used is Cluster.RATER else context_grouping(votes)
        assert group is not None, "checked by _available"
        cube = grouped_cube(votes, group.code, group.size)
        cells = _resample_groups(_folded(cube, both_bad, fit.shape.ties), group, replicates, rng)
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


def _folded(cube: FloatArray, both_bad: BothBad, ties: bool) -> FloatArray:
    """(…, 3, pairs) wins of the first, wins of the second, ties of each unordered pair.

    Without `ties` (…, 2, pairs), with half a win for either in a tie.
    """
    counts = Counts.of(cube, both_bad)
    i, j = np.triu_indices(cube.shape[-2], 1)
    first = counts.left[..., i, j] + counts.right[..., j, i]
    second = counts.right[..., i, j] + counts.left[..., j, i]
    tie = counts.tie[..., i, j] + counts.tie[..., j, i]
    if ties:
        return np.stack([first, second, tie], axis=-2)
    return np.stack([first + 0.5 * tie, second + 0.5 * tie], axis=-2)


def _resample_groups(
    own: FloatArray, group: Grouping, b: int, rng: np.random.Generator
) -> FloatArray:
    """(B, m, pairs) from groups (G, m, pairs) drawn with replacement, the empty ones left out."""
    own = own[np.bincount(group.code, minlength=group.size) > 0]
    g = len(own)
    drawn = rng.integers(0, g, (b, g)) + g * np.arange(b)[:, None]
    weight = np.bincount(drawn.ravel(), minlength=b * g).reshape(b, g)
    exact = np.float32 if _exact_in_single(own) else np.float64
    summed = weight.astype(exact) @ own.reshape(g, -1).astype(exact)
    cells: FloatArray = summed.astype(np.float64).reshape(b, *own.shape[1:])
    return cells


def _exact_in_single(own: FloatArray) -> bool:
    """Whether every sum over groups is a multiple of a half that 24 bits hold."""
    halves = bool((own * 2.0 == np.rint(own * 2.0)).all())
    return halves and bool(2.0 * len(own) * own.max(initial=0.0) < 2.0**24)


def _resample_votes(
    votes: VoteTable, both_bad: BothBad, ties: bool, b: int, rng: np.random.Generator
) -> FloatArray:
    """(B, m, pairs) from single votes drawn with replacement."""
    own = _folded(outcome_cube(votes), both_bad, ties=True)
    total = own.sum()
    drawn = rng.multinomial(round(total), (own / total).ravel(), size=b)
    cells = drawn.astype(np.float64).reshape(b, *own.shape)
    return cells if ties else cells[:, :2] + 0.5 * cells[:, 2:]


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
    b, kinds, _ = cells.shape
    full = np.zeros((kinds, b, k, k))
    full[:, :, i, j] = np.moveaxis(cells, 1, 0)
    return Counts(full[0], full[1], full[2] if kinds == 3 else np.zeros((b, 1, 1)))


def _one_tie_each(fit: Fit) -> FloatArray:
    """(K, K) the virtual wins of `virtual_ties`, for every group whether it needs them or not."""
    component = fit.graph.component
    same = (component[:, None] == component[None, :]) & (component >= 0)[:, None]
    np.fill_diagonal(same, False)
    share: FloatArray = 0.25 * same / np.maximum(same.sum(1, keepdims=True), 1)
    return share

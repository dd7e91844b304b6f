"""The side effect: what standing on the left is worth, fitted together with the strengths."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from arena.ratings.clusters import Cluster
from arena.ratings.counts import BothBad, collapse
from arena.ratings.elo import ELO_PER_LOG
from arena.ratings.fit import Fit, fit_bradley_terry, fit_with_side
from arena.ratings.graph import Note
from arena.ratings.interval import Axis, covariance, quantile
from arena.ratings.model import Shape, fix_gauge, information, moments
from arena.ratings.votes import VoteTable


@dataclass(frozen=True)
class SideEffect:
    """Advantage of the left position.

    `log_odds`, `lo`, `hi`: on the natural log scale, positive where the left is favoured;
    `elo`: the same on the Elo scale; `left_share`: share of decided votes that went left. None
    where the votes cannot tell.
    """

    log_odds: float | None
    lo: float | None
    hi: float | None
    elo: float | None
    left_share: float | None
    notes: tuple[Note, ...] = ()


def side_effect(
    votes: VoteTable,
    *,
    ties: bool = False,
    cluster: Cluster = Cluster.BOTH,
    both_bad: BothBad = BothBad.AS_TIE,
    confidence: float = 0.95,
) -> SideEffect:
    """The side effect with its clustered interval; `ties` fits Davidson's model."""
    counts = collapse(votes, both_bad)
    decided = float((counts.left + counts.right).sum())
    share = float(counts.left.sum()) / decided if decided else None
    if not decided:
        return SideEffect(None, None, None, None, None, (Note("side_unknown", _NO_VOTES),))
    if share in (0.0, 1.0):
        return SideEffect(None, None, None, None, share, (Note("side_unknown", _ALL_ONE_SIDE),))
    plain = fit_bradley_terry(counts, votes.contestants)
    if not _separable(plain, votes, both_bad):
        return SideEffect(None, None, None, None, share, (Note("side_unknown", _CONFOUNDED),))
    fit = fit_with_side(counts, votes.contestants, ties=ties)
    assert fit.side is not None, "fit_with_side fits it wherever there are votes"
    if not abs(fit.side) < UNBOUNDED:
        return SideEffect(None, None, None, None, share, (Note("side_unknown", _ONE_SIDED),))
    cov = covariance(Axis(votes, fit, both_bad), cluster)
    half = float(np.sqrt(max(cov.matrix[-1, -1], 0.0))) * quantile(cov.df, confidence)
    known = bool(np.isfinite(half))
    return SideEffect(
        log_odds=fit.side,
        lo=fit.side - half if known else None,
        hi=fit.side + half if known else None,
        elo=fit.side * ELO_PER_LOG,
        left_share=share,
        notes=cov.notes,
    )


UNBOUNDED = 12.0  # log odds that no real side effect has: the maximum lies at infinity
_ONE_SIDED = "The side explains these few votes completely, so its effect has no finite estimate."
_NO_VOTES = "There are no decided votes, so the side effect is unknown."
_ALL_ONE_SIDE = (
    "Every decided vote went to the same side, so the side effect has no finite estimate."
)
_CONFOUNDED = (
    "Contestants kept to their sides, so the side effect cannot be told from their strengths."
)


def _separable(fit: Fit, votes: VoteTable, both_bad: BothBad) -> bool:
    """Whether the side still has information once the strengths are taken out."""
    k = fit.shape.contestants
    shape = Shape(k, side=True)
    total = collapse(votes, both_bad).add(fit.virtual).total
    info = information(total, moments(np.append(fit.params[:k], 0.0), shape), shape)
    inner = fix_gauge(info, fit.graph.gauge)[:k, :k]
    left = info[k, k] - info[k, :k] @ np.linalg.solve(inner, info[:k, k])
    return bool(left > 1e-8 * info[k, k])

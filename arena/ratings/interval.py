"""Intervals of centred strengths: the sandwich covariance, clustered one or two ways.

Two ways (Cameron, Gelbach & Miller 2011): V = V_rater + V_context − V_(rater, context), each
V = B M B with B the inverse information and M the sum of s s′ over clusters. Small numbers of
clusters are the normal case here, so a clustering with few clusters takes the leave-one-cluster-
out jackknife (CV3: Bell & McCaffrey 2002, MacKinnon, Nielsen & Webb 2023), and one with many the
factor G/(G − 1). Quantiles come from Student's t.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.stats import t as student

from arena.ratings.clusters import (
    DENSE_CELLS,
    Cluster,
    Grouping,
    ScoreTable,
    context_grouping,
    group_totals,
    meat,
    meeting_grouping,
    meeting_meat,
    rater_grouping,
    score_table,
)
from arena.ratings.counts import BothBad, collapse
from arena.ratings.fit import Fit
from arena.ratings.graph import Note
from arena.ratings.model import fix_gauge, information, moments
from arena.ratings.votes import FloatArray, VoteTable

JACKKNIFE_CLUSTERS = 60


@dataclass(frozen=True, eq=False)
class Covariance:
    """Covariance of a fit's parameters.

    `matrix` (P, P): of the parameter vector, strengths centred; `df`: degrees of freedom for
    Student's t (infinite: normal). `cluster`: what was really used, after `notes`.
    """

    matrix: FloatArray
    df: float
    cluster: Cluster
    notes: tuple[Note, ...] = ()


def bread(fit: Fit, votes: VoteTable, both_bad: BothBad) -> FloatArray:
    """(P, P) the inverse information on centred strengths."""
    counts = collapse(votes, both_bad).add(fit.virtual)
    info = information(counts.total, moments(fit.params, fit.shape), fit.shape)
    k = fit.shape.contestants
    inverse: FloatArray = np.linalg.inv(fix_gauge(info, fit.graph.gauge))
    away = np.eye(fit.shape.size)
    away[:k, :k] -= fit.graph.gauge
    centred: FloatArray = away @ inverse @ away
    return centred

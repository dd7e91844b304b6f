"""Rating arithmetic: votes in, strengths with honest intervals out. Pure numpy, no Django.

`rate(votes, spec)` is the way in; the modules beneath it can be used alone.
"""

from arena.ratings.bootstrap import Replicates, bootstrap
from arena.ratings.clusters import Cluster
from arena.ratings.composite import Composite, align, compose
from arena.ratings.contrasts import Ranks, rank_intervals
from arena.ratings.counts import BothBad, Counts, collapse, cube_from_cells, outcome_cube
from arena.ratings.elo import ELO_PER_LOG, online_elo, to_elo
from arena.ratings.fit import Fit, fit_bradley_terry, fit_davidson, fit_with_side
from arena.ratings.graph import Connectivity, Note, connectivity
from arena.ratings.interval import Axis, Covariance, covariance, half_widths
from arena.ratings.result import Interval, Method, RatingResult, RatingRow, RatingSpec
from arena.ratings.side import SideEffect, side_effect
from arena.ratings.summary import fit, rate, rate_composite, rate_strata
from arena.ratings.votes import Outcome, VoteTable

__all__ = [
    "ELO_PER_LOG",
    "Axis",
    "BothBad",
    "Cluster",
    "Composite",
    "Connectivity",
    "Counts",
    "Covariance",
    "Fit",
    "Interval",
    "Method",
    "Note",
    "Outcome",
    "Ranks",
    "RatingResult",
    "RatingRow",
    "RatingSpec",
    "Replicates",
    "SideEffect",
    "VoteTable",
    "align",
    "bootstrap",
    "collapse",
    "compose",
    "connectivity",
    "covariance",
    "cube_from_cells",
    "fit",
    "fit_bradley_terry",
    "fit_davidson",
    "fit_with_side",
    "half_widths",
    "online_elo",
    "outcome_cube",
    "rank_intervals",
    "rate",
    "rate_composite",
    "rate_strata",
    "side_effect",
    "to_elo",
]

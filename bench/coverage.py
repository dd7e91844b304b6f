"""How often the 95 % intervals hold the truth when raters and contexts have tastes of their own.

    python -m bench.coverage --repetitions 1000 --raters 10 20 30 --json coverage.json

Every repetition draws new raters, contexts and votes from the same population. Rater r and
context c move contestant i by normal effects u_ri and v_ci; ties follow Davidson. The truth is
the population's own: the strengths that the same model has on the expected points of every pair,
averaged over raters and contexts. Reported are the coverage averaged over contestants, its worst
and best contestant, and the coverage of the contrast between the two strongest. Exit status 1
where two-way intervals leave 93 to 97 %, beyond three standard errors of the simulation.
"""

from __future__ import annotations

import argparse
import json
import sys
from dataclasses import asdict, dataclass

import numpy as np
from scipy.stats import norm

from arena.ratings.clusters import Cluster
from arena.ratings.counts import Counts, collapse
from arena.ratings.elo import ELO_PER_LOG
from arena.ratings.fit import Fit, fit_bradley_terry, fit_davidson
from arena.ratings.interval import Axis, Covariance, covariance, quantile
from arena.ratings.votes import FloatArray, VoteTable

CONFIDENCE = 0.95
AIM = (0.93, 0.97)


@dataclass(frozen=True)
class World:
    """The population that votes are drawn from; standard deviations on the Elo scale."""

    raters: int
    contestants: int = 24
    votes: int = 6000
    contexts: int = 300
    strength_sd: float = 70.0
    rater_sd: float = 60.0
    context_sd: float = 60.0
    nu: float = 0.5
    davidson: bool = False

    def strengths(self) -> FloatArray:
        """(K,) evenly spread normal quantiles, so that every repetition has the same truth."""
        grid = (np.arange(self.contestants) + 0.5) / self.contestants
        theta = np.asarray(norm.ppf(grid)[::-1] * self.strength_sd / ELO_PER_LOG)
        centred: FloatArray = theta - theta.mean()
        return centred


@dataclass(frozen=True)
class Coverage:
    """Shares of repetitions; `half_width` is the median on the Elo scale."""

    raters: int
    contexts: int
    cluster: str
    mean: float
    lowest: float
    highest: float
    top_contrast: float
    half_width: float
    sd_ratio: float


def outcome_probabilities(gap: FloatArray, nu: float) -> FloatArray:
    """(3, …) Davidson's probabilities of left, right and tie."""
    half = np.exp(0.5 * gap)
    parts = np.stack([half, 1.0 / half, np.full_like(half, nu)])
    shares: FloatArray = parts / parts.sum(0)
    return shares


def fit_votes(world: World, counts: Counts) -> Fit:
    return fit_davidson(counts) if world.davidson else fit_bradley_terry(counts)


def true_strengths(world: World) -> FloatArray:
    """(K,) the model's strengths on the population's expected outcomes (Gauss–Hermite)."""
    theta = world.strengths()
    sd = np.sqrt(2.0 * (world.rater_sd**2 + world.context_sd**2)) / ELO_PER_LOG
    nodes, weights = np.polynomial.hermite_e.hermegauss(41)
    gap = theta[:, None] - theta[None, :]
    shares = outcome_probabilities(gap[..., None] + sd * nodes, world.nu) @ (
        weights / weights.sum()
    )
    shares = shares * (1.0 - np.eye(len(theta)))
    return fit_votes(world, Counts(shares[0], shares[1], shares[2])).strength


def draw_votes(world: World, rng: np.random.Generator) -> VoteTable:
    """A table of votes: raters balanced, contexts and pairs drawn evenly, sides by coin."""
    k, n = world.contestants, world.votes
    theta = world.strengths()
    rater = np.arange(n) % world.raters
    context = rng.integers(0, world.contexts, n)
    left = rng.integers(0, k, n)
    right = (left + rng.integers(1, k, n)) % k
    taste = rng.normal(0, world.rater_sd / ELO_PER_LOG, (world.raters, k))
    topic = rng.normal(0, world.context_sd / ELO_PER_LOG, (world.contexts, k))
    merit = theta + taste[rater] + topic[context]
    rows = np.arange(n)
    shares = outcome_probabilities(merit[rows, left] - merit[rows, right], world.nu)
    outcome = (rng.random(n) > np.cumsum(shares, axis=0)[:2]).sum(0)
    return VoteTable(
        contestants=tuple(f"c{i:03}" for i in range(k)),
        left=left,
        right=right,
        outcome=outcome,
        rater=rater,
        context=context,
        raters=tuple(f"r{i:04}" for i in range(world.raters)),
        contexts=tuple(f"x{i:05}" for i in range(world.contexts)),
    )


def contrast_error(cov: Covariance, i: int, j: int) -> float:
    """The standard error of θ_i − θ_j."""
    m = cov.matrix
    return float(np.sqrt(max(m[i, i] + m[j, j] - 2.0 * m[i, j], 0.0)))


def measure(world: World, repetitions: int, seed: int, clusters: list[Cluster]) -> list[Coverage]:
    """Coverage of every clustering over the same simulated tables."""
    truth = true_strengths(world)
    k = world.contestants
    top, second = np.argsort(-truth)[:2]
    hits = {c: np.zeros((repetitions, k)) for c in clusters}
    tops = {c: np.zeros(repetitions) for c in clusters}
    errors = {c: np.zeros((repetitions, k)) for c in clusters}
    widths = {c: np.zeros((repetitions, k)) for c in clusters}
    estimates = np.zeros((repetitions, k))
    for rep in range(repetitions):
        votes = draw_votes(world, np.random.default_rng([seed, rep]))
        fit = fit_votes(world, collapse(votes))
        estimates[rep] = fit.strength
        miss = fit.strength - truth
        for cluster in clusters:
            cov = covariance(Axis(votes, fit), cluster)
            t = quantile(cov.df, CONFIDENCE)
            errors[cluster][rep] = np.sqrt(np.diag(cov.matrix)[:k])
            widths[cluster][rep] = t * errors[cluster][rep]
            hits[cluster][rep] = np.abs(miss) <= widths[cluster][rep]
            gap = abs(miss[top] - miss[second])
            tops[cluster][rep] = gap <= t * contrast_error(cov, int(top), int(second))
    spread = estimates.std(0)
    return [_summarise(world, c, hits[c], tops[c], widths[c], errors[c] / spread) for c in clusters]


def _summarise(
    world: World,
    cluster: Cluster,
    hits: FloatArray,
    tops: FloatArray,
    widths: FloatArray,
    ratio: FloatArray,
) -> Coverage:
    each = hits.mean(0)
    return Coverage(
        raters=world.raters,
        contexts=world.contexts,
        cluster=str(cluster),
        mean=round(float(each.mean()), 4),
        lowest=round(float(each.min()), 4),
        highest=round(float(each.max()), 4),
        top_contrast=round(float(tops.mean()), 4),
        half_width=round(float(np.median(widths)) * ELO_PER_LOG, 2),
        sd_ratio=round(float(np.median(ratio)), 3),
    )


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repetitions", type=int, default=1000)
    parser.add_argument("--raters", type=int, nargs="+", default=[10, 20, 30])
    parser.add_argument("--contestants", type=int, default=24)
    parser.add_argument("--votes", type=int, default=6000)
    parser.add_argument("--contexts", type=int, default=300)
    parser.add_argument("--rater-sd", type=float, default=60.0)
    parser.add_argument("--context-sd", type=float, default=60.0)
    parser.add_argument("--davidson", action="store_true")
    parser.add_argument("--cluster", nargs="+", default=[str(c) for c in Cluster])
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--json", help="also write the rows to this file")
    args = parser.parse_args(argv)
    rows: list[Coverage] = []
    print("raters contexts cluster   mean   lowest highest  top    ±Elo  SE/SD")
    for raters in args.raters:
        world = World(
            raters=raters,
            contestants=args.contestants,
            votes=args.votes,
            contexts=args.contexts,
            rater_sd=args.rater_sd,
            context_sd=args.context_sd,
            davidson=args.davidson,
        )
        clusters = [Cluster(c) for c in args.cluster]
        for row in measure(world, args.repetitions, args.seed, clusters):
            rows.append(row)
            print(
                f"{row.raters:6} {row.contexts:8} {row.cluster:8} {row.mean:6.1%} {row.lowest:7.1%}"
                f" {row.highest:7.1%} {row.top_contrast:6.1%} {row.half_width:6.1f}"
                f" {row.sd_ratio:6.3f}",
                flush=True,
            )
    if args.json:
        with open(args.json, "w", encoding="utf-8") as out:
            json.dump([asdict(row) for row in rows], out, indent=1)
    both = [row for row in rows if row.cluster == Cluster.BOTH]
    return int(not all(within_aim(row, args.repetitions) for row in both))


def within_aim(row: Coverage, repetitions: int) -> bool:
    """Whether mean and top contrast lie in the aim, up to the noise of the simulation."""
    noise = 3.0 * float(np.sqrt(CONFIDENCE * (1.0 - CONFIDENCE) / repetitions))
    low, high = AIM[0] - noise, AIM[1] + noise
    return AIM[0] <= row.mean <= AIM[1] and low <= row.top_contrast <= high


if __name__ == "__main__":
    sys.exit(main())

"""Speed of the rating arithmetic beside evalica, in the same run on the same votes.

    python -m bench.ratings [--votes 1000000] [--contestants 24 200] [--json ratings.json]

Votes lie in a pandas frame of strings, as `read_csv` gives them. Times are medians of CPU seconds
over `--repeats` runs, from the frame to the fitted strengths; evalica gets its documented columns.
The bootstrap is of raters, from the collapsed table; its ratio is to the fit from the same frame
with the raters read. Prints a table and, with --json, writes the rows. Exit status 1 where an aim
is missed.
"""

from __future__ import annotations

import argparse
import io
import json
import statistics
import sys
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass

import evalica
import numpy as np
import pandas as pd

from arena.ratings import (
    Axis,
    Cluster,
    VoteTable,
    bootstrap,
    collapse,
    covariance,
    cube_from_cells,
    fit_bradley_terry,
    fit_davidson,
)
from arena.ratings.counts import Counts, outcome_cube
from arena.ratings.frames import votes_from_frame

WINNERS = {
    "left": evalica.Winner.X,
    "right": evalica.Winner.Y,
    "tie": evalica.Winner.Draw,
}


@dataclass(frozen=True)
class Line:
    """One measured task: median CPU seconds, and its ratio to the reference of the same size."""

    contestants: int
    task: str
    seconds: float
    ratio: float | None = None
    aim: str = ""
    met: bool | None = None


def make_frame(votes: int, contestants: int, raters: int, contexts: int) -> pd.DataFrame:
    """Self-made votes as strings: planted strengths, one vote in five a tie."""
    rng = np.random.default_rng(contestants)
    theta = rng.normal(0.0, 0.4, contestants)
    left = rng.integers(0, contestants, votes)
    right = (left + rng.integers(1, contestants, votes)) % contestants
    wins = rng.random(votes) < 1.0 / (1.0 + np.exp(theta[right] - theta[left]))
    outcome = np.where(rng.random(votes) < 0.2, "tie", np.where(wins, "left", "right"))
    names = np.array([f"contestant-{i:03}" for i in range(contestants)], dtype=object)
    people = np.array([f"rater-{i:04}" for i in range(raters)], dtype=object)
    topics = np.array([f"context-{i:05}" for i in range(contexts)], dtype=object)
    made = pd.DataFrame(
        {
            "left": names[left],
            "right": names[right],
            "outcome": outcome,
            "rater": people[rng.integers(0, raters, votes)],
            "context": topics[rng.integers(0, contexts, votes)],
        }
    )
    file = io.StringIO()
    made.to_csv(file, index=False)
    file.seek(0)
    return pd.read_csv(file)


def median_seconds(task: Callable[[], object], repeats: int) -> float:
    task()
    times = []
    for _ in range(repeats):
        begin = time.process_time()
        task()
        times.append(time.process_time() - begin)
    return statistics.median(times)


def fit_ours(frame: pd.DataFrame) -> object:
    votes = votes_from_frame(frame)
    return fit_bradley_terry(collapse(votes), votes.contestants)


def fit_ours_davidson(frame: pd.DataFrame) -> object:
    votes = votes_from_frame(frame)
    return fit_davidson(collapse(votes), votes.contestants)


def fit_ours_with_interval(frame: pd.DataFrame) -> object:
    votes = votes_from_frame(frame, rater="rater", context="context")
    fit = fit_bradley_terry(collapse(votes), votes.contestants)
    return covariance(Axis(votes, fit), Cluster.BOTH)


def fit_evalica(frame: pd.DataFrame) -> object:
    winners = frame["outcome"].map(WINNERS)
    return evalica.bradley_terry(frame["left"], frame["right"], winners)


def fit_evalica_newman(frame: pd.DataFrame) -> object:
    winners = frame["outcome"].map(WINNERS)
    return evalica.newman(frame["left"], frame["right"], winners)


def aggregated_rows(votes: VoteTable) -> list[tuple[str, str, int, float]]:
    """What a GROUP BY over left, right and outcome would give."""
    cube = outcome_cube(votes)
    names = votes.contestants
    return [(names[i], names[j], int(o), float(cube[i, j, o])) for i, j, o in np.argwhere(cube > 0)]


def measure(frame: pd.DataFrame, contestants: int, repeats: int) -> list[Line]:
    """All tasks of one size; ratios are evalica's time divided by ours."""
    theirs = median_seconds(lambda: fit_evalica(frame), repeats)
    newman = median_seconds(lambda: fit_evalica_newman(frame), repeats)
    ours = median_seconds(lambda: fit_ours(frame), repeats)
    davidson = median_seconds(lambda: fit_ours_davidson(frame), repeats)
    interval = median_seconds(lambda: fit_ours_with_interval(frame), repeats)
    votes = votes_from_frame(frame, rater="rater", context="context")
    rows = aggregated_rows(votes)

    def fit_rows() -> object:
        cube = cube_from_cells(votes.contestants, rows)
        return fit_bradley_terry(Counts.of(cube), votes.contestants)

    rows_seconds = median_seconds(fit_rows, repeats)
    quick = rows_seconds <= 0.05 if contestants <= 24 else None
    lines = [
        Line(contestants, "evalica bradley_terry", theirs),
        Line(contestants, "evalica newman", newman),
        Line(contestants, "fit from the frame", ours, theirs / ours, ">= 10", theirs >= 10 * ours),
        Line(contestants, "davidson from the frame", davidson, newman / davidson),
        Line(
            contestants,
            "fit + two-way interval",
            interval,
            theirs / interval,
            ">= 5",
            theirs >= 5 * interval,
        ),
        Line(contestants, "fit from aggregated rows", rows_seconds, None, "<= 0.05 s", quick),
    ]
    if contestants <= 64:
        lines += measure_bootstrap(frame, contestants, repeats)
    return lines


def measure_bootstrap(frame: pd.DataFrame, contestants: int, repeats: int) -> list[Line]:
    """The bootstrap of raters beside the fit from the same raw votes, raters included."""

    def fit_votes() -> object:
        votes = votes_from_frame(frame, rater="rater")
        return fit_bradley_terry(collapse(votes), votes.contestants)

    votes = votes_from_frame(frame, rater="rater")
    fit = fit_bradley_terry(collapse(votes), votes.contestants)
    once = median_seconds(fit_votes, repeats)
    many = median_seconds(lambda: bootstrap(votes, fit, replicates=1000), repeats)
    return [
        Line(contestants, "fit from frame with raters", once),
        Line(contestants, "1000 bootstraps of raters", many, many / once, "<= 2", many <= 2 * once),
    ]


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--votes", type=int, default=1_000_000)
    parser.add_argument("--contestants", type=int, nargs="+", default=[24, 200])
    parser.add_argument("--raters", type=int, default=500)
    parser.add_argument("--contexts", type=int, default=6000)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--json", help="also write the rows to this file")
    args = parser.parse_args(argv)
    lines: list[Line] = []
    print(f"{args.votes:,} votes, {args.raters} raters, {args.contexts} contexts")
    print("contestants  task                          CPU s    ratio  aim")
    for contestants in args.contestants:
        frame = make_frame(args.votes, contestants, args.raters, args.contexts)
        for line in measure(frame, contestants, args.repeats):
            lines.append(line)
            print_line(line)
    if args.json:
        with open(args.json, "w", encoding="utf-8") as out:
            json.dump([asdict(line) for line in lines], out, indent=1)
    return int(any(line.met is False for line in lines))


def print_line(line: Line) -> None:
    ratio = "" if line.ratio is None else f"{line.ratio:.1f}"
    verdict = {None: "", True: "met", False: "MISSED"}[line.met]
    start = f"{line.contestants:11}  {line.task:27} {line.seconds:8.4f}  {ratio:>6}"
    print(f"{start}  {line.aim:9}  {verdict}", flush=True)


if __name__ == "__main__":
    sys.exit(main())

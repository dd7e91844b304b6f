"""Check the rating arithmetic on published fits of public votes.

    python -m tools.trial_ratings DATA

DATA holds `llmfao.csv` and `llmfao-golden.csv`. Bradley–Terry must be within 1e-6 and Davidson
(published as "newman") within 1e-4 on the centred natural log scale, through the file reader that
users have. Exit status 1 where one is not, 2 where a file is missing. Where the file
`pandalm_testset-v1.json` lies there too, it is rated and must give one vote per annotator.
"""

from __future__ import annotations

import csv
import math
import sys
from pathlib import Path

from arena.ratings import Interval, Method, RatingSpec, rate
from arena.ratings.elo import BASE
from arena.votefiles import VoteFormat, load_votes

VOTES, GOLDEN, PANDALM = "llmfao.csv", "llmfao-golden.csv", "pandalm_testset-v1.json"
CHECKS = (
    (Method.BRADLEY_TERRY, "bradley_terry", 1e-6),
    (Method.DAVIDSON, "newman", 1e-4),
    (Method.ELO, "elo", 1e-6),
)
ANNOTATORS = 3


def read_golden(path: Path) -> dict[str, dict[str, float]]:
    """Published scores by algorithm and contestant."""
    golden: dict[str, dict[str, float]] = {}
    with path.open(encoding="utf-8", newline="") as stream:
        for row in csv.DictReader(stream):
            golden.setdefault(row["algorithm"], {})[row["item"]] = float(row["score"])
    return golden


def centred_logs(scores: dict[str, float]) -> dict[str, float]:
    """Multiplicative scores as centred natural logs."""
    logs = {name: math.log(score) for name, score in scores.items()}
    mean = sum(logs.values()) / len(logs)
    return {name: value - mean for name, value in logs.items()}


def compare(data: Path) -> list[tuple[str, float, float]]:
    """(algorithm, largest difference, limit) for every check; online Elo in Elo points."""
    golden = read_golden(data / GOLDEN)
    votes = load_votes(data / VOTES, VoteFormat.LLMFAO).votes
    lines = []
    for method, name, limit in CHECKS:
        result = rate(votes, RatingSpec(method=method, ci=Interval.NONE, side=False))
        if method is Method.ELO:
            theirs = golden[name]
            ours = {row.contestant: row.rating for row in result.rows}
            mean = sum(theirs.values()) / len(theirs) - BASE
            theirs = {contestant: score - mean for contestant, score in theirs.items()}
        else:
            theirs = centred_logs(golden[name])
            ours = {row.contestant: row.strength for row in result.rows}
        if ours.keys() != theirs.keys():
            raise SystemExit(f"{name}: the published contestants are not those of the votes")
        gaps = [_distance(ours[contestant], score) for contestant, score in theirs.items()]
        lines.append((name, max(gaps), limit))
    return lines


def check_pandalm(path: Path) -> bool:
    """Whether every row gave its three votes and every contestant a rating."""
    loaded = load_votes(path, VoteFormat.PANDALM)
    result = rate(loaded.votes)
    rated = all(row.rating is not None for row in result.rows)
    print(f"{path.name}: {len(loaded.votes)} votes, {len(result.rows)} contestants")
    return not loaded.errors and rated and len(loaded.votes) % ANNOTATORS == 0


def main(argv: list[str] | None = None) -> int:
    arguments = sys.argv[1:] if argv is None else argv
    if len(arguments) != 1:
        print("usage: python -m tools.trial_ratings DATA", file=sys.stderr)
        return 2
    data = Path(arguments[0])
    if missing := [name for name in (VOTES, GOLDEN) if not (data / name).is_file()]:
        print(f"{data} lacks {' and '.join(missing)}", file=sys.stderr)
        return 2
    good = True
    for name, gap, limit in compare(data):
        good = good and gap <= limit
        print(
            f"{name:15} largest difference {gap:.1e}  limit {limit:.0e}  {_verdict(gap <= limit)}"
        )
    if (data / PANDALM).is_file():
        fine = check_pandalm(data / PANDALM)
        good = good and fine
        print(f"{PANDALM:15} {_verdict(fine)}")
    return 0 if good else 1


def _distance(ours: float | None, theirs: float) -> float:
    return math.inf if ours is None else abs(ours - theirs)


def _verdict(good: bool) -> str:
    return "ok" if good else "FAILED"


if __name__ == "__main__":
    sys.exit(main())

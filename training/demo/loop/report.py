"""What came of a loop: figures, and what did not come out as it should."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from django.db.models import Count

from annotation.selectors.statistics import newest_snapshot
from arena.enums import AssignmentState
from arena.models import Assignment, Round, WantedAnswer
from training.demo.loop import judging, labelling, tasting
from training.demo.loop.play import Play
from training.enums import DatasetState
from training.models import Dataset, TrainingRun
from training.selectors.inputs import digest_of_run

AXES = ("quality", "personalization")
CARELESS = f"-{len(labelling.ACCURACY) + 1:02d} "  # how her name ends
Json = dict[str, Any]


def facts(it: Play) -> Json:
    """As JSON; `missed` names what should have been and was not."""
    found: Json = {
        "seed": it.seed,
        "seconds": {name: round(value) for name, value in it.seconds.items()},
        **it.facts,
        "agreement": agreement(it),
        "boards": [boards(it, round_) for round_ in it.rounds],
        "runs": {run.name: _run(run) for run in TrainingRun.objects.order_by("pk")},
        "datasets": {
            name: {"sha256": digest, "rows": rows}
            for name, digest, rows in Dataset.objects.filter(state=DatasetState.FROZEN)
            .annotate(n=Count("items"))
            .order_by("pk")
            .values_list("name", "content_sha256", "n")
        },
        "votes": [votes_of(round_) for round_ in it.rounds],
    }
    found["missed"] = list(missed(found))
    return found


def agreement(it: Play) -> Json:
    """Krippendorff's alpha of the pairs that several people labelled, by axis."""
    found: Json = {}
    for work in it.work:
        snapshot = newest_snapshot(work.measured)
        if snapshot is not None:
            found[work.axis] = snapshot.report["agreement"][work.axis][""]
    return found


def boards(it: Play, round_: Any) -> Json:
    """Rank and rating with interval, by axis and contestant."""
    found: Json = {}
    for axis in AXES:
        board = tasting.board(round_, axis)
        found[axis] = {
            row.contestant: {
                "rank": row.rank, "rating": row.rating, "lo": row.lo, "hi": row.hi,
                "votes": row.votes,
            }
            for row in board.rows
        }  # fmt: skip
    return found


def _run(run: TrainingRun) -> Json:
    return {
        "state": run.state,
        "kind": run.kind,
        "config": run.config_sha256[:12],
        "weights": digest_of_run(run)[:12],
        "starts": run.attempts,
    }


def votes_of(round_: Round) -> Json:
    """Votes and answers of a round; nothing may be there twice."""
    cast = Assignment.objects.filter(round=round_, state=AssignmentState.VOTED)
    wanted = WantedAnswer.objects.filter(job__round=round_)
    return {
        "votes": cast.count(),
        "planned": round_.planned_votes,
        "seats": cast.values("rater", "battle__slot").distinct().count(),
        "answers": wanted.filter(answer__isnull=False).values("answer").distinct().count(),
        "wanted": wanted.count(),
    }


WANTED = {"0 %": "no_difference", "100 %": "pass", "hacked": "fail", "second": "pass"}


def missed(found: Mapping[str, Any]) -> Iterator[str]:
    """What the loop has to show, and did not."""
    if not any(CARELESS in name for name in found.get("paused", ())):
        yield "gold did not find the careless annotator"
    for name, wanted in WANTED.items():
        said = found["gates"].get(name)
        if said != wanted:
            yield f"the gate said “{said}” of {name}, not “{wanted}”"
    if not found.get("verified") or not all(found["verified"]):
        yield "a bundle did not verify"
    for row in found["votes"]:
        if row["votes"] != row["seats"] or row["votes"] < row["planned"]:
            yield f"votes are missing or double: {row}"
    if not any(found.get("votes as pairs", {}).values()):
        yield "no vote became a pair"
    for board in found["boards"]:
        yield from _ranked(board)


def _ranked(board: Mapping[str, Any]) -> Iterator[str]:
    """The policy stands alone on personalization; the hacked one below it on both axes."""
    for axis, rows in board.items():
        ours = rows.get(judging.POLICY)
        if ours is None:
            yield "the policy is not in the round"
            return
        for name in {judging.HACKED} | (set() if axis == "quality" else rows.keys()):
            row = rows.get(name)
            if name != judging.POLICY and not (row and _below(row, ours)):
                yield f"“{name}” is not surely below the policy on {axis}"


def _below(row: Mapping[str, Any], ours: Mapping[str, Any]) -> bool:
    known = row["hi"] is not None and ours["lo"] is not None
    return known and row["hi"] < ours["lo"]


def lines(found: Mapping[str, Any]) -> Iterator[str]:
    """As people read it."""
    yield ""
    for board in found["boards"]:
        for axis, rows in board.items():
            yield f"{axis}"
            for name, row in rows.items():
                yield f"  {row['rank']:>4}  {name:<24}{_rating(row)}"
    yield f"labels: {found.get('labels')}; votes that became pairs: {found.get('votes as pairs')}"
    yield f"paused by gold: {', '.join(found.get('paused', ())) or 'nobody'}"
    yield f"gates: {found.get('gates')}"
    yield f"seconds: {found['seconds']}"
    yield f"missed: {'; '.join(found['missed']) or 'nothing'}"


def _rating(row: Mapping[str, Any]) -> str:
    if row["rating"] is None:
        return "–"
    return f"{row['rating']:7.0f} [{row['lo']:.0f}, {row['hi']:.0f}] from {row['votes']} votes"

"""A trained contestant in one unsealed round: against its base, and against its reward models."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from django.db.models import Q
from django.utils.translation import gettext as _

from arena.enums import RoundState, Verdict
from arena.models import Round
from arena.selectors.leaderboard import check_unsealed
from arena.selectors.votes import standing_votes
from training.enums import RunState
from training.evidence.battles import BOTH_BAD, LOSS, TIE, WIN, AxisResult, Judged, axis_result
from training.evidence.predictions import Compared, compare
from training.models import TrainingRun
from training.selectors.ancestry import (
    Asked,
    base_contestants,
    check_trained,
    reward_models_of,
    trained_contestants,
)
from training.selectors.round_answers import prediction_runs, predictions_of
from webapp.catalog.models import Contestant

__all__ = ["Evidence", "as_json", "read_evidence", "rounds_of", "trained_contestants"]
BASE, ALL = "base", "all"
MISSING, WAITING, FAILED, READY = "missing", "waiting", "failed", "ready"
ENSEMBLES = ("", "/auditors")
SIDE = "battle__slot__{}__{}"
COLUMNS = (
    "rater_id", "battle__left_is_x", "battle__slot__context_id",
    "battle__slot__context__stratum", "battle__slot__context__holdout",
    *(SIDE.format(side, name) for side in "xy" for name in ("contestant_id", "public_id")),
)  # fmt: skip


@dataclass(frozen=True)
class Group:
    """The votes against the base, or against everybody."""

    key: str
    axes: dict[str, AxisResult]


@dataclass(frozen=True)
class Predicted:
    """One reward model against people, on its axis. `rewarded`: it gave the model its reward."""

    axis: str
    scorer: str
    run: TrainingRun
    rewarded: bool
    group: str
    compared: Compared


@dataclass(frozen=True)
class Evidence:
    """What the page shows. `base` is None where the base was not in the round: `base_missing` says
    why. `state` says whether predictions are there.
    """

    contestant: Contestant
    round: Round
    base: Contestant | None
    base_missing: str
    groups: list[Group] = field(default_factory=list)
    predictions: list[Predicted] = field(default_factory=list)
    asked: Mapping[str, Asked] = field(default_factory=dict)
    runs: Mapping[str, TrainingRun] = field(default_factory=dict)
    state: str = MISSING


def rounds_of(contestant: Contestant) -> list[Round]:
    """Unsealed rounds with this contestant, the newest first."""
    rows = Round.objects.filter(state=RoundState.UNSEALED, round_contestants__contestant=contestant)
    return list(rows.order_by("-unsealed_at", "-pk"))


def read_evidence(contestant: Contestant, round_: Round) -> Evidence:
    """Everything at once, in a bounded number of queries. Refused for a sealed round (V2)."""
    check_unsealed(round_)
    check_trained(contestant)
    base, missing = base_in(contestant, round_)
    votes = {axis: judged_votes(contestant, round_, axis) for axis in round_.axes}
    asked = reward_models_of(contestant)
    runs = newest_runs(round_, asked)
    values = {pk: predictions_of(run) for pk, run in {r.pk: r for r in runs.values()}.items()}
    groups, predictions = [], []
    keys = (BASE, ALL) if base else (ALL,)
    for key in keys:
        of = {a: opposed(rows, base if key == BASE else None) for a, rows in votes.items()}
        drop = round_.drop_both_bad
        axes = {axis: axis_result(rows, drop_both_bad=drop) for axis, rows in of.items()}
        groups.append(Group(key, axes))
        predictions += list(_predictions(key, of, asked, runs, values, len(keys)))
    return Evidence(
        contestant, round_, base, missing, groups, predictions, asked, runs, state_of(asked, runs)
    )


def base_in(contestant: Contestant, round_: Round) -> tuple[Contestant | None, str]:
    """The nearest model that it started from and that was in the round, or why there is none."""
    there = set(round_.round_contestants.values_list("contestant_id", flat=True))
    known = list(base_contestants(contestant))
    for rows in known:
        for row in rows:
            if row.pk in there:
                return row, ""
    if known:
        name = known[0][0]
        return None, _("Its base, “%(name)s”, was not in this round.") % {"name": name}
    if (contestant.provenance or {}).get("bases"):
        return None, _("Its base never became a contestant.")
    return None, _("It has no base that was trained here.")


def judged_votes(contestant: Contestant, round_: Round, axis: str) -> list[Judged]:
    """The standing votes on its battles, with sides resolved."""
    own = Q(battle__slot__x__contestant=contestant) | Q(battle__slot__y__contestant=contestant)
    rows = standing_votes(round_).filter(own).exclude(**{axis: ""}).order_by("pk")
    return [
        _judged(row, contestant.pk)
        for row in rows.values_list(axis, *COLUMNS).iterator(chunk_size=5000)
    ]


def _judged(row: tuple[Any, ...], own: int) -> Judged:
    verdict, rater, left_is_x, context, stratum, holdout, x, x_id, y, y_id = row
    is_x = x == own
    if verdict in (Verdict.LEFT, Verdict.RIGHT):
        x_won = (verdict == Verdict.LEFT) == left_is_x
        seen = WIN if x_won == is_x else LOSS
    else:
        seen = TIE if verdict == Verdict.TIE else BOTH_BAD
    mine, theirs = (x_id, y_id) if is_x else (y_id, x_id)
    return Judged(rater, context, stratum, holdout, seen, y if is_x else x, mine, theirs)


def opposed(rows: Iterable[Judged], opponent: Contestant | None) -> list[Judged]:
    return [row for row in rows if opponent is None or row.opponent == opponent.pk]


def newest_runs(round_: Round, asked: Mapping[str, Asked]) -> dict[str, TrainingRun]:
    """By branch the newest prediction of its reward model; one that failed only without another."""
    runs = prediction_runs(round_)
    runs.sort(key=lambda run: (run.state not in (RunState.FAILED, RunState.CANCELLED), run.pk))
    found: dict[str, TrainingRun] = {}
    for run in runs:
        sources = {row.role: row.source_id for row in run.inputs.all()}
        for branch, one in asked.items():
            if sources.get(branch) == one.run.pk:
                found[branch] = run
    return found


def state_of(asked: Mapping[str, Asked], runs: Mapping[str, TrainingRun]) -> str:
    """Of the predictions: all there, on their way, failed, or nobody asked for them."""
    states = {run.state for run in runs.values()}
    if states & {RunState.FAILED, RunState.CANCELLED}:
        return FAILED
    if states - {RunState.SUCCEEDED}:
        return WAITING
    return READY if asked and len(runs) == len(asked) else MISSING


def _predictions(
    key: str,
    votes: Mapping[str, list[Judged]],
    asked: Mapping[str, Asked],
    runs: Mapping[str, TrainingRun],
    values: Mapping[int, Mapping[str, Mapping[str, float | None]]],
    groups: int,
) -> Iterable[Predicted]:
    """Every scorer on its own axis. Holdout contexts were not shown to them and are left out.

    A warning may come from any scorer in any of the groups: so many comparisons are made.
    """
    found = [(axis, ending) for axis in votes if axis in runs for ending in ENSEMBLES]
    scorers = [
        (axis, f"{axis}{ending}", values[runs[axis].pk])
        for axis, ending in found
        if any(f"{axis}{ending}" in row for row in values[runs[axis].pk].values())
    ]
    for axis, scorer, given in scorers:
        rows = [row for row in votes[axis] if not row.unseen]
        said = {answer: parts.get(scorer) for answer, parts in given.items()}
        one = asked[axis]
        rewarded = one.rewarded and scorer == axis  # auditors never give reward
        compared = compare(rows, said, comparisons=groups * len(scorers))
        yield Predicted(axis, scorer, one.run, rewarded, key, compared)


def as_json(found: Evidence) -> dict[str, Any]:
    """The same for reports; nothing in it names a person."""
    return {
        "contestant": str(found.contestant),
        "round": found.round.name,
        "simulated": found.round.simulated,
        "base": str(found.base) if found.base else None,
        "base_missing": found.base_missing,
        "state": found.state,
        "groups": {g.key: {axis: asdict(r) for axis, r in g.axes.items()} for g in found.groups},
        "predictions": [
            {
                "axis": one.axis,
                "scorer": one.scorer,
                "run": one.run.name,
                "rewarded": one.rewarded,
                "group": one.group,
                **asdict(one.compared),
            }
            for one in found.predictions
        ],
    }

"""Reads for the pages of gates: what may be chosen, lists, one gate, one verdict with pictures."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from django.db.models import Count, Q
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _

from training.enums import DatasetState, EdgeSource, GateState, Kind, Of, RunKind, RunState, Split
from training.gate_policies import POLICIES
from training.gating.rules import AXES
from training.models import (
    Checkpoint,
    Dataset,
    EdgeCase,
    GateRun,
    GateSpec,
    OverrideRequest,
    RowText,
    SplitClaim,
    TrainingRun,
)
from training.selectors.checkpoints import KEPT
from training.selectors.inputs import gate_of
from webapp.catalog.enums import Axis
from webapp.catalog.strata import stratum_label
from webapp.catalog.texts import prompt_hash
from webapp.core.charts_differences import DifferenceRow, difference_chart

MOST = 200
Choices = list[tuple[Any, Any]]


@dataclass(frozen=True)
class Offered:
    datasets: Choices = field(default_factory=list)
    models: Choices = field(default_factory=list)
    judges: Mapping[str, Choices] = field(default_factory=dict)


def offered() -> Offered:
    """Datasets with a gate split, models, and reward models by their axis."""
    frozen = Dataset.objects.filter(state=DatasetState.FROZEN)
    datasets: Choices = [("", _("choose"))]
    for d in frozen.exclude(kind=Kind.COUNTEREXAMPLES):
        if Split.GATE in d.split_sha256:
            rows = d.counts.get("groups", {}).get("split", {}).get(Split.GATE, 0)
            datasets.append((d.pk, _("%(name)s (%(rows)s rows)") % {"name": d.name, "rows": rows}))
    done = TrainingRun.objects.filter(state=RunState.SUCCEEDED)
    models = done.filter(kind__in=POLICIES).order_by("-kind", "-pk")[:MOST]
    judges: dict[str, Choices] = {axis: [] for axis in AXES}
    for run in done.filter(kind=RunKind.REWARD_MODEL)[:MOST]:
        branch = run.manifest.get("config", {}).get("reward_model", {}).get("branch")
        if branch in judges:
            passed = gate_of(run).get("passed")
            name = run.name if passed else _("%(name)s (failed its gate)") % {"name": run.name}
            judges[branch].append((run.pk, name))
    choose: Choices = [("", _("choose"))]
    return Offered(datasets, choose + [(run.pk, run.name) for run in models], judges)


def candidates(spec: GateSpec) -> Choices:
    """Models that may go through this gate, the newest first; "RUN:CHECKPOINT" are weights that
    were kept along the way.
    """
    done = TrainingRun.objects.filter(state=RunState.SUCCEEDED, kind__in=POLICIES)
    runs = {run.pk: run for run in done.exclude(pk=spec.baseline_id)[:MOST]}
    found: dict[int, Choices] = {pk: [(f"{pk}", run.name)] for pk, run in runs.items()}
    kept = Checkpoint.objects.filter(
        run__in=runs, final=False, removed_at=None, path__startswith=KEPT
    )
    for row in kept.order_by("step"):
        said = {"run": runs[row.run_id].name, "step": row.step}
        found[row.run_id].append(
            (f"{row.run_id}:{row.pk}", _("%(run)s, as it was at step %(step)s") % said)
        )
    return [choice for own in found.values() for choice in own]


def candidate(choice: str) -> tuple[TrainingRun, Checkpoint | None]:
    """The model that one of `candidates` names."""
    run, _colon, checkpoint = choice.partition(":")
    weights = Checkpoint.objects.get(pk=checkpoint) if checkpoint else None
    return TrainingRun.objects.get(pk=run), weights


def dataset(pk: str) -> Dataset:
    return Dataset.objects.get(pk=pk)


def run(pk: str) -> TrainingRun | None:
    return TrainingRun.objects.get(pk=pk) if pk else None


def gate_list() -> Any:
    """Gates with how many models passed and were sent through them."""
    passed = Count("runs", filter=Q(runs__verdict="pass"))
    specs = GateSpec.objects.select_related("dataset", "baseline")
    return specs.annotate(sent=Count("runs"), passed=passed)


def newest_runs(spec: GateSpec | None = None) -> Any:
    runs = GateRun.objects.select_related("spec", "candidate", "checkpoint")
    return runs.filter(spec=spec) if spec else runs


def one(pk: int) -> Any:
    return GateRun.objects.select_related(
        "spec__dataset", "spec__baseline", "candidate", "checkpoint", "candidate_evaluation",
        "baseline_evaluation", "created_by",
    ).filter(pk=pk)  # fmt: skip


@dataclass(frozen=True)
class AxisPage:
    """One axis of a verdict: the picture, and the same as rows of a table."""

    name: str
    picture: SafeString
    rows: list[dict[str, Any]]


def axes(gate: GateRun) -> list[AxisPage]:
    """The differences of a decided gate, overall and by stratum."""
    found = gate.result
    if gate.state != GateState.DECIDED:
        return []
    rules = gate.spec.rules
    pages = []
    for axis in AXES:
        label = str(Axis(axis).label)
        margin = rules["quality_margin"] if axis == "quality" else None
        rows = [{"name": _("all"), **found["axes"][axis], "margin": margin, "judged": True}]
        for name, part in found["strata"][axis].items():
            judged = part["prompts"] >= rules["stratum_minimum"]
            own = {"margin": rules["stratum_margin"] if judged else None, "judged": judged}
            rows.append({"name": stratum_label(name), **part, **own})
        drawn = [
            DifferenceRow(r["name"], r["mean"], r["low"], r["high"], r["prompts"], r["margin"])
            for r in rows
        ]
        title = _("%(axis)s: candidate − baseline") % {"axis": label}
        pages.append(AxisPage(label, difference_chart(drawn, title=title), rows))
    return pages


def progress(gate: GateRun) -> list[TrainingRun]:
    """The evaluations behind a gate."""
    runs = [gate.candidate_evaluation, gate.baseline_evaluation]
    return [run for run in runs if run is not None]


@dataclass(frozen=True)
class NamedCase:
    """A case in a verdict. `trained`: its question is in a training split, so that being right is
    no surprise.
    """

    case: EdgeCase
    trained: bool


def edge_names(gate: GateRun) -> list[tuple[Any, list[NamedCase]]]:
    """Cases by what became of them, those that matter first."""
    said: Mapping[str, list[str]] = gate.result.get("edges", {})
    names = [name for group in said.values() for name in group]
    found = list(EdgeCase.objects.filter(name__in=names))
    trained = _trained_on(found)
    cases = {case.name: NamedCase(case, case.name in trained) for case in found}
    titles = {
        "regressed": _("Came back"), "still_failing": _("Still failing"), "fixed": _("Fixed"),
        "solved": _("Solved before and now"), "unknown": _("Could not be scored"),
    }  # fmt: skip
    return [
        (title, [cases[name] for name in said.get(key, []) if name in cases])
        for key, title in titles.items()
    ]


def _trained_on(cases: list[EdgeCase]) -> set[str]:
    """Names of the cases whose question a training split holds."""
    hashes = {
        case.name: prompt_hash(row["prompt"]) for case, row in edge_rows(cases) if row is not None
    }
    claims = SplitClaim.objects.filter(of=Of.PROMPT, split=Split.TRAIN, key__in=hashes.values())
    claimed = set(claims.values_list("key", flat=True))
    return {name for name, key in hashes.items() if key in claimed}


def edge_rows(cases: list[EdgeCase]) -> list[tuple[EdgeCase, Any]]:
    """Cases with their texts; None where a text was erased."""
    texts = RowText.objects.in_bulk([case.row_sha256 for case in cases])
    return [
        (case, json.loads(text.line) if (text := texts.get(case.row_sha256)) else None)
        for case in cases
    ]


def edge_cases(source: str = "", retired: bool = False) -> Any:
    cases = EdgeCase.objects.filter(retired_at__isnull=not retired).order_by("-pk")
    return cases.filter(source=source) if source in EdgeSource.values else cases


def open_overrides() -> Any:
    asked = OverrideRequest.objects.filter(agreed=None)
    return asked.select_related("run", "gate__spec", "by")


def promoted(gate: GateRun) -> Any:
    return gate.promotions.order_by("-pk").first()

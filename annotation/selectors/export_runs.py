"""What the pages of exports show: outcomes there are, counts beforehand, runs and their reports."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from django.db.models import Count, Exists, OuterRef, QuerySet
from django.utils.translation import gettext as _

from annotation.enums import DecisionSource, JobState, Verdict
from annotation.exports import options as known
from annotation.models import ExportRun, GoldItem, Item, Project
from annotation.selectors.export_words import (
    FAILURES,
    FILE_TYPES,
    FORMATS,
    REASONS,
    SPLIT_NAMES,
    STEPS,
    STYLES,
    SYNTHETIC,
    TIES,
)
from webapp.catalog.enums import Axis

KEPT = timedelta(days=7)  # files of exports


def runs_of(project: Project) -> QuerySet[ExportRun]:
    return ExportRun.objects.filter(project=project).select_related("created_by")


@dataclass(frozen=True)
class Outcomes:
    """How many items have each outcome on one axis: a row per source, a column per verdict."""

    axis: Any
    verdicts: list[Any]
    rows: list[tuple[Any, list[int]]]


def counted_outcomes(project: Project) -> list[Outcomes]:
    """The outcomes of the project, gold left out; one query an axis."""
    gold = GoldItem.objects.filter(item=OuterRef("pk"))
    items = Item.objects.filter(~Exists(gold), project=project).order_by()
    found = []
    for axis in project.axes:
        columns = (f"{axis}_decision__source", f"{axis}_decision__verdict")
        counts = {
            (source, verdict): n
            for source, verdict, n in items.exclude(**{f"{axis}_decision": None})
            .values_list(*columns)
            .annotate(n=Count("pk"))
        }
        verdicts = [*Verdict.values, ""]
        rows = [
            (source.label, [counts.get((source.value, verdict), 0) for verdict in verdicts])
            for source in DecisionSource
            if any(given == source.value for given, _verdict in counts)
        ]
        titles = [*(Verdict(verdict).label for verdict in Verdict.values), _("open")]
        found.append(Outcomes(Axis(axis).label, titles, rows))
    return found


def view_preview(plan: Mapping[str, Any]) -> dict[str, Any]:
    """The plan of an export in words."""
    return {
        "rows": plan["rows"],
        "items": plan["items"],
        "kept": plan["kept"],
        "left_out": _reasons(plan["left_out"]),
        **_splits(plan),
    }


def _reasons(counts: Mapping[str, int]) -> list[tuple[Any, int]]:
    order = list(REASONS)
    return [(REASONS.get(name, name), counts[name]) for name in sorted(counts, key=order.index)]


def _splits(report: Mapping[str, Any]) -> dict[str, Any]:
    """Items of each split against what was asked; what could not be met and why."""
    shares = report.get("shares", {})
    counts = report.get("by_split", {})
    total = sum(counts.values()) or 1
    return {
        "splits": [
            (
                SPLIT_NAMES[name],
                counts.get(name, 0),
                round(100 * counts.get(name, 0) / total),
                wanted,
            )
            for name, wanted in shares.items()
        ]
        if len(shares) > 1
        else [],
        "missed": [SPLIT_NAMES[name] for name in report.get("missed", [])],
        "components": report.get("components", 0),
        "largest": report.get("largest", 0),
    }


@dataclass(frozen=True)
class RunView:
    """What the page of an export shows."""

    pk: int
    project: int
    title: Any
    state: str
    state_label: str
    by: str
    at: datetime
    phase: str
    rows_done: int
    rows_total: int
    asked: list[tuple[Any, Any]]
    failure: Any
    left_out: list[tuple[Any, int]]
    labels: list[tuple[Any, int]]
    submitted: int
    columns: list[tuple[str, str]]
    proof: dict[str, Any]
    splits: dict[str, Any]
    items: int
    kept: int
    size: int
    sha256: str
    file: str
    until: datetime | None

    @property
    def running(self) -> bool:
        return self.state == JobState.RUNNING

    @property
    def done(self) -> bool:
        return self.state == JobState.DONE


def view_run(run: ExportRun) -> RunView:
    report = run.report
    labels = dict(report.get("labels", {}))
    submitted = labels.pop("submitted", 0)
    there = bool(run.path) and Path(run.path).exists()
    return RunView(
        pk=run.pk,
        project=run.project_id,
        title=FORMATS.get(run.format, run.format),
        state=run.state,
        state_label=run.get_state_display(),
        by=run.created_by.username if run.created_by else _("command line"),
        at=run.created_at,
        phase=report.get("phase", "plan"),
        rows_done=run.rows_done,
        rows_total=run.rows_total,
        asked=_asked(run),
        failure=FAILURES.get(report.get("failure", ""), ""),
        left_out=_reasons(report.get("left_out", {})),
        labels=_reasons(labels),
        submitted=submitted,
        columns=list(report.get("columns", {}).items()),
        proof=_proof(report.get("proof", {})),
        splits=_splits(report),
        items=report.get("items", 0),
        kept=report.get("kept", 0),
        size=run.size,
        sha256=run.sha256,
        file=Path(run.path).name if there else "",
        until=run.finished_at + KEPT if run.finished_at else None,
    )


def _asked(run: ExportRun) -> list[tuple[Any, Any]]:
    """The options that decided about this file, in words."""
    asked = known.parse(run.options)
    yes_no = {True: _("yes"), False: _("no")}
    said: list[tuple[Any, Any]] = [(_("File"), FILE_TYPES[asked.file_type])]
    if asked.own:
        said.append((_("Items without an outcome"), yes_no[asked.undecided]))
    else:
        if asked.format != known.OPENAI:
            said.append((_("Texts"), STYLES[asked.style]))
        names = [str(DecisionSource(name).label) for name in asked.sources]
        said += [
            (_("Axis"), Axis(asked.axis).label),
            (_("Persona in the prompt"), yes_no[asked.persona_in_prompt]),
            (_("Outcomes"), ", ".join(names)),
            (_("Posterior at least"), f"{asked.minimum} %"),
            (_("Equal answers"), TIES[asked.ties]),
            (_("Both answers bad"), TIES[asked.both_bad]),
        ]
        if "unresolved" in asked.sources:
            said.append((_("Unresolved from"), f"{asked.unresolved} %"))
    said += [
        (_("Counterfactual pairs"), SYNTHETIC[asked.synthetic]),
        (_("Imported labels"), yes_no[asked.external]),
    ]
    if len(asked.splits) > 1:
        said.append((_("Seed of the splits"), asked.seed))
    return said


def _proof(proof: Mapping[str, Any]) -> dict[str, Any]:
    """What was checked, what could not be, and the first problem with its place."""
    steps = [
        (STEPS.get(step["name"], step["name"]), step.get("version", ""), step.get("rows", 0))
        for step in proof.get("steps", [])
        if step["ok"]
    ]
    missing = [step["missing"] for step in proof.get("steps", []) if step["ok"] is None]
    problem = proof.get("problem") or {}
    return {
        "steps": steps,
        "missing": ", ".join(missing),
        "problem": problem.get("what", ""),
        "where": ", ".join(_places(problem)),
        "empty": proof.get("empty", False),
    }


def _places(problem: Mapping[str, Any]) -> Iterator[str]:
    if "split" in problem:
        yield str(SPLIT_NAMES.get(problem["split"], problem["split"]))
    if "row" in problem:
        yield _("row %(n)s") % {"n": problem["row"]}
    if "column" in problem:
        yield _("column %(name)s") % {"name": problem["column"]}

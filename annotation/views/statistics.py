"""The manager's pages of a project: progress, agreement, annotators. They show a snapshot."""

from __future__ import annotations

from typing import Any

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, render
from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_GET, require_POST

from annotation.agreement import LEVEL, REPLICATES
from annotation.enums import TRANSITIONS, ProjectState
from annotation.models import Project, StatisticsSnapshot
from annotation.selectors import agreement as words
from annotation.selectors import outlook as ahead
from annotation.selectors import people as staff
from annotation.selectors.statistics import newest_snapshot
from annotation.selectors.workload import count_items
from annotation.services import statistics
from webapp.accounts.access import admin_only
from webapp.core.charts import IntervalRow, interval_mark
from webapp.core.charts_counts import day_bars, pair_map
from webapp.core.http import go_back, whole_number

MARGIN = 0.02
MOVES: dict[str, Any] = {
    ProjectState.OPEN: gettext_lazy("Open the project"),
    ProjectState.PAUSED: gettext_lazy("Pause the project"),
    ProjectState.CLOSED: gettext_lazy("Close the project"),
}


def _project(pk: int) -> Project:
    return get_object_or_404(Project, pk=pk)


@admin_only
@never_cache
@require_GET
def project(request: HttpRequest, pk: int) -> HttpResponse:
    """The live page: how far the project is, who works, what it costs and when it will be done."""
    row = _project(pk)
    snapshot = newest_snapshot(row)
    context = _progress(row) | {"tab": "project", "snapshot": snapshot, "moves": _moves(row)}
    if snapshot is not None:
        context |= _outlook(row, snapshot, whole_number(request.GET.get("overlap")))
    return render(request, "annotation/project.html", context)


@admin_only
@never_cache
@require_GET
def progress(request: HttpRequest, pk: int) -> HttpResponse:
    """The counts alone; asked every ten seconds until the project is closed."""
    return render(request, "annotation/_progress.html", _progress(_project(pk)))


def _progress(row: Project) -> dict[str, Any]:
    return {
        "project": row,
        "counts": count_items(row),
        "polls": row.state != ProjectState.CLOSED,
    }


def _moves(row: Project) -> list[tuple[str, Any]]:
    order = list(ProjectState)
    return [(state, MOVES[state]) for state in order if state in TRANSITIONS[row.state]]


def _outlook(row: Project, snapshot: StatisticsSnapshot, overlap: int | None) -> dict[str, Any]:
    report = snapshot.report
    names, values = ahead.shown_days(report["days"])
    return {
        "outlook": ahead.outlook(row, report, overlap),
        "axes": ahead.axis_names(report),
        "chart": day_bars(names, values, title=_("Labels per day")),
        "days": list(zip(names, values, strict=True)),
        "blocks": [words.whole(report, axis) for axis, _label in words.axes_of(report)],
        "overlap": overlap,
    }


@admin_only
@require_POST
def refresh(request: HttpRequest, pk: int) -> HttpResponse:
    """Have the statistics computed anew."""
    statistics.request_statistics(actor=request.user, project=_project(pk))
    messages.success(
        request, _("The statistics are being computed anew. Load the page again in a moment.")
    )
    return go_back(request, reverse("annotation:project", args=[pk]))


@admin_only
@never_cache
@require_GET
def agreement(request: HttpRequest, pk: int) -> HttpResponse:
    """How far the annotators agree: in all, by stratum, two by two, and across segments."""
    row = _project(pk)
    snapshot = newest_snapshot(row)
    context: dict[str, Any] = {"project": row, "tab": "agreement", "snapshot": snapshot}
    if snapshot is not None:
        report = snapshot.report
        axis = _axis(request, report["agreement"], report["axes"][0])
        context |= _agreement(row, report, axis)
    return render(request, "annotation/agreement.html", context)


def _agreement(row: Project, report: dict[str, Any], axis: str) -> dict[str, Any]:
    names, cells, pairs = staff.pair_rows(report, axis, staff.members_of(row))
    whole = words.whole(report, axis)
    return {
        "axis": axis,
        "axes": words.axes_of(report),
        "whole": whole,
        "rows": [(line, _mark(line.number, -0.2)) for line in whole.rows],
        "strata": [(part, _mark(part.alpha, -0.2)) for part in words.by_stratum(report, axis)],
        "sentences": words.segment_sentences(report, axis),
        "segments": [(part, _mark(part.number)) for part in words.segment_rows(report, axis)],
        "depends": [(part, _mark(part.number)) for part in words.depends_rows(report)],
        "map": pair_map(names, cells, title=_("Cohen’s kappa, two by two")) if names else "",
        "pairs": [(pair, _mark(pair.kappa, -0.2)) for pair in pairs],
        "replicates": REPLICATES,
        "level": round(100 * LEVEL),
    }


@admin_only
@never_cache
@require_GET
def annotators(request: HttpRequest, pk: int) -> HttpResponse:
    """Everybody who labelled: gold, accuracy, sides, lengths, pace, and what to look at."""
    row = _project(pk)
    snapshot = newest_snapshot(row)
    context: dict[str, Any] = {"project": row, "tab": "annotators", "snapshot": snapshot}
    if snapshot is not None:
        report = snapshot.report
        axis = _axis(request, report["axes"], report["axes"][0])
        people = staff.people(row, report, axis, staff.members_of(row))
        context |= {
            "axis": axis,
            "axes": [pair for pair in words.axes_of(report) if pair[0] in report["axes"]],
            "people": [(person, _mark(person.accuracy)) for person in people],
            "everybody": staff.everybody(report, axis),
            "flagged": [person for person in people if person.flags],
        }
    return render(request, "annotation/annotators.html", context)


def _axis(request: HttpRequest, known: Any, usual: str) -> str:
    """The axis that is asked for, or the usual one."""
    wanted = request.GET.get("axis", "")
    return wanted if wanted in known else usual


def _mark(number: words.Number, low: float = 0.0) -> Any:
    """The interval drawn from `low` to 1, with room for the point at the ends."""
    if number.value is None:
        return ""
    value = number.value
    lo, hi = (value, value) if number.lo is None or number.hi is None else (number.lo, number.hi)
    return interval_mark(IntervalRow("", "", value, lo, hi, number.n), low - MARGIN, 1 + MARGIN)

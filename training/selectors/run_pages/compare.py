"""Runs side by side; why checkpoints stay; the limits of the alert rules."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any

from django.utils.safestring import SafeString
from django.utils.translation import gettext_lazy as _

from training.engine.config.schema import Monitor
from training.models import RunInput, TrainingRun
from training.selectors.run_pages.curves import Chart, Curves, Legend, read_curves
from training.selectors.run_pages.facts import compared
from training.selectors.run_pages.lists import spoken
from training.selectors.run_pages.settings import Difference, differences, flat, resolved, shown
from training.words.fields import help_of, label_of
from training.words.metrics import metric_name, unit
from webapp.core.charts_curves import Curve, curve_chart, number, swatch, thin

DRAWN = (
    "reward/reference", "kl", "length/mean", "parts/quality", "parts/personalization", "entropy",
    "auditor/quality", "zero_spread", "loss", "token_accuracy", "eval_loss",
)  # fmt: skip
WHY: dict[str, Any] = {
    "active": _("its run has not ended"),
    "pinned": _("its run is pinned"),
    "gate": _("a gate asks it, or it became a contestant"),
    "used": _("another run uses it"),
    "final": _("it is what the run made"),
    "resumable": _("its run could be resumed from it"),
    "quota": _("there is room for it"),
}


@dataclass(frozen=True)
class Comparison:
    """`legend` names the runs as they are drawn; outcomes and settings have a value per run."""

    legend: list[tuple[TrainingRun, SafeString]]
    charts: list[Chart]
    settings: list[Difference]
    outcomes: list[tuple[str, list[str]]]


def compare(runs: Sequence[TrainingRun]) -> Comparison:
    """One statement per run for its curves, one for all inputs."""
    curves = [read_curves(run.pk) for run in runs]
    legend = [(run, swatch(k)) for k, run in enumerate(runs)]
    charts = [c for name in DRAWN if (c := _overlaid(name, runs, curves))]
    given = _inputs(runs)
    settings = differences([{**given[run.pk], **flat(resolved(run))} for run in runs])
    return Comparison(legend, charts, settings, _times(runs) + compared(runs, curves))


def _overlaid(name: str, runs: Sequence[TrainingRun], curves: Sequence[Curves]) -> Chart | None:
    """A metric of every run that has it; a run keeps its colour and dash where it has none."""
    lines = [Curve(run.name, thin(c.pairs(name))) for run, c in zip(runs, curves, strict=True)]
    legend = [
        Legend(swatch(k), line.name, number(curves[k].last(name)))
        for k, line in enumerate(lines)
        if curves[k].last(name) is not None
    ]
    if not legend:
        return None
    title = metric_name(name)
    svg = curve_chart(lines, title=f"{title}, {unit(name)}" if unit(name) else title)
    return Chart(f"curve-{name.replace('/', '-')}", title, unit(name), svg, legend)


def _inputs(runs: Sequence[TrainingRun]) -> dict[int, dict[str, str]]:
    """What each run was given, by role, so that other inputs show as a difference."""
    found: dict[int, dict[str, str]] = {run.pk: {} for run in runs}
    rows = RunInput.objects.filter(run__in=runs).select_related("dataset", "source")
    for row in rows:
        name = row.dataset.name if row.dataset else row.source.name if row.source else ""
        found[row.run_id][f"inputs.{row.role}"] = f"{name} {row.split}".strip()
    return found


def _times(runs: Sequence[TrainingRun]) -> list[tuple[str, list[str]]]:
    return [
        (str(_("State")), [run.get_state_display() for run in runs]),
        (str(_("Steps")), [f"{run.step} / {run.steps or '–'}" for run in runs]),
        (str(_("From click to first metric")),
         [spoken(run.created_at, run.first_metric_at) or "–" for run in runs]),
        (str(_("Time")), [spoken(run.started_at, run.ended_at) or "–" for run in runs]),
    ]  # fmt: skip


def why(reason: str) -> str:
    return str(WHY.get(reason, reason))


def limits() -> list[tuple[str, str, str, str]]:
    """Field, label, help and default of every limit."""
    return [
        (f"monitor.{f.name}", label_of(f"monitor.{f.name}"), help_of(f"monitor.{f.name}"),
         shown(f.default))
        for f in fields(Monitor)
    ]  # fmt: skip

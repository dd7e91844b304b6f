"""The curves of a run as charts: three pinned ones, then everything else in groups.

All metric lines of a run are read once per request, in one statement, and thinned before they are
drawn. Where a step came again after a resume, the later line counts.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from django.db.models import QuerySet
from django.db.models.fields.json import KeyTextTransform
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _

from training.engine.config.load import Refused, load
from training.engine.config.schema import RunConfig
from training.engine.monitor import history as h
from training.engine.monitor.history import Series
from training.engine.monitor.policy_rules import kl_top
from training.enums import RunKind
from training.models import Alert, MetricLine, TrainingRun
from training.selectors.run_pages.settings import resolved
from training.words import metrics as words
from webapp.core.charts_curves import Band, Curve, Mark, Value, curve_chart, number, swatch, thin

Pairs = list[tuple[float, Value]]


@dataclass(frozen=True)
class Legend:
    swatch: SafeString
    name: str
    last: str


@dataclass(frozen=True)
class Chart:
    """One picture with its legend; `note` says what a reader must know, or why there is none."""

    ident: str
    title: str
    unit: str
    svg: SafeString | str
    legend: list[Legend] = field(default_factory=list)
    note: str = ""


@dataclass(frozen=True)
class Section:
    name: str
    title: str
    charts: list[Chart]


@dataclass(frozen=True)
class Curves:
    """Values by name, in the order of steps."""

    values: Mapping[str, Pairs]

    def pairs(self, name: str) -> Pairs:
        return self.values.get(name, [])

    def series(self, name: str) -> Series:
        """As the alert rules see it: unknown values left out."""
        known = [(int(s), v) for s, v in self.pairs(name) if v is not None]
        return Series(name, tuple(s for s, _v in known), tuple(v for _s, v in known))

    def last(self, name: str) -> Value:
        return next((v for _s, v in reversed(self.pairs(name)) if v is not None), None)


def read_curves(run: int, names: Sequence[str] = ()) -> Curves:
    """All metrics of a run, or these alone, in one statement.

    Asked for by name they are taken out of the lines by the database: of ten thousand steps that
    costs a fourth of reading whole lines.
    """
    lines = MetricLine.objects.filter(run_id=run).order_by("offset")
    if names:
        return _named(lines, names)
    found: dict[str, dict[float, Value]] = {}
    for step, values in lines.values_list("step", "values"):
        for name, value in values.items():
            if name in found:
                found[name][step] = value
            else:
                found[name] = {step: value}
    return Curves({name: sorted(by_step.items()) for name, by_step in found.items()})


def _named(lines: QuerySet[MetricLine], names: Sequence[str]) -> Curves:
    columns = [KeyTextTransform(name, "values") for name in names]
    found: list[dict[float, Value]] = [{} for _ in names]
    for step, *values in lines.values_list("step", *columns):
        for by_step, value in zip(found, values, strict=True):
            if value is not None:
                by_step[step] = float(value)
    pairs = zip(names, found, strict=True)
    return Curves({name: sorted(by_step.items()) for name, by_step in pairs if by_step})


def config_of(run: TrainingRun) -> RunConfig | None:
    """The settings as the alert rules take them; None where this engine cannot read them."""
    try:
        return load({**resolved(run), "kind": run.kind})
    except Refused:
        return None


def marks_of(alerts: Sequence[Alert]) -> list[Mark]:
    """Alerts on the time axis, numbered as they are listed."""
    return [Mark(a.step, str(n), a.severity == "critical") for n, a in enumerate(alerts, 1)]


PINNED = {
    RunKind.GRPO: (h.REWARD, h.REFERENCE, h.KL, h.LENGTH),
    RunKind.SFT: ("loss", "eval_loss", "token_accuracy", "eval_mean_token_accuracy", h.GRAD_NORM),
}


def pinned(run: TrainingRun, curves: Curves, alerts: Sequence[Alert]) -> list[Chart]:
    """The three curves to look at first."""
    marks = marks_of(alerts)
    reach = _reach(run)
    if run.kind == RunKind.GRPO:
        return [
            chart(curves, (h.REWARD, h.REFERENCE), _("Reward"), reach=reach, marks=marks),
            _kl(run, curves, reach, marks),
            chart(curves, (h.LENGTH,), _("Length of answers"), reach=reach, marks=marks),
        ]
    if run.kind == RunKind.REWARD_MODEL:
        charts = (members(curves, name) for name in words.MEMBER_PINNED)
        return [found for found in charts if found]
    if run.kind in (RunKind.EVALUATE, RunKind.PREDICT, RunKind.QUANTIZE):
        return []  # batches are no course in time
    return [
        chart(curves, ("loss", "eval_loss"), _("Loss"), reach=reach, marks=marks),
        chart(curves, ("token_accuracy", "eval_mean_token_accuracy"),
              _("Share of tokens predicted"), reach=reach, marks=marks),
        chart(curves, (h.GRAD_NORM,), _("Norm of the gradient"), reach=reach, marks=marks),
    ]  # fmt: skip


def _reach(run: TrainingRun) -> tuple[float, float] | None:
    """The steps of the axis: all that are planned, so that a picture grows into its frame."""
    return (0.0, float(max(run.steps, run.step))) if run.steps else None


def _kl(
    run: TrainingRun, curves: Curves, reach: tuple[float, float] | None, marks: Sequence[Mark]
) -> Chart:
    """KL with the band that this run's first steps calibrated; not measured where beta is 0."""
    config = config_of(run)
    if config and config.grpo.beta == 0:
        note = _("Not measured: beta is 0, so there is no reference model.")
        return Chart("curve-kl", _("KL"), "", "", note=note)
    series = curves.series(h.KL)
    band, note = None, ""
    if config and len(series) >= config.monitor.calibrate:
        top = kl_top(series, config)
        band = Band(0.0, top)
        note = _("Shaded: the band up to %(top)s that the first %(n)s steps of this run "
                 "calibrated.") % {"top": number(top), "n": config.monitor.calibrate}  # fmt: skip
    return chart(curves, (h.KL,), _("KL"), reach=reach, marks=marks, band=band, note=note)


def sections(run: TrainingRun, curves: Curves, alerts: Sequence[Alert]) -> list[Section]:
    """Every other metric, grouped; what has no group stands in the last one."""
    reach = _reach(run)
    marks = [(set(a.evidence.get("curves", ())), m) for a, m in zip(alerts, marks_of(alerts),
             strict=True)]  # fmt: skip
    if run.kind == RunKind.REWARD_MODEL:
        charts = [c for name in words.MEMBER_CHARTS if (c := members(curves, name))]
        return [Section("members", _("Every model"), charts)] if charts else []
    if run.kind in (RunKind.EVALUATE, RunKind.PREDICT, RunKind.QUANTIZE):
        return []
    found, used = [], {h.REWARD, h.REFERENCE, h.KL, h.LENGTH}
    for group in words.GROUPS:
        charts = []
        for names in group.charts:
            there = [name for name in names if curves.pairs(name)]
            used.update(there)
            if there and not (run.kind != RunKind.GRPO and there[0] in _PINNED_ELSEWHERE):
                said = [m for of, m in marks if of & set(there)]
                charts.append(_grouped(run, curves, there, reach, said))
        if charts:
            found.append(Section(group.name, str(group.title), charts))
    return found + _others(curves, used, reach)


_PINNED_ELSEWHERE = ("loss", "token_accuracy", "eval_loss", "eval_mean_token_accuracy", h.GRAD_NORM)


def _grouped(
    run: TrainingRun,
    curves: Curves,
    names: Sequence[str],
    reach: tuple[float, float] | None,
    marks: Sequence[Mark],
) -> Chart:
    """One chart of a group; the schedule of α is drawn beside what it was."""
    plan: Pairs = []
    if names[0] == "alpha" and run.steps:
        points = resolved(run).get("reward", {}).get("alpha", ())
        plan = [(p * run.steps, a) for p, a in points]
    return chart(curves, names, reach=reach, marks=marks, more=[(_("planned"), plan)])


def _others(
    curves: Curves, used: Iterable[str], reach: tuple[float, float] | None
) -> list[Section]:
    known = set(used)
    probes = [n for n in curves.values if n.startswith("probe/") and n not in known]
    charts = []
    if probes:
        charts.append(chart(curves, sorted(probes)[:5], _("Probes by kind of defect"), reach=reach))
        known.update(probes)
    rest = sorted(n for n in curves.values if n not in known and not words.hidden(n))
    charts += [chart(curves, (n,), reach=reach) for n in rest if not n.startswith("eval/")]
    return [Section("others", str(words.OTHERS_TITLE), charts)] if charts else []


def members(curves: Curves, name: str) -> Chart | None:
    """One curve for every member and auditor of a reward model."""
    tail = f"/{name}"
    found = sorted(n for n in curves.values if n.endswith(tail) and n.count("/") == 2)
    if not found:
        return None
    lines = [(words.metric_name(n.removesuffix(tail)), curves.pairs(n)) for n in found]
    return _chart(f"curve-{name}", words.metric_name(name), words.unit(name), lines)


def chart(
    curves: Curves,
    names: Sequence[str],
    title: str = "",
    *,
    more: Sequence[tuple[str, Pairs]] = (),
    note: str = "",
    **options: Any,
) -> Chart:
    """Curves of one unit in one picture; several have a legend."""
    lines = [(words.metric_name(n), pairs) for n in names if (pairs := curves.pairs(n))]
    lines += [(name, pairs) for name, pairs in more if pairs]
    ident = "curve-" + names[0].replace("/", "-").replace(" ", "-")
    unit = words.unit(names[0])
    return _chart(ident, title or words.metric_name(names[0]), unit, lines, note, **options)


def _chart(
    ident: str,
    title: str,
    unit: str,
    lines: Sequence[tuple[str, Pairs]],
    note: str = "",
    **options: Any,
) -> Chart:
    drawn = [Curve(name, thin(pairs)) for name, pairs in lines]
    said = f"{title}, {unit}" if unit else title
    legend = [
        Legend(
            swatch(k), name, number(next((v for _s, v in reversed(pairs) if v is not None), None))
        )
        for k, (name, pairs) in enumerate(lines)
    ]
    return Chart(ident, title, unit, curve_chart(drawn, title=said, **options), legend, note)

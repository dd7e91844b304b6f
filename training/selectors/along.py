"""What a gate said of a run before, in the middle and after: one table a gate (G27)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from django.db.models import CharField, Exists, OuterRef, Subquery, Value
from django.db.models.fields.json import KT
from django.db.models.functions import Cast, Concat
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _

from training.enums import GateState, RunKind, RunState
from training.gating.rules import AXES
from training.models import Alert, GateRun, GateSpec, TrainingRun
from webapp.catalog.enums import Axis
from webapp.core.charts_differences import DifferenceRow, difference_chart, signed

SERIES = "along:"
REFUSED = "gate_refused"  # rule of the alert of a run that its gate will never ask


def key_of(spec: GateSpec, run: TrainingRun, share: int) -> str:
    """Names a gate run by its place in a training run."""
    return f"{SERIES}{spec.pk}:{run.pk}:{share}"


def seed_of(gate: GateRun) -> int | str:
    """What edge cases are drawn by: the three of a run are asked the same."""
    key = gate.key or ""
    return key.rpartition(":")[0] if key.startswith(SERIES) else gate.pk


def share_of(gate: GateRun) -> int | None:
    """0, 50 or 100; None for a gate run of its own."""
    key = gate.key or ""
    return int(key.rpartition(":")[2]) if key.startswith(SERIES) else None


@dataclass(frozen=True)
class Point:
    """One of the three. `axes` are axis, mean, low, high; `cases` what became of which by name."""

    title: str
    gate: GateRun
    step: int
    same: bool  # the baseline itself
    axes: list[tuple[str, Any, Any, Any]] = field(default_factory=list)
    fixed: list[str] = field(default_factory=list)
    regressed: list[str] = field(default_factory=list)
    failing: list[str] = field(default_factory=list)

    @property
    def differences(self) -> list[tuple[str, str, str]]:
        """Axis, mean, interval as text."""
        return [
            (name, signed(mean, 3), f"{signed(low, 3)} … {signed(high, 3)}")
            for name, mean, low, high in self.axes
        ]


@dataclass(frozen=True)
class Course:
    """A run at one gate: its points in order, a picture for each axis, what is missing."""

    spec: GateSpec
    run: TrainingRun
    points: list[Point]
    pictures: list[tuple[str, SafeString]]  # with the axis that each shows
    missing: list[str]


def courses(*, run: TrainingRun | None = None, spec: GateSpec | None = None) -> list[Course]:
    """The series of a run, or those at a gate, the newest first; two statements."""
    rows = GateRun.objects.filter(key__startswith=SERIES)
    if run is not None:
        rows = rows.filter(key__regex=f"^{SERIES}[0-9]+:{run.pk}:")  # the first number is the gate
    if spec is not None:
        rows = rows.filter(spec=spec)
    related = rows.select_related("spec", "candidate", "checkpoint").order_by("-pk")[:60]
    groups: dict[str, list[GateRun]] = {}
    for gate in related:
        groups.setdefault(str(seed_of(gate)), []).append(gate)
    wanted = {int(name.split(":")[2]) for name in groups}
    runs = TrainingRun.objects.in_bulk(wanted)
    return [course(runs[int(name.split(":")[2])], gates) for name, gates in groups.items()]


def course(run: TrainingRun, gates: Iterable[GateRun]) -> Course:
    known: dict[int, GateRun] = {}
    for gate in gates:
        known[share_of(gate) or 0] = gate
    titles = {0: _("before"), 50: _("middle"), 100: _("after")}
    points = [point(titles[share], run, known[share]) for share in sorted(known)]
    missing = [title for share, title in titles.items() if share not in known]
    spec = next(iter(known.values())).spec
    return Course(spec, run, points, pictures(spec, points), missing)


def point(title: str, run: TrainingRun, gate: GateRun) -> Point:
    step = run.step if gate.candidate_id == run.pk else 0
    if gate.checkpoint is not None:
        step = gate.checkpoint.step
    same = gate.candidate_id == gate.spec.baseline_id and gate.checkpoint is None
    if gate.state != GateState.DECIDED:
        return Point(title, gate, step, same)
    axes = [
        (str(Axis(axis).label), *(gate.result["axes"][axis][n] for n in ("mean", "low", "high")))
        for axis in AXES
    ]
    cases: Mapping[str, list[str]] = gate.result.get("edges", {})
    named = [list(cases.get(kind, [])) for kind in ("fixed", "regressed", "still_failing")]
    return Point(title, gate, step, same, axes, *named)


def pictures(spec: GateSpec, points: list[Point]) -> list[tuple[str, SafeString]]:
    """Before, middle and after against the baseline, an axis each."""
    found = []
    for n, axis in enumerate(AXES):
        margin = spec.rules["quality_margin"] if axis == "quality" else None
        rows = [
            DifferenceRow(p.title, *p.axes[n][1:], p.gate.result["axes"][axis]["prompts"], margin)
            for p in points
            if p.axes
        ]
        label = str(Axis(axis).label)
        title = _("%(axis)s: candidate − baseline") % {"axis": label}
        if rows:
            found.append((label, difference_chart(rows, title=title)))
    return found


def context(run: TrainingRun) -> dict[str, Any]:
    """For the page of a run: its series, and the gates that it has not met along its way."""
    if run.kind != RunKind.GRPO or run.state != RunState.SUCCEEDED:
        return {"courses": [], "may_gate": []}
    found = courses(run=run)
    gates = GateSpec.objects.exclude(pk__in=[c.spec.pk for c in found]).order_by("-pk")
    return {"courses": found, "may_gate": list(gates[:20])}


def due() -> list[int]:
    """Runs that succeeded and name a gate which has neither asked nor refused them, oldest first.

    The key of the last of the three says whether it asked: a run may stand in the series of
    another one as its base.
    """
    named = GateSpec.objects.filter(name=OuterRef("named")).values("pk")
    ended = TrainingRun.objects.filter(kind=RunKind.GRPO, state=RunState.SUCCEEDED)
    rows = ended.annotate(named=KT("config__grpo__gate")).annotate(spec=Subquery(named))
    number = {name: Cast(name, CharField()) for name in ("spec", "pk")}
    key = Concat(Value(SERIES), number["spec"], Value(":"), number["pk"], Value(":100"))
    asked = GateRun.objects.filter(key=OuterRef("key_of_end"))
    refused = Alert.objects.filter(run=OuterRef("pk"), rule=REFUSED)
    waiting = rows.filter(spec__isnull=False).annotate(key_of_end=key)
    waiting = waiting.filter(~Exists(asked), ~Exists(refused))
    return list(waiting.order_by("pk").values_list("pk", flat=True))

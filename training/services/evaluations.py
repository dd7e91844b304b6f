"""What an evaluation found becomes the floor that a base model must have (F18, H12)."""

from __future__ import annotations

from django.db.models import Q

from training.enums import Role, RunKind, RunState, Split
from training.models import GateRun, TrainingRun
from training.selectors.inputs import base_of
from training.services.baselines import record_baseline

FLOORS = (RunKind.SFT, RunKind.QUANTIZE)


def of_a_gate(run: TrainingRun) -> bool:
    """Whether a gate asked for it: its judges say nothing about the base as such."""
    asked = Q(candidate_evaluation=run) | Q(baseline_evaluation=run)
    return GateRun.objects.filter(asked).exists()


def note_evaluation(run: TrainingRun) -> None:
    """A base that answered the gate split of a dataset has a baseline from then on.

    A policy that was trained by reward is no base, unless it was quantised and is to be adapted:
    its evaluation stays in its manifest.
    """
    if run.kind != RunKind.EVALUATE or run.state != RunState.SUCCEEDED or of_a_gate(run):
        return
    inputs = {row.role: row for row in run.inputs.select_related("dataset", "source")}
    rows, base = inputs[Role.GATE], inputs.get(Role.BASE)
    if rows.split != Split.GATE or rows.dataset is None:
        return
    if base is not None and base.source is not None and base.source.kind not in FLOORS:
        return
    facts = run.manifest.get("facts", {})
    name, digest = base_of(run.manifest["config"], inputs)
    record_baseline(
        actor=None,  # the system: whoever launched the run may be gone by now
        base=name[:200],
        dataset=rows.dataset,
        passed=bool(facts.get("passed")),
        result={**facts, "run": run.pk},
        base_sha256=digest,
    )

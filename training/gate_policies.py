"""What a gate, an audit and a promotion demand: `check_x` raises the reason."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from django.utils.translation import gettext as _

from training.enums import AuditVerdict, GateState, Role, RunKind, RunState, Verdict
from training.gating.rules import AXES
from training.models import AuditMark, GateRun, GateSpec, RunInput, TrainingRun
from webapp.core.errors import InvalidInput, Refused

BRANCHES = (Role.QUALITY, Role.PERSONALIZATION)
SCORERS = {
    "quality": ("quality", "quality/auditors", "rules"),
    "personalization": ("personalization", "personalization/auditors", "rules"),
}
FAKES = 0.1  # share of the successes that were read which may be fake


def check_model(run: TrainingRun, field: str) -> None:
    """Raise unless the run made a policy."""
    if run.kind not in (RunKind.SFT, RunKind.GRPO) or run.state != RunState.SUCCEEDED:
        raise InvalidInput(
            _("“%(name)s” made no policy. Choose a run of SFT or GRPO that succeeded.")
            % {"name": run.name},
            field=field,
            code="no_model",
        )


def check_scorers(scorers: Mapping[str, Any], sources: Mapping[str, TrainingRun | None]) -> None:
    """Raise unless every axis has scorers that exist, with the reward models behind them."""
    for axis in AXES:
        names = scorers.get(axis) or ()
        unknown = [name for name in names if name not in SCORERS[axis]]
        if unknown or not names:
            allowed = ", ".join(SCORERS[axis])
            message = _("Choose scorers for %(axis)s from: %(allowed)s.")
            raise InvalidInput(
                message % {"axis": axis, "allowed": allowed}, field=axis, code="scorer"
            )
        if any(name.split("/")[0] == axis for name in names) and sources.get(axis) is None:
            raise InvalidInput(_("Choose the reward model."), field=f"{axis}_run", code="required")


def check_judge(run: TrainingRun, field: str) -> None:
    """Raise unless this reward model passed its own gate."""
    if not (run.manifest.get("facts", {}).get("gate") or {}).get("passed"):
        raise InvalidInput(
            _("“%(name)s” failed its own gate; it cannot judge.") % {"name": run.name},
            field=field,
            code="judge_failed",
        )


def check_enough(prompts: int, minimum: int) -> None:
    """Raise where no verdict could ever be given."""
    if prompts < minimum:
        raise InvalidInput(
            _("There are %(prompts)s prompts in this split; the gate asks for %(minimum)s.")
            % {"prompts": prompts, "minimum": minimum},
            field="minimum",
            code="too_few",
        )


def check_unseen(run: TrainingRun, dataset: Any, split: str, field: str) -> None:
    """Raise where a reward model of the gate was trained or chosen on the gate's items (V21)."""
    same = split and run.inputs.filter(dataset=dataset, split=split).exists()
    if same:
        raise InvalidInput(
            _("“%(name)s” saw these items when it was made; it cannot judge on them.")
            % {"name": run.name},
            field=field,
            code="seen",
        )


def rewarded_by(run: TrainingRun) -> set[int]:
    """Every reward model that trained this policy or one it comes from."""
    found: set[int] = set()
    waiting, known = [run.pk], {run.pk}
    while waiting:
        rows = RunInput.objects.filter(run__in=waiting, source__isnull=False)
        inputs = list(rows.values_list("role", "source"))
        found |= {source for role, source in inputs if role in BRANCHES}
        waiting = [source for role, source in inputs if role == Role.BASE and source not in known]
        known |= set(waiting)
    return found


def trained_by_reward(run: TrainingRun) -> bool:
    """Whether this model, or one it comes from, was trained by GRPO."""
    base: TrainingRun | None = run
    while base is not None:
        if base.kind == RunKind.GRPO:
            return True
        rows = RunInput.objects.filter(run=base, role=Role.BASE).select_related("source")
        found = rows.first()
        base = found.source if found else None
    return False


def check_independent(spec: GateSpec, candidate: TrainingRun) -> None:
    """Raise where a scorer of the gate gave the candidate its reward (V21).

    Auditors of the same run never gave reward: they may judge.
    """
    used = rewarded_by(candidate)
    for axis in AXES:
        run = spec.quality if axis == "quality" else spec.personalization
        if axis in spec.scorers[axis] and run is not None and run.pk in used:
            raise Refused(
                _("“%(run)s” gave “%(candidate)s” its reward; a gate needs others, for example "
                  "its auditors.") % {"run": run.name, "candidate": candidate.name},
                code="used_as_reward",
            )  # fmt: skip


def check_same_base(spec: GateSpec, candidate: TrainingRun) -> None:
    """Raise where somebody would judge a model against itself."""
    if candidate.pk == spec.baseline_id:
        raise InvalidInput(_("This is the baseline itself."), field="candidate", code="is_baseline")


def newest_marks(gate: GateRun) -> dict[tuple[str, int], AuditMark]:
    """By answer: later marks correct earlier ones."""
    return {(mark.item, mark.draw): mark for mark in gate.marks.order_by("pk")}


def check_audited(gate: GateRun) -> None:
    """Raise until enough successes were read, and while too many of them are fake (E13, V20)."""
    marks = newest_marks(gate).values()
    needed = gate.spec.audit
    if len(marks) < needed:
        raise Refused(
            _("%(read)s of %(needed)s successes were read so far.")
            % {"read": len(marks), "needed": needed},
            code="not_audited",
        )
    fakes = fake_share(marks)
    if fakes > FAKES:
        raise Refused(
            _("%(share)s %% of the successes that were read are fake. It cannot be promoted.")
            % {"share": round(100 * fakes)},
            code="fake_successes",
        )


def fake_share(marks: Iterable[AuditMark]) -> float:
    verdicts = [mark.verdict for mark in marks]
    return verdicts.count(AuditVerdict.FAKE) / len(verdicts) if verdicts else 0.0


def check_passed(gate: GateRun) -> None:
    """Raise unless the gate was passed."""
    if gate.state != GateState.DECIDED or gate.verdict != Verdict.PASS:
        raise Refused(_("This gate was not passed."), code="not_passed")


def check_promotable(gate: GateRun) -> None:
    """Raise unless the model may become a contestant."""
    check_passed(gate)
    check_audited(gate)

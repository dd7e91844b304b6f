"""What a gate, an audit and a promotion demand: `check_x` raises the reason."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from django.db.models import F
from django.utils.translation import gettext as _

from training.ancestry import ancestry_of, rewards_of
from training.enums import AuditVerdict, GateState, RunKind, RunState, Verdict
from training.gating.rules import AXES
from training.models import (
    AuditMark,
    Checkpoint,
    Dataset,
    DatasetItem,
    GateRun,
    GateSpec,
    TrainingRun,
)
from training.quantisation_policies import check_persona_kept
from training.tasks import judged_axes
from webapp.catalog.enums import Axis
from webapp.core.errors import InvalidInput, Refused

POLICIES = (RunKind.SFT, RunKind.GRPO, RunKind.QUANTIZE)  # kinds that make a policy
SCORERS = {
    "quality": ("quality", "quality/auditors", "rules"),
    "personalization": ("personalization", "personalization/auditors", "rules"),
}
FAKES = 0.1  # share of the successes that were read which may be fake


def check_model(run: TrainingRun, field: str) -> None:
    """Raise unless the run made a policy."""
    if run.kind not in POLICIES or run.state != RunState.SUCCEEDED:
        raise InvalidInput(
            _(
                "“%(name)s” made no policy. Choose a run of SFT, GRPO or quantisation "
                "that succeeded."
            )
            % {"name": run.name},
            field=field,
            code="no_model",
        )


def check_baseline(run: TrainingRun) -> None:
    """Raise unless no reward has trained the model, or it passed a gate: against a broken one
    anything passes.
    """
    passed = GateRun.objects.filter(candidate=run, checkpoint=None, verdict=Verdict.PASS)
    if rewards_of(run) and not passed.exists():  # what passed in the middle may have broken since
        raise InvalidInput(
            _(
                "“%(name)s” was trained by a reward and has passed no gate: against a broken model "
                "anything passes. Choose a model of SFT, or one that passed."
            )
            % {"name": run.name},
            field="baseline",
            code="baseline",
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


def check_tasks(
    rows: Sequence[Mapping[str, Any]], scorers: Mapping[str, Any], limit: float
) -> None:
    """Raise where rules are to judge and more items than the share `limit` say nothing to check."""
    for axis in AXES:
        if "rules" not in (scorers.get(axis) or ()):
            continue
        judged = [axis in judged_axes(row.get("task")) for row in rows]
        if judged.count(False) > limit * len(judged):
            message = _(
                "Rules cannot judge %(axis)s here: of %(items)s items only %(known)s have a task "
                "that says what to check. Import rows with “task”, or choose a reward model."
            )
            known = {"items": len(judged), "known": judged.count(True)}
            raise InvalidInput(
                message % {"axis": Axis(axis).label, **known}, field=axis, code="no_tasks"
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


def check_readable(items: int, to_audit: int) -> None:
    """Raise where more answers would have to be read than there are."""
    if to_audit > items:
        raise InvalidInput(
            _("There are %(items)s items: no more answers can be read.") % {"items": items},
            field="to_audit",
            code="too_many",
        )


def check_unseen(run: TrainingRun, dataset: Dataset, split: str, field: str) -> None:
    """Raise where a reward model of the gate was trained, stopped or chosen on a prompt of its
    items (V21).

    Prompts are compared, not datasets: the same filter frozen again is another dataset with the
    same prompts.
    """
    inputs = DatasetItem.objects.filter(
        dataset__used_by__run=run, split=F("dataset__used_by__split")
    )
    items = DatasetItem.objects.filter(
        dataset=dataset, split=split, prompt_sha256__in=inputs.values("prompt_sha256")
    )
    if seen := items.values("prompt_sha256").distinct().count():
        raise InvalidInput(
            _("“%(name)s” cannot judge on these items. Prompts that it saw when it was made: "
              "%(seen)s.") % {"name": run.name, "seen": seen},
            field=field,
            code="seen",
        )  # fmt: skip


def rewarded_by(run: TrainingRun) -> set[int]:
    """Every reward model that trained this policy or one it comes from."""
    return {model.pk for _branch, model in rewards_of(run)}


def trained_by_reward(run: TrainingRun) -> bool:
    """Whether this model, or one it comes from, was trained by GRPO."""
    return any(one.kind == RunKind.GRPO for one in ancestry_of(run))


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


def check_same_base(
    spec: GateSpec, candidate: TrainingRun, checkpoint: Checkpoint | None = None
) -> None:
    """Raise where somebody would judge a model against itself."""
    if candidate.pk == spec.baseline_id and checkpoint is None:
        raise InvalidInput(_("This is the baseline itself."), field="candidate", code="is_baseline")


def check_checkpoint(run: TrainingRun, checkpoint: Checkpoint | None) -> None:
    """Raise unless these are saved weights of this run whose files are there."""
    if checkpoint is None:
        return
    if checkpoint.run_id != run.pk or checkpoint.final or checkpoint.removed_at is not None:
        raise InvalidInput(
            _("“%(name)s” keeps no such weights.") % {"name": run.name},
            field="checkpoint",
            code="no_checkpoint",
        )


def check_measured(gate: GateRun, run: TrainingRun) -> None:
    """Raise unless this gate measured this run, with weights that are still there."""
    if gate.candidate_id != run.pk:
        raise InvalidInput(
            _("This gate did not measure “%(name)s”.") % {"name": run.name},
            field="gate",
            code="other_model",
        )
    check_checkpoint(run, gate.checkpoint)


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
    check_persona_kept(gate.candidate, gate.checkpoint)

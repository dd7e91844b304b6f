"""What each stage of a chain starts, through the services that people use, and how far it is.

Every function may be called as often as one likes: what was made is found by its link, which is
written in the transaction that made it. Raises PalateError where a service refuses.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from django.utils import timezone
from django.utils.translation import gettext as _

from arena.services.rounds import compose_round
from training.chains import trained_stages
from training.enums import (
    ChainStage,
    DatasetState,
    GateState,
    Role,
    RunKind,
    RunState,
    StepState,
    Verdict,
)
from training.launching import InputSpec
from training.models import ChainLink, ChainStep, Dataset, GateRun, GateSpec, TrainingRun
from training.refusals import explain_freeze
from training.roles import BRANCHES
from training.selectors.inputs import gate_of
from training.services import datasets, gates, promotions, runs
from training.services.chain_recipes import plan_of
from webapp.core.errors import Refused

KILLED = 3  # times that the chain itself takes up what a killed process left


@dataclass(frozen=True)
class Found:
    """How far a stage is, and why it failed."""

    state: str = StepState.RUNNING
    message: str = ""


GOING = Found()
DONE = Found(StepState.SUCCEEDED)


def failed(message: str) -> Found:
    return Found(StepState.FAILED, message)


def freeze(step: ChainStep) -> Found:
    """One dataset after the other: which split takes a prompt depends on those before."""
    for name, asked in step.chain_run.recipe["datasets"].items():
        dataset = _dataset(step, name, asked)
        if dataset.state == DatasetState.DISCARDED:
            return failed(_("“%(name)s” was put away.") % {"name": dataset.name})
        if dataset.state == DatasetState.DRAFT and dataset.report.get("refusal"):
            said = explain_freeze(dataset.report["refusal"])
            return failed(f"{dataset.name}: {said}")
        if dataset.state != DatasetState.FROZEN:
            datasets.freeze_dataset(actor=step.chain_run.by, dataset=dataset)
            return GOING
    return DONE


def same_as_before(step: ChainStep) -> bool:
    """Whether the last time that trained, as far as the arrows let this one, had these very rows.

    What failed before it was trained on is news all the same; so is another recipe.
    """
    run = step.chain_run
    stages = trained_stages(run.chain.arrows)
    if step.state != StepState.SUCCEEDED or not stages:
        return False
    earlier = run.chain.runs.filter(number__lt=run.number)
    for stage in stages:
        earlier = earlier.filter(steps__stage=stage, steps__state=StepState.SUCCEEDED)
    last = earlier.order_by("-number").first()
    if last is None or last.recipe != run.recipe:
        return False
    return _frozen(last.steps.get(stage=ChainStage.FREEZE)) == _frozen(step)


def _frozen(step: ChainStep) -> dict[str, str]:
    """The hash of the rows by the name of the dataset; of several attempts the newest."""
    rows = step.links.filter(dataset__isnull=False).order_by("attempt")
    return dict(rows.values_list("name", "dataset__content_sha256"))


def _dataset(step: ChainStep, name: str, asked: Mapping[str, Any]) -> Dataset:
    link = newest(step, name)
    old = link.dataset if link else None
    if old and not (old.state == DatasetState.DISCARDED and link and link.attempt < step.attempt):
        return old
    wanted = _named(step, name)
    number = 1
    while Dataset.objects.filter(name=wanted).exists():
        number += 1
        wanted = f"{_named(step, name)[:110]} ({number})"
    made = datasets.create_dataset(
        actor=step.chain_run.by,
        name=wanted,
        kind=asked["kind"],
        values=asked["filter"],
        key=key_of(step, name),
    )
    _link(step, name, dataset=made)
    return made


def rewards(step: ChainStep) -> Found:
    """All reward models beside one another. Each must pass its own gate."""
    recipe = step.chain_run.recipe
    found = [
        _run(step, branch, RunKind.REWARD_MODEL, asked)
        for branch, asked in recipe["rewards"].items()
    ]
    if (worst := _worst([_of_run(step, run) for run in found])) is not DONE:
        return worst
    for run in found:
        if not _useful(run) and not _forced(recipe):
            return failed(_("“%(name)s” failed the gate of reward models.") % {"name": run.name})
    return DONE


def _forced(recipe: Mapping[str, Any]) -> str:
    """Why a reward model may be used that did not pass; the run of GRPO keeps it as well."""
    return str((recipe["grpo"]["config"].get("reward") or {}).get("force") or "")


def grpo(step: ChainStep) -> Found:
    return _of_run(step, _run(step, "policy", RunKind.GRPO, step.chain_run.recipe["grpo"]))


def _run(step: ChainStep, name: str, kind: str, asked: Mapping[str, Any]) -> TrainingRun:
    """The run of this attempt. One that succeeded and fell through its gate is made anew."""
    link = newest(step, name)
    old = link.run if link else None
    fell = old is not None and old.state == RunState.SUCCEEDED and not _useful(old)
    if old and not (fell and link and link.attempt < step.attempt):
        return old
    made = runs.launch(
        actor=step.chain_run.by,
        name=gates.free_name(_named(step, name)),
        kind=kind,
        preset=asked["preset"],
        config=asked["config"],
        inputs=_inputs(step, kind, asked["inputs"]),
        seed=int(asked["seed"]) + step.attempt,
        key=key_of(step, name),
    )
    _link(step, name, run=made)
    return made


def _useful(run: TrainingRun) -> bool:
    return run.kind != RunKind.REWARD_MODEL or bool(gate_of(run).get("passed"))


def _inputs(step: ChainStep, kind: str, asked: Mapping[str, Any]) -> dict[Any, InputSpec]:
    """Rows of the datasets of this time, or of those that stay; the base; reward models."""
    recipe, found = step.chain_run.recipe, {}
    for role, (name, split) in asked.items():
        if name in recipe["fixed"]:
            dataset = Dataset.objects.get(pk=recipe["fixed"][name])
        else:
            dataset = made_by(step, ChainStage.FREEZE, name).dataset
        found[role] = InputSpec(dataset, split)
    found[Role.BASE.value] = InputSpec(source=TrainingRun.objects.get(pk=recipe["base"]))
    if kind == RunKind.GRPO:
        for branch in BRANCHES:
            if branch in recipe["rewards"]:
                source = made_by(step, ChainStage.REWARDS, branch).run
                found[branch.value] = InputSpec(source=source)
    return found


def _of_run(step: ChainStep, run: TrainingRun) -> Found:
    if run.state == RunState.SUCCEEDED:
        return DONE
    if run.state == RunState.FAILED and run.reason == "killed" and _once_more(step):
        runs.resume(actor=step.chain_run.by, run=run)
        return GOING
    if run.state in (RunState.FAILED, RunState.CANCELLED):
        said = {"name": run.name, "state": run.get_state_display(), "why": run.message}
        return failed(_("“%(name)s”: %(state)s. %(why)s") % said)
    return GOING


def _once_more(step: ChainStep) -> bool:
    if step.repeats >= KILLED:
        return False
    step.repeats += 1
    ChainStep.objects.filter(pk=step.pk).update(repeats=step.repeats)
    return True


def _worst(states: list[Found]) -> Found:
    """What failed is told once nothing runs any more, so that trying again finds all ended."""
    for wanted in (StepState.RUNNING, StepState.FAILED):
        for found in states:
            if found.state == wanted:
                return found
    return DONE


def gate(step: ChainStep) -> Found:
    """The policy against the baseline; only a passed gate lets it go on."""
    link = newest(step, "gate")
    found = link.gate if link else None
    if found is None:
        candidate = made_by(step, ChainStage.GRPO, "policy").run
        found = gates.start_gate(
            actor=step.chain_run.by,
            spec=GateSpec.objects.get(pk=step.chain_run.recipe["gate"]),
            candidate=candidate,
            key=key_of(step, "gate"),
        )
        _link(step, "gate", gate=found)
    if found.state == GateState.MEASURING:
        return GOING
    if found.state == GateState.FAILED:
        reason = (found.result.get("failed") or {}).get("reason")
        if reason == "killed" and _once_more(step):
            gates.measure_again(actor=step.chain_run.by, gate=found)
            return GOING
        return failed(_("The gate could not be measured."))
    if found.verdict != Verdict.PASS:
        return failed(_("The gate said: %(verdict)s.") % {"verdict": found.get_verdict_display()})
    return DONE


def contestant(step: ChainStep) -> Found:
    """The policy that passed and was read becomes a contestant (V20 is checked there)."""
    passed = made_by(step, ChainStage.GATE, "gate").gate
    asked = step.chain_run.recipe["contestant"]
    made = promotions.promote(
        actor=step.chain_run.by,
        gate=passed,
        name=filled(step, asked["name"]),
        version=filled(step, asked["version"]),
        sampling=asked["sampling"],
    )
    if newest(step, "contestant") is None:
        _link(step, "contestant", contestant=made)
    return DONE


def draft(step: ChainStep) -> Found:
    """A draft with the new contestant beside the others; people look at it and open it."""
    if newest(step, "round") is None:
        asked = step.chain_run.recipe["round"]
        if not asked:
            raise Refused(_("The chain does not say what the round is like."), code="no_plan")
        new = made_by(step, ChainStage.CONTESTANT, "contestant").contestant
        plan = plan_of(
            asked,
            name=filled(step, asked["name"]),
            contestants=[*asked["contestants"], new.pk],
        )
        _link(step, "round", round=compose_round(actor=step.chain_run.by, plan=plan))
    return DONE


WORK: dict[str, Callable[[ChainStep], Found]] = {
    ChainStage.FREEZE: freeze,
    ChainStage.REWARDS: rewards,
    ChainStage.GRPO: grpo,
    ChainStage.GATE: gate,
    ChainStage.CONTESTANT: contestant,
    ChainStage.ROUND: draft,
}


def revive(step: ChainStep, actor: Any) -> None:
    """Before a stage is tried again: take up what it made, where that can be taken up."""
    for link in step.links.select_related("dataset", "run", "gate"):
        if link.dataset and link.dataset.state == DatasetState.DRAFT:
            datasets.freeze_dataset(actor=actor, dataset=link.dataset)
        if link.run and link.run.state in (RunState.FAILED, RunState.CANCELLED):
            runs.resume(actor=actor, run=link.run)
        if link.gate:
            _revive_gate(link.gate, actor)


def _revive_gate(found: GateRun, actor: Any) -> None:
    if found.state == GateState.FAILED:
        gates.measure_again(actor=actor, gate=found)
    elif found.state == GateState.DECIDED and found.verdict != Verdict.PASS:
        raise Refused(_("A gate decides once: nothing can be tried again."), code="decided")


def newest(step: ChainStep, name: str) -> ChainLink | None:
    """What this stage made by this name last."""
    rows = ChainLink.objects.select_related("dataset", "run", "gate", "contestant", "round")
    return rows.filter(step=step, name=name).order_by("-attempt").first()


def made_by(step: ChainStep, stage: str, name: str) -> Any:
    """What an earlier stage of the same run made."""
    other = ChainStep.objects.get(chain_run=step.chain_run_id, stage=stage)
    found = newest(other, name)
    assert found is not None  # the stage succeeded
    return found


def _link(step: ChainStep, name: str, **made: Any) -> None:
    ChainLink.objects.create(step=step, name=name, attempt=step.attempt, **made)


def key_of(step: ChainStep, name: str) -> str:
    """The same for every attempt to make the same thing."""
    again = f":{step.attempt}" if step.attempt else ""
    return f"chain:{step.chain_run_id}:{step.stage}:{name}{again}"


def _named(step: ChainStep, name: str) -> str:
    again = f" ({step.attempt + 1})" if step.attempt else ""
    return f"{step.chain_run.chain.name} {step.chain_run.number} {name}{again}"


def filled(step: ChainStep, pattern: str) -> str:
    """{n} is the number of this time, {date} its day."""
    run = step.chain_run
    day = run.night or timezone.localdate(run.started_at)
    return pattern.replace("{n}", str(run.number)).replace("{date}", day.isoformat())

"""The gate, the reading of successes, and who becomes a contestant on which grounds."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from training.demo.loop import town
from training.demo.loop.learning import Runs
from training.demo.tiny import StageFailed
from training.enums import AuditVerdict, GateState, RunState
from training.models import GateRun, GateSpec, TrainingRun
from training.selectors.audits import SUCCESS, sample
from training.services import audits, gates, promotions
from training.services.along import gate_along
from webapp.catalog.enums import ContestantKind
from webapp.catalog.models import Contestant
from webapp.catalog.services.contestant_settings import endpoint_settings
from webapp.catalog.services.making import Making, add_contestant

SCORERS = {"quality": ["quality/auditors"], "personalization": ["personalization/auditors"]}
SAMPLING = {"max_completion": 40, "draws": 4}
# Two corners ask 24 questions: too few to show that quality holds within less (docs/gates.md).
RULES = {"minimum": 20, "stratum_minimum": 8, "quality_margin": 0.1}
READ, FEW = 40, 10  # successes; of ten a sound policy may show two fake ones by chance
TASTED = {"temperature": 0.7, "max_tokens": 40}
BASE, POLICY, SECOND = "Base", "Policy", "Second policy 1"
HACKED, BLIND = "Hacked", "Persona-blind prompt"
WHY = "Rejected by its gate. It enters so that people can say whether the gate was right."


def spec(runs: Runs, name: str, *, short: bool = False) -> GateSpec:
    """The gate: auditors judge, which never gave a reward."""
    return gates.create_gate(
        actor=runs.actor,
        name=name,
        dataset=runs.workshop.instructions,
        baseline=runs.runs["SFT"],
        scorers=SCORERS,
        quality=runs.runs["quality"],
        personalization=runs.runs["personalization"],
        rules=RULES,
        sampling=SAMPLING,
        to_audit=FEW if short else READ,
    )


def judged(runs: Runs, gate: GateSpec, *stages: str) -> list[GateRun]:
    """One verdict for each of these policies."""
    found = [
        gates.start_gate(
            actor=runs.actor,
            spec=gate,
            candidate=runs.runs[stage],
            key=f"{runs.prefix}:gate:{stage}",
        )
        for stage in stages
    ]
    return [decided(runs, run, stage) for run, stage in zip(found, stages, strict=True)]


def along(runs: Runs, gate: GateSpec, stage: str) -> dict[str, GateRun]:
    """The verdicts at 0, 50 and 100 % of the training of this policy."""
    names = ("0 %", "50 %", "100 %")
    found = gate_along(actor=runs.actor, spec=gate, run=runs.runs[stage])
    if len(found) != len(names):
        raise StageFailed(f"{len(found)} of {len(names)} gates along {stage}")
    return {
        name: decided(runs, run, f"{stage} at {name}")
        for name, run in zip(names, found, strict=True)
    }


def decided(runs: Runs, gate: GateRun, stage: str) -> GateRun:
    """Wait for the verdict; an evaluation that was killed is resumed, or measured again."""
    end = time.monotonic() + runs.patience
    while time.monotonic() < end:
        runs.tick()
        gate = GateRun.objects.select_related(
            "spec", "candidate", "candidate_evaluation", "baseline_evaluation"
        ).get(pk=gate.pk)
        if gate.state == GateState.DECIDED:
            runs.say(f"gate of {stage}: {gate.verdict}")
            return gate
        if gate.state == GateState.FAILED:
            gate = gates.measure_again(actor=runs.actor, gate=gate)
        for run in (gate.candidate_evaluation, gate.baseline_evaluation):
            if run is not None and run.state in (RunState.FAILED, RunState.CANCELLED):
                runs.take_up(f"{stage}, evaluation {run.pk}", run)
    raise StageFailed(f"the gate of {stage} was not decided in {runs.patience:.0f} s")


def read_successes(actor: Any, gate: GateRun, worth: Callable[..., float] = town.worth) -> int:
    """An administrator reads the drawn successes; those that are in truth worth less than a success
    are fake. How many.
    """
    fakes = 0
    for row in sample(gate):
        genuine = all(
            worth(axis, row["persona"], row["prompt"], row["completion"]) >= SUCCESS
            for axis in SCORERS
        )
        fakes += not genuine
        verdict = AuditVerdict.GENUINE if genuine else AuditVerdict.FAKE
        audits.mark(actor=actor, gate=gate, item=row["id"], draw=row["draw"], verdict=verdict)
    return fakes


def baseline(actor: Any, run: TrainingRun, sampling: dict[str, Any] | None = None) -> Contestant:
    return promotions.promote_baseline(actor=actor, run=run, name=BASE, sampling=sampling or TASTED)


def promoted(
    actor: Any, gate: GateRun, name: str, sampling: dict[str, Any] | None = None
) -> Contestant:
    return promotions.promote(actor=actor, gate=gate, name=name, sampling=sampling or TASTED)


def let_in(first: Any, second: Any, gate: GateRun, key: str) -> Contestant:
    """What its gate rejected enters by two administrators, recorded with the reason."""
    asked = promotions.ask_override(
        actor=first, run=gate.candidate, gate=gate, name=HACKED, reason=WHY, key=key
    )
    found = promotions.answer_override(actor=second, asked=asked, agreed=True, sampling=TASTED)
    if found is None:
        raise StageFailed("the override was declined")
    return found


def blind(actor: Any, url: str) -> Contestant:
    """The base behind an endpoint, asked without the persona summary."""
    kept = endpoint_settings(url=url, model="base", timeout=120, at_once=8)
    making = Making(ContestantKind.ENDPOINT, kept, dict(TASTED), "", uses_persona=False)
    return add_contestant(actor=actor, name=BLIND, version="", making=making)

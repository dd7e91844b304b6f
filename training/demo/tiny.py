"""The whole loop on the workshop, launched as an administrator would: SFT, baseline, reward models,
GRPO, and the same evaluation again. Runs are executed by whoever listens to the queue `gpu`.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from training.demo.loading import Workshop, load, manager
from training.demo.world import SMALL, Sizes
from training.engine.config.load import merge
from training.enums import ENDED, Role, RunKind, RunState
from training.launching import InputSpec
from training.models import TrainingRun
from training.selectors.inputs import gate_of
from training.services.runs import launch

Say = Callable[[str], object]
TRUTH = {"evaluate": {"scorers": ["truth"]}}  # for looking, never for training
# A few steps of everything: that the parts fit together, not that anything is learned.
SHORT: dict[str, Any] = {
    "sft": {"max_steps": 16, "warmup_steps": 4},
    "reward_model": {"members": 2, "auditors": 1, "max_steps": 6, "eval_every": 6},
    "grpo": {"steps": 8, "batch": 16, "save_every": 4, "evaluate_prompts": 8, "max_completion": 24},
    "evaluate": {"max_completion": 24},
    "reward": {"force": "a short run: the gate cannot pass"},
}
GRPO = {"reward": {"audit": ["truth", "rules"]}}


class StageFailed(Exception):
    """A run that did not succeed; the message says why."""


@dataclass
class Loop:
    """The runs by stage, and how long waiting for one may take (seconds)."""

    workshop: Workshop
    actor: Any
    prefix: str
    changes: Mapping[str, Any] = field(default_factory=dict)
    patience: float = 1800.0
    say: Say = print
    tick: Callable[[], object] = lambda: time.sleep(0.3)
    preset: str = "tiny"
    runs: dict[str, TrainingRun] = field(default_factory=dict)

    def launch(
        self, stage: str, kind: str, inputs: Mapping[Any, InputSpec], config: Mapping[str, Any]
    ) -> TrainingRun:
        run = launch(
            actor=self.actor,
            name=f"{self.prefix} {stage}",
            kind=kind,
            preset=self.preset,
            config=merge(config, self._of(kind)),
            inputs=inputs,
            key=f"{self.prefix}:{stage}",
        )
        self.runs[stage] = run
        return run

    def _of(self, kind: str) -> dict[str, Any]:
        named = (kind, "reward") if kind == RunKind.GRPO else (kind,)
        return {name: self.changes[name] for name in named if name in self.changes}

    def wait(self, *stages: str) -> None:
        """Until these have ended; raises StageFailed where one did not succeed."""
        end = time.monotonic() + self.patience
        waiting = list(stages)
        while waiting and time.monotonic() < end:
            self.tick()
            for stage in list(waiting):
                run = TrainingRun.objects.get(pk=self.runs[stage].pk)
                self.runs[stage] = run
                if run.state in ENDED:
                    waiting.remove(stage)
                    self.say(f"{stage}: {run.state} after {seconds(run):.0f} s")
                    if run.state != RunState.SUCCEEDED:
                        raise StageFailed(f"{stage}: {run.reason} {run.message}\n{run.log_tail}")
        if waiting:
            raise StageFailed(f"{', '.join(waiting)}: not done in {self.patience:.0f} s")


def train(
    *, seed: int = 1, short: bool = False, actor: Any = None, prefix: str = "Tiny", **how: Any
) -> Loop:
    """From nothing to a trained policy."""
    actor = actor or manager()
    workshop = load(seed=seed, sizes=SMALL if short else Sizes(), actor=actor)
    loop = Loop(workshop, actor, prefix, SHORT if short else {}, **how)
    loop.launch("SFT", RunKind.SFT, sft_inputs(workshop), {})
    loop.wait("SFT")
    base = InputSpec(source=loop.runs["SFT"])
    gate = {Role.BASE: base, Role.GATE: InputSpec(workshop.instructions, "gate")}
    for branch in ("quality", "personalization"):
        inputs = {Role.BASE: base, **reward_inputs(workshop, branch)}
        loop.launch(branch, RunKind.REWARD_MODEL, inputs, {"reward_model": {"branch": branch}})
    loop.launch("baseline", RunKind.EVALUATE, gate, TRUTH)
    loop.wait("quality", "personalization", "baseline")
    loop.launch("GRPO", RunKind.GRPO, grpo_inputs(loop), GRPO)
    loop.wait("GRPO")
    gate[Role.BASE] = InputSpec(source=loop.runs["GRPO"])
    loop.launch("after", RunKind.EVALUATE, gate, TRUTH)
    loop.wait("after")
    return loop


def sft_inputs(workshop: Workshop) -> dict[Any, InputSpec]:
    rows = workshop.instructions
    return {Role.TRAIN: InputSpec(rows, "train"), Role.HELDOUT: InputSpec(rows, "edge")}


def reward_inputs(workshop: Workshop, branch: str) -> dict[Any, InputSpec]:
    """Everything but the base. Held-out pairs stop the training, gate pairs judge it."""
    pairs = workshop.quality if branch == "quality" else workshop.personalization
    found: dict[Any, InputSpec] = {
        Role.TRAIN: InputSpec(pairs, "train"),
        Role.HELDOUT: InputSpec(pairs, "edge"),
        Role.GATE: InputSpec(pairs, "reward_model_gate"),
    }
    if branch == "quality":
        found[Role.PROBES] = InputSpec(workshop.defects, "reward_model_gate")
    else:
        found[Role.SWAPS] = InputSpec(pairs, "reward_model_gate")
    return found


def grpo_inputs(loop: Loop) -> dict[Any, InputSpec]:
    w = loop.workshop
    return {
        Role.TRAIN: InputSpec(w.instructions, "train"),
        Role.HELDOUT: InputSpec(w.instructions, "edge"),
        Role.GATE: InputSpec(w.instructions, "gate"),
        Role.PROBES: InputSpec(w.defects, "gate"),
        Role.SWAPS: InputSpec(w.personalization, "gate"),
        Role.BASE: InputSpec(source=loop.runs["SFT"]),
        Role.QUALITY: InputSpec(source=loop.runs["quality"]),
        Role.PERSONALIZATION: InputSpec(source=loop.runs["personalization"]),
    }


def seconds(run: TrainingRun) -> float:
    """From the start of the process to the end that the site noted."""
    if run.started_at is None or run.ended_at is None:
        return 0.0
    return (run.ended_at - run.started_at).total_seconds()


def first_metric(run: TrainingRun) -> float | None:
    """Seconds from the launch to the first metric."""
    if run.first_metric_at is None:
        return None
    return (run.first_metric_at - run.created_at).total_seconds()


@dataclass(frozen=True)
class Outcome:
    """Shares on the gate split, judged by the truth of the toy world: before, after."""

    match: tuple[float, float]
    quality: tuple[float, float]

    @property
    def learned(self) -> bool:
        return self.match[1] >= 0.9


def outcome(loop: Loop) -> Outcome:
    means = [loop.runs[name].manifest["facts"]["means"] for name in ("baseline", "after")]
    before, after = means
    return Outcome(
        (before["truth/match"], after["truth/match"]),
        (before["truth/quality"], after["truth/quality"]),
    )


def table(loop: Loop) -> Iterable[str]:
    """What came of it, as lines."""
    found = outcome(loop)
    yield f"{'':<24}{'before':>8}{'after':>8}"
    for name, (before, after) in (("style", found.match), ("quality", found.quality)):
        yield f"{name + ' (truth, gate split)':<24}{before:>8.3f}{after:>8.3f}"
    yield ""
    yield f"{'run':<16}{'seconds':>8}{'CPU':>8}{'click to metric':>16}{'MB':>7}  gate"
    for name, run in loop.runs.items():
        m, first = run.manifest, first_metric(run)
        checks = {c["name"]: c["value"] for c in gate_of(run).get("checks", ())}
        said = ", ".join(f"{n} {v:.3f}" for n, v in checks.items() if n in ("accuracy", "swap"))
        wait = f"{first:.1f} s" if first is not None else "–"
        yield (
            f"{name:<16}{seconds(run):>8.1f}{m['cpu_seconds']:>8.1f}{wait:>16}"
            f"{m['peak_memory_mb']:>7}  {said}"
        )
    alerts = loop.runs["GRPO"].alerts.values_list("rule", "step")
    yield f"alerts: {', '.join(f'{rule} at {step}' for rule, step in alerts) or 'none'}"

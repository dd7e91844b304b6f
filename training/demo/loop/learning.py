"""Datasets, supervised fine-tuning, reward models, two policies: a sound one and a hacked one."""

from __future__ import annotations

import random
import time
from dataclasses import dataclass, field
from typing import Any

from training.demo import loading, tiny, world
from training.demo.loading import Workshop, frozen, hash_of, import_rows
from training.demo.loop import town
from training.demo.loop.labelling import Labelling
from training.demo.loop.town import Row, Town
from training.demo.world import Corner, Sizes
from training.engine.config.load import merge
from training.engine.toy import world as toy
from training.enums import ENDED, DatasetState, Role, RunKind, RunState
from training.launching import InputSpec
from training.models import Dataset, DatasetItem, TrainingRun
from training.services.records import KIND as RECORDS
from training.services.runs import resume

KILLED = 6  # times that a run which did not succeed is taken up again
SHARES = {  # by axis: quality is judged at no gate
    "quality": {"train": 82, "reward_model_gate": 9, "edge": 9},
    "personalization": world.SHARES,
}
# Rare defects are learnt last: stopped early, this reward model does not know all of them.
PATIENT: dict[str, dict[str, Any]] = {"quality": {"stop_accuracy": 0.985, "max_steps": 200}}
# What breaks a policy: a reward model that learnt too little, and a learning rate that finds out.
HACKED: dict[str, Any] = {
    "reward_model": {"members": 2, "auditors": 0, "max_steps": 8, "eval_every": 4,
                     "stop_accuracy": 1.01},
    "grpo": {"steps": 60, "learning_rate": 1e-3, "save_every": 30},
    "reward": {"force": "To show what a hacked reward looks like: it must not pass."},
}  # fmt: skip
# A few steps of everything but the reward models: without good ones there are no judges.
SHORT: dict[str, Any] = {"grpo": {"steps": 16, "save_every": 8, "evaluate_prompts": 8}}
SHORT_HACKED: dict[str, Any] = {
    "reward_model": {"members": 1, "max_steps": 4, "eval_every": 4},
    "grpo": {"steps": 10, "save_every": 5, "evaluate_prompts": 8},
}


@dataclass
class Runs(tiny.Loop):
    """Runs by stage. One that a killed process left behind is resumed, as a person would do it."""

    taken_up: dict[str, int] = field(default_factory=dict)

    def wait(self, *stages: str) -> None:
        end, waiting = time.monotonic() + self.patience, list(stages)
        while waiting and time.monotonic() < end:
            self.tick()
            for stage in list(waiting):
                run = self.runs[stage] = TrainingRun.objects.get(pk=self.runs[stage].pk)
                if run.state == RunState.SUCCEEDED:
                    waiting.remove(stage)
                    self.say(f"{stage}: succeeded after {tiny.seconds(run):.0f} s")
                elif run.state in ENDED:
                    self.take_up(stage, run)
        if waiting:
            raise tiny.StageFailed(f"{', '.join(waiting)}: not done in {self.patience:.0f} s")

    def take_up(self, stage: str, run: TrainingRun) -> None:
        times = self.taken_up[stage] = self.taken_up.get(stage, 0) + 1
        said = f"{stage}: {run.state}, {run.reason} {run.message}"
        if times > KILLED:
            raise tiny.StageFailed(f"{said}\n{run.log_tail}")
        self.say(f"{said}; resumed")
        resume(actor=self.actor, run=run)


def instructions(actor: Any, place: Town, sizes: Sizes, seed: int) -> Dataset:
    """What supervised fine-tuning shows; its splits decide where every corner goes."""
    name = f"Loop {seed}: instructions"
    known = Dataset.objects.filter(name=name).exclude(state=DatasetState.DISCARDED).first()
    values: dict[str, Any] = {}
    if known is None:
        rng = random.Random(f"instructions {seed}")  # noqa: S311 - no secrets
        rows = evenly([town.distinct(world.instructions(c, sizes, rng)) for c in place.trained])
        import_rows(actor, rows, "instructions", kind=RECORDS)
        chosen = loading.teaching_seed(place.trained, town.teaches)
        values = {"categories": [world.CATEGORY], **loading.SPLITTING, "seed": chosen}
    return frozen(actor, name, "instructions", values)


def evenly(corners: list[list[Row]]) -> list[Row]:
    """As many broken answers in every corner: splits go by size, and chance is to place them."""
    broken = [[row for row in rows if not _right(row)] for rows in corners]
    fewest = min(map(len, broken))
    right = [row for rows in corners for row in rows if _right(row)]
    return right + [row for rows in broken for row in rows[:fewest]]


def _right(row: Row) -> bool:
    return bool(toy.quality(row["prompt"], row["completion"]))


def placed(dataset: Dataset, place: Town) -> list[tuple[Corner, str]]:
    """Every corner that datasets hold, with its split."""
    rows = DatasetItem.objects.filter(dataset=dataset)
    found = dict(rows.values_list("prompt_sha256", "split").distinct())
    return [(corner, found[hash_of(corner)]) for corner in place.trained]


def defects(actor: Any, corners: list[tuple[Corner, str]], sizes: Sizes, seed: int) -> Dataset:
    """Broken answers by kind of defect, on corners that measure."""
    name = f"Loop {seed}: defects"
    if not Dataset.objects.filter(name=name).exists():
        rng = random.Random(f"defects {seed}")  # noqa: S311 - no secrets
        rows = [
            row
            for corner, split in corners
            if split in loading.MEASURED
            for row in world.defects(corner, sizes.defects, rng)
        ]
        import_rows(actor, rows, "counterexamples", kind=RECORDS)
    values: dict[str, Any] = {"sources": ["import"], "categories": [world.CATEGORY]}
    values |= {"train": 0, "reward_model_gate": 33, "gate": 67}
    return frozen(actor, name, "counterexamples", values)


def preferences(actor: Any, work: Labelling, seed: int) -> Dataset:
    """The decisions of one axis."""
    values = {
        **SHARES[work.axis], "axis": work.axis, "sources": ["annotation"], "simulated": True,
        "projects": [project.pk for project in work.projects],
    }  # fmt: skip
    return frozen(actor, f"Loop {seed}: {work.axis}", "preferences", values)


def fine_tuned(runs: Runs) -> TrainingRun:
    """The base that everything starts from. It needs no labels, so it trains while people label."""
    return runs.launch("SFT", RunKind.SFT, tiny.sft_inputs(runs.workshop), {})


def policies(runs: Runs, *, short: bool) -> None:
    """Reward models, the baseline, and a policy; beside it the hacked one."""
    shop, base = runs.workshop, InputSpec(source=runs.runs["SFT"])
    gate = {Role.BASE: base, Role.GATE: InputSpec(shop.instructions, "gate")}
    for branch in ("quality", "personalization"):
        inputs = {Role.BASE: base, **tiny.reward_inputs(shop, branch)}
        own = {"branch": branch, **PATIENT.get(branch, {})}
        runs.launch(branch, RunKind.REWARD_MODEL, inputs, {"reward_model": own})
    runs.launch("baseline", RunKind.EVALUATE, gate, tiny.TRUTH)
    weak = {Role.BASE: base, **tiny.reward_inputs(shop, "quality")}
    changes = merge(HACKED, SHORT_HACKED) if short else HACKED
    own = {"reward_model": {"branch": "quality", **changes["reward_model"]}}
    runs.launch("weak quality", RunKind.REWARD_MODEL, weak, own)
    runs.wait("quality", "personalization", "baseline")
    runs.launch("GRPO", RunKind.GRPO, tiny.grpo_inputs(runs), tiny.GRPO)
    runs.wait("weak quality")
    hacked = tiny.grpo_inputs(runs)
    hacked[Role.QUALITY] = InputSpec(source=runs.runs["weak quality"])
    runs.launch("hacked", RunKind.GRPO, hacked, {n: changes[n] for n in ("grpo", "reward")})
    runs.wait("GRPO", "hacked")


def workshop(sets: dict[str, Dataset]) -> Workshop:
    return Workshop(sets["instructions"], sets["quality"], sets["personalization"], sets["defects"])

"""Reward models of one branch: seeds × data folds, calibrated, then the gate.

`members` are averaged into the reward. `auditors` are trained alike on other folds and never give
reward: during GRPO they say what the reward cannot see.
"""

from __future__ import annotations

import dataclasses
import random
from collections.abc import Sequence
from typing import Any

from datasets import Dataset
from transformers import TrainerCallback, set_seed
from trl import RewardConfig, RewardTrainer

from training.engine.config.schema import RunConfig
from training.engine.jobs import models
from training.engine.jobs.arguments import common, quiet
from training.engine.jobs.gate import measure
from training.engine.jobs.scoring import CARD, Ensemble, Judged, Member, load_member
from training.engine.jobs.texts import reward_ids
from training.engine.jobs.watch import Stop, Watch, need_disk
from training.engine.numbers import finite
from training.engine.rewards import gate
from training.engine.rundir import RunDir, read_json, sha256_file, sha256_json, write_json
from training.engine.snapshots import Row, read_rows


class GoodEnough(TrainerCallback):
    """Ends the training of a member when it orders held-out pairs well enough."""

    def __init__(self, accuracy: float) -> None:
        self.accuracy = accuracy

    def on_evaluate(
        self, args: Any, state: Any, control: Any, metrics: dict[str, Any], **kwargs: Any
    ) -> None:
        if (finite(metrics.get("eval_accuracy")) or 0.0) >= self.accuracy:
            control.should_training_stop = True


def train(run: RunDir, config: RunConfig, stop: Stop) -> dict[str, Any]:
    """Train all members, judge them, write the card; members that are done are kept on resume."""
    r = config.reward_model
    rows = read_rows(run.path / config.data.train, "pairs")
    heldout = read_rows(run.path / config.data.heldout, "pairs")
    names = [f"members/{i}" for i in range(r.members)]
    names += [f"auditors/{i}" for i in range(r.auditors)]
    members = []
    for index, name in enumerate(names):
        done = (run.path / name / "member.json").exists()
        if not done and not train_member(run, config, stop, name, index, rows, heldout):
            return {"members": index, "steps": index}
        members.append(load_member(run.path / name, r.branch, r.max_length, config.model))
    return finish(run, config, names, members)


def train_member(
    run: RunDir,
    config: RunConfig,
    stop: Stop,
    name: str,
    index: int,
    rows: Sequence[Row],
    heldout: Sequence[Row],
) -> bool:
    """One seed on all folds but one; False when it was stopped on the way."""
    r = config.reward_model
    config = dataclasses.replace(config, seed=config.seed * 1000 + index)
    set_seed(config.seed)
    tokenizer = models.load_tokenizer(config.model.path)
    model = models.load_classifier(config.model.path, config.model)
    need_disk(run, config, 4.0 * model.num_parameters())
    inside, outside = fold(rows, index, r.folds, config.seed)
    trainer = quiet(
        RewardTrainer(
            model=model,
            args=arguments(run, config, name),
            train_dataset=pairs(tokenizer, config, inside),
            eval_dataset=pairs(tokenizer, config, heldout),
            processing_class=tokenizer,
            peft_config=models.peft_config(config.model, "SEQ_CLS"),
            callbacks=[
                Watch(run, config, stop, stage=name, prefix=f"{name}/"),
                GoodEnough(r.stop_accuracy),
            ],
        )
    )
    trainer.train()
    if stop:  # a member is trained whole: on resume this one begins again
        return False
    folder = run.path / name
    trainer.save_model(str(folder))
    tokenizer.save_pretrained(str(folder))
    trainer.model.eval()
    member = Member(trainer.model, tokenizer, r.branch, r.max_length, gate.Calibration())
    write_json(folder / "member.json", calibrate(member, outside, trainer.state.global_step))
    return True


def calibrate(member: Member, rows: Sequence[Row], steps: int) -> dict[str, Any]:
    """The temperature fitted on the fold that this member did not see."""
    chosen, rejected = member.logits(sides(rows, "chosen")), member.logits(sides(rows, "rejected"))
    found = gate.fit(chosen, rejected)
    accuracy = gate.accuracy(chosen, rejected)
    facts = {"temperature": found.temperature, "center": found.center, "steps": steps}
    return {**facts, "fold_accuracy": accuracy, "fold_pairs": len(rows)}


def finish(
    run: RunDir, config: RunConfig, names: list[str], members: list[Member]
) -> dict[str, Any]:
    """The gate over the averaged members, each alone for comparison, and the card."""
    r = config.reward_model
    version = sha256_json([sha256_file(run.path / n / "model.safetensors") for n in names])[:16]
    ensemble = Ensemble(r.branch, members[: r.members], version)
    report = gate.judge(measure(run, config, ensemble), config.gate)
    card = {
        "branch": r.branch,
        "version": version,
        "max_length": r.max_length,
        "members": names[: r.members],
        "auditors": names[r.members :],
        "facts": {name: read_json(run.path / name / "member.json") for name in names},
        "gate": report.as_dict(),
    }
    write_json(run.path / CARD, card)
    run.event("gate", **report.as_dict())
    return {"gate": report.as_dict(), "version": version, "steps": len(names)}


def fold(rows: Sequence[Row], index: int, folds: int, seed: int) -> tuple[list[Row], list[Row]]:
    """All folds but one, shuffled by seed; and that one. Folds are the same for all members."""
    inside = [row for i, row in enumerate(rows) if i % folds != index % folds]
    outside = [row for i, row in enumerate(rows) if i % folds == index % folds]
    random.Random(seed).shuffle(inside)  # noqa: S311
    return inside, outside


def sides(rows: Sequence[Row], side: str) -> list[Judged]:
    return [(row["persona"], row["prompt"], row[side]) for row in rows]


def pairs(tokenizer: Any, config: RunConfig, rows: Sequence[Row]) -> Dataset:
    """Tokenised here, by the renderer that inference uses, not by the trainer."""
    r = config.reward_model
    columns = {
        f"{side}_ids": reward_ids(tokenizer, r.branch, sides(rows, side), r.max_length)
        for side in ("chosen", "rejected")
    }
    return Dataset.from_dict(columns)


def arguments(run: RunDir, config: RunConfig, name: str) -> RewardConfig:
    r = config.reward_model
    values = common(config, str(run.checkpoints / name.replace("/", "-")))
    return RewardConfig(
        **values,
        max_steps=r.max_steps,
        per_device_train_batch_size=r.batch,
        per_device_eval_batch_size=2 * r.batch,
        gradient_accumulation_steps=r.accumulation,
        learning_rate=r.learning_rate,
        lr_scheduler_type=r.scheduler,
        warmup_steps=r.warmup_steps,
        center_rewards_coefficient=r.center or None,
        max_length=r.max_length,
        max_grad_norm=r.max_grad_norm,
        eval_strategy="steps",
        eval_steps=r.eval_every,
    )

"""Weights of the middle of a run, kept for good: the trainer deletes older checkpoints.

`kept/step-N` holds the weights and the tokenizer of a checkpoint, by hard links, without the state
of the optimizer: it can be asked, not resumed from.
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Any

from transformers import TrainerCallback

from training.engine.config.schema import RunConfig
from training.engine.rundir import RunDir
from training.engine.weights import weights_digest

STATE = ("optimizer", "scheduler", "rng_state", "trainer_state", "training_args", "global_step")


class Keep(TrainerCallback):
    """Has a checkpoint saved at chosen points of progress, and keeps its weights."""

    def __init__(self, run: RunDir, config: RunConfig) -> None:
        self.run, self.points = run, config.grpo.keep_at

    def steps(self, state: Any) -> set[int]:
        """Neither the beginning nor the end: those are there anyhow."""
        found = {round(point * state.max_steps) for point in self.points}
        return {step for step in found if 0 < step < state.max_steps}

    def on_step_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        if state.global_step in self.steps(state):
            control.should_save = True

    def on_save(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        step = int(state.global_step)
        if step not in self.steps(state) or not self.run.main:
            return
        path = f"kept/step-{step}"
        keep(self.run.checkpoints / f"checkpoint-{step}", self.run.path / path)
        digest = weights_digest(self.run.path / path)
        self.run.event("checkpoint", stage="kept", step=step, path=path, sha256=digest)


def keep(checkpoint: Path, kept: Path) -> None:
    """The folder appears whole, and once: a resumed run that passes the step again leaves it."""
    if kept.exists():
        return
    draft = kept.with_name(f".{kept.name}")
    shutil.rmtree(draft, ignore_errors=True)
    draft.mkdir(parents=True)
    for file in checkpoint.iterdir():
        if file.is_file() and not file.name.startswith(STATE):
            try:
                os.link(file, draft / file.name)
            except OSError:  # a file system without links
                shutil.copy2(file, draft / file.name)
    draft.replace(kept)

"""Saved weights of a run by their step: those that an evaluation or a gate may ask."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from training.engine.weights import NoModel, model_folder, weights_digest
from training.enums import RunKind
from training.models import Checkpoint, TrainingRun
from training.storage import directory

KEPT = "kept/"  # weights alone; what lies in checkpoints/ goes when newer ones come


def asked_step(kind: str, config: Mapping[str, Any]) -> int:
    """The step whose weights an evaluation asks for; 0: what the base made at its end."""
    if kind != RunKind.EVALUATE:
        return 0
    step = (config.get("evaluate") or {}).get("checkpoint") or 0
    return step if isinstance(step, int) else 0


def saved(run: TrainingRun) -> list[Checkpoint]:
    """Intermediate weights whose files are there; of one step those that are kept come first."""
    rows = Checkpoint.objects.filter(run=run, final=False, removed_at=None).order_by(
        "step", "-path"
    )
    return [row for row in rows if _there(row)]


def _there(row: Checkpoint) -> bool:
    try:
        model_folder(directory(row.run.directory) / row.path)
    except NoModel:
        return False
    return True


def checkpoint_at(run: TrainingRun, step: int) -> Checkpoint | None:
    return next((row for row in saved(run) if row.step == step), None)


def kept_steps(run: TrainingRun) -> list[int]:
    return sorted({row.step for row in saved(run)})


def middle_of(run: TrainingRun) -> Checkpoint | None:
    """The saved weights nearest to half of the steps; None where all are nearer to an end."""
    steps = run.steps or run.step
    near = [row for row in saved(run) if steps / 4 <= row.step <= 3 * steps / 4]
    return min(near, key=lambda row: abs(row.step - steps / 2), default=None)


def digest_of_checkpoint(row: Checkpoint) -> str:
    """The hash of the weights: noted when they were kept, else of the files."""
    if row.sha256:
        return row.sha256
    try:
        return weights_digest(model_folder(directory(row.run.directory) / row.path))
    except NoModel:
        return ""

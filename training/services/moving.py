"""How a run changes its state: one way, by compare and set, under the lock of its row."""

from __future__ import annotations

from typing import Any

from training import policies
from training.models import Device, TrainingRun


def locked(pk: int) -> TrainingRun:
    """The run with its row locked; the rest is read after the wait."""
    TrainingRun.objects.select_for_update().only("pk").get(pk=pk)
    return TrainingRun.objects.get(pk=pk)


def move(run: TrainingRun, to: str, **columns: Any) -> bool:
    """To another state, if the run is still in the one that was read; whether it moved."""
    policies.check_run_move(run, to)
    rows = TrainingRun.objects.filter(pk=run.pk, state=run.state)
    moved = bool(rows.update(state=to, **columns))
    run.refresh_from_db()
    return moved


def release(run: TrainingRun) -> None:
    """Give its device back."""
    Device.objects.filter(run=run).update(run=None, taken_at=None)

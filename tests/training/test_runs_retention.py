"""What may be removed, what stays and why, and that it is shown before it happens."""

from __future__ import annotations

from pathlib import Path

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from tests.training.factories import admin
from tests.training.run_factories import ended, sft
from training.enums import Role
from training.models import Checkpoint, RunInput, TrainingRun
from training.selectors.machines import storage_problems, used_gb
from training.selectors.retention import plan
from training.services import retention, runs
from training.storage import directory
from webapp.core.errors import Forbidden, Refused
from webapp.core.models import Event

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("trainer")]
MB = 1_000_000


def done(tmp_path: Path, steps: int = 2) -> TrainingRun:
    """A run that succeeded, with intermediate checkpoints of 10 MB."""
    run = ended(sft(tmp_path, "steps=1"))
    for step in range(1, steps + 1):
        path = f"checkpoints/checkpoint-{step}"
        (directory(run.directory) / path).mkdir(parents=True)
        (directory(run.directory) / path / "weights").write_text("x")
        Checkpoint.objects.create(run=run, step=step, path=path, size=10 * MB, at=timezone.now())
    return run


def reasons(quota_gb: float) -> dict[tuple[int, str], str]:
    return {(k.checkpoint.run_id, k.checkpoint.path): k.why for k in plan(quota_gb).kept}


def test_the_oldest_intermediate_ones_go_until_the_quota_holds(tmp_path: Path) -> None:
    first, second = done(tmp_path), done(tmp_path)
    assert plan(1.0).removed == []
    found = plan(0.02)
    assert [(c.run, c.step) for c in found.removed] == [(first, 1), (first, 2), (second, 1)]
    assert found.used > 40 * MB
    assert found.after == found.used - 30 * MB
    assert reasons(0.02)[second.pk, "checkpoints/checkpoint-2"] == "quota"
    assert reasons(0.0)[first.pk, "model"] == "final"


def test_what_is_pinned_used_or_could_be_resumed_stays(tmp_path: Path) -> None:
    pinned, used, broken = done(tmp_path), done(tmp_path), ended(sft(tmp_path, "kill"))
    runs.pin(actor=admin(), run=pinned, pinned=True)
    RunInput.objects.create(run=broken, role=Role.BASE, source=used, sha256="a" * 64)
    why = reasons(0.0)
    assert why[pinned.pk, "checkpoints/checkpoint-1"] == "pinned"
    assert why[used.pk, "checkpoints/checkpoint-1"] == why[used.pk, "model"] == "used"
    assert why[broken.pk, "checkpoints/checkpoint-3"] == "resumable"
    for checkpoint in Checkpoint.objects.filter(run__in=[pinned, used, broken]):
        with pytest.raises(Refused):
            retention.remove(actor=admin(), checkpoints=[checkpoint])
        assert (directory(checkpoint.run.directory) / checkpoint.path).exists()


def test_removing_deletes_the_files_and_keeps_the_row(tmp_path: Path) -> None:
    run = done(tmp_path)
    chosen = plan(0.0).removed
    assert retention.remove(actor=admin(), checkpoints=chosen) == 20 * MB
    assert retention.remove(actor=admin(), checkpoints=chosen) == 0
    assert not (directory(run.directory) / "checkpoints" / "checkpoint-1").exists()
    assert Checkpoint.objects.filter(run=run, removed_at__isnull=False).count() == 2
    assert (directory(run.directory) / "model").exists()
    assert Event.objects.filter(action="remove_checkpoint").count() == 2


def test_only_administrators_remove(tmp_path: Path, bob: object) -> None:
    with pytest.raises(Forbidden):
        retention.remove(actor=bob, checkpoints=[])


def test_a_full_quota_is_told_before_the_launch(tmp_path: Path, settings: object) -> None:
    done(tmp_path)
    assert storage_problems(0.5) == []
    settings.PALATE_RUNS_QUOTA_GB = 0.01  # type: ignore[attr-defined]
    (problem,) = storage_problems(0.5)
    assert problem.field == "storage"
    assert used_gb() == pytest.approx(0.02, abs=1e-3)


def test_the_plan_asks_as_much_for_many_runs_as_for_one(tmp_path: Path) -> None:
    def count() -> int:
        with CaptureQueriesContext(connection) as asked:
            plan(0.0)
        return len(asked)

    ended(sft(tmp_path, "kill"))
    one = count()
    for _ in range(3):
        ended(sft(tmp_path, "kill"))
    assert count() == one <= 8

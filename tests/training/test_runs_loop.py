"""Six runs of the real engine, a few steps each: SFT, baseline, reward models, GRPO, evaluation."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.training.factories import admin
from tests.training.run_factories import ended, instructions, until
from training.demo import loading, tiny, world
from training.demo.tiny import outcome, table
from training.enums import Role
from training.launching import InputSpec
from training.models import BaselineEvaluation, Dataset, Device, TrainingRun
from training.selectors.datasets import check_all_splits
from training.selectors.retention import plan
from training.services import runs
from training.services.watching import watch_runs
from training.storage import directory

pytestmark = pytest.mark.django_db


def test_the_whole_loop_fits_together(tmp_path: Path, settings: Any) -> None:
    settings.PALATE_DEVICES = ["one", "two"]
    said: list[str] = []
    loop = tiny.train(short=True, actor=admin(), tick=watch_runs, say=said.append)
    assert [run.state for run in loop.runs.values()] == ["succeeded"] * 6
    assert not Device.objects.exclude(run=None).exists()
    grpo = loop.runs["GRPO"]
    assert {"reward/reference", "parts/quality", "kl", "length/mean"} <= {
        name for line in grpo.metrics.all() for name in line.values
    }
    assert grpo.samples.count() > 0
    assert grpo.checkpoints.filter(final=True, path="model").exists()
    middle = grpo.checkpoints.get(path="kept/step-4")
    assert (middle.step, len(middle.sha256), middle.removed_at) == (4, 64, None)
    assert loop.runs["quality"].checkpoints.filter(final=True).count() == 3
    baseline = BaselineEvaluation.objects.get()
    assert (baseline.base, baseline.result["answers"]) == ("Tiny SFT", baseline.result["n_ok"])
    rows = [
        json.loads(line)
        for name in ("baseline", "after")
        for line in (directory(loop.runs[name].directory) / "evaluation.jsonl").open()
    ]
    assert len({row["id"] for row in rows}) * 2 == len(rows)  # the same items, before and after
    assert outcome(loop).match[0] >= 0
    assert "alerts" in "\n".join(table(loop))
    assert {kept.why for kept in plan(0.0).kept} <= {"used", "final"}


def test_a_real_run_is_cancelled_and_resumed_to_the_same_curve(tmp_path: Path) -> None:
    inputs = {Role.TRAIN: InputSpec(instructions(tmp_path, rows=64), "train")}
    config = {"sft": {"max_steps": 80, "batch": 16, "warmup_steps": 4}}

    def asked(name: str) -> TrainingRun:
        return runs.launch(
            actor=admin(), name=name, kind="sft", preset="tiny", config=config, inputs=inputs
        )

    whole = ended(asked("Whole"), 300)
    run = until(asked("Parted"), lambda row: row.step >= 5, 300)
    runs.cancel(actor=admin(), run=run)
    run = ended(run, 300)
    assert run.state == "cancelled"
    assert 5 <= run.step < 80
    assert run.checkpoints.get().step == run.step
    run = ended(runs.resume(actor=admin(), run=run), 300)
    assert (run.state, run.attempts) == ("succeeded", 2)
    assert losses(run) == losses(whole)
    assert run.checkpoints.get(final=True).sha256 == whole.checkpoints.get(final=True).sha256


def losses(run: TrainingRun) -> dict[int, float]:
    return {m.step: m.values["loss"] for m in run.metrics.all() if "loss" in m.values}


def test_the_workshop_is_frozen_once() -> None:
    first = loading.load(sizes=world.SMALL, actor=admin())
    again = loading.load(sizes=world.SMALL, actor=admin())
    assert first == again
    assert Dataset.objects.count() == 4
    assert check_all_splits() == []
    assert set(first.instructions.split_sha256) == set(world.SHARES)
    corners = world.corners()
    chosen = zip(corners, loading.splits(first.instructions, corners), strict=True)
    assert world.teaches_all([corner for corner, split in chosen if split == "train"])

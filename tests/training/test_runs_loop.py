"""Six runs of the real engine, a few steps each: SFT, baseline, reward models, GRPO, evaluation."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.training.factories import admin
from training.demo import loading, tiny, world
from training.demo.tiny import outcome, table
from training.models import BaselineEvaluation, Dataset, Device
from training.selectors.datasets import check_all_splits
from training.selectors.retention import plan
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

"""Files of every test stand apart: ids come again after a rollback."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from training import processes
from training.models import TrainingRun
from training.services import watching
from training.storage import directory

FAKE = Path(__file__).with_name("fake_trainer.py")


@pytest.fixture(autouse=True)
def media(settings: Any, tmp_path: Path) -> None:
    settings.MEDIA_ROOT = tmp_path / "media"
    settings.PALATE_RUNS = tmp_path / "runs"


@pytest.fixture
def trainer(settings: Any, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Runs are executed by a process that trains nothing; none outlives its test."""
    settings.PALATE_TRAINER = [sys.executable, str(FAKE)]
    facts = {"packages": ["torch", "transformers", "trl", "accelerate", "datasets"], "gpus": 0}
    monkeypatch.setattr(watching, "machine_facts", lambda: dict(facts))
    yield
    for run in TrainingRun.objects.exclude(pid=None):
        processes.end(run.pid, directory(run.directory), kill=True)

"""Answers of a run and what was asked for them, from its directory and its frozen rows."""

from __future__ import annotations

from typing import Any

from training import snapshots
from training.enums import Role
from training.models import SampleLine, TrainingRun
from training.selectors.run_pages.files import read_at
from training.storage import directory

ASKED = (Role.TRAIN, Role.HELDOUT, Role.GATE)


def sample_at(run: TrainingRun, offset: int) -> dict[str, Any] | None:
    """The answer at a place of samples.jsonl; None where it is not there, or was made blank."""
    if not SampleLine.objects.filter(run=run, offset=offset).exists():
        return None
    found = read_at(directory(run.directory) / "samples.jsonl", [offset])
    return next((row for row in found if row.get("completion") is not None), None)


def asked_of(run: TrainingRun, said: dict[str, Any]) -> dict[str, Any] | None:
    """The row of the prompt behind an answer, as a gate asks it; None where there is none (V14)."""
    rows = run.inputs.filter(role__in=ASKED, dataset__isnull=False).select_related("dataset")
    for given in rows:
        assert given.dataset is not None
        for row in snapshots.prompts(given.dataset, given.split):
            if row["id"] == said.get("prompt_id"):
                return row
    return None

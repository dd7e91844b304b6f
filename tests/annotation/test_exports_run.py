"""Exports as runs: what is in the file, what is not, and why."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from annotation.models import ExportRun
from annotation.services import exports
from tests.annotation.factories import Desk, label_all, make_desk

pytestmark = pytest.mark.django_db


def make(desk: Desk, **options: Any) -> ExportRun:
    run = exports.start_export(
        actor=desk.manager, project=desk.project, options=options, key="", send=False
    )
    done = exports.run_export(pk=run.pk)
    assert done is not None
    return done


def lines(run: ExportRun) -> list[dict[str, Any]]:
    return [json.loads(line) for line in Path(run.path).read_text().splitlines()]


def test_a_pair_has_its_better_answer_first() -> None:
    desk = make_desk(people=1, n_items=3)
    label_all(desk)
    run = make(desk, format="trl_preference")
    rows = lines(run)
    assert len(rows) == 3

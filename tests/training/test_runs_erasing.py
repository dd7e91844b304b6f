"""Withdrawn consent reaches what runs wrote down; every other line stays in its place."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.training.factories import admin, draft, freeze, make_people
from tests.training.run_factories import ended, until
from training.enums import Role
from training.launching import InputSpec
from training.models import Dataset, TrainingRun
from training.services import runs
from training.storage import directory
from webapp.catalog.services.imports import open_run, run_import
from webapp.catalog.services.personas import withdraw_consent

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("trainer")]


def told(number: int) -> str:
    """The summary of a person, as `make_people` writes it."""
    return f"person-{number}: {'novice' if number % 2 else 'expert'}, in a hurry."


def personal(tmp_path: Path) -> Dataset:
    """Instructions of four people."""
    file = tmp_path / "people.jsonl"
    rows = [
        {
            "prompt": f"What about {number}?",
            "completion": f"This {number}.",
            "persona": {"pseudonym": v.persona.pseudonym, "summary": told(number)},
        }
        for number, v in enumerate(make_people(4))
    ]
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    opened = open_run(path=file, format="instructions", kind="records", user=admin())
    run_import(pk=opened.pk, take_over=True)
    return freeze(draft("instructions", name="People"))


def launched(tmp_path: Path, does: str) -> TrainingRun:
    dataset = Dataset.objects.filter(name="People").first() or personal(tmp_path)
    return runs.launch(
        actor=admin(), name=f"Of people {does}", kind="sft", preset="tiny", config={"note": does},
        inputs={Role.TRAIN: InputSpec(dataset, "train")},
    )  # fmt: skip


def files(run: TrainingRun) -> str:
    where = directory(run.directory)
    return (where / "data" / "train.jsonl").read_text() + (where / "samples.jsonl").read_text()


def test_texts_of_a_person_who_withdrew_are_made_blank(tmp_path: Path) -> None:
    run = ended(launched(tmp_path, "steps=2 people"))
    before = files(run)
    assert before.count(told(1)) == 3  # a row, and a sample of each step
    withdraw_consent(actor=admin(), persona=make_people(4)[1].persona)
    after = files(run)
    assert told(1) not in after
    assert len(after) == len(before)
    changed = [b for a, b in zip(before.split("\n"), after.split("\n"), strict=True) if a != b]
    assert [json.loads(line) for line in changed] == [{}] * 3


def test_what_a_run_writes_after_the_withdrawal_goes_at_its_end(tmp_path: Path) -> None:
    run = launched(tmp_path, "steps=30 pause=0.05 people")
    until(run, lambda row: row.step > 2)
    withdraw_consent(actor=admin(), persona=make_people(4)[1].persona)
    run = ended(run)
    assert run.state == "succeeded"
    assert told(1) not in files(run)
    assert told(2) in files(run)


def test_a_run_that_is_resumed_later_does_without_them(tmp_path: Path) -> None:
    run = ended(launched(tmp_path, "kill steps=5 people"))
    withdraw_consent(actor=admin(), persona=make_people(4)[1].persona)
    run = ended(runs.resume(actor=admin(), run=run))
    assert run.state == "succeeded"
    rows: list[Any] = (directory(run.directory) / "data" / "train.jsonl").read_text().splitlines()
    assert len(rows) == 3
    assert told(1) not in files(run)

"""Promotions read weights before they hold a lock, and look again at what they read."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from django.db import connection
from django.utils import timezone

from tests.training.factories import admin
from tests.training.gate_factories import gate, made, policy
from tests.training.test_gates import person
from tests.training.test_gates_along import kept
from tests.training.test_promotion_guards import passed
from training.engine import weights
from training.models import Checkpoint, GateRun
from training.selectors import checkpoints
from training.selectors.checkpoints import digest_of_checkpoint
from training.services.promotions import answer_override, ask_override, promote, promote_baseline
from webapp.catalog.models import Contestant
from webapp.catalog.services import contestant_settings
from webapp.core.errors import InvalidInput

pytestmark = pytest.mark.django_db


@pytest.fixture
def depths(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many transactions were open, beside the test's own, each time that weights were read."""
    own, found = len(connection.savepoint_ids), list[int]()

    def read(folder: Path) -> str:
        found.append(len(connection.savepoint_ids) - own)
        return weights.weights_digest(folder)

    for module in (checkpoints, contestant_settings):
        monkeypatch.setattr(module, "weights_digest", read)
    return found


@pytest.fixture
def halfway(tmp_path: Path) -> GateRun:
    """Weights of the middle that passed; nobody noted their hash."""
    spec = gate(tmp_path, to_audit=4)
    run = policy("new", spec.baseline, {})
    return GateRun.objects.get(pk=passed(spec, run, kept(run, 70)).pk)


def test_weights_are_read_once_and_before_the_transaction(
    halfway: GateRun, depths: list[int]
) -> None:
    boss, other = admin(), person("second", "admin")
    contestant = promote(actor=boss, gate=halfway, name="Half")
    promote_baseline(actor=boss, run=made("alone"), name="Alone")
    asked = ask_override(actor=boss, run=halfway.candidate, gate=halfway, name="Odd", reason="why")
    assert answer_override(actor=other, asked=asked, agreed=True)
    assert depths == [0, 0, 0]
    assert halfway.checkpoint is not None
    digest = digest_of_checkpoint(halfway.checkpoint)
    assert contestant.provenance["checkpoint"]["sha256"] == digest
    assert contestant.endpoint["weights"] == digest


def test_weights_that_go_meanwhile_are_not_promoted(
    halfway: GateRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    boss, other = admin(), person("second", "admin")
    asked = ask_override(actor=boss, run=halfway.candidate, gate=halfway, name="Odd", reason="why")

    def read_and_go(folder: Path) -> str:
        Checkpoint.objects.filter(run=halfway.candidate).update(removed_at=timezone.now())
        return weights.weights_digest(folder)

    monkeypatch.setattr(contestant_settings, "weights_digest", read_and_go)
    tries: list[Any] = [
        lambda: promote(actor=boss, gate=halfway, name="Half"),
        lambda: answer_override(actor=other, asked=asked, agreed=True),
    ]
    for attempt in tries:
        with pytest.raises(InvalidInput) as refused:
            attempt()
        assert refused.value.code == "no_checkpoint"
    assert not Contestant.objects.filter(kind="checkpoint").exists()

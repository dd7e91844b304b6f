"""A gate reads saved weights before it holds a lock, and looks again at what it read."""

from __future__ import annotations

from pathlib import Path

import pytest
from django.utils import timezone

from tests.training.factories import admin
from tests.training.gate_factories import gate
from tests.training.test_gates_along import kept, trained
from tests.training.test_promotions import depths
from training.enums import Role, RunState
from training.models import Checkpoint, GateRun, GateSpec, RunInput, TrainingRun
from training.selectors import checkpoints
from training.selectors.checkpoints import digest_of_checkpoint, middle_of
from training.services.along import gate_along
from training.services.gates import Weighed, measure_again, start_gate, weigh
from webapp.core.errors import InvalidInput

__all__ = ["depths"]  # the fixture
pytestmark = pytest.mark.django_db


@pytest.fixture
def spec(tmp_path: Path) -> GateSpec:
    return gate(tmp_path)


def test_a_series_reads_its_middle_once_and_before_the_transaction(
    spec: GateSpec, depths: list[int]
) -> None:
    run = trained(spec)
    middle = gate_along(actor=admin(), spec=spec, run=run)[1]
    assert depths == [0]
    gate_along(actor=admin(), spec=spec, run=run)
    assert depths == [0]
    assert middle.checkpoint is not None
    given = RunInput.objects.get(run=middle.candidate_evaluation, role=Role.BASE)
    assert given.sha256 == digest_of_checkpoint(middle.checkpoint)


def test_a_single_gate_and_another_try_read_before_the_transaction(
    spec: GateSpec, depths: list[int]
) -> None:
    run = trained(spec)
    found = start_gate(actor=admin(), spec=spec, candidate=run, checkpoint=middle_of(run))
    assert found.candidate_evaluation is not None
    evaluation = TrainingRun.objects.filter(pk=found.candidate_evaluation.pk)
    for state in (RunState.STARTING, RunState.FAILED):
        evaluation.update(state=state)
    GateRun.objects.filter(pk=found.pk).update(state="failed")
    again = measure_again(actor=admin(), gate=found)
    assert again.candidate_evaluation_id != found.candidate_evaluation_id
    assert depths == [0, 0]


def test_a_middle_that_goes_meanwhile_is_not_measured(
    spec: GateSpec, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = trained(spec)

    def read_and_go(folder: Path) -> str:
        Checkpoint.objects.filter(run=run).update(removed_at=timezone.now())
        return "0" * 64

    monkeypatch.setattr(checkpoints, "weights_digest", read_and_go)
    with pytest.raises(InvalidInput):
        gate_along(actor=admin(), spec=spec, run=run)
    assert not GateRun.objects.exists()


def test_a_hash_counts_for_the_weights_of_which_it_was_taken(spec: GateSpec) -> None:
    run = trained(spec)
    row, other = middle_of(run), kept(run, 105)
    weighed = weigh(run, row)
    assert row is not None
    assert weighed.sha256 == digest_of_checkpoint(row)
    swapped = Weighed(source=run, checkpoint=other, row=row.pk, digest=weighed.digest)
    assert swapped.sha256 == digest_of_checkpoint(other)

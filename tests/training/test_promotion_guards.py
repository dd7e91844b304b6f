"""What the database refuses of promotions that are written past the services (V20)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from django.db import IntegrityError, connection, transaction
from django.db.migrations.loader import MigrationLoader
from django.db.migrations.state import ProjectState
from django.utils import timezone

from tests.training.factories import admin
from tests.training.gate_factories import gate, made, plant, policy
from tests.training.test_gates import better, plain, read_all
from tests.training.test_gates_along import kept
from training.enums import Role
from training.models import Checkpoint, GateRun, OverrideRequest, Promotion, TrainingRun
from training.services.gates import start_gate
from training.services.promotions import ask_override
from training.services.verdicts import decide_gate
from webapp.core.errors import InvalidInput

pytestmark = pytest.mark.django_db


def refused(**values: Any) -> bool:
    """Whether the database refuses the row; what it takes is taken back."""
    try:
        with transaction.atomic():
            Promotion.objects.create(name="past the services", **values)
            transaction.set_rollback(True)
    except IntegrityError:
        return True
    return False


def passed(spec: Any, run: TrainingRun, checkpoint: Any = None) -> GateRun:
    found = start_gate(actor=admin(), spec=spec, candidate=run, checkpoint=checkpoint)
    plant(found.candidate_evaluation, spec, better)
    plant(found.baseline_evaluation, spec, plain)
    decide_gate(pk=found.pk)
    found.refresh_from_db()
    assert found.verdict == "pass", found.result
    read_all(found)
    return found


def test_only_the_weights_that_passed_are_promoted(tmp_path: Path) -> None:
    spec = gate(tmp_path, to_audit=4)
    run = policy("new", spec.baseline, {})
    middle, other = kept(run, 70), kept(run, 90)
    at_the_end, on_the_way = passed(spec, run), passed(spec, run, middle)
    tried = {
        (found, weights): refused(kind="gate", gate=found, run=run, checkpoint=weights)
        for found in (at_the_end, on_the_way)
        for weights in (None, middle, other)
    }
    assert {key for key, wrong in tried.items() if not wrong} == {
        (at_the_end, None),
        (on_the_way, middle),
    }


def test_no_baseline_has_a_rewarded_model_behind_it() -> None:
    base = made("base")
    rewarded = policy("rewarded", base, {})
    rounded = made("rounded", "quantize", {Role.BASE: rewarded})
    on_top = made("on top", taken={Role.BASE: rewarded})
    far = made("far", taken={Role.BASE: made("between", taken={Role.BASE: rounded})})
    tuned = made("tuned", taken={Role.BASE: base})
    tried = {run.name: refused(kind="baseline", run=run) for run in
             (base, tuned, rewarded, rounded, on_top, far)}  # fmt: skip
    assert [name for name, wrong in tried.items() if not wrong] == ["base", "tuned"]


def test_a_reward_model_beside_the_chain_of_bases_is_no_reason() -> None:
    base = made("base")
    judge = made("judge", "reward_model", {Role.BASE: policy("rewarded", base, {})})
    assert not refused(kind="baseline", run=made("tuned", taken={Role.BASE: base, "probes": judge}))


def test_the_guards_can_be_taken_back() -> None:
    loader = MigrationLoader(connection)
    operations = loader.disk_migrations["training", "0011_promotion_triggers"].operations
    on_top = made("on top", taken={Role.BASE: policy("rewarded", made("base"), {})})
    editor, state = connection.schema_editor(atomic=False), ProjectState()
    for operation in reversed(operations):
        operation.database_backwards("training", editor, state, state)
    assert not refused(kind="baseline", run=on_top)  # as it was before
    assert refused(kind="baseline", run=TrainingRun.objects.get(name="rewarded"))
    for operation in operations:
        operation.database_forwards("training", editor, state, state)
    assert refused(kind="baseline", run=on_top)


def test_an_override_names_a_gate_of_the_same_weights(tmp_path: Path) -> None:
    spec = gate(tmp_path, to_audit=4)
    run, other = policy("new", spec.baseline, {}), policy("other", spec.baseline, {})
    middle = kept(run, 70)
    of_other = start_gate(actor=admin(), spec=spec, candidate=other)
    on_the_way = start_gate(actor=admin(), spec=spec, candidate=run, checkpoint=middle)
    Checkpoint.objects.filter(pk=middle.pk).update(removed_at=timezone.now())
    for wrong, code in ((of_other, "other_model"), (on_the_way, "no_checkpoint")):
        wrong = GateRun.objects.get(pk=wrong.pk)
        with pytest.raises(InvalidInput) as refusal:
            ask_override(actor=admin(), run=run, gate=wrong, name="New", reason="please")
        assert refusal.value.code == code
    assert not OverrideRequest.objects.exists()

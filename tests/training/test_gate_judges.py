"""Who may judge at a gate: nobody who saw its prompts, and nobody who gave the reward (V21)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.training.factories import admin, draft, freeze
from tests.training.gate_factories import RULES, gate, made, policy, reward_model
from tests.training.run_factories import instructions
from training.enums import Role
from training.gate_policies import check_unseen, rewarded_by
from training.models import Dataset, GateSpec, TrainingRun
from training.services.gates import create_gate, start_gate
from webapp.core.errors import InvalidInput

pytestmark = pytest.mark.django_db


def judged_by(judge: TrainingRun, dataset: Dataset) -> GateSpec:
    return create_gate(
        actor=admin(), name=f"Judged by {judge.name}", dataset=dataset, baseline=made("base"),
        quality=judge, scorers={"quality": ["quality"], "personalization": ["rules"]}, rules=RULES,
    )  # fmt: skip


@pytest.mark.parametrize("role", [Role.HELDOUT, Role.PROBES, Role.SWAPS, Role.TRAIN])
def test_the_same_filter_frozen_again_has_the_same_prompts(tmp_path: Path, role: str) -> None:
    dataset = instructions(tmp_path, 96, name="Gate items")
    again = freeze(draft("instructions", name="Next night", **dataset.filter))
    assert again.state == "frozen", again.report
    saw = reward_model("saw", "quality", taken={role: (again, "gate")})
    with pytest.raises(InvalidInput) as refused:
        judged_by(saw, dataset)
    assert (refused.value.code, refused.value.field) == ("seen", "quality_run")
    assert "Prompts that it saw when it was made: 24." in str(refused.value)


def test_other_splits_of_the_same_rows_were_not_seen(tmp_path: Path) -> None:
    dataset = instructions(tmp_path, 96, name="Gate items")
    again = freeze(draft("instructions", name="Next night", **dataset.filter))
    fair = reward_model(
        "fair", "quality", taken={Role.TRAIN: (again, "train"), Role.HELDOUT: (dataset, "train")}
    )
    assert judged_by(fair, dataset).quality == fair


def test_what_a_judge_saw_is_asked_in_one_statement(
    tmp_path: Path, django_assert_num_queries: Any
) -> None:
    dataset = instructions(tmp_path, 40)
    taken = dict.fromkeys((Role.TRAIN, Role.HELDOUT, Role.PROBES), (dataset, "train"))
    fair = reward_model("fair", "quality", taken=taken)
    with django_assert_num_queries(1):
        check_unseen(fair, dataset, "gate", "quality_run")


def test_measuring_what_a_quantisation_lost_is_no_reward(tmp_path: Path) -> None:
    spec = gate(tmp_path)
    assert spec.personalization is not None
    judges: dict[str, TrainingRun] = {Role.PERSONALIZATION: spec.personalization}
    smaller = made("smaller", "quantize", {Role.BASE: spec.baseline, **judges})
    assert rewarded_by(smaller) == set()
    assert start_gate(actor=admin(), spec=spec, candidate=smaller).candidate == smaller
    rewarded = policy("rewarded", spec.baseline, judges)
    rounded = made("rounded", "quantize", {Role.BASE: rewarded})
    assert rewarded_by(rounded) == {spec.personalization_id}

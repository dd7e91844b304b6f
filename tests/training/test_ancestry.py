"""What stands behind a model: what it started from, and who gave the reward."""

from __future__ import annotations

import pytest

from tests.training.factories import admin
from tests.training.gate_factories import made, policy, reward_model
from tests.training.test_gates import person
from training.ancestry import ancestry_of, rewards_of
from training.enums import Role
from training.models import TrainingRun
from training.selectors.ancestry import base_contestants, reward_models_of
from training.services.promotions import answer_override, ask_override
from webapp.catalog.models import Contestant

pytestmark = pytest.mark.django_db


def admitted(run: TrainingRun) -> Contestant:
    """The model as a contestant, by two administrators."""
    asked = ask_override(actor=admin(), run=run, name=run.name, reason="as a control")
    second = person(f"second-{run.pk}", "admin")
    found = answer_override(actor=second, asked=asked, agreed=True)
    assert found is not None
    return found


def rounded(base: TrainingRun, judge: TrainingRun, name: str = "eight") -> TrainingRun:
    """A quantisation that measured margins with a reward model."""
    manifest = {"facts": {"bits": 8, "sensitivity": {"ratio": 1.0}}, "files": {"model/x": "8"}}
    return made(name, "quantize", {Role.BASE: base, Role.PERSONALIZATION: judge}, manifest=manifest)


def test_the_whole_chain_is_followed_however_long() -> None:
    chain = [made("base")]
    for n in range(14):
        chain.append(policy(f"policy {n}", chain[-1], {}))
    assert ancestry_of(chain[-1]) == chain[::-1]
    assert ancestry_of(chain[0]) == chain[:1]


def test_who_only_measured_gave_no_reward() -> None:
    judges = {b: reward_model(f"model of {b}", b) for b in ("quality", "personalization")}
    measuring = reward_model("measuring", "personalization")
    trained = policy("trained", made("base"), judges)
    eight = rounded(trained, measuring)
    assert set(rewards_of(eight)) == set(judges.items())
    adapted = policy("adapted", eight, {"quality": judges["quality"]})
    assert rewards_of(adapted)[0] == ("quality", judges["quality"])
    assert set(rewards_of(adapted)) == set(judges.items())  # each once
    assert rewards_of(rounded(made("plain"), measuring, "plain eight")) == []


def test_a_contestant_s_lineage_and_evidence_name_who_gave_the_reward() -> None:
    judges = {b: reward_model(f"model of {b}", b) for b in ("quality", "personalization")}
    trained = policy("trained", made("base"), judges)
    contestant = admitted(rounded(trained, reward_model("measuring", "personalization")))
    asked = reward_models_of(contestant)
    assert {branch: one.run for branch, one in asked.items()} == judges
    assert all(one.rewarded for one in asked.values())
    named = {(row["role"], row["name"]) for row in contestant.provenance["reward_models"]}
    assert named == {(branch, model.name) for branch, model in judges.items()}


def test_weights_kept_along_the_way_are_not_the_base() -> None:
    """The second policy started from what the first one ended with."""
    first = policy("first", made("base"), {})
    second = admitted(policy("second", first, {}))
    end = admitted(first)
    ended = dict(end.provenance)
    middle = {**ended, "checkpoint": {"step": 20, "percent": 50, "sha256": "0" * 64}}
    Contestant.objects.create(name="middle", kind="imported", provenance=middle)
    assert list(base_contestants(second)) == [[end]]

"""The leaderboard says where trained contestants come from and what their answers took."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import Client
from django.urls import reverse

from arena.selectors.answering import cost_per_answer
from arena.selectors.lineage import lineages_of
from tests.arena.factories import World
from tests.training.evidence_factories import closed_of, evidence_round, trained_world
from webapp.catalog.models import Contestant
from webapp.core.errors import Refused

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("trainer")]
MOST = 14


@pytest.fixture
def world() -> World:
    return trained_world(personas=4, prompts=2, raters=3)


def board(client: Client) -> str:
    response = client.get(reverse("arena:leaderboard"))
    assert response.status_code == 200
    return str(response.content.decode())


def test_lineage_and_costs_stand_beside_the_ratings(client: Client, world: World) -> None:
    round_ = evidence_round(world)
    page = board(client)  # nobody is signed in
    for said in (
        "Trained here", "let in by two administrators without a passed gate: as a control",
        "model of quality (quality)", "baseline: no reward has trained it", "100 + 20",
    ):  # fmt: skip
        assert said in page, said
    assert page.count('<td class="num">300</td>') == 2
    assert 'href="/training/evidence/' not in page
    client.force_login(world.admin)
    where = reverse("training:evidence", args=[world.contestants[1].pk])
    assert f'href="{where}?round={round_.pk}"' in board(client)


def test_a_lineage_names_base_reward_models_and_unsealed_rounds_alone(world: World) -> None:
    base, policy, stranger = world.contestants
    round_ = evidence_round(world)
    found = {row.contestant: row for row in lineages_of([base.pk, policy.pk, stranger.pk])}
    assert set(found) == {str(base), str(policy)}
    trained = found[str(policy)]
    assert [part.name for part in trained.bases] == ["base"]
    assert {part.name for part in trained.reward_models} == {
        "model of quality", "model of personalization",
    }  # fmt: skip
    assert (trained.warned, trained.is_baseline, trained.gate) == (True, False, None)
    assert found[str(base)].is_baseline
    assert trained.rounds == ((round_.pk, round_.name),)
    assert trained.run.sha256


def test_datasets_with_their_hash_and_the_gate_with_its_verdict() -> None:
    provenance = {
        "promotion": "gate", "reason": "", "run": {"name": "GRPO", "weights_sha256": "a" * 64},
        "bases": [], "reward_models": [],
        "datasets": [{"role": "train", "name": "Pairs", "split": "train", "sha256": "b" * 64}],
        "gate": {"id": 1, "name": "Gate", "content_sha256": "c" * 64, "verdict": "pass"},
    }  # fmt: skip
    made = Contestant.objects.create(name="By gate", kind="imported", provenance=provenance)
    (found,) = lineages_of([made.pk])
    assert [(d.role, d.name, d.sha256) for d in found.datasets] == [("training", "Pairs", "b" * 64)]
    assert (found.gate, found.warned, found.rounds) == (("Gate", "passed"), False, ())


def test_a_sealed_round_tells_neither_costs_nor_that_it_exists(
    client: Client, world: World
) -> None:
    round_ = closed_of(world)
    with pytest.raises(Refused):
        cost_per_answer(round_)
    assert "Trained here" not in board(client)
    assert all(row.rounds == () for row in lineages_of(c.pk for c in world.contestants))


def test_queries_do_not_grow(
    client: Client, world: World, django_assert_max_num_queries: Any
) -> None:
    evidence_round(world)
    client.force_login(world.admin)
    with django_assert_max_num_queries(MOST):
        board(client)

"""Pages of evidence: what administrators see of unsealed rounds, and what nobody sees of others."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import Client
from django.urls import reverse

from arena.models import Round, Vote
from tests.arena.factories import World
from tests.training.evidence_factories import (
    battles_of,
    closed_of,
    ended_as,
    evidence_round,
    predicted,
    trained_world,
    winner,
)
from training.enums import RunState
from training.evidence.predictions import Compared, compare
from training.models import TrainingRun
from training.selectors import evidence
from training.selectors.evidence import as_json, read_evidence, rounds_of
from webapp.accounts.models import User
from webapp.core.errors import Refused

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("trainer")]
MOST = 30


def url(name: str, *args: Any) -> str:
    return reverse(f"training:{name}", args=args)


def text(response: Any) -> str:
    return str(response.content.decode())


@pytest.fixture
def world() -> World:
    return trained_world(personas=6, prompts=4, raters=5)


@pytest.fixture
def boss(client: Client, world: World) -> Client:
    client.force_login(world.admin)
    return client


def likes(name: str) -> Any:
    """The value of a text: high where its maker says so."""
    return lambda text: 0.9 if text.startswith(name) else 0.2


def test_only_administrators_read_evidence(
    client: Client, world: World, bob: User, chen: User, vera: User
) -> None:
    policy = world.contestants[1]
    pages = [url("evidence_list"), url("evidence", policy.pk)]
    for page in pages:
        assert client.get(page).status_code == 302
        for user in (bob, chen, vera):
            client.force_login(user)
            assert client.get(page).status_code == 403
        client.logout()
    client.force_login(bob)
    assert client.post(url("evidence_predict", policy.pk), {"round": 1}).status_code == 403
    assert not TrainingRun.objects.filter(kind="predict").exists()


def test_results_against_the_base_are_those_of_the_votes(world: World) -> None:
    base, policy, stranger = world.contestants
    round_ = evidence_round(world)
    found = read_evidence(policy, round_)
    assert found.base == base
    groups = {group.key: group for group in found.groups}
    own = groups["base"].axes["personalization"].whole
    n = battles_of(round_, policy, base)
    assert (own.win, own.tie, own.loss, own.n, own.mean) == (n, 0, 0, n, 1.0)
    assert own.low is not None
    assert 0.5 < own.low < 1.0
    everybody = groups["all"].axes["personalization"].whole
    assert everybody.n == n + battles_of(round_, policy, stranger)
    quality = groups["base"].axes["quality"].whole
    assert (quality.tie, quality.mean) == (n, 0.5)
    strata = groups["base"].axes["personalization"].strata
    assert sum(part.n for part in strata.values()) == n
    assert len(strata) == 2
    loser = read_evidence(base, round_)
    assert loser.base is None
    assert loser.groups[0].key == "all"
    assert loser.groups[0].axes["personalization"].whole.loss == n
    assert as_json(found)["groups"]["base"]["personalization"]["whole"]["win"] == n


def test_unseen_personas_stand_apart(world: World) -> None:
    policy = world.contestants[1]
    round_ = evidence_round(world, holdout_percent=50, planned_votes=20)
    result = read_evidence(policy, round_).groups[0].axes["personalization"]
    assert result.seen.n > 0
    assert result.unseen.n > 0
    assert result.seen.n + result.unseen.n == result.whole.n


def test_nothing_of_a_round_that_is_not_unsealed(boss: Client, world: World) -> None:
    policy = world.contestants[1]
    round_: Round = closed_of(world)
    assert rounds_of(policy) == []
    with pytest.raises(Refused):
        read_evidence(policy, round_)
    page = text(boss.get(url("evidence", policy.pk)))
    assert "No unsealed round yet" in page
    assert round_.name not in page
    assert boss.get(url("evidence", policy.pk), {"round": round_.pk}).status_code == 404
    sent = boss.post(url("evidence_predict", policy.pk), {"round": round_.pk})
    assert sent.status_code == 404
    assert not TrainingRun.objects.filter(kind="predict").exists()
    assert ">0<" in text(boss.get(url("evidence_list")))


def test_a_reward_model_that_flatters_is_named(boss: Client, world: World) -> None:
    """People find the policy worse; its reward models find it far better."""
    base, policy, _stranger = world.contestants
    round_ = evidence_round(world, choose=winner(base))
    predicted(world, round_, likes("Policy"))
    found = read_evidence(policy, round_)
    assert found.state == "ready"
    said = {(p.group, p.scorer): p for p in found.predictions}
    reward = said["base", "personalization"]
    assert reward.compared.flatters
    assert reward.rewarded
    assert reward.compared.agreement.mean == 0.0
    auditor = said["base", "personalization/auditors"]
    assert (auditor.rewarded, auditor.compared.predicted_mean) == (False, 0.5)
    page = text(boss.get(url("evidence", policy.pk)))
    assert "flatters this model" in page
    assert "model of personalization" in page


def test_warnings_count_every_comparison_of_the_page(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two reward models with members and auditors, against the base and against everybody."""
    policy = world.contestants[1]
    round_ = evidence_round(world)
    predicted(world, round_, likes("Policy"))
    counted: list[int] = []

    def counting(rows: Any, values: Any, comparisons: int) -> Compared:
        counted.append(comparisons)
        return compare(rows, values, comparisons)

    monkeypatch.setattr(evidence, "compare", counting)
    read_evidence(policy, round_)
    assert counted == [8] * 8
    counted.clear()
    monkeypatch.setattr(evidence, "base_in", lambda _contestant, _round: (None, "not there"))
    read_evidence(policy, round_)
    assert counted == [4] * 4


def test_an_honest_one_is_not(boss: Client, world: World) -> None:
    policy = world.contestants[1]
    round_ = evidence_round(world)
    predicted(world, round_, likes("Policy"))
    found = read_evidence(policy, round_)
    said = {(p.group, p.scorer): p.compared for p in found.predictions}
    assert not any(one.flatters for one in said.values())
    assert said["base", "personalization"].agreement.mean == 1.0
    assert "flatters this model" not in text(boss.get(url("evidence", policy.pk)))


def test_asking_once_and_waiting(boss: Client, world: World) -> None:
    policy = world.contestants[1]
    round_ = evidence_round(world)
    page = text(boss.get(url("evidence", policy.pk)))
    assert "Nobody asked the reward models" in page
    for _again in range(2):
        sent = boss.post(url("evidence_predict", policy.pk), {"round": round_.pk})
        assert sent["Location"].endswith(f"?round={round_.pk}")
    run = TrainingRun.objects.get(kind="predict")
    assert "are being made" in text(boss.get(url("evidence", policy.pk)))
    assert boss.get(url("run", run.pk)).status_code == 200
    ended_as(run, RunState.FAILED)
    assert "could not be made" in text(boss.get(url("evidence", policy.pk)))
    boss.post(url("evidence_predict", policy.pk), {"round": round_.pk})
    assert TrainingRun.objects.filter(kind="predict").count() == 2
    assert read_evidence(policy, round_).state == "waiting"


def test_a_base_that_was_not_there_is_said_to_be_missing(boss: Client, world: World) -> None:
    base, policy, stranger = world.contestants
    world.contestants = [policy, stranger]
    round_ = evidence_round_without_base(world)
    found = read_evidence(policy, round_)
    assert (found.base, [g.key for g in found.groups]) == (None, ["all"])
    assert found.base_missing == f"Its base, “{base}”, was not in this round."
    assert "was not in this round" in text(boss.get(url("evidence", policy.pk)))


def evidence_round_without_base(world: World) -> Round:
    return evidence_round(world, planned_votes=20, choose=winner(world.contestants[0]))


def test_queries_do_not_grow_with_votes(
    boss: Client, world: World, django_assert_max_num_queries: Any
) -> None:
    policy = world.contestants[1]
    round_ = evidence_round(world)
    predicted(world, round_, likes("Policy"))
    assert Vote.objects.count() > MOST
    for page in (url("evidence", policy.pk), url("evidence_list")):
        with django_assert_max_num_queries(MOST):
            assert boss.get(page).status_code == 200


def test_links_lead_there(boss: Client, world: World) -> None:
    policy = world.contestants[1]
    run = TrainingRun.objects.get(name="policy")
    where = url("evidence", policy.pk)
    assert where in text(boss.get(url("run", run.pk)))
    assert where in text(boss.get(url("evidence_list")))

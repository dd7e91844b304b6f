"""The API: results for readers, ballots for raters, and nothing that unblinds a sealed round."""

from __future__ import annotations

import json
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse
from pytest_django import DjangoAssertNumQueries, Settings
from rest_framework.test import APIClient

from arena.api import serializers
from arena.models import Assignment, Round, Vote
from tests.arena.factories import (
    NAMES,
    World,
    closed_round,
    draft_round,
    make_world,
    open_round,
    screened_round,
    unsealed_round,
    vote_all,
)
from webapp.accounts.models import User
from webapp.accounts.services import create_api_token

pytestmark = pytest.mark.django_db

RESULTS = ("round_leaderboard", "round_bundle")
BOTH = {"quality": "left", "personalization": "tie"}


def with_token(user: User | None) -> APIClient:
    client = APIClient()
    if user is not None:
        token = create_api_token(user=user, name="test")
        client.credentials(HTTP_AUTHORIZATION=f"Token {token}")
    return client


def url(name: str, *args: Any) -> str:
    return reverse(f"api:{name}", args=args)


@pytest.fixture
def cast(alice: User, anna: User, bob: User, chen: User, vera: User) -> list[User | None]:
    return [alice, anna, bob, chen, vera, None]


@pytest.fixture
def world() -> World:
    return make_world()


# --- before unsealing -------------------------------------------------------------------------


@pytest.mark.parametrize("make", [draft_round, screened_round, open_round, closed_round])
def test_no_role_gets_results_before_unsealing(
    make: Any, cast: list[User | None], world: World
) -> None:
    round_ = make(world)
    for user in [*cast, world.admin, world.raters[0]]:
        for name in RESULTS:
            response = with_token(user).get(url(name, round_.pk))
            assert response.status_code == 409, (name, user)
            assert response.json()["code"] == "sealed"
        for contestant in world.contestants:
            response = with_token(user).get(url("history", contestant.pk))
            assert response.status_code == 404


def test_a_sealed_round_shows_its_commitment_and_totals_only(world: World, vera: User) -> None:
    round_ = closed_round(world)
    data = with_token(vera).get(url("round", round_.pk)).json()
    assert data["state"] == "closed"
    assert data["commitment"] == round_.commitment
    assert data["votes"] == data["totals"]["voted"] == 12
    assert data["links"]["leaderboard"] is None
    assert data["links"]["bundle"] is None
    text = json.dumps(data)
    assert round_.seed not in text
    assert round_.salt not in text
    assert not any(name in text for name in NAMES)


def test_strangers_read_of_unsealed_rounds_only(world: World, settings: Settings) -> None:
    round_ = closed_round(world)
    stranger = with_token(None)
    assert stranger.get(url("rounds")).json()["results"] == []
    assert stranger.get(url("round", round_.pk)).status_code == 404
    assert stranger.get(url("round_protocol", round_.pk)).status_code == 404
    settings.LEADERBOARD_PUBLIC = False
    for name in ("rounds",):
        response = stranger.get(url(name))
        assert response.status_code == 401
        assert set(response.json()) == {"code", "message", "fields"}


def test_the_protocol_is_the_text_that_the_commitment_covers(world: World, vera: User) -> None:
    draft = draft_round(world, name="Draft")
    assert with_token(vera).get(url("round_protocol", draft.pk)).status_code == 409
    round_ = open_round(world)
    data = with_token(vera).get(url("round_protocol", round_.pk)).json()
    assert data["protocol"] == round_.protocol
    assert data["commitment"] == round_.commitment


# --- results ----------------------------------------------------------------------------------


def test_everybody_reads_an_unsealed_round(world: World, cast: list[User | None]) -> None:
    round_ = unsealed_round(world, simulated=True)
    for user in cast:
        client = with_token(user)
        assert client.get(url("rounds")).json()["results"][0]["simulated"] is True
        data = client.get(url("round_leaderboard", round_.pk)).json()
        assert data["round"]["simulated"] is True
        assert data["board"]["simulated"] is True
        assert {row["contestant"] for row in data["board"]["rows"]} == {
            "Harbor 1", "Quarry 1", "Meadow 1"
        }  # fmt: skip
        bundle = client.get(url("round_bundle", round_.pk), headers={"accept": "application/zip"})
        assert b"".join(bundle.streaming_content)[:2] == b"PK"  # type: ignore[attr-defined]


def test_a_board_has_exactly_the_documented_fields(world: World) -> None:
    round_ = unsealed_round(world)
    data = with_token(None).get(url("round_leaderboard", round_.pk)).json()
    pairs = [
        (data, serializers.LeaderboardSerializer),
        (data["round"], serializers.RoundFactsSerializer),
        (data["board"], serializers.BoardSerializer),
        (data["board"]["rows"][0], serializers.BoardRowSerializer),
    ]
    for found, documented in pairs:
        assert set(found) == set(documented().get_fields())


def test_filters_choose_the_board_or_are_refused(world: World) -> None:
    round_ = unsealed_round(world)
    client = with_token(None)
    query = {"axis": "quality", "stratum": "expertise=novice", "variant": "excluded"}
    board = client.get(url("round_leaderboard", round_.pk), query).json()["board"]
    assert {key: board[key] for key in query} == query
    assert client.get(url("round_leaderboard", round_.pk), {"axis": "x"}).status_code == 400
    response = client.get(url("round_leaderboard", round_.pk), {"stratum": "x"})
    assert response.status_code == 422
    assert list(response.json()["fields"]) == ["stratum"]


def test_the_history_of_a_contestant(world: World) -> None:
    round_ = unsealed_round(world)
    contestant = world.contestants[0]
    data = with_token(None).get(url("history", contestant.pk), {"axis": "quality"}).json()
    assert [entry["round_id"] for entry in data["entries"]] == [round_.pk]
    assert data["contestant"] == str(contestant)
    assert with_token(None).get(url("history", 999)).status_code == 404


@pytest.mark.parametrize("cursor", ["cD1hYmM=", "cD0tMQ==", "%00", "cD0=", "bz05OTk5OTk5OTk="])
def test_a_made_up_cursor_is_not_found_or_an_empty_page(cursor: str) -> None:
    response = with_token(None).get(url("rounds"), {"cursor": cursor})
    assert response.status_code in (200, 404)


def test_lists_need_few_queries(
    world: World, django_assert_max_num_queries: DjangoAssertNumQueries
) -> None:
    round_ = unsealed_round(world)
    for target in (url("rounds"), url("round", round_.pk), url("round_leaderboard", round_.pk)):
        with django_assert_max_num_queries(4):
            assert Client().get(target).status_code == 200


# --- voting -----------------------------------------------------------------------------------


def test_only_voters_reach_the_voting_endpoints(world: World, cast: list[User | None]) -> None:
    round_ = open_round(world)
    posts = [url("ballot", round_.pk), url("undo", round_.pk), url("vote"), url("skip")]
    for user in cast:
        client = with_token(user)
        expected = 401 if user is None else 403
        for target in (*posts, url("heartbeat")):
            status = client.post(target, {}, format="json").status_code
            if user is not None and user.role in ("rater", "annotator"):
                assert status in (400, 403)  # bob and chen are no raters of this round
            else:
                assert status == expected
        for name in ("voting_rounds", "receipts"):
            status = client.get(url(name)).status_code
            voter = user is not None and user.role in ("rater", "annotator")
            assert status == (200 if voter else expected)


def test_a_rater_votes_undoes_and_skips_by_program(world: World) -> None:
    round_ = open_round(world)
    rater = world.raters[0]
    client = with_token(rater)
    assert client.get(url("voting_rounds")).json()[0]["id"] == round_.pk
    ballot = client.post(url("ballot", round_.pk)).json()
    assert client.post(url("ballot", round_.pk)).json()["token"] == ballot["token"]
    assert ballot["left"] != ballot["right"]
    assert ballot["messages"][0]["role"] == "user"
    beat = client.post(url("heartbeat"), {"token": ballot["token"]}, format="json")
    assert beat.json()["expires_in"] > 0
    sent = {"token": ballot["token"], "verdicts": BOTH, "tags": ["wordy"], "active_ms": 4000}
    receipt = client.post(url("vote"), sent, format="json").json()
    again = client.post(url("vote"), sent, format="json").json()
    assert receipt == again
    assert receipt["commitment"] == round_.commitment
    assert Vote.objects.count() == 1
    assert client.post(url("undo", round_.pk), {}, format="json").status_code == 400
    body = {"token": ballot["token"]}
    back = client.post(url("undo", round_.pk), body, format="json").json()
    assert client.post(url("undo", round_.pk), body, format="json").json()["token"] == back["token"]
    assert back["token"] == ballot["token"]
    assert Vote.objects.count() == 2
    skip = {"token": back["token"], "reason": "unsure"}
    assert client.post(url("skip"), skip, format="json").status_code == 204
    assert client.post(url("skip"), skip, format="json").status_code == 204
    listed = client.get(url("receipts")).json()["results"]
    assert [row["record"]["revision"] for row in listed] == [2, 1]
    assert listed[1]["receipt"] == receipt["receipt"]


def test_a_verdict_on_an_axis_that_is_not_asked_makes_no_second_vote(world: World) -> None:
    round_ = open_round(world, axes=["quality"], weights={"quality": 100})
    client = with_token(world.raters[0])
    sent = {"token": client.post(url("ballot", round_.pk)).json()["token"], "verdicts": BOTH}
    for _turn in range(2):
        assert client.post(url("vote"), sent, format="json").status_code == 200
    assert Vote.objects.count() == 1


def test_a_ballot_has_no_identity_field(world: World) -> None:
    round_ = open_round(world)
    data = with_token(world.raters[0]).post(url("ballot", round_.pk)).json()
    assert set(data) == {
        "token", "round", "axes", "persona_summary", "messages", "left", "right", "expires_in",
    }  # fmt: skip
    row = Assignment.objects.select_related("battle", "slot__x", "slot__y").get()
    text = json.dumps(data)
    entries = (row.slot.x, row.slot.y)
    secrets = [row.battle.public_id, *(entry.public_id for entry in entries)]
    secrets += [entry.answer.public_id for entry in entries]
    secrets += [str(contestant) for contestant in world.contestants]
    assert not [secret for secret in secrets if secret in text]


def test_wrong_ballots_are_refused_by_field(world: World) -> None:
    round_ = open_round(world)
    client = with_token(world.raters[0])
    token = client.post(url("ballot", round_.pk)).json()["token"]
    for sent, status, field in [
        ({"token": token, "verdicts": {"quality": "left"}}, 422, "personalization"),
        ({"token": token, "verdicts": {**BOTH, "taste": "left"}}, 400, "verdicts"),
        ({"token": token, "verdicts": {**BOTH, "quality": "A"}}, 400, "verdicts"),
        ({"token": token, "verdicts": BOTH, "comment": "a\x00b"}, 400, "comment"),
        ({"token": token, "verdicts": BOTH, "comment": "a\ud800"}, 400, "comment"),
        ({"token": "a\ud800", "verdicts": BOTH}, 400, "token"),
        ({"token": token, "verdicts": BOTH, "active_ms": -1}, 400, "active_ms"),
        ({"verdicts": BOTH}, 400, "token"),
    ]:
        response = client.post(url("vote"), json.dumps(sent), content_type="application/json")
        assert response.status_code == status, sent
        assert list(response.json()["fields"]) == [field]
    other = with_token(world.raters[1])
    stolen = other.post(url("vote"), {"token": token, "verdicts": BOTH}, format="json")
    assert stolen.status_code == 403
    gone = other.post(url("heartbeat"), {"token": token}, format="json")
    assert gone.status_code == 409
    assert gone.json()["message"]


def test_a_round_that_is_done_or_closed_says_so(world: World) -> None:
    round_ = open_round(world)
    vote_all(round_, world.raters)
    client = with_token(world.raters[0])
    assert client.post(url("ballot", round_.pk)).status_code == 204
    Round.objects.filter(pk=round_.pk).update(state="closed")
    response = client.post(url("ballot", round_.pk))
    assert (response.status_code, response.json()["code"]) == (409, "round_closed")
    assert client.post(url("ballot", 999)).status_code == 404


def test_a_browser_session_may_use_the_api_with_its_csrf_token(world: World) -> None:
    round_ = open_round(world)
    client = APIClient(enforce_csrf_checks=True)
    client.force_login(world.raters[0])
    assert client.get(url("rounds")).status_code == 200
    assert client.post(url("ballot", round_.pk)).status_code == 403

"""Malformed requests get a page before any view; what breaks is logged without what was said."""

from __future__ import annotations

import json
import logging
from typing import Any

import pytest
from django.http import HttpRequest, HttpResponse
from django.test import Client
from django.urls import URLPattern, URLResolver, include, path, reverse

from tests.arena.factories import World, make_world, open_round
from webapp.accounts.models import User
from webapp.core.errors import InvalidInput
from webapp.core.http import whole_number
from webapp.core.middleware import log_server_error

SECRET = "a secret answer by somebody@example.org"
NUMBERS = ["²", "٣", "9" * 40, "9" * 5000, "-1", "1.5", " 1", "", "x", "１"]


def breaks(request: HttpRequest) -> HttpResponse:
    text = SECRET
    try:
        raise ValueError(text)
    except ValueError as error:
        raise RuntimeError(f"no view said {text}") from error


def refuses(request: HttpRequest) -> HttpResponse:
    raise InvalidInput(SECRET)


urlpatterns: list[URLPattern | URLResolver] = [
    path("breaks/", breaks, name="breaks"),
    path("refuses/", refuses, name="refuses"),
]
urlpatterns += [path("", include("webapp.urls"))]


@pytest.mark.django_db
@pytest.mark.urls("tests.core.test_middleware")
def test_a_server_error_is_logged_with_its_place_and_without_what_was_said(
    caplog: pytest.LogCaptureFixture, bob: User
) -> None:
    client = Client(raise_request_exception=False)
    client.force_login(bob)
    with caplog.at_level(logging.INFO):
        assert client.get("/breaks/", {"who": "somebody"}).status_code == 500
    (line,) = [record for record in caplog.records if record.name == "palate.error"]
    said = json.dumps(vars(line), default=str)
    errors: list[dict[str, Any]] = vars(line)["errors"]
    assert [error["type"] for error in errors] == ["builtins.RuntimeError", "builtins.ValueError"]
    assert errors[0]["stack"][-1].startswith("tests/core/test_middleware.py:")
    assert errors[0]["stack"][-1].endswith(" breaks")
    assert vars(line)["route"] == "breaks"
    for trace in (SECRET, "somebody", "no view said", "bob"):
        assert trace not in said
    assert not line.exc_info


@pytest.mark.django_db
@pytest.mark.urls("tests.core.test_middleware")
def test_a_refusal_is_no_server_error(caplog: pytest.LogCaptureFixture, bob: User) -> None:
    client = Client()
    client.force_login(bob)
    with caplog.at_level(logging.INFO):
        assert client.get("/refuses/").status_code == 422
        assert client.get("/no-such-page/").status_code == 404
    assert not [record for record in caplog.records if record.name == "palate.error"]


def test_logging_without_an_error_or_a_request_is_harmless() -> None:
    log_server_error(sender=None)


@pytest.mark.parametrize("text", NUMBERS)
def test_only_ascii_digits_of_a_bounded_length_are_a_number(text: str) -> None:
    assert whole_number(text) is None
    assert whole_number(None) is None
    assert whole_number("9" * 18) == 10**18 - 1
    assert whole_number("007") == 7


@pytest.fixture
def world(db: Any) -> World:
    return make_world()


def browser(user: User) -> Client:
    client = Client()
    client.force_login(user)
    return client


def crafted_numbers(world: World) -> None:
    rater, admin = browser(world.raters[0]), browser(world.admin)
    for text in NUMBERS:
        assert rater.get("/vote/", {"round": text}).status_code == 200, text
        assert admin.get("/rounds/compose/", {"copy": text}).status_code == 200, text
        assert admin.get("/rounds/forecast/", {"planned_votes": text}).status_code == 200, text
        assert admin.get("/rounds/", {"page": text}).status_code == 200, text
        assert rater.get("/leaderboard/", {"round": text}).status_code in (200, 404), text


def crafted_nuls(world: World) -> None:
    round_ = open_round(world)
    rater, admin, nobody = browser(world.raters[0]), browser(world.admin), Client()
    token = rater.get("/vote/").context["pair"].token
    verdicts = {"quality": "left", "personalization": "tie"}
    answers = [
        rater.post("/vote/", {"token": "a\0b", **verdicts}),
        rater.post("/vote/", {"token": token, **verdicts, "comment": "a\0b"}),
        rater.post("/vote/", {"token": token, **verdicts, "a\0b": "c"}),
        rater.post("/vote/draft/", {"token": token, "comment": "a\0b"}),
        rater.get("/vote/difference/?token=a%00b"),
        rater.get("/vote/?%00=1"),
        rater.post(reverse("accounts:revoke", args=["a\0b"])),
        nobody.get("/leaderboard/?axis=a%00b"),
        nobody.get(reverse("accounts:accept", args=["a\0b"])),
        nobody.post("/accounts/login/", {"username": "a\0b", "password": "a\0b"}),
        admin.get("/catalog/prompts/?text=%00"),
        admin.post(f"/rounds/{round_.pk}/close/", {"reason": "a\0b"}),
        admin.get(f"/leaderboard/{round_.pk}/verify/?receipt=%00"),
        admin.get("/admin/accounts/user/?q=%00"),
        Client(headers={"cookie": 'sessionid="aaaaaaaa\\000a"'}).get("/rounds/"),
    ]
    assert [answer.status_code for answer in answers] == [400] * len(answers)
    assert "could not be read" in answers[0].content.decode()


def crafted_json(world: World) -> None:
    round_ = open_round(world)
    rater = browser(world.raters[0])
    token = rater.get("/vote/").context["pair"].token
    url, body = "/api/v1/voting/votes/", {"token": token, "verdicts": {"quality": "left"}}
    kind = "application/json"
    for wrong in (
        {"token": "a\0b"},
        {"verdicts": {"a\0b": "left"}},
        {"verdicts": {"quality": "a\0b"}},
        {"comment": "a\0b"},
        {"comment": "a\ud800b"},
        {"tags": ["a\0b"]},
        {"active_ms": "a\0b"},
    ):
        answer = rater.post(url, json.dumps({**body, **wrong}), content_type=kind)
        assert 400 <= answer.status_code < 500, wrong
        assert set(answer.json()) == {"code", "message", "fields"}
    asked = rater.get(f"/api/v1/rounds/{round_.pk}/leaderboard/?axis=%00")
    assert asked.status_code == 400
    assert asked.json()["code"] == "nul"


CRAFTED = [crafted_numbers, crafted_nuls, crafted_json]


@pytest.mark.parametrize("crafted", CRAFTED)
def test_crafted_values_are_answered(crafted: Any, world: World) -> None:
    crafted(world)


@pytest.mark.postgres
@pytest.mark.parametrize("crafted", CRAFTED)
def test_crafted_values_are_answered_on_postgresql(crafted: Any, world: World) -> None:
    crafted(world)

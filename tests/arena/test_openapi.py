"""The description of the API: complete, valid, and true for every role, tried with schemathesis."""

from __future__ import annotations

import gc
import io
from collections.abc import Iterator
from typing import Any

import pytest
import schemathesis
from django.core.management import call_command
from django.test import Client
from django.urls import get_resolver
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from arena.api.common import MayRead, MayVote
from arena.models import Round
from tests.arena.factories import World, make_answer, make_world, open_round, unsealed_round
from tests.conftest import make_user
from webapp.accounts.models import User
from webapp.accounts.services import create_api_token
from webapp.wsgi import application

EXAMPLES = 8
ROLES = ("", "admin", "viewer", "rater", "annotator")
CHECKS: list[Any] = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_schema_conformance,
]


@pytest.fixture
def no_collection() -> Iterator[None]:
    """Python 3.11 may fail to parse when garbage is collected meanwhile (CPython gh-106905), and
    hypothesis parses its own lambdas to name them."""
    gc.disable()
    yield
    gc.enable()


@pytest.mark.django_db
@pytest.mark.usefixtures("no_collection", "kept_connection")
@pytest.mark.parametrize("role", ROLES)
def test_no_request_breaks_the_api_or_its_description(role: str) -> None:
    """Made-up requests, half of them about rounds and contestants that exist."""
    world = make_world(contestants=4)
    done = unsealed_round(world, planned_votes=12)
    running = open_more(world)
    known = st.sampled_from([done.pk, running.pk, world.contestants[0].pk, None])
    sent = headers(role)
    schema = schemathesis.openapi.from_wsgi("/api/schema/", application)
    ours = schema.include(path_regex="^/api/v1/(rounds|contestants|voting)/")
    results: Any = ours.get_all_operations()
    found = [result.ok() for result in results]
    assert len(found) == 13
    for operation in found:

        @settings(
            max_examples=EXAMPLES,
            deadline=None,
            phases=[Phase.explicit, Phase.generate],
            derandomize=True,
            database=None,
            suppress_health_check=list(HealthCheck),
        )
        @given(case=operation.as_strategy(), pk=known)
        def attempt(case: Any, pk: int | None) -> None:
            if pk is not None and "id" in case.path_parameters:
                case.path_parameters["id"] = pk
            case.call_and_validate(headers=sent, checks=CHECKS)

        attempt()


def open_more(world: World) -> Round:
    """An open round over fresh answers to the same questions."""
    for c, model in enumerate(world.contestants):
        for p, person in enumerate(world.personas):
            for q, prompt in enumerate(world.prompts):
                make_answer(model, prompt, person.versions.get(), f"Fresh {c} {p} {q}.", draw=7)
    return open_round(world, name="Round two")


def headers(role: str) -> dict[str, str]:
    """A token of the role; a rater is one of the open round. No role: nobody."""
    if not role:
        return {}
    user = User.objects.filter(role=role).first() or make_user(f"some-{role}", role)
    return {"Authorization": f"Token {create_api_token(user=user, name='test')}"}


def test_the_description_is_valid_and_without_warnings() -> None:
    out = io.StringIO()
    call_command("spectacular", validate=True, fail_on_warn=True, stdout=out)
    assert "openapi:" in out.getvalue()


def api_patterns() -> list[Any]:
    resolver: Any = next(
        entry for entry in get_resolver().url_patterns if getattr(entry, "namespace", "") == "api"
    )
    return list(resolver.url_patterns)


def test_every_view_of_the_api_says_who_may() -> None:
    for pattern in api_patterns():
        permissions = pattern.callback.cls.permission_classes
        assert permissions in ([MayRead], [MayVote]), pattern.name
        assert (permissions == [MayVote]) == str(pattern.pattern).startswith("voting/")


@pytest.mark.django_db
def test_every_address_of_the_api_is_described() -> None:
    text = Client().get("/api/schema/").content.decode()
    for pattern in api_patterns():
        path = str(pattern.pattern).replace("<int:pk>", "{id}")
        assert f"/api/v1/{path}:" in text, path

"""The description of annotation's API: complete, and true for every role, tried by schemathesis."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from typing import Any

import pytest
import schemathesis
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

from annotation.api.common import MayManage, MayWork
from annotation.models import Guideline
from annotation.services.gold import make_gold
from tests.annotation.factories import Desk, label_once, make_desk
from tests.conftest import make_user
from webapp.accounts.models import User
from webapp.accounts.services import create_api_token
from webapp.wsgi import application

EXAMPLES = 6
OPERATIONS = 29
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


def busy_desk() -> Desk:
    """A project with labelled, gold and open items, whose members read the guidelines."""
    desk = make_desk(people=2, n_items=8)
    desk.project.members.update(guideline_read=Guideline.objects.get())
    make_gold(actor=desk.manager, item=desk.items()[0], verdicts={"quality": "first"})
    for user in desk.people:
        label_once(desk, user)
    return desk


@pytest.mark.django_db
@pytest.mark.usefixtures("no_collection", "kept_connection")
@pytest.mark.parametrize("role", ["", "admin", "annotator", "viewer"])
def test_no_request_breaks_the_api_or_its_description(role: str) -> None:
    """Made-up requests, half of them about a project and an item that exist."""
    desk = busy_desk()
    pk = st.sampled_from([desk.project.pk, None])
    item = desk.items()[-1].public_id
    sent = headers(role)
    schema = schemathesis.openapi.from_wsgi("/api/schema/", application)
    results: Any = schema.include(path_regex="^/api/v1/annotation/").get_all_operations()
    found = [result.ok() for result in results]
    assert len(found) == OPERATIONS
    for operation in found:

        @settings(
            max_examples=EXAMPLES,
            deadline=None,
            phases=[Phase.explicit, Phase.generate],
            derandomize=True,
            database=None,
            suppress_health_check=list(HealthCheck),
        )
        @given(case=operation.as_strategy(), pk=pk)
        def attempt(case: Any, pk: int | None) -> None:
            if pk is not None and "id" in case.path_parameters:
                case.path_parameters["id"] = pk
            if pk is not None and "item" in case.path_parameters:
                case.path_parameters["item"] = item
            case.call_and_validate(headers=sent, checks=CHECKS)

        attempt()


def headers(role: str) -> dict[str, str]:
    """A token of the role; an annotator is a member of the project. No role: nobody."""
    if not role:
        return {}
    user = User.objects.filter(role=role).first() or make_user(f"some-{role}", role)
    return {"Authorization": f"Token {create_api_token(user=user, name='test')}"}


def api_patterns() -> list[Any]:
    resolver: Any = next(
        entry
        for entry in get_resolver().url_patterns
        if getattr(entry, "namespace", "") == "annotation-api"
    )
    return list(resolver.url_patterns)


def test_every_view_of_the_api_says_who_may() -> None:
    for pattern in api_patterns():
        permissions = pattern.callback.cls.permission_classes
        work = str(pattern.pattern).startswith("work/")
        assert permissions == ([MayWork] if work else [MayManage]), pattern.name


@pytest.mark.django_db
def test_every_address_of_the_api_is_described() -> None:
    text = Client().get("/api/schema/").content.decode()
    for pattern in api_patterns():
        path = str(pattern.pattern).replace("<int:pk>", "{id}")
        path = path.replace("<int:run>", "{run}").replace("<slug:item>", "{item}")
        assert f"/api/v1/annotation/{path}:" in text, path

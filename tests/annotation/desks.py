"""Annotators at their desks over HTTP: what the tests of their pages share."""

from __future__ import annotations

from typing import Any

from django.test import Client
from django.urls import reverse

from annotation.assignment import Serving, serving
from annotation.models import Member
from annotation.services.reading import confirm_guidelines
from tests.annotation.factories import Desk
from webapp.accounts.models import User

HTMX = {"HX-Request": "true"}
BOTH = {"quality": "left", "personalization": "tie"}


def at_desk(desk: Desk, n: int = 0) -> Client:
    """The browser of an annotator who has read the guidelines."""
    user = desk.people[n]
    newest = desk.project.guidelines.first()
    assert newest is not None
    confirm_guidelines(user=user, project=desk.project, guideline=newest.pk)
    return browser(user)


def browser(user: User) -> Client:
    client = Client()
    client.force_login(user)
    return client


def url(desk: Desk, name: str = "label") -> str:
    return reverse(f"annotation:{name}", args=[desk.project.pk])


def token_of(desk: Desk, client: Client) -> str:
    """The token of the item that her page shows."""
    response = client.get(url(desk))
    assert response.status_code == 200
    return str(response.context["pair"].token)


def send(desk: Desk, client: Client, token: str, *, htmx: bool = True, **data: Any) -> Any:
    body = {"token": token, "active_ms": "4000", **(data or BOTH)}
    return client.post(url(desk), body, headers=HTMX if htmx else {})


def send_next(desk: Desk, client: Client, **data: Any) -> Any:
    return send(desk, client, token_of(desk, client), **data)


def at_gold(desk: Desk, n: int = 0, *, odd: bool = False) -> None:
    """Put a member before a place where a gold item is due, if there is one."""
    member = desk.member(desk.people[n])
    seed = desk.project.seed
    places = range(member.served, 500)
    due = (p for p in places if serving(seed, member.pk, p, 50, 0) == Serving.GOLD)
    place = next(p for p in due if p % 2 or not odd)
    Member.objects.filter(pk=member.pk).update(served=place)

"""Invitations, logins, tokens and roles: by invitation only, and nothing secret is kept."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.db.models import QuerySet
from django.test import Client
from django.urls import reverse
from django.utils import timezone
from knox.models import AuthToken

from tests.conftest import PASSWORD
from webapp.accounts import services
from webapp.accounts.enums import Role
from webapp.accounts.models import Invitation, User
from webapp.core import audit
from webapp.core.errors import Forbidden, InvalidInput, Refused

pytestmark = pytest.mark.django_db


def browser(user: User) -> Client:
    client = Client()
    client.force_login(user)
    return client


def accept_url(alice: User, role: str = Role.RATER) -> str:
    _invitation, token = services.invite(actor=alice, role=role)
    return reverse("accounts:accept", args=[token])


def test_an_invitation_becomes_an_account_of_its_role(alice: User) -> None:
    client = Client()
    form = {"username": "dora", "password": PASSWORD}
    response = client.post(accept_url(alice, Role.ANNOTATOR), form, follow=True)
    assert response.status_code == 200
    dora = User.objects.get(username="dora")
    assert dora.role == Role.ANNOTATOR
    assert not dora.is_staff
    assert client.get(reverse("arena:vote")).status_code == 200


def test_the_token_of_an_invitation_is_not_kept(alice: User) -> None:
    invitation, token = services.invite(actor=alice, role=Role.RATER)
    assert token not in str(Invitation.objects.values().get(pk=invitation.pk))


def test_an_invitation_works_once(alice: User) -> None:
    url = accept_url(alice)
    Client().post(url, {"username": "dora", "password": PASSWORD})
    response = Client().post(url, {"username": "eve", "password": PASSWORD})
    assert response.status_code == 410
    assert not User.objects.filter(username="eve").exists()


def test_an_expired_or_withdrawn_or_unknown_invitation_says_why(alice: User) -> None:
    invitation, token = services.invite(actor=alice, role=Role.RATER)
    Invitation.objects.filter(pk=invitation.pk).update(
        expires_at=timezone.now() - timedelta(seconds=1)
    )
    with pytest.raises(Refused, match="expired"):
        services.open_invitation(token)
    invitation, token = services.invite(actor=alice, role=Role.RATER)
    services.withdraw_invitation(actor=alice, invitation=invitation)
    with pytest.raises(Refused, match="withdrawn"):
        services.open_invitation(token)
    assert Client().get(reverse("accounts:accept", args=["guess"])).status_code == 410


def test_an_invitation_withdrawn_while_its_row_was_waited_for_makes_no_account(
    alice: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    invitation, token = services.invite(actor=alice, role=Role.ADMIN)
    lock = QuerySet.select_for_update

    def lock_after_withdrawal(rows: Any, *args: Any, **kwargs: Any) -> Any:
        if rows.model is Invitation:
            services.withdraw_invitation(actor=alice, invitation=invitation)
        return lock(rows, *args, **kwargs)

    monkeypatch.setattr(QuerySet, "select_for_update", lock_after_withdrawal)
    with pytest.raises(Refused, match="withdrawn"):
        services.accept_invitation(token=token, username="late", password=PASSWORD)
    assert not User.objects.filter(username="late").exists()


def test_a_token_without_its_line_in_the_audit_is_neither_made_nor_revoked(
    bob: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    services.create_api_token(user=bob, name="script")
    key = AuthToken.objects.get().token_key

    def fail(**_details: Any) -> None:
        raise OSError

    monkeypatch.setattr(audit, "record", fail)
    with pytest.raises(OSError):
        services.create_api_token(user=bob, name="another")
    with pytest.raises(OSError):
        services.revoke_api_token(user=bob, key=key)
    assert list(AuthToken.objects.values_list("token_key", flat=True)) == [key]


@pytest.mark.parametrize(
    ("username", "password", "field"),
    [
        ("dora", "short", "password"),
        ("dora", "12345678901", "password"),
        ("ALICE", PASSWORD, "username"),
    ],
)
def test_what_is_wrong_with_a_new_account_is_said_at_the_field(
    alice: User, username: str, password: str, field: str
) -> None:
    response = Client().post(accept_url(alice), {"username": username, "password": password})
    assert response.status_code == 200
    assert field in response.context["form"].errors
    with pytest.raises(InvalidInput):
        services.create_user(username=username, password=password, role=Role.RATER)


def test_only_administrators_invite(bob: User, chen: User, vera: User) -> None:
    for user in (bob, chen, vera):
        with pytest.raises(Forbidden):
            services.invite(actor=user, role=Role.ADMIN)
        assert browser(user).get(reverse("accounts:invitations")).status_code == 403


def test_there_is_no_way_to_register_oneself() -> None:
    from django.urls import get_resolver

    names = {str(pattern) for pattern in get_resolver().reverse_dict if isinstance(pattern, str)}
    assert not {name for name in names if "register" in name or "signup" in name}


def test_too_many_failed_logins_are_stopped(bob: User, settings: Any) -> None:
    client, url = Client(), reverse("accounts:login")
    for _ in range(settings.AXES_FAILURE_LIMIT):
        response = client.post(url, {"username": "bob", "password": "wrong"})
    assert response.status_code == 429
    assert client.post(url, {"username": "bob", "password": PASSWORD}).status_code == 429


def test_a_login_goes_on_to_the_page_that_asked_and_never_elsewhere(bob: User) -> None:
    url = reverse("accounts:login")
    form = {"username": "bob", "password": PASSWORD, "next": reverse("arena:receipts")}
    assert Client().post(url, form)["Location"] == reverse("arena:receipts")
    form["next"] = "https://elsewhere.example/"
    assert Client().post(url, form)["Location"] == "/"


def test_an_api_token_is_shown_once_and_stored_hashed(bob: User) -> None:
    client = browser(bob)
    response = client.post(reverse("accounts:tokens"), {"name": "script"})
    token = response.context["new_token"]
    assert token in response.content.decode()
    assert token not in client.get(reverse("accounts:tokens")).content.decode()
    assert token not in str(list(AuthToken.objects.values()))
    api = Client(headers={"Authorization": f"Token {token}"})
    assert api.get("/api/v1/voting/rounds/").status_code == 200
    key = AuthToken.objects.get().token_key
    client.post(reverse("accounts:revoke", args=[key]))
    assert api.get("/api/v1/voting/rounds/").status_code == 401


def test_nobody_revokes_the_token_of_somebody_else(bob: User, chen: User) -> None:
    services.create_api_token(user=bob, name="script")
    key = AuthToken.objects.get().token_key
    browser(chen).post(reverse("accounts:revoke", args=[key]))
    assert AuthToken.objects.count() == 1


@pytest.mark.parametrize("path", ["/", "/rounds/", "/vote/", "/audit/", "/catalog/"])
def test_pages_ask_for_a_login(path: str) -> None:
    response = Client().get(path)
    assert response.status_code == 302
    assert response["Location"].startswith(reverse("accounts:login"))


HOMES = {
    Role.ADMIN: "/rounds/",
    Role.RATER: "/vote/",
    Role.ANNOTATOR: "/annotation/work/",
    Role.VIEWER: "/leaderboard/",
}


@pytest.mark.parametrize("role", list(Role))
def test_everybody_lands_where_the_work_is(role: Role) -> None:
    user = services.create_user(username="somebody", password=PASSWORD, role=role)
    assert browser(user).get("/")["Location"] == HOMES[role]


def test_every_page_carries_a_strict_policy(bob: User) -> None:
    response = browser(bob).get(reverse("arena:vote"))
    policy = response["Content-Security-Policy"]
    assert "default-src 'none'" in policy
    assert "script-src 'self'" in policy
    assert "unsafe" not in policy
    assert response["X-Frame-Options"] == "DENY"
    assert "no-store" in response["Cache-Control"]


def test_forms_need_the_csrf_token(bob: User) -> None:
    client = Client(enforce_csrf_checks=True)
    client.force_login(bob)
    assert client.post(reverse("arena:undo")).status_code == 403


def test_preferences_of_two_tabs_are_merged(bob: User) -> None:
    services.save_preferences(user=bob, keys={"undo": "z"})
    services.save_preferences(user=User.objects.get(pk=bob.pk), theme="dark")
    bob.refresh_from_db()
    assert bob.preferences == {"keys": {"undo": "z"}, "theme": "dark"}


def test_the_theme_is_remembered_without_javascript(bob: User) -> None:
    client = browser(bob)
    client.post(reverse("accounts:theme"), {"theme": "dark"})
    assert 'data-theme="dark"' in client.get(reverse("arena:receipts")).content.decode()
    client.post(reverse("accounts:theme"), {"theme": "<script>"})
    assert "data-theme" not in client.get(reverse("arena:receipts")).content.decode()


def test_the_language_is_switched_by_a_form(bob: User) -> None:
    client = browser(bob)
    client.post(reverse("set_language"), {"language": "zh-hans", "next": "/vote/receipts/"})
    assert 'lang="zh-hans"' in client.get(reverse("arena:receipts")).content.decode()


def test_the_first_administrator_is_made_on_the_command_line() -> None:
    user = User.objects.create_superuser("first", password=PASSWORD)
    assert user.role == Role.ADMIN
    assert browser(user).get("/")["Location"] == "/rounds/"

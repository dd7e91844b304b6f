"""The admin site shows accounts and switches them off or on; it makes nobody an administrator."""

from __future__ import annotations

from typing import Any

import pytest
from django.contrib import admin
from django.test import Client
from django.urls import NoReverseMatch, reverse

from webapp.accounts.enums import Role
from webapp.accounts.models import User
from webapp.core.models import Event

pytestmark = pytest.mark.django_db


@pytest.fixture
def site(alice: User) -> Client:
    """The browser of a superuser."""
    User.objects.filter(pk=alice.pk).update(is_superuser=True, is_staff=True)
    client = Client()
    client.force_login(alice)
    return client


def test_accounts_are_all_that_is_registered() -> None:
    assert set(admin.site._registry) == {User}


def test_no_account_is_made_or_deleted_there(site: Client, bob: User) -> None:
    assert site.get(reverse("admin:accounts_user_add")).status_code == 403
    answer = site.post(reverse("admin:accounts_user_add"), {"username": "me2"})
    assert answer.status_code == 403
    assert site.post(reverse("admin:accounts_user_delete", args=[bob.pk])).status_code == 403
    action = {"action": "delete_selected", "_selected_action": [bob.pk], "post": "yes"}
    site.post(reverse("admin:accounts_user_changelist"), action)
    assert User.objects.filter(pk=bob.pk).exists()
    assert not User.objects.filter(username="me2").exists()


def test_nobodys_password_is_set_there(site: Client, bob: User) -> None:
    with pytest.raises(NoReverseMatch):
        reverse("admin:auth_user_password_change", args=[bob.pk])
    before = User.objects.get(pk=bob.pk).password
    new = {"password1": "Another-long-pass-9", "password2": "Another-long-pass-9"}
    site.post(f"/admin/accounts/user/{bob.pk}/password/", new)
    assert User.objects.get(pk=bob.pk).password == before


def change(site: Client, user: User, **data: Any) -> None:
    url = reverse("admin:accounts_user_change", args=[user.pk])
    assert site.post(url, data).status_code == 302


def test_role_name_and_rights_cannot_be_changed_there(site: Client, bob: User) -> None:
    wanted = {"username": "bobby", "role": "admin", "is_staff": "on", "is_superuser": "on"}
    change(site, bob, is_active="on", **wanted)
    bob.refresh_from_db()
    assert (bob.username, bob.role) == ("bob", Role.RATER)
    assert not bob.is_staff
    assert not bob.is_superuser
    assert not Event.objects.filter(action__startswith="switch_account").exists()


def test_switching_an_account_off_and_on_is_in_the_audit_log(
    site: Client, alice: User, bob: User
) -> None:
    change(site, bob)
    bob.refresh_from_db()
    assert not bob.is_active
    change(site, bob)  # once more: nothing changes
    change(site, bob, is_active="on")
    bob.refresh_from_db()
    assert bob.is_active
    lines = Event.objects.filter(object_type="accounts.user", object_id=str(bob.pk))
    found = list(lines.order_by("n").values_list("action", "actor"))
    assert found == [("switch_account_off", alice.pk), ("switch_account_on", alice.pk)]

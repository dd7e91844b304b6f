"""A form that is sent when the login has ended, or from a page older than it, is not lost."""

from __future__ import annotations

import logging
import re
from html import unescape
from typing import Any

import pytest
from axes.models import AccessAttempt
from django.contrib.sessions.models import Session
from django.core import signing
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client
from django.urls import reverse
from django.utils.html import escape
from knox.models import AuthToken
from pythonjsonlogger.json import JsonFormatter

from tests.conftest import PASSWORD
from webapp.accounts import services
from webapp.accounts.models import User
from webapp.accounts.unsent import FIELD, Unsent, pack, unpack

pytestmark = pytest.mark.django_db
HERE = {"Origin": "http://testserver", "Referer": "http://testserver/accounts/tokens/"}
LOGIN = "/accounts/login/"
NAME = 'a "quoted" <name> of 令牌'


def hidden(page: str, name: str) -> list[str]:
    found = re.findall(rf'<input type="hidden" name="{name}" value="([^"]*)"', page)
    return [unescape(value) for value in found]


def sign_in(client: Client, user: User, **more: str) -> Any:
    return client.post(LOGIN, {"username": user.username, "password": PASSWORD, **more})


def test_a_form_sent_without_a_login_is_sent_after_it(alice: User) -> None:
    client = Client()
    url = reverse("accounts:tokens")
    asked = client.post(url, {"name": NAME, "days": ["3", "4"]}, headers=HERE)
    assert asked.status_code == 401
    (kept,) = hidden(asked.content.decode(), FIELD)
    wrong = client.post(LOGIN, {"username": "alice", "password": "wrong", FIELD: kept})
    assert hidden(wrong.content.decode(), FIELD)
    assert not AuthToken.objects.exists()
    page = sign_in(client, alice, kept=kept).content.decode()
    assert f'action="{url}"' in page
    assert hidden(page, "name") == [NAME]
    assert hidden(page, "days") == ["3", "4"]
    assert escape(NAME) in page.partition("<details>")[2]
    assert 'href="http://testserver/accounts/tokens/"' in page
    assert not AuthToken.objects.exists()
    assert client.post(url, {"name": hidden(page, "name")[0]}).status_code == 200
    assert AuthToken.objects.count() == 1


def test_an_action_without_fields_is_kept_too(alice: User) -> None:
    client = Client()
    asked = client.post(reverse("accounts:revoke", args=["abc"]), headers=HERE)
    page = sign_in(client, alice, kept=hidden(asked.content.decode(), FIELD)[0]).content.decode()
    assert f'action="{reverse("accounts:revoke", args=["abc"])}"' in page


def test_whoever_signed_in_in_another_tab_is_not_asked_again(alice: User) -> None:
    client = Client()
    asked = client.post(reverse("accounts:tokens"), {"name": NAME}, headers=HERE)
    sign_in(client, alice)
    page = client.post(LOGIN, {FIELD: hidden(asked.content.decode(), FIELD)[0]}).content.decode()
    assert hidden(page, "name") == [NAME]


@pytest.mark.parametrize("signed_in", [True, False])
def test_a_page_older_than_the_login_may_send_again(alice: User, signed_in: bool) -> None:
    client = Client(enforce_csrf_checks=True)
    if signed_in:
        client.force_login(alice)
    client.get(LOGIN)
    sent = {"name": NAME, "csrfmiddlewaretoken": "x" * 64}
    answer = client.post(reverse("accounts:tokens"), sent, headers=HERE)
    page = answer.content.decode()
    assert not AuthToken.objects.exists()
    if not signed_in:
        assert answer.status_code == 401
        assert unpack(hidden(page, FIELD)[0])
        return
    assert answer.status_code == 403
    again = {name: hidden(page, name)[-1] for name in ("name", "csrfmiddlewaretoken")}
    assert client.post(reverse("accounts:tokens"), again, headers=HERE).status_code == 200
    assert AuthToken.objects.count() == 1


@pytest.mark.parametrize("signed_in", [True, False])
@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"Origin": "https://evil.example"},
        {"Origin": "https://testserver"},
        {"Origin": "http://testserver.evil.example"},
        {"Origin": "null"},
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site", "Origin": "http://other.testserver"},
        {"Sec-Fetch-Site": "none"},
    ],
)
def test_another_site_is_offered_nothing(
    alice: User, headers: dict[str, str], signed_in: bool
) -> None:
    client = Client(enforce_csrf_checks=True)
    if signed_in:
        client.force_login(alice)
    client.get(reverse("accounts:tokens"))
    answer = client.post(reverse("accounts:tokens"), {"name": NAME}, headers=headers)
    assert answer.status_code == 403
    assert NAME not in answer.content.decode()
    assert not hidden(answer.content.decode(), "name")
    form = pack(Unsent("/accounts/tokens/", (("name", NAME),), "/", had_files=False))
    answer = client.post(LOGIN, {FIELD: form}, headers=headers)
    assert answer.status_code == 403
    assert not hidden(answer.content.decode(), FIELD)


@pytest.mark.parametrize("method", ["get", "post"])
def test_a_script_is_told_and_gets_no_cookie(alice: User, method: str) -> None:
    """Nor is the one of a session that is gone taken away: a new one may have come meanwhile."""
    client = Client()
    client.force_login(alice)
    Session.objects.all().delete()
    headers = {"HX-Request": "true", **HERE}
    answer = getattr(client, method)(reverse("accounts:tokens"), headers=headers)
    assert answer.status_code == 401
    assert not answer.cookies
    assert b"<" not in answer.content


def test_passwords_and_signing_out_are_not_kept(alice: User) -> None:
    for name, fields in (("password", {"old_password": PASSWORD}), ("logout", {})):
        answer = Client().post(reverse(f"accounts:{name}"), fields, headers=HERE)
        assert answer.status_code == 302
        assert PASSWORD not in answer["Location"]


def test_a_login_alone_is_as_before(alice: User) -> None:
    assert sign_in(Client(), alice)["Location"] == "/"
    answer = Client(enforce_csrf_checks=True).post(LOGIN, {"username": "alice"}, headers=HERE)
    assert answer.status_code == 403
    assert "cookies" in answer.content.decode()


def test_what_this_site_did_not_sign_is_nothing(alice: User) -> None:
    form = Unsent("/x/", (("a", "1"), ("a", "2")), "/", False)
    assert unpack(pack(form)) == form
    forged = signing.dumps(["/x/", [], "/", False], salt="another")
    assert unpack(forged) is None
    assert unpack("") is None
    assert sign_in(Client(), alice, kept=forged).status_code == 302


def test_what_is_too_long_is_said_to_be(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("webapp.accounts.unsent.MAX_CHARS", 100)
    answer = Client().post(reverse("accounts:tokens"), {"name": NAME}, headers=HERE)
    assert answer.status_code == 401
    assert not hidden(answer.content.decode(), FIELD)
    assert "too long to be kept" in answer.content.decode()
    assert b"password" not in answer.content


def test_files_cannot_be_kept_and_that_is_said(alice: User) -> None:
    client = Client()
    sent = {"name": NAME, "file": SimpleUploadedFile("rows.jsonl", b"{}")}
    asked = client.post(reverse("accounts:tokens"), sent, headers=HERE)
    page = sign_in(client, alice, kept=hidden(asked.content.decode(), FIELD)[0]).content.decode()
    assert hidden(page, "name") == [NAME]
    assert "A file cannot be kept" in page


def test_the_page_that_a_form_came_from_must_be_of_this_site() -> None:
    headers = {**HERE, "Referer": "https://evil.example/tokens/"}
    answer = Client().post(reverse("accounts:tokens"), {"name": NAME}, headers=headers)
    kept = unpack(hidden(answer.content.decode(), FIELD)[0])
    assert kept
    assert kept.back == "/"


def test_a_proxy_may_change_the_host(alice: User) -> None:
    client = Client(enforce_csrf_checks=True)
    client.force_login(alice)
    headers = {"Origin": "https://palate.example.org", "Sec-Fetch-Site": "same-origin"}
    answer = client.post(reverse("accounts:tokens"), {"name": NAME}, headers=headers)
    assert hidden(answer.content.decode(), "name") == [NAME]


def test_a_kept_form_goes_through_with_the_token_of_its_page(alice: User) -> None:
    client = Client(enforce_csrf_checks=True)

    def send(url: str, page: Any, **fields: str) -> Any:
        (token,) = set(hidden(page.content.decode(), "csrfmiddlewaretoken"))
        return client.post(url, {**fields, "csrfmiddlewaretoken": token}, headers=HERE)

    url = reverse("accounts:tokens")
    asked = send(url, client.get(LOGIN), name=NAME)
    kept = hidden(asked.content.decode(), FIELD)[0]
    offered = send(LOGIN, asked, username="alice", password=PASSWORD, kept=kept)
    assert "alice" in offered.content.decode()
    assert send(url, offered, name=NAME).status_code == 200
    assert AuthToken.objects.count() == 1


def test_what_needs_no_login_is_not_kept(alice: User) -> None:
    """Language and colours can be changed before a login, and an old page's buttons are no loss."""
    for name, fields in (
        ("accounts:theme", {"theme": "dark"}),
        ("set_language", {"language": "zh-hans"}),
    ):
        sent = {**fields, "next": LOGIN}
        client = Client()
        assert client.post(reverse(name), sent, headers=HERE)["Location"] == LOGIN
        assert client.cookies
        client = Client(enforce_csrf_checks=True)
        client.get(LOGIN)
        answer = client.post(reverse(name), sent, headers=HERE)
        assert answer.status_code == 403
        assert not hidden(answer.content.decode(), FIELD)


def test_the_language_can_be_changed_before_a_login() -> None:
    client = Client()
    client.post(reverse("set_language"), {"language": "zh-hans", "next": LOGIN})
    assert 'lang="zh-hans"' in client.get(LOGIN).content.decode()


def test_no_button_leads_away_from_what_waits(alice: User) -> None:
    client = Client()
    asked = client.post(reverse("accounts:tokens"), {"name": NAME}, headers=HERE).content.decode()
    assert "set_language" not in asked
    assert reverse("accounts:theme") not in asked
    offered = sign_in(client, alice, kept=hidden(asked, FIELD)[0]).content.decode()
    assert reverse("accounts:theme") not in offered


def test_a_wrong_password_writes_nothing_of_the_form_down(alice: User, settings: Any) -> None:
    client = Client()
    asked = client.post(reverse("accounts:tokens"), {"name": NAME}, headers=HERE).content.decode()
    kept = hidden(asked, FIELD)[0]
    for _time in range(settings.AXES_FAILURE_LIMIT):
        answer = client.post(LOGIN, {"username": "alice", "password": "wrong", FIELD: kept})
    assert answer.status_code == 429
    assert "go back to it" in answer.content.decode()
    rows = str(list(AccessAttempt.objects.values()))
    assert AccessAttempt.objects.exists()
    assert kept[:20] not in rows


def test_no_line_of_the_log_holds_the_token_of_an_invitation(
    alice: User, caplog: pytest.LogCaptureFixture, settings: Any
) -> None:
    settings.ALLOWED_HOSTS = ["testserver"]
    token = services.invite(actor=alice, role="rater")[1]
    url = reverse("accounts:accept", args=[token])
    client = Client(enforce_csrf_checks=True, raise_request_exception=False)
    with caplog.at_level(logging.INFO):
        assert client.post(url, {"username": "dora"}, headers=HERE).status_code == 403
        assert client.get(url, headers={"Host": "evil.example"}).status_code == 400
        assert client.get(url + "x/").status_code in (302, 404)
    (handler,) = (
        entry for entry in logging.root.handlers if isinstance(entry.formatter, JsonFormatter)
    )
    lines = [handler.format(record) for record in caplog.records]
    (said,) = (line for line in lines if "forgery check failed" in line)
    assert "accounts:accept" in said
    assert "CSRF cookie not set" in said
    assert token not in "".join(lines)


def test_the_page_of_the_login_is_not_where_a_form_came_from() -> None:
    headers = {**HERE, "Referer": f"http://testserver{LOGIN}?next=/"}
    answer = Client().post(reverse("accounts:tokens"), {"name": NAME}, headers=headers)
    kept = unpack(hidden(answer.content.decode(), FIELD)[0])
    assert kept
    assert kept.back == "/"
    assert answer["Cache-Control"].startswith("max-age=0")

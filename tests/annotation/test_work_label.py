"""The labelling page over HTTP: what is sent twice, late, or after a lost login is kept once."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from django.utils import timezone

from annotation.enums import LeaseState, MemberState
from annotation.models import Label, Lease, Member, Problem
from annotation.services.projects import move_project, publish_guidelines, set_member_state
from tests.annotation.desks import BOTH, HTMX, at_desk, browser, send, send_next, token_of, url
from tests.annotation.factories import Desk, label_once, make_desk, working
from tests.conftest import PASSWORD, asks_for_login
from webapp.accounts.models import User

pytestmark = pytest.mark.django_db


@pytest.fixture
def desk() -> Desk:
    made = make_desk(n_items=6)
    working(made)
    return made


@pytest.fixture
def client(desk: Desk) -> Client:
    return at_desk(desk)


def test_guidelines_come_before_the_first_item(desk: Desk) -> None:
    client = browser(desk.people[0])
    response = client.get(url(desk))
    assert response.status_code == 302
    assert response["Location"] == url(desk, "guidelines")
    page = client.get(url(desk, "guidelines"))
    assert "<strong>Accuracy first</strong>" in page.content.decode()
    guideline = page.context["guideline"]
    assert client.post(url(desk, "guidelines"), {"guideline": guideline.pk})["Location"] == url(
        desk
    )
    assert client.get(url(desk)).status_code == 200
    assert not Lease.objects.filter(member__user=desk.people[1]).exists()


def test_a_new_version_is_announced_until_it_is_read(desk: Desk, client: Client) -> None:
    assert "have changed" not in client.get(url(desk)).content.decode()
    newest = publish_guidelines(actor=desk.manager, project=desk.project, text="Other rules.")
    page = client.get(url(desk))
    assert page.context["guideline_changed"] == 2
    assert "have changed" in page.content.decode()
    client.post(url(desk, "guidelines"), {"guideline": newest.pk})
    assert client.get(url(desk)).context["guideline_changed"] == 0
    older = desk.project.guidelines.last()
    assert older is not None
    client.post(url(desk, "guidelines"), {"guideline": older.pk})
    assert Member.objects.get(user=desk.people[0]).guideline_read == newest


def test_a_label_is_recorded_and_the_next_item_follows(desk: Desk, client: Client) -> None:
    token = token_of(desk, client)
    response = send(desk, client, token)
    assert response.status_code == 200
    assert response.context["pair"].token != token
    label = Label.objects.get()
    lease = Lease.objects.get(token=token)
    assert label.quality == ("first" if lease.first_left else "second")
    assert (label.personalization, label.active_ms, label.guideline) == (
        "tie", 4000, desk.project.guidelines.first(),
    )  # fmt: skip
    assert "Saved." in response.content.decode()


def test_without_javascript_it_is_post_and_redirect(desk: Desk, client: Client) -> None:
    response = send(desk, client, token_of(desk, client), htmx=False)
    assert response.status_code == 302
    assert response["Location"] == url(desk)
    assert "Saved." in client.get(url(desk)).content.decode()


def statements(queries: CaptureQueriesContext) -> list[str]:
    return [q["sql"] for q in queries if not q["sql"].startswith(("SAVEPOINT", "RELEASE"))]


def test_opening_the_page_takes_at_most_twelve_queries(desk: Desk, client: Client) -> None:
    with CaptureQueriesContext(connection) as queries:
        client.get(url(desk))
    assert len(statements(queries)) <= 12, "\n".join(statements(queries))


def test_submit_and_next_takes_twelve_queries_and_three_more_where_an_item_is_settled() -> None:
    desk = make_desk(people=2, n_items=4, settings={"base_overlap": 2, "max_overlap": 2})
    working(desk)
    clients = [at_desk(desk, n) for n in range(2)]
    for n in range(6):
        client = clients[n % 2]
        token = token_of(desk, client)
        client.post(url(desk, "prefetch"), {"token": token})
        settles = Lease.objects.get(token=token).item.done == 1
        with CaptureQueriesContext(connection) as queries:
            assert send(desk, client, token).status_code == 200
        sent = statements(queries)
        assert len(sent) <= (15 if settles else 12), "\n".join(sent)


def test_double_click_and_redelivery_have_effect_once(desk: Desk, client: Client) -> None:
    token = token_of(desk, client)
    for _ in range(3):
        assert send(desk, client, token).status_code == 200
    assert Label.objects.count() == 1


def test_another_choice_for_the_same_item_is_a_revision(desk: Desk, client: Client) -> None:
    token = token_of(desk, client)
    send(desk, client, token)
    response = send(desk, client, token, quality="tie", personalization="tie")
    assert "stays on record" in response.content.decode()
    assert list(Label.objects.order_by("pk").values_list("revision", flat=True)) == [1, 2]


def test_a_missing_verdict_keeps_what_was_chosen(desk: Desk, client: Client) -> None:
    token = token_of(desk, client)
    response = send(desk, client, token, quality="left", comment="halb fertig 半")
    assert response.status_code == 422
    page = response.content.decode()
    assert 'id="quality-left" value="left" checked' in page
    assert "halb fertig 半" in page
    assert list(response.context["errors"]) == ["personalization"]
    assert not Label.objects.exists()


def test_only_allowed_verdicts_are_offered_and_strength_where_it_is_asked() -> None:
    desk = make_desk(
        settings={
            "allow_tie": False, "allow_both_bad": False, "ask_strength": True, "axes": ["quality"]
        }
    )  # fmt: skip
    working(desk)
    client = at_desk(desk)
    page = client.get(url(desk)).content.decode()
    assert 'value="left"' in page
    assert 'value="tie"' not in page
    assert 'value="both_bad"' not in page
    assert page.count('name="quality_strength"') == 3
    missing = send_next(desk, client, quality="right")
    assert missing.status_code == 422
    assert "how much better" in missing.content.decode()
    assert send_next(desk, client, quality="right", quality_strength="3").status_code == 200
    assert Label.objects.get().quality_strength == 3


def test_axes_stand_in_the_members_order(desk: Desk) -> None:
    orders = []
    for n in range(2):
        page = at_desk(desk, n).get(url(desk))
        orders.append([axis["name"] for axis in page.context["axes"]])
    assert orders == [["quality", "personalization"], ["personalization", "quality"]]


def test_tags_are_the_projects_own(desk: Desk) -> None:
    desk = make_desk(people=0, name="Tagged", settings={"tags": ["wordy", "离题 <b>"]})
    member = User.objects.get(username="ann-1")
    from annotation.services.projects import add_members

    add_members(actor=desk.manager, project=desk.project, users=[member])
    desk.people = [member]
    working(desk)
    client = at_desk(desk)
    page = client.get(url(desk)).content.decode()
    assert ">too wordy<" in page
    assert "离题 &lt;b&gt;" in page
    assert send_next(desk, client, **BOTH, tags="离题 <b>").status_code == 200
    assert Label.objects.get().tags == ["离题 <b>"]


def test_undo_gives_the_item_back_with_what_was_chosen(desk: Desk, client: Client) -> None:
    token = token_of(desk, client)
    send(desk, client, token, quality="right", personalization="both_bad", comment="why 因为")
    response = client.post(url(desk, "undo"), {"last": token}, headers=HTMX)
    assert response.context["pair"].token == token
    draft = response.context["draft"]
    assert (draft["quality"], draft["personalization"]) == ("right", "both_bad")
    assert draft["comment"] == "why 因为"
    page = response.content.decode()
    assert 'id="quality-right" value="right" checked' in page
    assert Lease.objects.get(token=token).item.done == 0


def test_undo_twice_takes_back_once_and_the_eleventh_last_is_refused() -> None:
    desk = make_desk(people=1, n_items=12)
    working(desk)
    client = at_desk(desk)
    first = token_of(desk, client)
    for _ in range(11):
        send_next(desk, client)
    response = client.post(url(desk, "undo"), {"last": first}, follow=True)
    assert "last 10" in response.content.decode()
    last = client.get(url(desk)).context["progress"].last
    for _ in range(2):
        client.post(url(desk, "undo"), {"last": last}, headers=HTMX)
    assert Label.objects.filter(quality="").count() == 1


def test_nothing_is_taken_back_where_it_could_not_be_given_anew(desk: Desk, client: Client) -> None:
    token = token_of(desk, client)
    send(desk, client, token)
    move_project(actor=desk.manager, project=desk.project, to="closed")
    response = client.post(url(desk, "undo"), {"last": token}, headers=HTMX)
    assert response.status_code == 409
    assert Label.objects.count() == 1


def test_a_skipped_item_goes_to_somebody_else(desk: Desk, client: Client) -> None:
    token = token_of(desk, client)
    response = client.post(url(desk, "skip"), {"token": token, "reason": "language"}, headers=HTMX)
    assert response.context["pair"].token != token
    assert Lease.objects.get(token=token).skip_reason == "language"


def test_drafts_are_kept_on_the_server_for_another_browser(desk: Desk, client: Client) -> None:
    token = token_of(desk, client)
    data = {**BOTH, "token": token, "comment": "wait 等", "tags": [], "active_ms": "9000"}
    assert client.post(url(desk, "draft"), data).status_code == 204
    other = browser(desk.people[0]).get(url(desk))
    page = other.content.decode()
    assert 'id="quality-left" value="left" checked' in page
    assert "wait 等" in page
    assert 'name="active_ms" value="9000"' in page
    send(desk, client, token)
    assert Label.objects.get().active_ms == 4000  # as sent: a draft's time is not added again


def test_nobody_writes_a_draft_for_somebody_else(desk: Desk, client: Client) -> None:
    token = token_of(desk, client)
    at_desk(desk, 1).post(url(desk, "draft"), {**BOTH, "token": token})
    assert Lease.objects.get(token=token).draft == {}


def test_a_reported_problem_keeps_item_and_draft(desk: Desk, client: Client) -> None:
    token = token_of(desk, client)
    data = {"token": token, "quality": "left", "problem_kind": "broken", "problem_note": "…"}
    response = client.post(url(desk, "problem"), data, follow=True)
    assert "Reported" in response.content.decode()
    assert response.context["pair"].token == token
    assert response.context["draft"]["quality"] == "left"
    assert client.post(url(desk, "problem"), data, headers=HTMX).status_code == 204
    assert Problem.objects.get().kind == "broken"
    missing = client.post(url(desk, "problem"), {"token": token}, headers=HTMX)
    assert missing.status_code == 422
    plain = client.post(url(desk, "problem"), {"token": token, "quality": "right"}, follow=True)
    assert "Say what is wrong" in plain.content.decode()
    assert plain.context["draft"]["quality"] == "right"


def test_heartbeat_renews_and_says_when_the_lease_is_gone(desk: Desk, client: Client) -> None:
    token = token_of(desk, client)
    assert client.post(url(desk, "heartbeat"), {"token": token}).json()["expires_in"] > 60
    Lease.objects.filter(token=token).update(state=LeaseState.EXPIRED, counted=False)
    assert client.post(url(desk, "heartbeat"), {"token": token}).status_code == 409


def test_the_next_item_is_reserved_and_counts_as_not_seen(desk: Desk, client: Client) -> None:
    token = token_of(desk, client)
    assert client.post(url(desk, "prefetch"), {"token": token}).content == b""
    reserved = Lease.objects.get(state=LeaseState.RESERVED)
    assert reserved.shown_at is None
    assert client.get(url(desk, "diff"), {"token": reserved.token}).status_code == 403
    assert send(desk, client, reserved.token).status_code == 409
    assert send(desk, client, token).context["pair"].token == reserved.token


def test_late_work_is_kept_and_said_kindly(desk: Desk, client: Client) -> None:
    past = timezone.now() - timedelta(seconds=1)
    token = token_of(desk, client)
    Lease.objects.filter(token=token).update(expires_at=past)
    assert "counts all the same" in send(desk, client, token).content.decode()
    one = make_desk(people=0, n_items=1, name="One")
    from annotation.services.projects import add_members

    add_members(actor=one.manager, project=one.project, users=desk.people)
    one.people = desk.people
    working(one)
    client = at_desk(one)
    token = token_of(one, client)
    Lease.objects.filter(token=token).update(expires_at=past)
    assert label_once(one, one.people[1]) is not None
    response = send(one, client, token)
    assert "Saved as an extra" in response.content.decode()


@pytest.mark.parametrize("state", ["paused", "closed"])
def test_a_label_for_a_project_that_stopped_is_still_kept(
    desk: Desk, client: Client, state: str
) -> None:
    token = token_of(desk, client)
    move_project(actor=desk.manager, project=desk.project, to=state)
    response = send(desk, client, token)
    assert response.status_code == 200
    assert response.context["reason"] == "project_not_open"
    assert "Saved." in response.content.decode()
    assert Label.objects.count() == 1


def test_who_is_paused_reads_why_without_a_hint_to_an_item(desk: Desk, client: Client) -> None:
    token_of(desk, client)
    set_member_state(
        actor=desk.manager,
        member=desk.member(desk.people[0]),
        state=MemberState.PAUSED,
        reason="gold: 1 of 9",
    )
    page = client.get(url(desk)).content.decode()
    assert "read the guidelines again" in page
    assert "gold" not in page.lower()


def test_when_nothing_is_left_it_says_so(desk: Desk, client: Client) -> None:
    for _ in range(6):
        response = send_next(desk, client)
    assert response.context["reason"] == "nothing_left"
    assert response.context["progress"].done == 6
    assert "Saved." in response.content.decode()


def test_an_expired_login_loses_nothing(desk: Desk, client: Client) -> None:
    token = token_of(desk, client)
    client.logout()
    assert asks_for_login(send(desk, client, token))
    assert not Label.objects.exists()
    client.post(
        reverse("accounts:login"), {"username": desk.people[0].username, "password": PASSWORD}
    )
    assert send(desk, client, token).status_code == 200
    assert Label.objects.count() == 1


def test_an_item_of_somebody_else_is_refused(desk: Desk, client: Client) -> None:
    token = token_of(desk, client)
    other = at_desk(desk, 1)
    assert send(desk, other, token).status_code == 403
    assert other.get(url(desk, "diff"), {"token": token}).status_code == 403
    assert (
        other.post(url(desk, "problem"), {"token": token, "problem_kind": "other"}).status_code
        == 403
    )
    assert other.post(url(desk, "undo"), {"last": token}).status_code == 403
    assert other.post(url(desk, "contest"), {"token": token, "text": "x"}).status_code == 403
    assert not Label.objects.exists()
    assert not Problem.objects.exists()


PAGES = ["label", "guidelines", "history", "submission"]
POSTS = ["undo", "skip", "heartbeat", "prefetch", "draft", "problem", "rest", "contest"]


@pytest.mark.parametrize("name", [*PAGES, "diff", "feedback"])
def test_outsiders_and_managers_get_no_page(
    desk: Desk, name: str, alice: User, vera: User, chen: User
) -> None:
    for user in (alice, vera):
        assert browser(user).get(url(desk, name)).status_code == 403
    known = browser(chen).get(url(desk, name))
    unknown = browser(chen).get(reverse(f"annotation:{name}", args=[9999]))
    assert known.status_code == unknown.status_code == 403
    assert str(known.context["error"]) == str(unknown.context["error"])


@pytest.mark.parametrize("name", POSTS)
def test_writes_need_post_and_a_seat(desk: Desk, name: str, alice: User) -> None:
    assert at_desk(desk).get(url(desk, name)).status_code == 405
    assert browser(alice).post(url(desk, name)).status_code == 403


def test_who_left_the_project_gets_no_page(desk: Desk, client: Client) -> None:
    set_member_state(actor=desk.manager, member=desk.member(desk.people[0]), state=MemberState.LEFT)
    assert client.get(url(desk)).status_code == 403


def test_how_much_is_left_is_told_roughly(desk: Desk, client: Client) -> None:
    assert "fewer than 10 left" in client.get(url(desk)).content.decode()
    big = make_desk(people=0, n_items=43, name="Big")
    from annotation.services.projects import add_members

    add_members(actor=big.manager, project=big.project, users=desk.people)
    working(big)
    big.people = desk.people
    page = at_desk(big).get(url(big)).content.decode()
    assert "about 40 left" in page


def test_a_break_is_suggested_after_a_long_run_with_another_pace(
    desk: Desk, client: Client, monkeypatch: Any
) -> None:
    from annotation.views import ballot

    monkeypatch.setattr(ballot, "suggests_rest", lambda request, seat: True)
    assert "break" in client.get(url(desk)).content.decode()
    monkeypatch.undo()
    assert client.post(url(desk, "rest")).status_code == 302
    assert client.session[ballot.REST]
    assert "break" not in client.get(url(desk)).content.decode()

"""Learning with feedback, the history, contesting, and what only she is told."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.test import Client
from django.utils import timezone

from annotation.models import Appeal, Label, Lease
from annotation.services import appeals, problems
from annotation.services.gold import make_gold
from annotation.services.projects import set_member_state
from tests.annotation.desks import HTMX, at_desk, at_gold, browser, send, send_next, token_of, url
from tests.annotation.factories import Desk, label_all, make_desk, submit, working
from webapp.core.errors import Forbidden, InvalidInput, Refused

pytestmark = pytest.mark.django_db


def learning_desk(size: int = 2, gold: int = 3) -> Desk:
    desk = make_desk(people=1, n_items=8, settings={"onboarding_size": size})
    for item in desk.items()[:gold]:
        make_gold(
            actor=desk.manager,
            item=item,
            verdicts={"quality": "first"},
            explanation="The first is right. 第一个对。",
            onboarding=True,
        )
    return desk


def shown(desk: Desk, token: str, verdict: str) -> str:
    lease = Lease.objects.get(token=token)
    return "left" if (verdict == "first") == lease.first_left else "right"


def test_feedback_follows_each_item_of_the_onboarding_set() -> None:
    desk = learning_desk()
    client = at_desk(desk)
    assert "Learning: 0 of 2" in client.get(url(desk)).content.decode()
    token = token_of(desk, client)
    side = shown(desk, token, "first")
    response = send(desk, client, token, quality=side, personalization="tie")
    assert response.context["feedback"].all_same
    assert "第一个对。" in response.content.decode()
    token = token_of(desk, client)
    side = shown(desk, token, "second")
    wrong = send(desk, client, token, quality=side, personalization="tie")
    row = wrong.context["feedback"].rows[0]
    assert not row.same
    assert row.given == ("A is better" if side == "left" else "B is better")
    assert row.right == ("B is better" if side == "left" else "A is better")
    token = token_of(desk, client)
    assert Lease.objects.get(token=token).item.state != "gold"
    assert "feedback" not in send(desk, client, token).context


def test_without_javascript_feedback_is_a_page_of_its_own() -> None:
    desk = learning_desk()
    client = at_desk(desk)
    response = send(desk, client, token_of(desk, client), htmx=False)
    assert response.status_code == 302
    page = client.get(response["Location"])
    assert page.context["feedback"].rows
    assert 'href="' + url(desk) in page.content.decode()


def test_exactly_the_onboarding_set_comes_before_real_work() -> None:
    desk = learning_desk(size=2, gold=3)
    client = at_desk(desk)
    met = []
    for _ in range(4):
        token = token_of(desk, client)
        client.post(url(desk, "prefetch"), {"token": token})
        met.append(Lease.objects.get(token=token).item.state)
        send(desk, client, token)
    assert met == ["gold", "gold", "open", "open"]


def test_hidden_gold_never_gives_feedback() -> None:
    desk = make_desk(people=1, n_items=6, settings={"gold_percent": 50, "gold_minimum": 99})
    working(desk)
    for item in desk.items()[:3]:
        make_gold(actor=desk.manager, item=item, verdicts={"quality": "first"}, explanation="HUSH")
    client = at_desk(desk)
    for _ in range(3):
        at_gold(desk)
        token = token_of(desk, client)
        response = send(desk, client, token)
        assert "HUSH" not in response.content.decode()
        assert client.get(url(desk, "feedback"), {"token": token}).status_code == 302
    assert Lease.objects.filter(item__state="gold").count() == 3


def test_who_works_gets_no_feedback_on_what_became_an_onboarding_item() -> None:
    desk = make_desk(people=1, n_items=2)
    working(desk)
    client = at_desk(desk)
    token = token_of(desk, client)
    send(desk, client, token)
    make_gold(
        actor=desk.manager, item=Lease.objects.get(token=token).item,
        verdicts={"quality": "first"}, onboarding=True,
    )  # fmt: skip
    assert client.get(url(desk, "feedback"), {"token": token}).status_code == 302
    response = send(desk, client, token, quality="tie", personalization="tie")
    assert "feedback" not in response.context


@pytest.fixture
def desk() -> Desk:
    made = make_desk(n_items=40)
    working(made)
    return made


@pytest.fixture
def client(desk: Desk) -> Client:
    return at_desk(desk)


def test_the_history_shows_what_she_chose_and_nothing_of_others(desk: Desk, client: Client) -> None:
    tokens = []
    for n in range(30):
        tokens.append(token_of(desk, client))
        send(desk, client, tokens[-1], quality="left" if n % 2 else "right", personalization="tie")
    send_next(desk, at_desk(desk, 1))
    page = client.get(url(desk, "history"))
    rows = page.context["rows"]
    assert [row.token for row in rows] == tokens[::-1][:25]
    assert [row.given[0].verdict for row in rows[:2]] == ["A is better", "B is better"]
    assert [row.undoable for row in rows] == [True] * 10 + [False] * 15
    second = client.get(url(desk, "history"), {"page": 2}).context["rows"]
    assert [row.token for row in second] == tokens[::-1][25:]


def test_the_history_takes_few_queries(
    desk: Desk, client: Client, django_assert_max_num_queries: object
) -> None:
    for _ in range(12):
        send_next(desk, client)
    for name in ("history", "guidelines"):
        with django_assert_max_num_queries(12):  # type: ignore[operator]
            client.get(url(desk, name))
    token = client.get(url(desk, "history")).context["rows"][0].token
    with django_assert_max_num_queries(12):  # type: ignore[operator]
        client.get(url(desk, "submission"), {"token": token})
    with django_assert_max_num_queries(12):  # type: ignore[operator]
        client.get("/annotation/work/")


def test_her_projects_are_listed_with_what_is_done(desk: Desk, client: Client) -> None:
    send_next(desk, client)
    page = client.get("/annotation/work/").content.decode()
    assert "Pairs" in page
    assert "1 pair done · about 30 left" in page
    set_member_state(actor=desk.manager, member=desk.member(desk.people[0]), state="paused")
    assert "paused for you" in client.get("/annotation/work/").content.decode()
    set_member_state(actor=desk.manager, member=desk.member(desk.people[0]), state="left")
    assert "Pairs" not in client.get("/annotation/work/").content.decode()


def test_a_submission_is_contested_once_and_its_answer_is_shown(desk: Desk, client: Client) -> None:
    token = token_of(desk, client)
    send(desk, client, token)
    sent = {"token": token, "text": "The second names the wrong flag. 第二个写错了。"}
    for _ in range(2):
        response = client.post(url(desk, "contest"), sent, follow=True)
        assert "第二个写错了。" in response.content.decode()
    assert Appeal.objects.count() == 1
    again = client.post(url(desk, "contest"), {"token": token, "text": "Another reason."})
    assert again.status_code == 409
    assert "Another reason" not in Appeal.objects.get().text
    assert "waiting for an answer" in client.get(url(desk, "history")).content.decode()
    Appeal.objects.update(state="upheld", answer="You are right.", answered_at=timezone.now())
    page = client.get(url(desk, "submission"), {"token": token}).content.decode()
    assert "upheld" in page
    assert "You are right." in page


def test_an_empty_contest_is_refused_beside_its_field(desk: Desk, client: Client) -> None:
    token = token_of(desk, client)
    send(desk, client, token)
    response = client.post(url(desk, "contest"), {"token": token, "text": "  "})
    assert response.status_code == 422
    assert 'aria-invalid="true"' in response.content.decode()


def test_an_answered_appeal_reads_the_same_for_gold_and_ordinary_items() -> None:
    pages = []
    for gold in (False, True):
        desk = make_desk(people=0, n_items=1, name=f"P{int(gold)}")
        from annotation.services.projects import add_members
        from tests.conftest import make_user

        user = make_user(f"u{int(gold)}", "annotator")
        add_members(actor=desk.manager, project=desk.project, users=[user])
        desk.people = [user]
        working(desk)
        client = at_desk(desk)
        token = token_of(desk, client)
        send(desk, client, token)
        if gold:
            make_gold(actor=desk.manager, item=desk.items()[0], verdicts={"quality": "second"})
        appeals.raise_appeal(user=user, token=token, text="Please look again.")
        Appeal.objects.filter(lease__token=token).update(state="rejected", answer="It stays.")
        page = client.get(url(desk, "submission"), {"token": token}).content.decode()
        start = page.index('<section class="card">')
        pages.append(page[start : page.index("</section>", start)])
    assert pages[0] == pages[1]


def test_only_what_is_submitted_and_ones_own_can_be_contested(desk: Desk, client: Client) -> None:
    token = token_of(desk, client)
    with pytest.raises(Refused):
        appeals.raise_appeal(user=desk.people[0], token=token, text="x")
    send(desk, client, token)
    with pytest.raises(Forbidden):
        appeals.raise_appeal(user=desk.people[1], token=token, text="x")
    with pytest.raises(InvalidInput):
        appeals.raise_appeal(user=desk.people[0], token=token, text="字" * 2001)
    assert appeals.raise_appeal(user=desk.people[0], token=token, text="字" * 2000).text


def test_a_problem_is_reported_once_and_may_be_corrected_until_it_is_answered(
    desk: Desk, client: Client
) -> None:
    token = token_of(desk, client)
    user = desk.people[0]
    one = problems.report_problem(user=user, token=token, kind="broken")
    two = problems.report_problem(user=user, token=token, kind="unsafe", note="names a person")
    assert one.pk == two.pk
    assert two.kind == "unsafe"
    two.resolved_at = timezone.now()
    two.save()
    three = problems.report_problem(user=user, token=token, kind="other")
    assert three.kind == "unsafe"
    with pytest.raises(Forbidden):
        problems.report_problem(user=desk.people[1], token=token, kind="broken")
    with pytest.raises(InvalidInput):
        problems.report_problem(user=user, token=token, kind="dull")


def test_an_item_taken_back_leaves_the_history_until_it_is_sent_again(
    desk: Desk, client: Client
) -> None:
    token = token_of(desk, client)
    send(desk, client, token)
    client.post(url(desk, "undo"), {"last": token}, headers=HTMX)
    assert client.get(url(desk, "history")).context["rows"] == []
    gone = client.get(url(desk, "submission"), {"token": token})
    assert gone.status_code == 302
    send(desk, client, token)
    assert client.get(url(desk, "history")).context["rows"][0].revisions == 3


def test_nobody_reads_the_submissions_of_others(desk: Desk, client: Client) -> None:
    token = token_of(desk, client)
    send(desk, client, token)
    other = at_desk(desk, 1)
    response = other.get(url(desk, "submission"), {"token": token})
    assert response.status_code == 302
    assert other.get(url(desk, "history")).context["rows"] == []


def test_consistency_and_pace_are_told_once_there_is_enough() -> None:
    desk = make_desk(people=1, n_items=90, settings={"repeat_percent": 20})
    working(desk)
    client = at_desk(desk)
    send_next(desk, client)
    signals = client.get(url(desk, "history")).context["signals"]
    assert (signals.pace, signals.consistency, signals.left) == (None, None, None)
    label_all(desk)
    repeats = Lease.objects.filter(repeat=1, state="submitted").count()
    assert repeats >= 10
    signals = client.get(url(desk, "history")).context["signals"]
    # The pair that was sent by side, not by content, may be among those that came again.
    assert signals.consistency.n == repeats
    assert signals.consistency.k in (repeats - 1, repeats)
    assert signals.left.n >= 90
    assert signals.pace.change == ""
    page = client.get(url(desk, "history")).content.decode()
    assert "came out the same" in page
    assert "in the long run" in page


def test_a_break_is_suggested_after_ninety_minutes_of_changed_pace() -> None:
    desk = make_desk(people=1, n_items=40)
    working(desk)
    user, client = desk.people[0], at_desk(desk)
    from annotation.services import leases

    for n in range(32):
        lease = leases.serve(user=user, project=desk.project).lease
        assert lease is not None
        submit(user, lease, "first", active_ms=60_000 if n >= 22 else 20_000)
    assert not client.get(url(desk)).context["rest"]
    now = timezone.now()
    for n, pk in enumerate(Lease.objects.order_by("-pk").values_list("pk", flat=True)[1:]):
        Lease.objects.filter(pk=pk).update(submitted_at=now - timedelta(minutes=2 * n))
    assert not client.get(url(desk)).context["rest"]
    for n, pk in enumerate(Lease.objects.order_by("-pk").values_list("pk", flat=True)[1:]):
        Lease.objects.filter(pk=pk).update(submitted_at=now - timedelta(minutes=4 * n))
    assert client.get(url(desk)).context["rest"]
    client.post(url(desk, "rest"))
    assert not client.get(url(desk)).context["rest"]
    assert Label.objects.count() == 32
    assert browser(user).get(url(desk)).context["rest"]

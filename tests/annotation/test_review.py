"""Pages of adjudicators, appeals and reported problems: works, wrong role, outsider, sent twice."""

from __future__ import annotations

import re
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse

from annotation.enums import AppealState, ItemFlag, ItemState
from annotation.models import Adjudication, Appeal, GoldItem, Item, Lease, Problem
from annotation.services import adjudication, labels, leases, review_appeals, review_problems
from annotation.services.gold import make_gold, retire_gold
from annotation.services.items import drop_items, hold_items, release_items
from annotation.services.projects import set_member_state
from tests.annotation.factories import Desk, label_all, label_once, make_desk, working
from tests.annotation.review import adjudicator, appeal, decide, disputed_desk, report
from webapp.accounts.models import User
from webapp.core.errors import Forbidden, InvalidInput, Refused
from webapp.core.models import Event

pytestmark = pytest.mark.django_db


@pytest.fixture
def admin(client: Client, alice: User) -> Client:
    client.force_login(alice)
    return client


def url(desk: Desk, name: str, *more: Any) -> str:
    return reverse(f"annotation:{name}", args=[desk.project.pk, *more])


def html(answer: Any) -> str:
    return str(answer.content.decode())


def token_of(page: str) -> str:
    found = re.search(r'name="token" value="([^"]+)"', page)
    assert found
    return found[1]


# Adjudication


def test_an_item_decided_by_hand_without_script(client: Client) -> None:
    desk = disputed_desk(n_items=1)
    judith = adjudicator(desk)
    names = [desk.member(user).pseudonym for user in desk.people]
    client.force_login(judith)
    queue = html(client.get(url(desk, "disputes")))
    assert not any(name in queue for name in names)
    page = html(client.post(url(desk, "claim"), follow=True))
    assert "Decide blind" in page
    assert not any(name in page for name in names)
    for secret in ("Harbor", "Quarry", "pairs.jsonl"):
        assert secret not in page
    token = token_of(page)
    missing = client.post(url(desk, "blind"), {"token": token, "quality": "left"})
    assert missing.status_code == 422
    assert "Choose one of them." in html(missing)
    sent = {"token": token, "quality": "left", "personalization": "tie"}
    page = html(client.post(url(desk, "blind"), sent, follow=True))
    assert all(name in page for name in names)
    assert "Harbor" not in page
    final: dict[str, Any] = {**sent, "token": token_of(page), "note": "看第二行。"}
    missing = client.post(url(desk, "decide"), final)
    assert missing.status_code == 422
    assert "Say why the labels differ." in html(missing)
    assert "看第二行。" in html(missing)
    final |= {"reason": "subjective", "unresolved": ["personalization"]}
    for _ in range(2):
        assert client.post(url(desk, "decide"), final).status_code == 302
    item = desk.items()[0]
    assert item.quality_decision is not None
    assert item.personalization_decision is not None
    assert item.quality_decision.source == "adjudicated"
    assert item.personalization_decision.source == "unresolved"
    assert item.personalization_decision.note == "看第二行。"
    assert client.get(url(desk, "adjudicate"), {"token": token}).status_code == 302


def test_what_an_adjudicator_sees_has_the_sides_of_the_labels(client: Client) -> None:
    """Canonical verdicts are told as they look from where the adjudicator stands."""
    desk = disputed_desk(n_items=16)  # drawn: of four, all fell alike once in eight
    judith = adjudicator(desk)
    client.force_login(judith)
    sides = set()
    for item in desk.items():
        row = adjudication.claim_item(user=judith, item=item)
        sides.add(row.first_left)
        page = html(client.get(url(desk, "adjudicate"), {"token": row.token}))
        body = row.item.body
        left, right = (body.first, body.second) if row.first_left else (body.second, body.first)
        assert page.index(left[:20]) < page.index(right[:20])
        verdicts = {"quality": "tie", "personalization": "tie"}
        adjudication.decide_blind(user=judith, token=row.token, verdicts=verdicts)
        page = html(client.get(url(desk, "adjudicate"), {"token": row.token}))
        said_first = Lease.objects.get(item=item, head__quality="first").member.pseudonym
        line = page[page.index(said_first) :]
        assert line.index("A is better" if row.first_left else "B is better") < 200
        adjudication.give_back(user=judith, token=row.token)
    assert sides == {True, False}


def test_one_adjudicator_never_sees_anothers_item(client: Client, alice: User) -> None:
    desk = disputed_desk(n_items=1)
    row = adjudication.claim_item(user=adjudicator(desk), item=desk.items()[0])
    client.force_login(alice)
    assert client.get(url(desk, "adjudicate"), {"token": row.token}).status_code == 403
    assert client.post(url(desk, "decide"), {"token": row.token}).status_code == 403
    answer = client.post(url(desk, "claim"), {"item": row.item_id}, follow=True)
    assert "Somebody else is deciding this item." in html(answer)
    assert "Nothing is left for you" in html(client.post(url(desk, "claim"), follow=True))


def test_only_adjudicators_come_in(client: Client, chen: User, vera: User) -> None:
    desk = disputed_desk(n_items=1)
    for user in (chen, vera, desk.people[0]):
        client.force_login(user)
        for name in ("disputes", "adjudicate", "adjudicate_difference"):
            assert client.get(url(desk, name)).status_code == 403
        for name in ("claim", "blind", "decide", "give_back"):
            assert client.post(url(desk, name)).status_code == 403
    assert not Adjudication.objects.exists()


def test_giving_back_frees_the_item(client: Client) -> None:
    desk = disputed_desk(n_items=1)
    judith, ruth = adjudicator(desk), adjudicator(desk, "ruth")
    client.force_login(judith)
    token = token_of(html(client.post(url(desk, "claim"), follow=True)))
    for _ in range(2):
        assert client.post(url(desk, "give_back"), {"token": token}).status_code == 302
    assert adjudication.claim_next(user=ruth, project=desk.project) is not None
    answer = client.post(
        url(desk, "blind"),
        {"token": token, "quality": "tie", "personalization": "tie"},
        follow=True,
    )
    assert "Somebody else is deciding this item." in html(answer)


def test_the_word_difference_is_a_page(client: Client) -> None:
    desk = disputed_desk(n_items=1)
    judith = adjudicator(desk)
    row = adjudication.claim_item(user=judith, item=desk.items()[0])
    client.force_login(judith)
    page = html(client.get(url(desk, "adjudicate_difference"), {"token": row.token}))
    assert "<mark>" in page


def test_deciding_needs_few_statements(client: Client, django_assert_max_num_queries: Any) -> None:
    desk = disputed_desk(n_items=8)
    judith = adjudicator(desk)
    client.force_login(judith)
    row = adjudication.claim_item(user=judith, item=desk.items()[0])
    adjudication.decide_blind(
        user=judith, token=row.token, verdicts={"quality": "tie", "personalization": "tie"}
    )
    for address in (url(desk, "disputes"), f"{url(desk, 'adjudicate')}?token={row.token}"):
        with django_assert_max_num_queries(12):
            assert client.get(address).status_code == 200


# Appeals


def gold_appeal() -> tuple[Desk, Appeal]:
    """An annotator whom the gate paused contests a gold item."""
    desk = make_desk(
        people=1, n_items=40, settings={"gold_percent": 50, "gold_minimum": 2, "gold_floor": 45}
    )
    working(desk)
    for item in desk.items()[:6]:
        make_gold(actor=desk.manager, item=item, verdicts={"quality": "second"})
    user = desk.people[0]
    while desk.member(user).state == "working":
        assert label_once(desk, user) is not None
    met = Lease.objects.filter(item__state=ItemState.GOLD, head__isnull=False).order_by("pk")
    return desk, appeal(met[0])


def ordinary_appeal() -> tuple[Desk, Appeal]:
    desk = make_desk(people=2, n_items=1)
    label_all(desk)
    return desk, appeal(Lease.objects.get(head__isnull=False))


@pytest.mark.parametrize("make", [gold_appeal, ordinary_appeal])
def test_what_she_learns_is_the_same_for_gold_and_ordinary_items(make: Any) -> None:
    desk, row = make()
    label = row.lease.head
    answered = review_appeals.uphold_appeal(
        actor=desk.manager, appeal=row, answer=" You are right. ", verdicts={"quality": "first"}
    )
    assert (answered.state, answered.answer) == (AppealState.UPHELD, "You are right.")
    lease = Lease.objects.get(pk=row.lease_id)
    assert (lease.head, lease.state) == (label, "submitted")
    assert lease.labels.count() == 1


def test_an_upheld_gold_appeal_corrects_and_scores_everybody_again(
    admin: Client, alice: User
) -> None:
    desk, row = gold_appeal()
    assert desk.member(desk.people[0]).gold_right == 0
    address = url(desk, "appeal", row.pk)
    page = html(admin.get(address))
    assert "Known answer (gold)" in page
    sent = {"answer": "You are right.", "quality": "first", "personalization": "", "uphold": "1"}
    for _ in range(2):
        assert admin.post(address, sent).status_code == 302
    member = desk.member(desk.people[0])
    assert (member.gold_right, member.state) == (1, "paused")
    newest = GoldItem.objects.filter(item=row.lease.item).order_by("-n")[0]
    assert (newest.n, newest.quality, newest.created_by) == (2, "first", alice)
    assert Event.objects.filter(action="answer_appeal").count() == 1


def test_who_would_pass_the_gate_now_is_proposed(admin: Client) -> None:
    desk, row = gold_appeal()
    for lease in Lease.objects.filter(item__state=ItemState.GOLD, head__isnull=False):
        if lease.item_id != row.lease.item_id:
            make_gold(actor=desk.manager, item=lease.item, verdicts={"quality": "first"})
    sent = {"answer": "Right.", "retire": "on", "uphold": "1"}
    page = html(admin.post(url(desk, "appeal", row.pk), sent, follow=True))
    assert "would not be paused" in page
    assert desk.member(desk.people[0]).pseudonym in page
    assert "would not be paused now" in html(admin.get(url(desk, "members")))


def test_an_upheld_ordinary_appeal_goes_to_an_adjudicator_whatever_the_labels_say() -> None:
    desk, row = ordinary_appeal()
    for _ in range(2):
        review_appeals.uphold_appeal(actor=desk.manager, appeal=row, answer="You are right.")
    item = desk.items()[0]
    assert (item.state, item.flags) == (ItemState.DISPUTED, [ItemFlag.CONTESTED])
    author = row.lease.member.user
    assert labels.undo_label(user=author, token=row.lease.token) is not None
    assert desk.items()[0].state == ItemState.DISPUTED
    item = decide(adjudicator(desk), item, "tie")
    assert (item.state, item.flags) == (ItemState.DONE, [])
    assert item.quality_decision is not None
    assert item.personalization_decision is not None
    assert item.quality_decision.verdict == item.personalization_decision.verdict == "tie"
    assert Event.objects.filter(action="contest_item").count() == 1


def test_an_adjudicated_item_can_be_decided_anew_after_an_appeal() -> None:
    desk = disputed_desk(n_items=1)
    item = decide(adjudicator(desk), desk.items()[0], "first")
    row = appeal(Lease.objects.filter(item=item)[0])
    review_appeals.uphold_appeal(actor=desk.manager, appeal=row, answer="Looked at again.")
    item = decide(adjudicator(desk, "ruth"), item, "second")
    assert item.quality_decision is not None
    assert item.quality_decision.verdict == "second"
    assert item.decisions.filter(axis="quality", source="adjudicated").count() == 2


def test_an_appeal_is_answered_once_with_words(admin: Client) -> None:
    desk, row = ordinary_appeal()
    address = url(desk, "appeal", row.pk)
    empty = admin.post(address, {"answer": " ", "reject": "1"})
    assert empty.status_code == 422
    for _ in range(2):
        admin.post(address, {"answer": "The guidelines say so in point 3.", "reject": "1"})
    row.refresh_from_db()
    assert (row.state, row.answer) == (AppealState.REJECTED, "The guidelines say so in point 3.")
    late = admin.post(address, {"answer": "Yes.", "uphold": "1"}, follow=True)
    assert "answered meanwhile" in html(late)
    assert desk.items()[0].state == ItemState.DONE
    assert "point 3" in html(admin.get(address))
    assert row.text[:20] in html(admin.get(url(desk, "appeals"), {"answered": "1"}))


def test_a_gold_appeal_cannot_be_upheld_without_saying_what_is_right() -> None:
    desk, row = gold_appeal()
    with pytest.raises(InvalidInput):
        review_appeals.uphold_appeal(actor=desk.manager, appeal=row, answer="Right.")
    row.refresh_from_db()
    assert row.state == AppealState.OPEN
    review_appeals.uphold_appeal(actor=desk.manager, appeal=row, answer="Right.", retire=True)
    assert desk.member(desk.people[0]).gold_seen == 1


# Reported problems


@pytest.mark.parametrize(
    ("to", "state", "flags"),
    [
        ("keep", ItemState.OPEN, []),
        ("hold", ItemState.HELD, ["reported"]),
        ("drop", ItemState.DROPPED, ["reported"]),
        ("adjudicate", ItemState.DISPUTED, ["contested"]),
    ],
)
def test_reports_are_resolved_for_the_item_at_once(
    admin: Client, to: str, state: str, flags: list[str]
) -> None:
    desk = make_desk(people=2, n_items=1)
    item = desk.items()[0]
    for user in desk.people:
        report(desk, item, user)
    assert "cut off" in html(admin.get(url(desk, "problems")))
    for _ in range(2):
        admin.post(url(desk, "resolve", item.pk), {"to": to, "note": "看过了"})
    item.refresh_from_db()
    assert (item.state, item.flags) == (state, flags)
    rows = list(Problem.objects.all())
    assert [row.resolution for row in rows] == [f"{to}: 看过了"] * 2
    assert Event.objects.filter(action="resolve_problems").count() == 1
    assert "看过了" in html(admin.get(url(desk, "problems"), {"resolved": "1"}))


def test_what_was_held_for_a_report_is_given_out_again() -> None:
    desk = make_desk(people=1, n_items=2)
    one, two = desk.items()
    hold_items(actor=desk.manager, project=desk.project, items=[one.pk, two.pk], flag="reported")
    Item.objects.filter(pk=two.pk).update(flags=["near_identical", "reported"])
    for item in (one, two):
        report(desk, item, desk.people[0])
        review_problems.resolve_problems(actor=desk.manager, item=item, to="keep")
    one.refresh_from_db()
    two.refresh_from_db()
    assert (one.state, one.flags) == (ItemState.OPEN, [])
    assert (two.state, two.flags) == (ItemState.HELD, ["near_identical"])


def test_a_gold_item_is_not_held() -> None:
    desk = make_desk(people=1, n_items=1)
    item = desk.items()[0]
    make_gold(actor=desk.manager, item=item, verdicts={"quality": "tie"})
    report(desk, item, desk.people[0])
    for to in ("hold", "adjudicate"):
        with pytest.raises(Refused):
            review_problems.resolve_problems(actor=desk.manager, item=item, to=to)
    with pytest.raises(InvalidInput):
        review_problems.resolve_problems(actor=desk.manager, item=item, to="burn")
    assert Problem.objects.get().resolved_at is None


def test_only_administrators_review() -> None:
    desk, row = ordinary_appeal()
    judith = adjudicator(desk)
    for refused in (
        lambda: review_appeals.uphold_appeal(actor=judith, appeal=row, answer="x"),
        lambda: review_appeals.reject_appeal(actor=judith, appeal=row, answer="x"),
        lambda: review_problems.resolve_problems(actor=judith, item=row.lease.item, to="keep"),
        lambda: adjudication.contest_item(actor=judith, item=row.lease.item, reason="x"),
    ):
        with pytest.raises(Forbidden):
            refused()


def test_doors_of_the_inbox(client: Client, alice: User) -> None:
    desk, row = ordinary_appeal()
    judith = adjudicator(desk)
    resolve = url(desk, "resolve", row.lease.item_id)
    client.force_login(judith)
    for name in ("appeals", "problems"):
        assert client.get(url(desk, name)).status_code == 403
    assert client.get(url(desk, "appeal", row.pk)).status_code == 403
    assert client.post(resolve).status_code == 403
    client.force_login(alice)
    assert client.get(url(desk, "appeal", 999)).status_code == 404
    assert client.get(resolve).status_code == 405
    assert client.post(url(desk, "resolve", 999)).status_code == 404


def test_the_inbox_needs_few_statements(admin: Client, django_assert_max_num_queries: Any) -> None:
    desk = make_desk(people=4, n_items=6, settings={"base_overlap": 2, "max_overlap": 2})
    label_all(desk)
    for lease in Lease.objects.filter(head__isnull=False):
        row = appeal(lease)
        report(desk, lease.item, lease.member.user) if lease.member.user else None
    for name, args in (("appeals", []), ("problems", []), ("appeal", [row.pk])):
        with django_assert_max_num_queries(12):
            assert admin.get(url(desk, name, *args)).status_code == 200


def test_who_labels_and_decides_meets_nothing_of_her_own_items_in_the_queue(client: Client) -> None:
    """How far the labels of an item agree would tell her what others said of it (V8)."""
    desk = disputed_desk(n_items=2)
    desk.project.members.filter(user=desk.people[0]).update(adjudicates=True)
    client.force_login(desk.people[0])
    assert client.get(url(desk, "disputes")).context["queue"] == []
    client.force_login(desk.manager)
    assert len(client.get(url(desk, "disputes")).context["queue"]) == 2


def test_an_upheld_appeal_outlives_holding_and_releasing_the_item() -> None:
    desk, row = ordinary_appeal()
    review_appeals.uphold_appeal(actor=desk.manager, appeal=row, answer="You are right.")
    pk = desk.items()[0].pk
    hold_items(actor=desk.manager, project=desk.project, items=[pk], flag=ItemFlag.REPORTED)
    report(desk, desk.items()[0], desk.people[0])
    review_problems.resolve_problems(actor=desk.manager, item=desk.items()[0], to="keep")
    item = desk.items()[0]
    assert (item.state, item.flags) == (ItemState.DISPUTED, [ItemFlag.CONTESTED])
    assert decide(adjudicator(desk), item, "tie").flags == []


def test_an_upheld_appeal_on_a_dropped_item_waits_until_it_is_released() -> None:
    desk, row = ordinary_appeal()
    pk = desk.items()[0].pk
    drop_items(actor=desk.manager, project=desk.project, items=[pk])
    review_appeals.uphold_appeal(actor=desk.manager, appeal=row, answer="You are right.")
    assert desk.items()[0].state == ItemState.DROPPED
    release_items(actor=desk.manager, project=desk.project, items=[pk])
    item = desk.items()[0]
    assert (item.state, item.flags) == (ItemState.DISPUTED, [ItemFlag.CONTESTED])


def test_an_upheld_appeal_on_dropped_gold_retires_it() -> None:
    desk, row = gold_appeal()
    seen = desk.member(desk.people[0]).gold_seen
    pk = row.lease.item_id
    drop_items(actor=desk.manager, project=desk.project, items=[pk])
    review_appeals.uphold_appeal(actor=desk.manager, appeal=row, answer="You are right.")
    release_items(actor=desk.manager, project=desk.project, items=[pk])
    assert not GoldItem.objects.filter(item=pk).order_by("-n")[0].active
    assert desk.member(desk.people[0]).gold_seen == seen - 1


@pytest.mark.parametrize("out", ["drop", "retire"])
def test_the_page_of_an_appeal_asks_for_no_verdict_on_gold_that_is_out_of_use(
    admin: Client, out: str
) -> None:
    desk, row = gold_appeal()
    item = row.lease.item
    if out == "drop":
        drop_items(actor=desk.manager, project=desk.project, items=[item.pk])
    else:
        retire_gold(actor=desk.manager, item=item, reason="doubtful")
    address = url(desk, "appeal", row.pk)
    page = html(admin.get(address))
    assert "out of use" in page
    assert 'name="quality"' not in page
    sent = {"answer": "Right.", "quality": "second", "uphold": "1"}
    assert admin.post(address, sent).status_code == 302
    assert not GoldItem.objects.filter(item=item).order_by("-n")[0].active


def test_who_has_an_item_in_hand_that_was_dropped_goes_on_with_the_next(client: Client) -> None:
    desk = disputed_desk(n_items=2)
    judith = adjudicator(desk)
    gone, left = desk.items()
    adjudication.claim_item(user=judith, item=gone)
    drop_items(actor=desk.manager, project=desk.project, items=[gone.pk])
    found = adjudication.claim_next(user=judith, project=desk.project)
    assert found is not None
    assert found.item == left


@pytest.mark.parametrize("what", ["note", "answer", "resolution", "reason", "retired"])
def test_what_postgresql_cannot_keep_is_refused_with_its_field(what: str) -> None:
    """T14, of what people write."""
    nul: dict[str, Any] = {"note": "a\x00b"}
    desk = disputed_desk(n_items=1)
    item = desk.items()[0]
    row = appeal(Lease.objects.filter(head__isnull=False)[0])
    member = desk.member(desk.people[0])
    by: dict[str, Any] = {"actor": desk.manager}
    doing: dict[str, Any] = {
        "note": lambda: decide(adjudicator(desk), item, **nul),
        "answer": lambda: review_appeals.reject_appeal(**by, appeal=row, answer=nul["note"]),
        "resolution": lambda: review_problems.resolve_problems(**by, item=item, to="keep", **nul),
        "reason": lambda: set_member_state(**by, member=member, state="paused", reason="\x00"),
        "retired": lambda: retire_gold(**by, item=item, reason="\x00"),
    }
    with pytest.raises(InvalidInput) as refused:
        doing[what]()
    assert refused.value.field in ("note", "answer", "reason")


def test_a_draft_is_kept_without_what_postgresql_cannot_keep() -> None:
    desk = make_desk(people=1, n_items=1)
    user = desk.people[0]
    lease = leases.serve(user=user, project=desk.project).lease
    assert lease is not None
    labels.save_draft(user=user, token=lease.token, draft={"comment": "a\x00b", "tags": ["\x00"]})
    lease.refresh_from_db()
    assert (lease.draft["comment"], lease.draft["tags"]) == ("ab", [""])

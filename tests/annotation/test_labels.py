"""Submitting and taking back: once, whatever is sent twice; settled by what the labels say."""

from __future__ import annotations

import pytest
from django.db import IntegrityError, transaction

from annotation.enums import ItemState, LeaseState, MemberState, ProjectState
from annotation.models import Label, Lease
from annotation.services import labels, leases
from annotation.services.gold import make_gold, retire_gold
from annotation.services.projects import move_project, set_member_state
from tests.annotation.factories import (
    Desk,
    first_is_better,
    label_all,
    label_once,
    make_desk,
    submit,
    working,
)
from webapp.core.errors import Forbidden, InvalidInput, Refused

pytestmark = pytest.mark.django_db
THREE = {"base_overlap": 2, "max_overlap": 3}


def lease_of(desk: Desk, n: int = 0) -> Lease:
    lease = leases.serve(user=desk.people[n], project=desk.project).lease
    assert lease is not None
    return lease


def test_the_same_answer_twice_is_one_label() -> None:
    desk = make_desk()
    lease = lease_of(desk)
    one = submit(desk.people[0], lease, "first")
    two = submit(desk.people[0], lease, "first")
    assert (one.again, two.again) == (False, True)
    assert one.label == two.label
    assert desk.project.items.get(pk=lease.item_id).done == 1


def test_another_answer_is_a_revision_and_the_last_one_holds() -> None:
    desk = make_desk()
    lease = lease_of(desk)
    submit(desk.people[0], lease, "first")
    changed = submit(desk.people[0], lease, "tie")
    assert changed.label.revision == 2
    item = desk.project.items.get(pk=lease.item_id)
    assert item.done == 1
    assert item.quality_decision is not None
    assert item.quality_decision.verdict == "tie"


def test_verdicts_are_stored_canonically_with_the_side_shown() -> None:
    desk = make_desk(n_items=6)
    while label_once(desk, desk.people[0]) is not None:
        pass
    rows = Label.objects.all()
    assert {row.quality for row in rows} == {"first"}
    assert all(row.first_left == row.lease.first_left for row in rows)


@pytest.mark.parametrize(
    ("settings", "answer", "field"),
    [
        ({}, {"verdicts": {"quality": "left"}}, "personalization"),
        ({"allow_tie": False}, {"verdicts": {"quality": "tie"}}, "quality"),
        ({"axes": ["quality"]}, {"verdicts": {"quality": "best"}}, "quality"),
        (
            {"axes": ["quality"], "ask_strength": True},
            {"verdicts": {"quality": "left"}},
            "quality_strength",
        ),
        ({"axes": ["quality"]}, {"verdicts": {"quality": "left"}, "tags": ["odd"]}, "tags"),
        ({"axes": ["quality"]}, {"verdicts": {"quality": "tie"}, "comment": "\x00"}, "comment"),
    ],
)
def test_what_is_missing_is_named(settings: dict, answer: dict, field: str) -> None:  # type: ignore[type-arg]
    desk = make_desk(settings=settings)
    lease = lease_of(desk)
    with pytest.raises(InvalidInput) as caught:
        labels.submit_label(user=desk.people[0], token=lease.token, answer=labels.Answer(**answer))
    assert caught.value.field == field
    assert not Label.objects.exists()


def test_nobody_labels_somebody_elses_item() -> None:
    desk = make_desk()
    lease = lease_of(desk)
    with pytest.raises(Forbidden):
        submit(desk.people[1], lease, "first")


def test_undo_gives_the_place_back_and_the_item_again() -> None:
    desk = make_desk(people=1, n_items=2)
    lease = lease_of(desk)
    submit(desk.people[0], lease, "first")
    label_once(desk, desk.people[0])
    for _ in range(2):
        undone = labels.undo_label(user=desk.people[0], token=lease.token)
        assert undone is not None
    item = desk.project.items.get(pk=lease.item_id)
    assert (item.state, item.live, item.done, item.quality_decision) == ("open", 1, 0, None)
    assert lease_of(desk) == lease
    again = submit(desk.people[0], lease, "second")
    assert [row.quality for row in lease.labels.order_by("revision")] == ["first", "", "second"]
    assert again.label.revision == 3


def test_only_the_last_submissions_can_be_taken_back() -> None:
    desk = make_desk(people=1, n_items=labels.UNDO_DEPTH + 1)
    first = lease_of(desk)
    submit(desk.people[0], first, "first")
    label_all(desk)
    assert labels.undo_label(user=desk.people[0], token=first.token) is None
    first.refresh_from_db()
    assert first.state == LeaseState.SUBMITTED


def test_what_was_submitted_stays_once_the_project_is_closed_or_she_has_left() -> None:
    desk = make_desk(people=2, n_items=3)
    one, other = desk.people
    sent, held = lease_of(desk), leases.serve(user=other, project=desk.project).lease
    submit(one, sent, "first")
    set_member_state(actor=desk.manager, member=desk.member(one), state=MemberState.LEFT)
    assert submit(one, sent, "first").again
    with pytest.raises(Forbidden):
        submit(one, sent, "second")
    assert held is not None
    move_project(actor=desk.manager, project=desk.project, to=ProjectState.CLOSED)
    assert submit(other, held, "first").label.revision == 1  # unsent work is kept
    with pytest.raises(Refused):
        submit(other, held, "second")
    assert set(Label.objects.values_list("quality", "revision")) == {("first", 1)}


def test_who_does_not_work_here_any_more_holds_nothing() -> None:
    desk = make_desk(people=1, n_items=1)
    user, lease = desk.people[0], lease_of(desk)
    assert leases.heartbeat(user=user, token=lease.token) > 0
    set_member_state(actor=desk.manager, member=desk.member(user), state=MemberState.LEFT)
    with pytest.raises(Refused):
        leases.heartbeat(user=user, token=lease.token)


def test_agreement_settles_and_disagreement_asks_for_one_more() -> None:
    desk = make_desk(people=3, n_items=2, settings=THREE)
    odd = desk.items()[0]

    def choose(lease: Lease) -> str:
        return "second" if lease.item_id == odd.pk and lease.item.done == 1 else "first"

    label_all(desk, choose)
    disputed, agreed = desk.items()
    assert (disputed.target, disputed.done, disputed.state) == (3, 3, ItemState.DONE)
    assert disputed.quality_decision is not None
    assert disputed.quality_decision.source == "majority"
    assert (agreed.target, agreed.done) == (2, 2)
    assert agreed.quality_decision is not None
    assert agreed.quality_decision.source == "unanimous"
    assert agreed.quality_decision.posterior["first"] > 0.95


def test_no_majority_at_the_maximum_is_a_dispute() -> None:
    desk = make_desk(people=3, n_items=1, settings=THREE)
    verdict = dict(zip([user.pk for user in desk.people], ("first", "second", "tie"), strict=True))
    label_all(desk, lambda lease: verdict[lease.member.user_id or 0])
    item = desk.items()[0]
    assert (item.state, item.done) == (ItemState.DISPUTED, 3)
    assert item.quality_decision is not None
    assert (item.quality_decision.verdict, item.quality_decision.source) == ("", "unresolved")


def test_the_gold_account_pauses_who_cannot_be_trusted_and_a_correction_rescores() -> None:
    desk = make_desk(
        people=1, n_items=40, settings={"gold_percent": 50, "gold_minimum": 3, "gold_floor": 55}
    )
    working(desk)
    gold = desk.items()[:6]
    for item in gold:
        make_gold(actor=desk.manager, item=item, verdicts={"quality": "second"})
    user = desk.people[0]
    for _ in range(40):
        if desk.member(user).state == "paused":
            break
        label_once(desk, user)
    member = desk.member(user)
    assert (member.state, member.gold_right) == ("paused", 0)
    assert member.gold_seen == 3
    met = [lease.item for lease in Lease.objects.filter(item__in=gold)]
    make_gold(actor=desk.manager, item=met[0], verdicts={"quality": "first"}, reason="appeal")
    assert desk.member(user).gold_right == 1
    retire_gold(actor=desk.manager, item=met[1], reason="unclear")
    assert desk.member(user).gold_seen == 2


def test_labels_and_decisions_are_append_only() -> None:
    desk = make_desk()
    label_once(desk, desk.people[0], first_is_better)
    label = Label.objects.get()
    for change in (
        lambda: Label.objects.filter(pk=label.pk).update(quality="second"),
        lambda: label.item.decisions.all().update(verdict="second"),
        lambda: Label.objects.filter(pk=label.pk).delete(),
    ):
        with pytest.raises(IntegrityError), transaction.atomic():
            change()

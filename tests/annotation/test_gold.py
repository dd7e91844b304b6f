"""Gold: made, corrected, retired; no account by construction; nothing that gives it away."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from annotation.enums import ItemState
from annotation.models import GoldItem, Lease, Member
from annotation.selectors.gold import gold_proposals, gold_rows
from annotation.selectors.label_table import read_labels
from annotation.services import gold as gold_services
from annotation.services import items, leases
from annotation.services.gold import make_gold, make_gold_from_decisions, retire_gold
from tests.annotation.factories import Desk, label_all, label_once, make_desk, submit, working
from tests.annotation.review import appeal
from tests.conftest import asks_for_login
from webapp.accounts.enums import Role
from webapp.accounts.models import User
from webapp.core.errors import Forbidden, InvalidInput, Refused
from webapp.core.models import Event

pytestmark = pytest.mark.django_db
ALL_GOLD = {"gold_percent": 50, "gold_floor": 0}


@pytest.fixture
def admin(client: Client, alice: User) -> Client:
    client.force_login(alice)
    return client


def url(desk: Desk, name: str, *more: Any) -> str:
    return reverse(f"annotation:{name}", args=[desk.project.pk, *more])


def gold_desk(n_gold: int = 3, people: int = 1, n_items: int = 40) -> Desk:
    """Hidden gold items whose answer is the second."""
    desk = make_desk(people=people, n_items=n_items, settings=ALL_GOLD)
    working(desk)
    for item in desk.items()[:n_gold]:
        make_gold(actor=desk.manager, item=item, verdicts={"quality": "second"})
    return desk


def test_labels_that_led_to_a_decision_are_no_gold_labels() -> None:
    desk = make_desk(people=2, n_items=2, settings={"base_overlap": 2, "max_overlap": 2})
    label_all(desk)
    proposals = gold_proposals(desk.project)
    assert len(proposals) == 2
    chosen = [item.pk for item in proposals]
    made = [
        make_gold_from_decisions(actor=desk.manager, project=desk.project, items=chosen)
        for _ in range(2)
    ]
    assert made == [2, 0]
    assert {gold.quality for gold in GoldItem.objects.all()} == {"first"}
    assert [desk.member(user).gold_seen for user in desk.people] == [0, 0]
    make_gold(actor=desk.manager, item=proposals[0], verdicts={"quality": "tie"}, reason="wrong")
    assert [desk.member(user).gold_seen for user in desk.people] == [0, 0]


def test_the_same_answer_again_is_no_correction() -> None:
    desk = make_desk(n_items=1)
    item = desk.items()[0]
    verdicts = {"quality": "tie"}
    one = make_gold(actor=desk.manager, item=item, verdicts=verdicts, explanation="Because.")
    two = make_gold(actor=desk.manager, item=item, verdicts=verdicts)
    three = make_gold(actor=desk.manager, item=item, verdicts={"quality": "first"})
    assert (one.pk, one.n) == (two.pk, two.n)
    assert (three.n, three.explanation) == (2, "Because.")
    for _ in range(2):
        retire_gold(actor=desk.manager, item=item, reason="unclear")
    again = make_gold(actor=desk.manager, item=item, verdicts={"quality": "first"})
    assert [gold.active for gold in item.gold.order_by("n")] == [True, True, False, True]
    assert again.n == 4
    assert Event.objects.filter(action="retire_gold").count() == 1


def test_dropping_a_gold_item_scores_everybody_again() -> None:
    desk = gold_desk()
    user = desk.people[0]
    while desk.member(user).gold_seen < 2:
        label_once(desk, user)
    met = Lease.objects.filter(item__state=ItemState.GOLD, head__isnull=False)
    gone = met.values_list("item", flat=True)[0]
    items.drop_items(actor=desk.manager, project=desk.project, items=[gone])
    assert desk.member(user).gold_seen == 1
    items.release_items(actor=desk.manager, project=desk.project, items=[gone])
    assert desk.project.items.get(pk=gone).state == ItemState.GOLD
    assert desk.member(user).gold_seen == 2


def test_verdicts_are_checked() -> None:
    desk = make_desk(n_items=1, settings={"axes": ["quality"]})
    item = desk.items()[0]
    for verdicts in ({}, {"quality": "left"}, {"personalization": "tie"}):
        with pytest.raises(InvalidInput):
            make_gold(actor=desk.manager, item=item, verdicts=verdicts)
    with pytest.raises(Forbidden):
        make_gold(actor=desk.people[0], item=item, verdicts={"quality": "tie"})
    items.drop_items(actor=desk.manager, project=desk.project, items=[item.pk])
    with pytest.raises(Refused):
        make_gold(actor=desk.manager, item=item, verdicts={"quality": "tie"})


def test_gold_that_the_best_miss_or_contest_is_doubtful() -> None:
    desk = gold_desk(n_gold=5, people=3, n_items=110)
    bad = desk.items()[0]

    def choose(lease: Lease) -> str:
        if lease.item.state != ItemState.GOLD:
            return "first"
        return "first" if lease.item_id == bad.pk else "second"

    for _ in range(30):
        for user in desk.people:
            label_once(desk, user, choose)
    rows = gold_rows(desk.project)
    assert [row.item for row in rows if row.doubtful] == [bad]
    assert rows[0].item == bad
    assert (rows[0].seen, rows[0].right, rows[0].best_right) == (3, 0, 0)
    other = Lease.objects.filter(item=rows[1].item, head__isnull=False)[0]
    appeal(other)
    assert {row.item for row in gold_rows(desk.project) if row.doubtful} == {bad, rows[1].item}


def test_a_lazy_annotator_makes_no_gold_doubtful() -> None:
    desk = gold_desk(n_gold=4, people=3, n_items=80)
    for _ in range(20):
        for user in desk.people:
            label_once(desk, user)
    assert not any(row.doubtful for row in gold_rows(desk.project))


def test_making_an_item_gold_changes_nothing_that_she_holds() -> None:
    """Somebody has it before her: her lease, its place and what she is told stay."""
    desk = make_desk(people=1, n_items=1)
    lease = leases.serve(user=desk.people[0], project=desk.project).lease
    assert lease is not None
    make_gold(actor=desk.manager, item=lease.item, verdicts={"quality": "second"})
    again = leases.serve(user=desk.people[0], project=desk.project).lease
    assert again == lease
    done = submit(desk.people[0], lease, "first")
    assert (done.extra, done.label.late) == (False, False)


# Pages


def test_gold_by_hand_with_correction_and_retirement(admin: Client) -> None:
    desk = make_desk(n_items=1)
    item = desk.items()[0]
    address = url(desk, "make_gold", item.pk)
    sent = {
        "quality": "first",
        "personalization": "",
        "explanation": "事实有误",
        "onboarding": "on",
    }
    for _ in range(2):
        assert admin.post(address, sent).status_code == 302
    gold = GoldItem.objects.get()
    assert (gold.quality, gold.personalization, gold.onboarding) == ("first", "", True)
    page = admin.get(url(desk, "item", item.public_id)).content.decode()
    assert "事实有误" in page
    assert "to learn with" in page
    empty = admin.post(address, {"quality": "", "personalization": ""})
    assert empty.status_code == 422
    assert "at least one axis" in empty.content.decode()
    admin.post(address, {"quality": "tie", "reason": "line 2"})
    assert GoldItem.objects.get(n=2).reason == "line 2"
    admin.post(url(desk, "retire_gold", item.pk), {"reason": "unclear"})
    assert not GoldItem.objects.get(n=3).active
    assert "retired" in admin.get(url(desk, "gold")).content.decode()


def test_the_list_proposes_what_everybody_agreed_on(admin: Client) -> None:
    desk = make_desk(
        people=2,
        n_items=2,
        settings={"base_overlap": 2, "max_overlap": 2, "gold_percent": 5},
    )
    assert "ordinary items are handed out instead" in admin.get(url(desk, "gold")).content.decode()
    label_all(desk)
    page = admin.get(url(desk, "gold")).content.decode()
    assert "Everybody agreed on these" in page
    chosen = [item.pk for item in desk.items()]
    for _ in range(2):
        admin.post(url(desk, "propose_gold"), {"item": chosen})
    assert GoldItem.objects.count() == 2
    assert (
        "ordinary items are handed out instead" not in admin.get(url(desk, "gold")).content.decode()
    )


@pytest.mark.parametrize("name", ["make_gold", "retire_gold"])
def test_gold_is_for_administrators(client: Client, chen: User, alice: User, name: str) -> None:
    desk = make_desk(n_items=1)
    address = url(desk, name, desk.items()[0].pk)
    assert asks_for_login(client.post(address))
    client.force_login(chen)
    assert chen.role == Role.ANNOTATOR
    assert client.post(address).status_code == 403
    client.force_login(alice)
    assert client.get(address).status_code == 405
    assert client.post(url(desk, name, 99_999)).status_code == 404


def test_a_gold_label_alone_never_decides_the_moment_of_the_pause(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It is noted at once, and she is paused at a later submission that the lot falls on."""
    monkeypatch.setattr(gold_services, "GATE_DELAY", 10**15)  # the lot falls on none
    desk = make_desk(
        people=1, n_items=12, settings={"gold_percent": 50, "gold_minimum": 3, "gold_floor": 50}
    )
    user = desk.people[0]
    working(desk)
    for item in desk.items():
        make_gold(actor=desk.manager, item=item, verdicts={"quality": "second"})
        lease = Lease.objects.create(
            item=item,
            member=desk.member(user),
            first_left=True,
            state="shown",
            shown_at=timezone.now(),
            expires_at=timezone.now() + timedelta(hours=1),
        )
        submit(user, lease, "first")
    member = desk.member(user)
    assert (member.state, member.paused_reason) == ("working", "gold: 0 of 12")
    monkeypatch.setattr(gold_services, "GATE_DELAY", 4)
    due = 0
    for position in range(100):
        gold_services.pause_if_due(member, "ab" * 32, position)
        due += Member.objects.filter(pk=member.pk, state="paused").update(state="working")
    assert 5 < due < 50


def test_what_was_labelled_to_learn_with_is_no_account_when_the_item_becomes_hidden_gold() -> None:
    """She was told the right answer then. Those who meet it afterwards are scored by it."""
    desk = make_desk(
        people=2, n_items=30, settings={**ALL_GOLD, "onboarding_size": 1, "gold_minimum": 99}
    )
    item = desk.items()[0]
    known = {"quality": "first"}
    make_gold(actor=desk.manager, item=item, verdicts=known, onboarding=True)
    learner, other = desk.people
    assert label_once(desk, learner).lease.item == item
    desk.project.members.filter(user=other).update(state="working")
    make_gold(actor=desk.manager, item=item, verdicts=known, onboarding=False)
    assert desk.member(learner).gold_seen == 0
    while label_once(desk, other) is not None:
        pass
    assert (desk.member(other).gold_right, desk.member(other).gold_seen) == (1, 1)
    row = gold_rows(desk.project)[0]
    assert (row.seen, row.best_seen) == (2, 0)  # neither has any other gold label
    table = read_labels(desk.project)
    assert len(table.first_time.item) == Lease.objects.filter(head__isnull=False).count() - 1

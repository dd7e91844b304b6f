"""Labels of somebody who did not read: set aside they count for nothing, and can be taken back."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from annotation.enums import ItemState, LeaseState, MemberState
from annotation.models import Delivery, Item, Label, Lease, Member
from annotation.selectors import exports as export_rows
from annotation.selectors.label_table import read_labels
from annotation.selectors.work import seat_of
from annotation.services import appeals, labels, leases, projects, setting_aside
from annotation.services.gold import make_gold
from annotation.services.setting_aside import set_labels_aside, take_labels_back
from tests.annotation.books import mistakes
from tests.annotation.desks import at_desk, at_gold, browser, url
from tests.annotation.factories import Desk, label_all, label_once, make_desk, submit, working
from tests.annotation.pairs import import_pairs, label, row, write
from tests.annotation.review import adjudicator, decide
from tests.annotation.test_webhooks import hook_for
from tests.conftest import make_user
from webapp.accounts.models import User
from webapp.core.errors import Forbidden, InvalidInput, Refused
from webapp.core.models import Event

pytestmark = pytest.mark.django_db
TWO = {"base_overlap": 2, "max_overlap": 3}
WHY = "Chose the left side of every pair."


def careless_desk(n_items: int = 4, **settings: Any) -> Desk:
    """Two annotators disagree about everything; the second is paused. A third comes later."""
    desk = make_desk(people=3, n_items=n_items, settings={**TWO, **settings})
    said = {desk.people[0].pk: "first", desk.people[1].pk: "second"}
    for user in desk.people[:2]:
        while label_once(desk, user, lambda lease: said[lease.member.user_id or 0]):
            pass
    pause(desk, desk.people[1])
    return desk


def gold_desk() -> Desk:
    """An annotator who gave labels, some of them on gold, and is paused."""
    desk = make_desk(people=1, n_items=20, settings={"gold_percent": 30})
    working(desk)
    for item in desk.items()[:4]:
        make_gold(actor=desk.manager, item=item, verdicts={"quality": "first"})
    while label_once(desk, desk.people[0]):
        pass
    pause(desk, desk.people[0])
    own = Lease.objects.filter(state=LeaseState.SUBMITTED)
    assert own.filter(item__state=ItemState.GOLD).exists()
    return desk


def pause(desk: Desk, user: User) -> Member:
    member = desk.member(user)
    return projects.set_member_state(
        actor=desk.manager, member=member, state=MemberState.PAUSED, reason="careless"
    )


def aside(desk: Desk, n: int = 1) -> int:
    return set_labels_aside(actor=desk.manager, member=desk.member(desk.people[n]), reason=WHY)


def back(desk: Desk, n: int = 1) -> int:
    return take_labels_back(actor=desk.manager, member=desk.member(desk.people[n]))


def verdicts(desk: Desk) -> list[str]:
    items = desk.project.items.select_related("quality_decision").order_by("pk")
    return [item.quality_decision.verdict if item.quality_decision else "" for item in items]


def counts(desk: Desk) -> set[tuple[str, int, int, int]]:
    return set(desk.project.items.values_list("state", "target", "live", "done"))


def test_their_pairs_ask_for_other_labels_and_no_more_than_others(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    desk = careless_desk()
    assert counts(desk) == {("open", 3, 2, 2)}  # the disagreement had raised them
    sent: list[tuple[str, int]] = []
    monkeypatch.setattr(setting_aside, "enqueue", lambda name, pk: sent.append((name, pk)))
    assert aside(desk) == 4
    assert sent == [("annotation_statistics", desk.project.pk)]
    assert counts(desk) == {("open", 2, 1, 1)}
    assert set(desk.project.items.values_list("priority", flat=True)) == {0}
    assert mistakes(desk.project) == []
    while label_once(desk, desk.people[2]):
        pass
    assert verdicts(desk) == ["first"] * 4
    assert mistakes(desk.project) == []
    assert Label.objects.filter(member=desk.member(desk.people[1])).count() == 4


def test_what_was_settled_with_them_is_open_again() -> None:
    desk = make_desk(people=2, n_items=3, settings={**TWO, "max_overlap": 2})
    label_all(desk)
    assert verdicts(desk) == ["first"] * 3
    pause(desk, desk.people[1])
    aside(desk)
    assert verdicts(desk) == [""] * 3
    assert counts(desk) == {("open", 2, 1, 1)}
    assert mistakes(desk.project) == []
    assert back(desk) == 3
    assert verdicts(desk) == ["first"] * 3
    assert counts(desk) == {("done", 2, 2, 2)}
    assert mistakes(desk.project) == []


def test_taken_back_they_count_also_where_there_is_enough_by_then() -> None:
    desk = careless_desk()
    aside(desk)
    label_once(desk, desk.people[2])
    assert back(desk) == 4
    assert sorted(desk.project.items.values_list("state", "target", "done")) == [
        ("done", 3, 3), ("open", 3, 2), ("open", 3, 2), ("open", 3, 2),
    ]  # fmt: skip
    own = Lease.objects.filter(member=desk.member(desk.people[1]))
    assert {(lease.counted, lease.had_place) for lease in own} == {(True, None)}
    assert mistakes(desk.project) == []


def test_twice_is_once_and_the_log_says_why() -> None:
    desk = careless_desk()
    assert (aside(desk), aside(desk), back(desk), back(desk)) == (4, 0, 4, 0)
    said = Event.objects.filter(action__in=["set_labels_aside", "take_labels_back"])
    rows = list(said.order_by("pk").values_list("action", "details"))
    assert rows == [
        ("set_labels_aside", {"labels": 4, "reason": WHY}),
        ("take_labels_back", {"labels": 4, "reason": ""}),
    ]


def test_whoever_works_is_paused_first_and_a_reason_is_asked_for(chen: User) -> None:
    desk = careless_desk()
    with pytest.raises(Refused, match="Pause this annotator first"):
        aside(desk, 0)
    member = desk.member(desk.people[1])
    with pytest.raises(InvalidInput) as error:
        set_labels_aside(actor=desk.manager, member=member, reason=" ")
    assert error.value.field == "reason"
    for work in (set_labels_aside, take_labels_back):
        with pytest.raises(Forbidden):
            work(actor=chen, member=member, reason=WHY)
    assert not Lease.objects.filter(state=LeaseState.SET_ASIDE).exists()


def test_gold_stays_and_repeats_go_along() -> None:
    desk = make_desk(people=1, n_items=30, settings={"gold_percent": 10, "repeat_percent": 40})
    working(desk)
    make_gold(actor=desk.manager, item=desk.items()[0], verdicts={"quality": "first"})
    at_gold(desk)
    while label_once(desk, desk.people[0]):
        pass
    member = pause(desk, desk.people[0])
    own = Lease.objects.filter(member=member)
    assert own.filter(item__state=ItemState.GOLD, state=LeaseState.SUBMITTED).exists()
    assert own.filter(repeat__gt=0).exists()
    seen = Member.objects.get(pk=member.pk).gold_seen
    assert seen > 0
    aside(desk, 0)
    left = own.filter(state=LeaseState.SUBMITTED)
    assert {lease.item.state for lease in left} == {ItemState.GOLD}
    assert not own.filter(repeat__gt=0, state=LeaseState.SUBMITTED).exists()
    assert Member.objects.get(pk=member.pk).gold_seen == seen
    repeats = own.filter(repeat__gt=0).count()
    back(desk, 0)
    assert own.filter(repeat__gt=0, state=LeaseState.SUBMITTED, counted=False).count() == repeats
    assert mistakes(desk.project) == []


def test_she_cannot_tell_gold_by_what_was_set_aside(client: Client) -> None:
    """All she gave is shown as before; none of it can be changed, all of it contested."""
    desk = gold_desk()
    user, page = desk.people[0], at_desk(desk)
    member = desk.member(user)
    before = page.get(url(desk, "history")).context["rows"]
    seat = seat_of(user, desk.project.pk).progress
    aside(desk, 0)
    after = page.get(url(desk, "history")).context["rows"]
    assert [row.token for row in after] == [row.token for row in before]
    assert seat_of(user, desk.project.pk).progress == seat
    states = set(Lease.objects.filter(member=member).values_list("state", "item__state"))
    assert {state for state, _item in states} == {LeaseState.SUBMITTED, LeaseState.SET_ASIDE}
    projects.set_member_state(
        actor=desk.manager, member=member, state=MemberState.WORKING, reason="again"
    )
    assert not any(row.undoable for row in page.get(url(desk, "history")).context["rows"])
    for lease in Lease.objects.filter(member=member).order_by("-submitted_at"):
        with pytest.raises(Refused, match="set this label aside"):
            labels.undo_label(user=user, token=lease.token)
        with pytest.raises(Refused, match="set this label aside"):
            submit(user, lease, "second")
        assert appeals.raise_appeal(user=user, token=lease.token, text="Look again.").pk


def test_what_a_person_decided_stays() -> None:
    desk = careless_desk(n_items=2, max_overlap=2)
    assert counts(desk) == {("disputed", 2, 2, 2)}
    decided = decide(adjudicator(desk), desk.items()[0], "second")
    aside(desk)
    item = Item.objects.get(pk=decided.pk)
    assert (item.state, item.done) == (ItemState.DONE, 1)
    assert item.quality_decision is not None
    assert item.quality_decision.verdict == "second"


def test_a_label_that_was_set_aside_can_be_neither_changed_nor_taken_back() -> None:
    desk = careless_desk()
    user = desk.people[1]
    lease = Lease.objects.filter(member=desk.member(user)).latest("pk")
    aside(desk)
    with pytest.raises(Refused, match="set this label aside"):
        submit(user, Lease.objects.get(pk=lease.pk), "first")
    with pytest.raises(Refused):
        labels.undo_label(user=user, token=lease.token)
    projects.set_member_state(
        actor=desk.manager, member=desk.member(user), state=MemberState.WORKING
    )
    assert leases.serve(user=user, project=desk.project).lease is None  # not the same pairs again


def test_statistics_and_exports_do_not_see_them() -> None:
    desk = careless_desk()
    everything = len(read_labels(desk.project).first_time.item)
    aside(desk)
    assert (everything, len(read_labels(desk.project).first_time.item)) == (8, 4)
    facts = export_rows.facts_by_id(desk.project, [item.pk for item in desk.items()])
    assert {row.labels for row in facts.values()} == {1}


def test_the_same_import_again_brings_them_no_second_time(tmp_path: Path) -> None:
    desk = make_desk(people=0, n_items=0)
    path = write(tmp_path / "rows.jsonl", [row(n, labels=[label("a")]) for n in range(3)])
    import_pairs(desk.project, path)
    (member,) = Member.objects.filter(user=None)
    assert set_labels_aside(actor=desk.manager, member=member, reason=WHY) == 3
    again = write(
        tmp_path / "again.jsonl", [row(n, labels=[label("a")]) for n in range(3)] + [row(9)]
    )
    import_pairs(desk.project, again)
    assert Lease.objects.filter(member=member).count() == 3
    assert not Lease.objects.filter(member=member, state=LeaseState.SUBMITTED).exists()
    assert mistakes(desk.project) == []


def test_webhooks_hear_of_each_gold_or_not(settings: Any) -> None:
    settings.OUTBOUND_ALLOW = ["127.0.0.1"]
    desk = gold_desk()
    given = Lease.objects.filter(state=LeaseState.SUBMITTED).count()
    hook_for(desk, "http://127.0.0.1:9/hook")
    assert 0 < aside(desk, 0) < given
    assert set(Delivery.objects.values_list("event", flat=True)) == {"label.withdrawn"}
    assert Delivery.objects.count() == given
    assert set(Delivery.objects.latest("pk").payload) == {
        "project",
        "item",
        "annotator",
        "revision",
    }
    back(desk, 0)
    assert Delivery.objects.filter(event="label.submitted").count() == given


def test_many_labels_take_no_more_queries_than_few() -> None:
    needed = []
    for n_items, name in ((4, "few"), (40, "many")):
        desk = make_desk(people=0, n_items=n_items, name=name)
        desk.people = [User.objects.filter(username="ann-1").first() or make_annotator()]
        projects.add_members(actor=desk.manager, project=desk.project, users=desk.people)
        label_all(desk)
        pause(desk, desk.people[0])
        with CaptureQueriesContext(
            connection,
        ) as caught:
            aside(desk, 0)
        needed.append(len(caught))
    assert needed[1] == needed[0]
    assert needed[1] < 40


def make_annotator() -> User:
    return make_user("ann-1", "annotator")


def test_a_manager_does_it_on_the_page_and_she_reads_of_it(client: Client, vera: User) -> None:
    desk = careless_desk()
    member = desk.member(desk.people[1])
    page, manager = url(desk, "members"), browser(desk.manager)
    text = manager.get(page).content.decode()
    assert text.count("Set them aside") == 1
    do = f"{page}{member.pk}/"
    sent = {"do": "set_aside", "reason": WHY}
    for person in (vera, desk.people[1]):
        assert browser(person).post(do, sent).status_code == 403
    for _twice in range(2):
        assert manager.post(do, sent).status_code == 302
    assert Lease.objects.filter(state=LeaseState.SET_ASIDE).count() == 4
    text = manager.get(page).content.decode()
    assert "4 set aside" in text
    assert "Set them aside" not in text
    history = at_desk(desk, 1).get(url(desk, "history")).content.decode()
    assert "has set aside what you gave until" in history
    assert WHY not in history
    manager.post(do, {"do": "take_back"})
    assert "4 set aside" not in manager.get(page).content.decode()

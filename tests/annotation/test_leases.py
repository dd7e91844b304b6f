"""Handing out items: each the right number of times, to different people, for a limited time."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.db import IntegrityError, transaction
from django.utils import timezone

from annotation.enums import HELD, ItemState, LeaseState
from annotation.models import Item, Lease
from annotation.services import leases, projects
from annotation.services.catalog_pairs import add_catalog_pair
from annotation.services.gold import make_gold
from tests.annotation.factories import label_all, label_once, make_desk, submit, working
from tests.catalog.factories import make_answer, make_contestant, seal
from tests.conftest import make_user
from webapp.accounts.models import User
from webapp.catalog.models import Exposure
from webapp.catalog.services.personas import withdraw_consent
from webapp.core.errors import Forbidden, Refused

pytestmark = pytest.mark.django_db


def expire_all() -> None:
    past = timezone.now() - timedelta(seconds=1)
    Lease.objects.filter(state__in=HELD).update(expires_at=past)


def test_every_item_goes_to_one_annotator_where_one_label_is_wanted() -> None:
    desk = make_desk(people=3, n_items=10)
    assert label_all(desk) == 10
    assert all(item.done == item.live == 1 for item in desk.items())
    assert {item.state for item in desk.items()} == {ItemState.DONE}


def test_two_labels_of_an_item_come_from_two_people() -> None:
    desk = make_desk(people=3, n_items=8, settings={"base_overlap": 2, "max_overlap": 2})
    assert label_all(desk) == 16
    for item in desk.items():
        assert len({lease.member_id for lease in item.leases.all()}) == 2


def test_the_same_person_asking_twice_gets_the_same_item() -> None:
    desk = make_desk()
    one = leases.serve(user=desk.people[0], project=desk.project).lease
    two = leases.serve(user=desk.people[0], project=desk.project).lease
    assert one is not None
    assert one == two


def test_what_expires_comes_to_somebody_else_and_back_when_nothing_is_left() -> None:
    desk = make_desk(people=2, n_items=1)
    first = leases.serve(user=desk.people[0], project=desk.project).lease
    assert leases.serve(user=desk.people[1], project=desk.project).lease is None
    expire_all()
    assert leases.serve(user=desk.people[0], project=desk.project).lease == first
    expire_all()
    second = leases.serve(user=desk.people[1], project=desk.project).lease
    assert first is not None
    assert second is not None
    assert second.item_id == first.item_id


def test_a_skipped_item_does_not_come_back_to_who_skipped_it() -> None:
    desk = make_desk(people=2, n_items=2)
    lease = leases.serve(user=desk.people[0], project=desk.project).lease
    assert lease is not None
    for _ in range(2):
        leases.skip(user=desk.people[0], token=lease.token, reason="language")
    lease.refresh_from_db()
    assert (lease.state, lease.skip_reason, lease.counted) == ("skipped", "language", False)
    assert Item.objects.get(pk=lease.item_id).live == 0
    other = leases.serve(user=desk.people[0], project=desk.project).lease
    assert other is not None
    assert other.item_id != lease.item_id


def test_a_reserved_item_is_not_met_until_it_is_shown() -> None:
    desk = make_desk(n_items=2)
    user = desk.people[0]
    leases.serve(user=user, project=desk.project)
    reserved = leases.reserve_next(user=user, project=desk.project)
    assert reserved is not None
    assert reserved.state == LeaseState.RESERVED
    assert leases.reserve_next(user=user, project=desk.project) == reserved
    expire_all()
    leases.serve(user=desk.people[1], project=desk.project)
    leases.sweep_expired(desk.project)
    assert not Lease.objects.filter(pk=reserved.pk).exists()


def test_seeing_an_item_exposes_to_every_answer_with_these_texts() -> None:
    desk = make_desk(n_items=0, settings={"axes": ["quality"]})
    aurora, brook = make_contestant("aurora"), make_contestant("brook")
    first = make_answer("Short: run it.", contestant=aurora)
    second = make_answer("Step by step: first, open it.", contestant=brook)
    twin = make_answer("Short: run it.", contestant=brook, draw=1)
    add_catalog_pair(actor=desk.manager, project=desk.project, first=first, second=second)
    project = projects.move_project(actor=desk.manager, project=desk.project, to="open")
    leases.serve(user=desk.people[0], project=project)
    met = Exposure.objects.filter(user=desk.people[0], where="labelled")
    assert set(met.values_list("answer", flat=True)) == {first.pk, second.pk, twin.pk}


def test_an_answer_of_a_sealed_round_cannot_become_an_item() -> None:
    desk = make_desk(n_items=0)
    first = make_answer("Short: run it.")
    second = make_answer("Step by step.", draw=1)
    seal(second)
    with pytest.raises(Refused):
        add_catalog_pair(actor=desk.manager, project=desk.project, first=first, second=second)


def test_sides_are_mirrored_from_one_annotator_to_the_next() -> None:
    desk = make_desk(people=2, n_items=6, settings={"base_overlap": 2, "max_overlap": 2})
    label_all(desk)
    for item in desk.items():
        assert sum(lease.first_left for lease in item.leases.all()) == 1


def test_gold_comes_at_the_drawn_places_and_once_per_person() -> None:
    desk = make_desk(people=1, n_items=30, settings={"gold_percent": 30, "gold_minimum": 99})
    gold = desk.items()[:6]
    for item in gold:
        make_gold(actor=desk.manager, item=item, verdicts={"quality": "first"})
    working(desk)
    label_all(desk)
    met = Lease.objects.filter(item__in=gold)
    assert 0 < met.count() <= 6
    assert not met.filter(counted=True).exists()
    assert desk.project.items.filter(state=ItemState.DONE).count() == 24
    member = desk.member(desk.people[0])
    assert member.gold_seen == member.gold_right == met.count()


def test_onboarding_items_come_first_and_end_the_onboarding() -> None:
    desk = make_desk(people=1, n_items=6, settings={"onboarding_size": 2})
    for item in desk.items()[:3]:
        make_gold(actor=desk.manager, item=item, verdicts={"quality": "first"}, onboarding=True)
    user = desk.people[0]
    for _ in range(2):
        assert label_once(desk, user).lease.item.state == ItemState.GOLD
    assert label_once(desk, user).lease.item.state != ItemState.GOLD
    assert desk.member(user).state == "working"
    assert desk.member(user).gold_seen == 0


def test_repeats_come_later_with_the_sides_changed_and_count_nowhere() -> None:
    desk = make_desk(people=1, n_items=40, settings={"repeat_percent": 20})
    working(desk)
    label_all(desk)
    repeats = Lease.objects.filter(repeat=1).select_related("item")
    assert repeats.count() > 0
    for row in repeats:
        original = Lease.objects.get(item=row.item, member=row.member, repeat=0)
        assert original.first_left != row.first_left
        assert not row.counted
    assert all(item.done == 1 for item in desk.items())


def test_withdrawn_consent_takes_items_out_of_the_queue() -> None:
    desk = make_desk(people=1, n_items=4)
    persona = desk.versions[0].persona
    held = leases.serve(user=desk.people[0], project=desk.project).lease
    assert held is not None
    withdraw_consent(actor=desk.manager, persona=persona)
    label_all(desk)
    gone = desk.project.items.filter(persona_version=desk.versions[0])
    assert not gone.filter(done__gt=0).exists()
    stays = desk.project.items.filter(persona_version=desk.versions[1])
    assert {item.state for item in stays} == {ItemState.DONE}


def test_only_members_with_the_right_role_in_an_open_project_get_items(
    alice: User, chen: User
) -> None:
    desk = make_desk(people=1)
    with pytest.raises(Forbidden):
        leases.serve(user=alice, project=desk.project)
    with pytest.raises(Forbidden):
        leases.serve(user=chen, project=desk.project)
    paused = projects.move_project(actor=desk.manager, project=desk.project, to="paused")
    with pytest.raises(Refused):
        leases.serve(user=desk.people[0], project=paused)


def test_the_database_refuses_more_places_than_wanted_and_changed_leases() -> None:
    desk = make_desk()
    lease = leases.serve(user=desk.people[0], project=desk.project).lease
    assert lease is not None
    changes: list[Any] = [
        lambda: Item.objects.filter(pk=lease.item_id).update(live=2),
        lambda: Lease.objects.filter(pk=lease.pk).update(first_left=not lease.first_left),
        lambda: Lease.objects.filter(pk=lease.pk).delete(),
        lambda: Item.objects.filter(pk=lease.item_id).update(first_sha256="0" * 64),
    ]
    for change in changes:
        with pytest.raises(IntegrityError), transaction.atomic():
            change()


def test_late_work_is_kept_as_an_extra() -> None:
    desk = make_desk(people=2, n_items=1)
    lease = leases.serve(user=desk.people[0], project=desk.project).lease
    assert lease is not None
    expire_all()
    assert label_once(desk, desk.people[1]) is not None
    late = submit(desk.people[0], lease, "second")
    assert late.extra
    assert late.label.late
    assert desk.items()[0].done == 1


def test_late_work_counts_where_there_is_still_a_place() -> None:
    desk = make_desk(people=2, n_items=2)
    lease = leases.serve(user=desk.people[0], project=desk.project).lease
    assert lease is not None
    expire_all()
    leases.sweep_expired(desk.project)
    late = submit(desk.people[0], lease, "second")
    assert (late.extra, late.label.late) == (False, True)
    assert Item.objects.get(pk=lease.item_id).done == 1


def test_gold_and_repeats_come_only_in_place_of_an_item_that_waits() -> None:
    """What came when nothing is left would be known for what it is."""
    desk = make_desk(
        people=1,
        n_items=40,
        settings={"gold_percent": 30, "repeat_percent": 20, "gold_minimum": 99},
    )
    working(desk)
    for item in desk.items()[:25]:
        make_gold(actor=desk.manager, item=item, verdicts={"quality": "first"})
    label_all(desk)
    assert Lease.objects.filter(counted=False).exists()
    assert Lease.objects.order_by("-position")[0].counted
    late = make_user("late", "annotator")
    projects.add_members(actor=desk.manager, project=desk.project, users=[late])
    working(desk)
    for served in range(40):
        desk.project.members.filter(user=late).update(served=served)
        assert label_once(desk, late) is None

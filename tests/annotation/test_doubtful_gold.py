"""Gold that its best annotators miss, or that somebody contests, comes to the manager's eyes."""

from __future__ import annotations

from typing import Any

import pytest

from annotation.enums import AppealState
from annotation.models import Appeal, Item, Lease
from annotation.selectors.doubtful_gold import doubtful_gold
from annotation.services.gold import make_gold
from tests.annotation.factories import Desk, label_all, make_desk, working

pytestmark = pytest.mark.django_db
SETTINGS = {"gold_percent": 50, "gold_floor": 0, "base_overlap": 4, "max_overlap": 4}


def gold_desk(**options: Any) -> tuple[Desk, list[Item]]:
    desk = make_desk(people=4, n_items=12, settings=SETTINGS, **options)
    working(desk)
    gold = desk.items()[:6]
    for item in gold:
        make_gold(actor=desk.manager, item=item, verdicts={"quality": "first"})
    return desk, gold


def test_gold_that_the_best_miss_is_doubtful(django_assert_max_num_queries: Any) -> None:
    desk, gold = gold_desk()
    label_all(desk, lambda lease: "second" if lease.item_id == gold[0].pk else "first")
    assert Lease.objects.filter(item=gold[0], state="submitted").count() == 4
    with django_assert_max_num_queries(3):
        (found,) = doubtful_gold(desk.project)
    assert (found.item, found.seen, found.missed) == (gold[0], 4, 4)
    assert found.instead == {"quality": "second", "personalization": "second"}


def test_gold_that_only_poor_annotators_miss_is_not() -> None:
    desk, _gold = gold_desk()
    poor = {desk.member(user).pk for user in desk.people[:3]}
    label_all(desk, lambda lease: "second" if lease.member_id in poor else "first")
    assert doubtful_gold(desk.project) == []


def test_an_appeal_makes_it_doubtful_until_it_is_rejected() -> None:
    desk, gold = gold_desk()
    label_all(desk)
    assert doubtful_gold(desk.project) == []
    lease = Lease.objects.filter(item=gold[2], state="submitted")[0]
    appeal = Appeal.objects.create(lease=lease, text="The second answer is right.")
    (found,) = doubtful_gold(desk.project)
    assert (found.item, found.appeals, found.missed) == (gold[2], 1, 0)
    appeal.state = AppealState.REJECTED
    appeal.save(update_fields=["state"])
    assert doubtful_gold(desk.project) == []


def test_retired_and_onboarding_gold_is_left_alone() -> None:
    desk, gold = gold_desk()
    make_gold(actor=desk.manager, item=gold[0], verdicts={"quality": "first"}, onboarding=True)
    label_all(desk, lambda lease: "second" if lease.item_id == gold[0].pk else "first")
    assert doubtful_gold(desk.project) == []

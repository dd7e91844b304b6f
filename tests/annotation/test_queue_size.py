"""Handing out items costs the same however many there are, and nothing is passed over."""

from __future__ import annotations

import pytest
from django.core.cache import cache
from django.db import connection
from django.test.utils import CaptureQueriesContext

from annotation.enums import HELD, ItemState
from annotation.models import Item, Lease
from annotation.services import claims
from tests.annotation.factories import Desk, add_pairs, label_all, label_once, make_desk

pytestmark = pytest.mark.django_db
THREE = {"base_overlap": 2, "max_overlap": 3}


def quarrel(lease: Lease) -> str:
    """The first two annotators never agree."""
    assert lease.member.user is not None
    return {"ann-1": "first", "ann-2": "second"}.get(lease.member.user.username, "first")


def raised_desk(n: int) -> Desk:
    """`n` raised items that the first two annotators may not have any more, and a third idle."""
    desk = make_desk(people=3, n_items=n, settings=THREE)
    third = desk.people.pop()
    label_all(desk, quarrel)
    desk.people.append(third)
    assert desk.project.items.filter(state=ItemState.OPEN, priority=1).count() == n
    return desk


def test_raised_items_come_first_to_who_may_have_them() -> None:
    desk = raised_desk(3)
    raised = {item.pk for item in desk.items()}
    add_pairs(desk, 3, start=3)
    third = desk.people[2]
    first = [label_once(desk, third).lease.item_id for _ in range(3)]
    assert set(first) == raised


def test_what_was_raised_beyond_the_first_ones_is_not_passed_over(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Somebody who may not have the first raised items still gets the later ones."""
    monkeypatch.setattr(claims, "RAISED_FIRST", 2)
    desk = raised_desk(6)
    third = desk.people[2]
    for item in desk.project.items.order_by("shuffle_key")[:4]:
        lease = Lease.objects.filter(item=item)[0]
        Lease.objects.create(
            item=item,
            member=desk.member(third),
            state="skipped",
            first_left=True,
            expires_at=lease.expires_at,
        )
    assert label_once(desk, third) is not None
    assert label_once(desk, third) is not None
    assert label_once(desk, third) is None


def test_plain_items_come_before_raised_ones_that_lie_far_back(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(claims, "RAISED_FIRST", 1)
    desk = raised_desk(2)
    add_pairs(desk, 1, start=2)
    served = label_once(desk, desk.people[0])
    assert served is not None
    assert served.lease.item.priority == 0
    assert label_once(desk, desk.people[0]) is None


def test_what_somebody_holds_is_found_by_its_state_not_among_all_she_ever_had() -> None:
    desk = make_desk(people=1, n_items=1)
    held = Lease.objects.filter(member=desk.member(desk.people[0]), state__in=HELD)
    if connection.vendor == "postgresql":
        with connection.cursor() as cursor:
            cursor.execute("SET LOCAL enable_seqscan = off")
    assert "lease_of_member" in held.explain()


@pytest.mark.postgres
def test_every_pass_goes_along_the_queue_index() -> None:
    """Plain scans are forbidden: where the index cannot serve, one is used all the same."""
    desk = make_desk(people=1, n_items=4)
    member = desk.member(desk.people[0])
    statement, values = claims.claim_statement(member)
    with connection.cursor() as cursor:
        cursor.execute("SET LOCAL enable_seqscan = off")
        cursor.execute("SET LOCAL enable_bitmapscan = off")
        cursor.execute(f"EXPLAIN (COSTS OFF) {statement}", values)
        plan = "\n".join(row[0] for row in cursor.fetchall())
    assert "Seq Scan" not in plan
    assert plan.count("item_queue") >= len(claims._PASSES)
    assert Item.objects.filter(live=0).count() == 4


def test_a_long_look_that_found_nothing_is_not_repeated_at_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    desk = make_desk(people=2, n_items=3, settings={"base_overlap": 2, "max_overlap": 2})
    user, other = desk.people
    monkeypatch.setattr(claims, "LOOKED_S", 0.0)
    monkeypatch.setattr(claims, "REST", 10**6)
    while label_once(desk, user) is not None:
        pass
    member = desk.member(user)
    with CaptureQueriesContext(connection) as queries:
        assert claims.claim_next(member) is None
    assert len(queries) == 0
    add_pairs(desk, 1, start=50)
    assert claims.claim_next(member) is None
    assert claims.claim_next(member, afresh=True) is not None
    assert label_once(desk, other) is not None  # the note is hers alone
    cache.clear()
    add_pairs(desk, 1, start=60)
    assert claims.claim_next(member) is not None

"""Many annotators at once, on PostgreSQL: every item its labels, nothing lost, nothing over."""

from __future__ import annotations

import contextlib
import random
import time
from collections import Counter
from collections.abc import Callable, Iterator
from datetime import timedelta
from functools import partial
from typing import Any

import pytest
from django.db import connection, transaction
from django.utils import timezone

from annotation.enums import HELD, ItemState, LeaseState, MemberState
from annotation.models import Item, Label, Lease
from annotation.services import gold, item_locks, items, labels, leases, projects, upkeep
from tests.annotation.books import mistakes
from tests.annotation.factories import (
    Choose,
    Desk,
    first_is_better,
    make_desk,
    submit,
    working,
)
from tests.conftest import make_user
from tests.threads import at_once
from webapp.accounts.models import User
from webapp.core import audit
from webapp.core.errors import Refused
from webapp.core.locking import retry_deadlocks

pytestmark = [pytest.mark.postgres, pytest.mark.django_db(transaction=True)]


@pytest.fixture(autouse=True)
def no_deadlocks(
    caplog: pytest.LogCaptureFixture, request: pytest.FixtureRequest
) -> Iterator[None]:
    """Everybody locks in the same order: the net of `retry_deadlocks` has nothing to catch."""
    yield
    caught = [record for record in caplog.get_records("call") if "deadlock" in record.message]
    assert bool(caught) == ("deadlock" in request.node.name)


TWO = {"base_overlap": 2, "max_overlap": 2}


def test_it_really_is_postgresql() -> None:
    assert connection.vendor == "postgresql"


def work(
    desk: Desk, user: User, choose: Choose = first_is_better, think: float = 0.0, tries: int = 3
) -> int:
    """Label until nothing is left, asked `tries` times. Number of labels."""
    stream = random.Random(user.username)
    given = empty = 0
    while empty < tries:
        lease = leases.serve(user=user, project=desk.project).lease
        if lease is None:
            empty += 1
            time.sleep(0.02)
            continue
        time.sleep(think * stream.random())
        submit(user, lease, choose(lease))
        given, empty = given + 1, 0
    return given


def everybody(desk: Desk, choose: Choose = first_is_better, think: float = 0.0) -> list[Any]:
    return at_once([partial(work, desk, user, choose, think) for user in desk.people])


def annotators_per_item(desk: Desk) -> list[int]:
    """How many different people hold a counted label of each item."""
    counted = Lease.objects.filter(
        member__project=desk.project, counted=True, state=LeaseState.SUBMITTED
    )
    people: dict[int, set[int]] = {item.pk: set() for item in desk.items()}
    for item, member in counted.values_list("item", "member"):
        people[item].add(member)
    return [len(found) for found in people.values()]


@pytest.mark.parametrize("think", [0.0, 0.03])
def test_twenty_annotators_label_two_hundred_items_once_each(think: float) -> None:
    desk = make_desk(people=20, n_items=200)
    given = everybody(desk, think=think)
    assert sum(given) == 200
    assert set(annotators_per_item(desk)) == {1}
    assert Label.objects.count() == 200
    assert not Lease.objects.exclude(state=LeaseState.SUBMITTED).exists()
    assert mistakes(desk.project) == []


@pytest.mark.parametrize("think", [0.0, 0.03])
def test_overlap_two_among_three_is_two_different_people(think: float) -> None:
    desk = make_desk(people=3, n_items=60, settings=TWO)
    assert sum(everybody(desk, think=think)) == 120
    assert set(annotators_per_item(desk)) == {2}
    assert mistakes(desk.project) == []


def test_twenty_annotators_with_half_of_the_items_at_overlap_two() -> None:
    desk = make_desk(people=20, n_items=100, settings=TWO)
    single = [item.pk for item in desk.items()[::2]]
    Item.objects.filter(pk__in=single).update(target=1)
    assert sum(everybody(desk, think=0.01)) == 150
    assert Counter(annotators_per_item(desk)) == {1: 50, 2: 50}
    assert mistakes(desk.project) == []


def test_disagreement_raises_the_overlap_up_to_the_maximum_and_never_over() -> None:
    desk = make_desk(people=12, n_items=60, settings={"base_overlap": 2, "max_overlap": 5})
    stream = random.Random(7)
    verdicts = ["first", "first", "second", "tie"]
    everybody(desk, lambda _lease: stream.choice(verdicts), think=0.01)
    for user in desk.people:  # what was raised when most had gone
        work(desk, user, lambda _lease: stream.choice(verdicts), tries=1)
    per_item = annotators_per_item(desk)
    assert set(per_item) <= {2, 3, 4, 5}
    assert max(per_item) > 2
    assert {item.state for item in desk.items()} <= {ItemState.DONE, ItemState.DISPUTED}
    assert mistakes(desk.project) == []


def test_gold_and_repeats_among_them_count_nowhere() -> None:
    desk = make_desk(
        people=8,
        n_items=60,
        settings={**TWO, "gold_percent": 20, "repeat_percent": 15, "gold_minimum": 99},
    )
    for item in desk.items()[:8]:
        gold.make_gold(actor=desk.manager, item=item, verdicts={"quality": "first"})
    working(desk)
    everybody(desk)
    real = [item for item in desk.items() if item.state != ItemState.GOLD]
    assert {(item.state, item.live, item.done) for item in real} == {(ItemState.DONE, 2, 2)}
    assert Lease.objects.filter(repeat=1, state=LeaseState.SUBMITTED).exists()
    for user in desk.people:
        met = Lease.objects.filter(member=desk.member(user), item__state=ItemState.GOLD)
        assert desk.member(user).gold_seen == met.count()
    assert mistakes(desk.project) == []


def one_lease(desk: Desk, n: int = 0) -> Lease:
    lease = leases.serve(user=desk.people[n], project=desk.project).lease
    assert lease is not None
    return lease


def test_the_same_answer_sent_at_the_same_time_is_one_label() -> None:
    desk = make_desk()
    lease = one_lease(desk)
    results = at_once([partial(submit, desk.people[0], lease, "first")] * 8)
    assert {result.label.pk for result in results} == {Label.objects.get().pk}
    assert sorted(result.again for result in results) == [False] + [True] * 7
    assert mistakes(desk.project) == []


def test_different_answers_at_the_same_time_become_revisions() -> None:
    desk = make_desk()
    lease = one_lease(desk)
    choices = ["first", "second", "tie", "both_bad"]
    at_once([partial(submit, desk.people[0], lease, verdict) for verdict in choices])
    assert sorted(Label.objects.values_list("revision", flat=True)) == [1, 2, 3, 4]
    assert mistakes(desk.project) == []


def test_two_tabs_of_one_person_show_the_same_item() -> None:
    desk = make_desk(n_items=20)
    user = desk.people[0]
    serve = partial(leases.serve, user=user, project=desk.project)
    reserve = partial(leases.reserve_next, user=user, project=desk.project)
    at_once([serve, reserve] * 5)
    shown = Lease.objects.filter(state=LeaseState.SHOWN)
    assert shown.count() == 1
    assert Lease.objects.filter(state=LeaseState.RESERVED).count() <= 1
    at_once([partial(work, desk, user)] * 4)
    assert set(annotators_per_item(desk)) == {1}
    assert mistakes(desk.project) == []


@pytest.mark.parametrize("round_", range(5))
def test_undo_and_submit_at_the_same_time(round_: int) -> None:
    desk = make_desk(people=2, n_items=4, settings=TWO)
    lease, other = one_lease(desk), one_lease(desk, 1)
    user = desk.people[0]
    submit(user, lease, "first")
    calls: list[Callable[[], Any]] = [
        partial(labels.undo_label, user=user, token=lease.token),
        partial(submit, user, lease, "second"),
        partial(submit, desk.people[1], other, "second"),
        partial(labels.undo_label, user=user, token=lease.token),
        partial(submit, user, lease, "first"),
    ]
    at_once(calls[round_:] + calls[:round_])
    assert mistakes(desk.project) == []


@pytest.mark.parametrize("first", ["skip", "submit"])
def test_skip_and_submit_at_the_same_time(first: str) -> None:
    """Whichever comes first: the item is hers once or free, and her answer is kept."""
    desk = make_desk()
    user, lease = desk.people[0], one_lease(desk)
    calls: list[Callable[[], Any]] = [
        partial(leases.skip, user=user, token=lease.token, reason="unsure"),
        partial(submit, user, lease, "first"),
    ]
    at_once((calls if first == "skip" else calls[::-1]) * 3)
    lease.refresh_from_db()
    assert lease.state == LeaseState.SUBMITTED
    assert Label.objects.get().revision == 1
    assert mistakes(desk.project) == []


def let_expire(*rows: Lease) -> None:
    past = timezone.now() - timedelta(seconds=1)
    Lease.objects.filter(pk__in=[row.pk for row in rows]).update(expires_at=past)


@pytest.mark.parametrize("others", [0, 1])
def test_sweeping_and_late_submitting_at_the_same_time(others: int) -> None:
    """Late work counts where there is a place and is an extra where there is none."""
    for _attempt in range(4):
        desk = make_desk(people=4, n_items=2, name=f"Pairs {Item.objects.count()}")
        rows = [one_lease(desk, 0), one_lease(desk, 1)]
        let_expire(*rows)
        calls: list[Callable[[], Any]] = [
            upkeep.sweep_leases,
            partial(submit, desk.people[0], rows[0], "first"),
            partial(leases.sweep_expired, desk.project),
            partial(submit, desk.people[1], rows[1], "second"),
        ]
        if others:
            calls += [partial(work, desk, user) for user in desk.people[2:]]
        results = at_once(calls)
        assert all(results[n].label.pk for n in (1, 3))
        assert set(annotators_per_item(desk)) == {1}
        assert mistakes(desk.project) == []
        for user in desk.people:
            user.username += f"-{user.pk}"
            user.save()


def test_many_leases_expire_while_everybody_asks_for_more() -> None:
    """Two labels an item, so that two sweeps meet the same items in different order."""
    desk = make_desk(people=10, n_items=40, settings=TWO)
    end = time.monotonic() + 4

    def restless(user: User) -> None:
        stream = random.Random(user.username)
        while time.monotonic() < end:
            lease = leases.serve(user=user, project=desk.project).lease
            leases.reserve_next(user=user, project=desk.project)
            if lease is None:
                continue
            if stream.random() < 0.5:
                let_expire(*Lease.objects.filter(member=lease.member, state__in=HELD))
            elif stream.random() < 0.5:
                submit(user, lease, stream.choice(["first", "second"]))
                if stream.random() < 0.5:
                    labels.undo_label(user=user, token=lease.token)

    def sweep() -> None:
        while time.monotonic() < end:
            upkeep.sweep_leases()

    results = at_once([partial(restless, user) for user in desk.people] + [sweep] * 2)
    assert results == [None] * 12
    assert mistakes(desk.project) == []
    let_expire(*Lease.objects.filter(state__in=HELD))
    upkeep.sweep_leases()
    everybody(desk)
    assert set(annotators_per_item(desk)) == {2}
    assert mistakes(desk.project) == []


def test_members_join_while_others_work() -> None:
    desk = make_desk(people=4, n_items=120)
    newcomers = [make_user(f"new-{n}", "annotator") for n in range(4)]

    def join(user: User) -> int:
        projects.add_members(actor=desk.manager, project=desk.project, users=[user])
        return work(desk, user)

    calls = [partial(work, desk, user, think=0.01) for user in desk.people]
    given = at_once([*calls, *(partial(join, user) for user in newcomers)])
    assert sum(given) == 120
    assert all(given[4:])
    assert set(annotators_per_item(desk)) == {1}
    assert mistakes(desk.project) == []
    assert audit.verify_chain() > 0


def test_items_become_gold_while_people_work_on_them() -> None:
    desk = make_desk(people=8, n_items=60, settings={**TWO, "gold_percent": 20, "gold_minimum": 99})
    working(desk)

    def make(part: int) -> None:
        for item in desk.items()[part:40:2]:
            gold.make_gold(actor=desk.manager, item=item, verdicts={"quality": "second"})

    at_once(
        [partial(work, desk, user) for user in desk.people] + [partial(make, n) for n in (0, 1)]
    )
    assert Item.objects.filter(state=ItemState.GOLD).count() == 40
    assert mistakes(desk.project) == []
    for user in desk.people:
        member = desk.member(user)
        before = member.gold_seen
        with transaction.atomic():
            gold.score_member(member)
        member.refresh_from_db()
        assert member.gold_seen == before


def test_who_submits_between_the_two_locks_is_locked_in_order_and_scored(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The locks of the first try are let go: she submits once more while the item is held."""
    desk = make_desk(n_items=1, settings=TWO)
    working(desk)
    lease = one_lease(desk)
    lock = item_locks._lock_rows
    tries: list[list[Lease]] = []

    def slowly(items: list[int]) -> list[int]:
        if not tries:
            at_once([partial(submit, desk.people[0], lease, "first")])
        tries.append(list(Lease.objects.filter(state=LeaseState.SUBMITTED)))
        return lock(items)

    monkeypatch.setattr(item_locks, "_lock_rows", slowly)
    gold.make_gold(actor=desk.manager, item=lease.item, verdicts={"quality": "first"})
    assert [len(found) for found in tries] == [1, 1]
    assert Item.objects.get().state == ItemState.GOLD


def test_gold_is_dropped_and_released_while_people_label_it() -> None:
    """Dropping, releasing, correcting and importing all score members: in the one order."""
    desk = make_desk(people=6, n_items=40, settings={**TWO, "gold_percent": 50, "gold_minimum": 99})
    working(desk)
    known = [item.pk for item in desk.items()[:12]]
    for item in desk.items()[:12]:
        gold.make_gold(actor=desk.manager, item=item, verdicts={"quality": "second"})

    def drop_and_release() -> None:
        for start in range(0, 12, 3):
            part = known[start : start + 3]
            items.drop_items(actor=desk.manager, project=desk.project, items=part)
            items.release_items(actor=desk.manager, project=desk.project, items=part)

    def correct() -> None:
        for item in reversed(desk.items()[:12]):
            with contextlib.suppress(Refused):  # dropped just now
                gold.make_gold(actor=desk.manager, item=item, verdicts={"quality": "tie"})

    at_once([*(partial(work, desk, user) for user in desk.people), drop_and_release, correct])
    assert Item.objects.filter(state=ItemState.GOLD).count() == 12
    assert mistakes(desk.project) == []
    for user in desk.people:
        before = desk.member(user).gold_seen
        with transaction.atomic():
            assert gold.score_member(desk.member(user)).gold_seen == before


def test_a_project_closes_while_people_submit() -> None:
    """What was given out is accepted; nothing more is given out; nothing is half done."""
    desk = make_desk(people=8, n_items=100)

    def close() -> None:
        time.sleep(0.3)
        projects.move_project(actor=desk.manager, project=desk.project, to="closed")

    def go_on(user: User) -> Any:
        fresh = type(desk.project).objects
        while True:
            project = fresh.get(pk=desk.project.pk)
            try:
                lease = leases.serve(user=user, project=project).lease
            except Refused as error:
                return error.code
            assert lease is not None
            assert submit(user, lease, "first").label.pk

    results = at_once([partial(go_on, user) for user in desk.people] + [close])
    assert set(results[:-1]) == {"project_not_open"}
    assert 0 < Label.objects.count() < 100
    assert mistakes(desk.project) == []


def test_members_are_paused_while_they_work() -> None:
    desk = make_desk(people=4, n_items=80)

    def pause(user: User) -> None:
        time.sleep(0.1)
        member = desk.member(user)
        projects.set_member_state(actor=desk.manager, member=member, state=MemberState.PAUSED)

    calls = [partial(work, desk, user, think=0.02) for user in desk.people]
    results = at_once([*calls, partial(pause, desk.people[0]), partial(pause, desk.people[1])])
    assert [isinstance(result, Refused) for result in results[:2]] == [True, True]
    for user in desk.people[2:]:
        work(desk, user)
    held = Lease.objects.filter(state__in=HELD)
    let_expire(*held)
    for user in desk.people[2:]:
        work(desk, user)
    assert set(annotators_per_item(desk)) == {1}
    assert mistakes(desk.project) == []


def test_a_deadlock_is_tried_again_and_reaches_nobody() -> None:
    desk = make_desk(n_items=2)
    one, two = desk.items()
    tries: list[int] = []

    @retry_deadlocks
    def lock_both(first: int, second: int) -> str:
        tries.append(1)
        with transaction.atomic():
            Item.objects.select_for_update().get(pk=first)
            time.sleep(0.3)
            Item.objects.select_for_update().get(pk=second)
        return "done"

    results = at_once([partial(lock_both, one.pk, two.pk), partial(lock_both, two.pk, one.pk)])
    assert results == ["done", "done"]
    assert len(tries) > 2

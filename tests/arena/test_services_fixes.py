"""Rules that the services must keep when something goes wrong or is done in an unusual order."""

from __future__ import annotations

import random
from collections import Counter
from datetime import timedelta

import pytest
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from arena.enums import AssignmentState
from arena.models import Assignment, Round, Slot, Vote
from arena.selectors.ballots import assignment_parts
from arena.services import leases, votes
from tests.arena.factories import World, left_is_better, make_world, open_round, vote_all
from webapp.accounts.models import User
from webapp.catalog.services.personas import withdraw_consent
from webapp.core.errors import Forbidden, Refused

pytestmark = pytest.mark.django_db


def serve(user: User, round_: Round) -> Assignment:
    row = leases.current_ballot(user=user, round_=round_)
    assert row is not None
    return row


def cast(user: User, row: Assignment) -> Vote:
    ballot = votes.Ballot(left_is_better(row), active_ms=5000)
    return votes.cast_vote(user=user, token=row.token, ballot=ballot)


def let_expire(row: Assignment, round_: Round) -> None:
    Assignment.objects.filter(pk=row.pk).update(expires_at=timezone.now() - timedelta(minutes=1))
    leases.sweep_expired(round_)


def check_counters(round_: Round) -> None:
    """Every slot counts its live battles and those of them that have x on the left."""
    live: Counter[int] = Counter()
    left: Counter[int] = Counter()
    rows = Assignment.objects.filter(round=round_, state__in=["reserved", "shown", "voted"])
    for slot, left_is_x in rows.values_list("slot", "battle__left_is_x"):
        live[slot] += 1
        left[slot] += left_is_x
    for slot_row in Slot.objects.filter(round=round_):
        assert (slot_row.live, slot_row.x_left) == (live[slot_row.pk], left[slot_row.pk])


# Giving back, taking back, late


def test_a_skipped_battle_takes_no_vote_of_who_gave_it_back() -> None:
    world = make_world()
    round_ = open_round(world)
    rater, other = world.raters[:2]
    row = serve(rater, round_)
    leases.skip(user=rater, token=row.token, reason="recognised")
    cast(other, serve(other, round_))
    with pytest.raises(Refused, match="gave this battle back"):
        cast(rater, row)
    row.refresh_from_db()
    assert row.state == AssignmentState.SKIPPED
    assert Vote.objects.filter(rater=rater).count() == 0
    check_counters(round_)


def test_a_late_vote_stays_late_when_it_is_taken_back_and_given_anew() -> None:
    world = make_world()
    round_ = open_round(world)
    rater = world.raters[0]
    row = serve(rater, round_)
    let_expire(row, round_)
    assert cast(rater, row).late
    votes.undo_vote(user=rater, round_=round_, token=row.token)
    assert cast(rater, row).late
    check_counters(round_)


def test_a_vote_in_time_stays_so_when_it_is_taken_back_and_given_anew() -> None:
    world = make_world()
    round_ = open_round(world)
    rater = world.raters[0]
    row = serve(rater, round_)
    cast(rater, row)
    votes.undo_vote(user=rater, round_=round_, token=row.token)
    assert not cast(rater, row).late


def test_undo_names_its_battle_and_takes_back_one_vote_however_often_it_is_sent() -> None:
    world = make_world()
    round_ = open_round(world)
    rater = world.raters[0]
    rows = []
    for _ in range(3):
        rows.append(serve(rater, round_))
        cast(rater, rows[-1])
    for _ in range(3):
        back = votes.undo_vote(user=rater, round_=round_, token=rows[-1].token)
        assert back is not None
        assert back.pk == rows[-1].pk
    assert sum(vote.is_undo for vote in Vote.objects.all()) == 1
    assert votes.undo_vote(user=rater, round_=round_, token="") is None
    leases.skip(user=rater, token=rows[-1].token, reason="unsure")
    assert votes.undo_vote(user=rater, round_=round_, token=rows[-1].token) is None
    with pytest.raises(Forbidden):
        votes.undo_vote(user=world.raters[1], round_=round_, token=rows[0].token)


def test_undo_on_the_page_without_a_battle_takes_nothing_back() -> None:
    world = make_world()
    round_ = open_round(world)
    rater = world.raters[0]
    cast(rater, serve(rater, round_))
    client = Client()
    client.force_login(rater)
    response = client.post(reverse("arena:undo"))
    assert response["Location"] == reverse("arena:vote")
    assert Vote.objects.count() == 1


# What is erased


def erase(world: World, row: Assignment) -> None:
    version = assignment_parts(row.pk).slot.context.persona_version
    assert version is not None
    withdraw_consent(actor=world.admin, persona=version.persona)


def test_a_text_that_is_erased_under_a_lease_is_not_shown_any_more() -> None:
    world = make_world(contestants=2, personas=2, prompts=3, raters=1)
    round_ = open_round(world, planned_votes=6)
    rater = world.raters[0]
    row = serve(rater, round_)
    erase(world, row)
    other = serve(rater, round_)
    assert other.slot.context.persona_version_id != row.slot.context.persona_version_id
    row.refresh_from_db()
    assert row.state == AssignmentState.EXPIRED
    check_counters(round_)
    assert vote_all(round_, [rater]) == 3
    assert leases.current_ballot(user=rater, round_=round_) is None


def test_a_reserved_battle_that_is_erased_leaves_no_trace() -> None:
    world = make_world(contestants=2, personas=6, prompts=1, raters=1)
    round_ = open_round(world, planned_votes=6)
    rater = world.raters[0]
    row = serve(rater, round_)
    reserved = leases.reserve_next(user=rater, round_=round_)
    assert reserved is not None
    erase(world, reserved)
    cast(rater, row)
    served = serve(rater, round_)
    assert served.pk != reserved.pk
    client = Client()
    client.force_login(rater)
    assert "▇▇▇" not in client.get(reverse("arena:vote")).content.decode()
    assert not Assignment.objects.filter(pk=reserved.pk).exists()
    check_counters(round_)


def test_a_vote_on_an_erased_battle_can_be_taken_back_and_another_battle_follows() -> None:
    world = make_world(contestants=2, personas=4, prompts=1, raters=1)
    round_ = open_round(world, planned_votes=4)
    rater = world.raters[0]
    row = serve(rater, round_)
    cast(rater, row)
    erase(world, row)
    client = Client()
    client.force_login(rater)
    url = reverse("api:undo", args=[round_.pk])
    answer = client.post(url, {"token": row.token}, content_type="application/json")
    assert answer.status_code == 200
    assert answer.json()["token"] != row.token
    assert "▇" not in answer.content.decode()


# Sides


@pytest.mark.parametrize("chance", [1, 2, 3, 4, 5])
def test_skips_do_not_tilt_the_sides(chance: int) -> None:
    world = make_world(contestants=2, personas=10, prompts=10, raters=6)
    round_ = open_round(world, planned_votes=100)
    given_back = random.Random(chance)
    first, waiting = world.contestants[0].pk, list(world.raters)
    while waiting:
        rater = waiting.pop(0)
        row = leases.current_ballot(user=rater, round_=round_)
        if row is None:
            continue
        waiting.append(rater)
        if given_back.random() < 0.4:
            leases.skip(user=rater, token=row.token, reason="unsure")
        else:
            cast(rater, row)
    rows = Assignment.objects.filter(state=AssignmentState.VOTED)
    sides = rows.values_list("battle__left_is_x", "slot__x__contestant", "slot__y__contestant")
    left = sum((x if left_is_x else y) == first for left_is_x, x, y in sides)
    assert abs(left - len(sides) / 2) <= 3
    assert len(sides) >= 95
    check_counters(round_)


def test_the_counters_of_a_slot_follow_every_way_that_a_lease_can_go() -> None:
    world = make_world(raters=4)
    round_ = open_round(world, planned_votes=24, votes_per_battle=2)
    dice = random.Random(7)
    for _ in range(30):
        rater = dice.choice(world.raters)
        row = leases.current_ballot(user=rater, round_=round_)
        if row is None:
            continue
        match dice.randrange(5):
            case 0:
                leases.skip(user=rater, token=row.token, reason="unsure")
            case 1:
                let_expire(row, round_)
            case 2:
                let_expire(row, round_)
                cast(rater, row)
            case 3:
                cast(rater, row)
                votes.undo_vote(user=rater, round_=round_, token=row.token)
            case _:
                leases.reserve_next(user=rater, round_=round_)
                cast(rater, row)
        check_counters(round_)

"""Many people at once, on PostgreSQL: nothing lost, nothing double."""

from __future__ import annotations

from collections import Counter
from functools import partial
from http.cookies import SimpleCookie

import pytest
from django.db import connection
from django.test import Client
from django.urls import reverse

from arena.enums import AssignmentState, RoundState
from arena.models import Assignment, Round, Slot, UnsealApproval, Vote
from arena.services import closing, leases, ratings, votes
from tests.arena.factories import (
    closed_round,
    left_is_better,
    make_world,
    open_round,
)
from tests.conftest import PASSWORD
from tests.threads import at_once
from webapp.accounts import services as accounts
from webapp.accounts.models import User
from webapp.core import audit

pytestmark = [pytest.mark.postgres, pytest.mark.django_db(transaction=True)]


def test_it_really_is_postgresql() -> None:
    assert connection.vendor == "postgresql"


def vote_until_done(rater: User, round_: Round) -> int:
    given = 0
    while (row := leases.current_ballot(user=rater, round_=round_)) is not None:
        votes.cast_vote(user=rater, token=row.token, ballot=votes.Ballot(left_is_better(row)))
        given += 1
    return given


@pytest.mark.parametrize("votes_per_battle", [1, 2])
def test_twenty_raters_at_once_fill_every_slot_exactly(votes_per_battle: int) -> None:
    world = make_world(contestants=4, personas=6, prompts=5, raters=20)
    round_ = open_round(
        world, planned_votes=180 * votes_per_battle, votes_per_battle=votes_per_battle
    )
    counts = at_once([partial(vote_until_done, r, round_) for r in world.raters])
    assert sum(counts) == 180 * votes_per_battle
    assert set(Slot.objects.values_list("live", flat=True)) == {votes_per_battle}
    pairs = Counter(Assignment.objects.values_list("rater", "slot"))
    assert set(pairs.values()) == {1}
    assert Vote.objects.count() == 180 * votes_per_battle


def test_two_tabs_of_one_rater_show_the_same_battle() -> None:
    world = make_world()
    round_ = open_round(world)
    rater = world.raters[0]
    rows = at_once([lambda: leases.current_ballot(user=rater, round_=round_)] * 8)
    assert len({row.pk for row in rows}) == 1
    assert Assignment.objects.count() == 1


def test_a_double_click_over_http_is_one_vote() -> None:
    world = make_world()
    open_round(world)
    client = Client()
    client.force_login(world.raters[0])
    token = client.get(reverse("arena:vote")).context["pair"].token
    body = {"token": token, "quality": "left", "personalization": "tie"}

    def click() -> int:
        tab = Client()
        tab.cookies = SimpleCookie(client.cookies.output(header="", sep=";"))
        return int(tab.post(reverse("arena:vote"), body).status_code)

    assert set(at_once([click] * 6)) == {302}
    assert Vote.objects.count() == 1


def test_different_choices_at_once_become_revisions() -> None:
    world = make_world()
    round_ = open_round(world)
    rater = world.raters[0]
    row = leases.current_ballot(user=rater, round_=round_)
    assert row is not None
    choices = ["left", "right", "tie", "both_bad"]
    at_once(
        [
            partial(
                votes.cast_vote,
                user=rater,
                token=row.token,
                ballot=votes.Ballot({"quality": c, "personalization": c}),
            )
            for c in choices
        ]
    )
    revisions = sorted(Vote.objects.values_list("revision", flat=True))
    assert revisions == [1, 2, 3, 4]
    assert Slot.objects.get(pk=row.slot_id).live == 1


def test_undo_and_vote_at_once_leave_one_head() -> None:
    world = make_world()
    round_ = open_round(world)
    rater = world.raters[0]
    row = leases.current_ballot(user=rater, round_=round_)
    assert row is not None
    ballot = votes.Ballot(left_is_better(row))
    votes.cast_vote(user=rater, token=row.token, ballot=ballot)
    at_once(
        [lambda: votes.undo_vote(user=rater, round_=round_, token=row.token)] * 3
        + [lambda: votes.cast_vote(user=rater, token=row.token, ballot=ballot)] * 3
    )
    row.refresh_from_db()
    newest = Vote.objects.order_by("-revision")[0]
    assert row.head_id == newest.pk
    assert (row.state == AssignmentState.VOTED) == (not newest.is_undo)
    assert Slot.objects.get(pk=row.slot_id).live == 1


def test_a_round_closes_once_and_takes_no_vote_after() -> None:
    world = make_world(raters=6)
    round_ = open_round(world)
    results = at_once(
        [lambda: closing.close_round(actor=None, round_=round_)] * 3
        + [partial(vote_until_done, r, round_) for r in world.raters[:3]]
    )
    assert sum(isinstance(result, Round) for result in results) == 1
    round_.refresh_from_db()
    receipts = Vote.objects.values_list("receipt", flat=True)
    from arena.blinding import vote_digest

    assert round_.vote_digest == vote_digest(receipts)


def test_rating_twice_at_once_stores_one_snapshot_of_each_kind() -> None:
    world = make_world()
    round_ = closed_round(world)
    at_once([lambda: ratings.rate_round(round_.pk)] * 4)
    assert round_.snapshots.count() == 2


def test_two_administrators_agree_at_once() -> None:
    world = make_world()
    round_ = closed_round(world)

    def agree(user: User) -> Round:
        return closing.approve_unsealing(actor=user, round_=round_, reason="done")

    at_once([partial(agree, u) for u in (world.admin, world.second_admin, world.admin)])
    round_.refresh_from_db()
    assert round_.state == RoundState.UNSEALED
    assert UnsealApproval.objects.count() == 2
    assert audit.verify_chain() > 0


def test_an_invitation_makes_one_account() -> None:
    world = make_world()
    _invitation, token = accounts.invite(actor=world.admin, role="rater")
    results = at_once(
        [
            partial(accounts.accept_invitation, token=token, username=f"new{n}", password=PASSWORD)
            for n in range(5)
        ]
    )
    assert sum(isinstance(result, User) for result in results) == 1


def test_the_audit_chain_survives_many_writers() -> None:
    world = make_world()
    at_once([lambda: audit.record(actor=world.admin, action="test", obj=world.admin)] * 10)
    assert audit.verify_chain() == 10

"""Handing out battles: never twice, never what was met before, balanced sides, leases that end."""

from __future__ import annotations

from collections import Counter
from datetime import timedelta

import pytest
from django.utils import timezone

from arena.enums import AssignmentState
from arena.models import Assignment, Slot
from arena.services import leases, votes
from tests.arena.factories import left_is_better, make_world, open_round, vote_all
from webapp.catalog.enums import Where
from webapp.catalog.models import Exposure
from webapp.catalog.services.personas import withdraw_consent
from webapp.core.errors import Forbidden, Refused

pytestmark = pytest.mark.django_db


def test_a_rater_never_gets_a_pair_twice_and_every_slot_gets_its_votes() -> None:
    world = make_world(raters=3)
    round_ = open_round(world, planned_votes=30, votes_per_battle=3)
    assert vote_all(round_, world.raters) == 30
    rows = Assignment.objects.filter(round=round_).values_list("rater", "slot")
    assert len(rows) == len(set(rows)) == 30
    assert set(Slot.objects.filter(round=round_).values_list("live", flat=True)) == {3}


def test_the_same_page_twice_is_the_same_battle() -> None:
    world = make_world()
    round_ = open_round(world)
    first = leases.current_ballot(user=world.raters[0], round_=round_)
    second = leases.current_ballot(user=world.raters[0], round_=round_)
    assert first is not None
    assert second is not None
    assert first.pk == second.pk


def test_prefetching_reserves_one_battle_and_exposes_nothing() -> None:
    world = make_world()
    round_ = open_round(world)
    rater = world.raters[0]
    leases.current_ballot(user=rater, round_=round_)
    seen = Exposure.objects.filter(user=rater).count()
    one = leases.reserve_next(user=rater, round_=round_)
    two = leases.reserve_next(user=rater, round_=round_)
    assert one is not None
    assert two is not None
    assert one.pk == two.pk
    assert one.state == AssignmentState.RESERVED
    assert Exposure.objects.filter(user=rater).count() == seen == 2


def test_who_imported_or_audited_a_text_never_judges_it() -> None:
    world = make_world(contestants=2, personas=2, prompts=1, raters=2)
    round_ = open_round(world, planned_votes=2)
    slots = list(Slot.objects.filter(round=round_).select_related("x", "y"))
    Exposure.objects.create(user=world.raters[0], answer=slots[0].x.answer, where=Where.IMPORTED)
    assert vote_all(round_, [world.raters[0]]) == 1
    assert vote_all(round_, [world.raters[1]]) == 1
    assert leases.current_ballot(user=world.raters[0], round_=round_) is None


def test_fresh_texts_come_first() -> None:
    """A rater meets the same text again only when nothing fresh is left."""
    world = make_world(
        contestants=3, personas=4, prompts=2, raters=1,
        text=lambda c, p, q: "The same words." if c == 0 else f"Text {c} {p} {q}.",
    )  # fmt: skip
    round_ = open_round(world, planned_votes=24, screening_policy={"duplicate": "keep"})
    rater = world.raters[0]
    met: set[str] = set()
    again: list[bool] = []
    while (row := leases.current_ballot(user=rater, round_=round_)) is not None:
        texts = {row.slot.x.answer.text_sha256, row.slot.y.answer.text_sha256}
        again.append(bool(texts & met))
        met |= texts
        votes.cast_vote(user=rater, token=row.token, ballot=votes.Ballot(left_is_better(row)))
    assert len(again) == 24
    assert again == sorted(again)
    assert not again[0]


def test_sides_are_balanced_per_rater_and_over_all() -> None:
    world = make_world(contestants=3, personas=6, prompts=4, raters=2)
    round_ = open_round(world, planned_votes=72)
    vote_all(round_, world.raters)
    left: Counter[tuple[int, int]] = Counter()
    total: Counter[tuple[int, int]] = Counter()
    for row in Assignment.objects.filter(round=round_).select_related(
        "slot__x", "slot__y", "battle"
    ):
        x, y = row.slot.x.contestant_id, row.slot.y.contestant_id
        left[row.rater_id, x if row.battle.left_is_x else y] += 1
        total[row.rater_id, x] += 1
        total[row.rater_id, y] += 1
    for key, n in total.items():
        assert abs(left[key] - n / 2) <= 2.5, (key, left[key], n)


def test_an_expired_lease_frees_the_slot_and_a_late_vote_still_counts() -> None:
    world = make_world(contestants=2, personas=2, prompts=1, raters=2)
    round_ = open_round(world, planned_votes=2)
    slow, quick = world.raters
    row = leases.current_ballot(user=slow, round_=round_)
    assert row is not None
    Assignment.objects.filter(pk=row.pk).update(expires_at=timezone.now() - timedelta(minutes=1))
    assert leases.sweep_expired(round_) == 1
    assert vote_all(round_, [quick]) == 2
    vote = votes.cast_vote(user=slow, token=row.token, ballot=votes.Ballot(left_is_better(row)))
    assert vote.late
    assert Assignment.objects.get(pk=row.pk).state == AssignmentState.VOTED


def test_a_reserved_battle_that_expires_leaves_no_trace() -> None:
    world = make_world()
    round_ = open_round(world)
    rater = world.raters[0]
    leases.current_ballot(user=rater, round_=round_)
    row = leases.reserve_next(user=rater, round_=round_)
    assert row is not None
    Assignment.objects.filter(pk=row.pk).update(expires_at=timezone.now() - timedelta(minutes=1))
    leases.sweep_expired(round_)
    assert not Assignment.objects.filter(pk=row.pk).exists()
    slot = Slot.objects.get(pk=row.slot_id)
    assert (slot.live, slot.x_left) == (0, 0)


def test_a_skipped_battle_goes_to_somebody_else() -> None:
    world = make_world(contestants=2, personas=2, prompts=1, raters=2)
    round_ = open_round(world, planned_votes=2)
    row = leases.current_ballot(user=world.raters[0], round_=round_)
    assert row is not None
    leases.skip(user=world.raters[0], token=row.token, reason="unsure")
    leases.skip(user=world.raters[0], token=row.token, reason="unsure")
    assert Slot.objects.get(pk=row.slot_id).live == 0
    assert vote_all(round_, [world.raters[0]]) == 1
    assert vote_all(round_, [world.raters[1]]) == 1


def test_heartbeat_renews_only_ones_own_lease() -> None:
    world = make_world()
    round_ = open_round(world)
    row = leases.current_ballot(user=world.raters[0], round_=round_)
    assert row is not None
    assert leases.heartbeat(user=world.raters[0], token=row.token) > 800
    with pytest.raises(Refused):
        leases.heartbeat(user=world.raters[1], token=row.token)


def test_only_raters_of_the_round_vote() -> None:
    world = make_world()
    round_ = open_round(world, raters=[world.raters[0].pk])
    with pytest.raises(Forbidden):
        leases.current_ballot(user=world.raters[1], round_=round_)
    with pytest.raises(Forbidden):
        leases.current_ballot(user=world.admin, round_=round_)


def test_what_withdrawn_consent_erased_is_not_served_any_more() -> None:
    world = make_world(contestants=2, personas=2, prompts=2, raters=1)
    round_ = open_round(world, planned_votes=4)
    withdraw_consent(actor=world.admin, persona=world.personas[0])
    assert vote_all(round_, world.raters) == 2
    served = Assignment.objects.values_list(
        "slot__context__persona_version__persona", flat=True
    ).distinct()
    assert list(served) == [world.personas[1].pk]

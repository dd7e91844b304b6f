"""Rules that the services must keep when something goes wrong or is done in an unusual order."""

from __future__ import annotations

import random
from collections import Counter
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings
from django.core.cache import cache
from django.db import connection
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from arena.enums import AssignmentState, RoundState, Variant
from arena.exclusions import CastVote, excluded_votes
from arena.models import Assignment, RatingSnapshot, Round, Slot, Vote
from arena.selectors.ballots import assignment_parts
from arena.selectors.votes import counted_votes
from arena.services import closing, leases, ratings, sealing, votes
from tests.arena.factories import (
    World,
    closed_round,
    draft_round,
    left_is_better,
    make_world,
    open_round,
    screened_round,
    unsealed_round,
    vote_all,
)
from webapp.accounts.models import User
from webapp.catalog.models import Contestant
from webapp.catalog.services.personas import withdraw_consent
from webapp.core.errors import Forbidden, InvalidInput, Refused

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


# Ratings follow votes


def close(world: World, round_: Round) -> Round:
    return closing.close_round(actor=world.admin, round_=round_, reason="enough for a test")


def test_ratings_count_the_votes_whatever_their_assignments_say() -> None:
    world = make_world()
    round_ = open_round(world)
    assert vote_all(round_, world.raters) == 12
    with connection.cursor() as cursor:
        cursor.execute("UPDATE arena_assignment SET state = 'skipped' WHERE id % 2 = 0")
        cursor.execute("UPDATE arena_assignment SET head_id = NULL")
    round_ = close(world, round_)
    ratings.rate_round(round_.pk)
    assert round_.snapshots.get(variant=Variant.ALL).details["flow"]["voted"] == 12


def test_the_last_revision_counts_and_an_undone_vote_does_not() -> None:
    world = make_world()
    round_ = open_round(world)
    rater = world.raters[0]
    row = serve(rater, round_)
    cast(rater, row)
    votes.cast_vote(
        user=rater,
        token=row.token,
        ballot=votes.Ballot({"quality": "tie", "personalization": "right"}),
    )
    (counted,) = counted_votes(round_)
    assert counted.verdicts == {"quality": "tie", "personalization": "right"}
    votes.undo_vote(user=rater, round_=round_, token=row.token)
    assert counted_votes(round_) == []
    cast(rater, row)
    (counted,) = counted_votes(round_)
    assert counted.verdicts["quality"] == "left"


def test_votes_that_do_not_lead_to_the_digest_are_not_rated(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    world = make_world()
    round_ = open_round(world)
    vote_all(round_, world.raters)
    monkeypatch.setattr(closing, "vote_digest", lambda _receipts: "0" * 64)
    round_ = close(world, round_)
    with pytest.raises(Refused, match="closed with"):
        ratings.rate_round(round_.pk)
    assert not RatingSnapshot.objects.exists()
    assert "do not lead to the digest" in caplog.text


def test_both_snapshots_are_stored_or_none(monkeypatch: pytest.MonkeyPatch) -> None:
    world = make_world()
    round_ = open_round(world)
    vote_all(round_, world.raters)
    round_ = close(world, round_)
    store = ratings._store

    def dying(round_: Round, variant: str, *rest: Any) -> None:
        if variant == Variant.EXCLUDED:
            raise MemoryError
        store(round_, variant, *rest)

    monkeypatch.setattr(ratings, "_store", dying)
    with pytest.raises(MemoryError):
        ratings.rate_round(round_.pk)
    assert not RatingSnapshot.objects.exists()
    monkeypatch.undo()
    ratings.rate_round(round_.pk)
    assert RatingSnapshot.objects.count() == 2


def test_a_second_run_computes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    round_ = closed_round(make_world())

    def compute(*_args: Any) -> Any:
        raise AssertionError

    monkeypatch.setattr(ratings, "compute", compute)
    ratings.rate_round(round_.pk)


def half_rated(world: World, monkeypatch: pytest.MonkeyPatch) -> Round:
    """A closed round whose second snapshot was never stored."""
    round_ = open_round(world)
    vote_all(round_, world.raters)
    round_ = close(world, round_)
    with monkeypatch.context() as patch:
        patch.setattr(ratings, "missing_variants", lambda _round: [Variant.ALL.value])
        ratings.rate_round(round_.pk)
    assert round_.snapshots.count() == 1
    return round_


def test_unsealing_needs_both_variants(monkeypatch: pytest.MonkeyPatch) -> None:
    world = make_world()
    round_ = half_rated(world, monkeypatch)
    with pytest.raises(Refused, match="not computed"):
        closing.approve_unsealing(actor=world.admin, round_=round_, reason="done")
    ratings.rate_round(round_.pk)
    for actor in (world.admin, world.second_admin):
        round_ = closing.approve_unsealing(actor=actor, round_=round_, reason="done")
    assert round_.state == RoundState.UNSEALED


def test_repair_finds_rounds_that_lack_a_snapshot_and_asks_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    world = make_world()
    round_ = half_rated(world, monkeypatch)
    sent: list[int] = []
    monkeypatch.setattr(ratings, "enqueue", lambda _name, pk: sent.append(pk))
    assert ratings.restart_missing() == 0  # its job began just now
    cache.clear()
    assert ratings.restart_missing() == 1
    assert ratings.restart_missing() == 0
    assert sent == [round_.pk]
    monkeypatch.setattr(closing, "missing_variants", lambda _round: [])
    for actor in (world.admin, world.second_admin):
        closing.approve_unsealing(actor=actor, round_=round_, reason="done")
    cache.clear()
    assert ratings.restart_missing() == 1
    ratings.rate_round(round_.pk)
    cache.clear()
    assert ratings.restart_missing() == 0


def test_repair_leaves_rated_rounds_alone() -> None:
    unsealed_round(make_world())
    cache.clear()
    assert ratings.restart_missing() == 0


def cast_votes(*verdicts: dict[str, str]) -> list[CastVote]:
    return [CastVote("r", "c", "", "a", "b", row, 9999, False, False) for row in verdicts]


def test_one_sided_counts_votes_and_not_verdicts() -> None:
    left = {"quality": "left", "personalization": "left"}
    right = {"quality": "right", "personalization": "tie"}
    mixed = {"quality": "left", "personalization": "right"}
    tie = {"quality": "tie", "personalization": "both_bad"}
    rules = {"one_sided": 90}
    assert not excluded_votes(cast_votes(*[left] * 19, tie), rules)
    assert len(excluded_votes(cast_votes(*[left] * 20), rules)) == 20
    assert len(excluded_votes(cast_votes(*[left] * 19, right), rules)) == 20
    assert not excluded_votes(cast_votes(*[left] * 18, right, right), rules)
    assert not excluded_votes(cast_votes(*[left] * 18, mixed, mixed), rules)
    assert len(excluded_votes(cast_votes(*[right] * 20), rules)) == 20


# Plans


PAST, FUTURE = timedelta(days=-1), timedelta(days=1)
WRONG_PLANS: list[tuple[dict[str, Any], str]] = [
    ({"name": "n" * 121}, "name"),
    ({"axes": ["quality", "beauty"], "weights": {"quality": 50, "beauty": 50}}, "axes"),
    ({"weights": {"quality": 150, "personalization": -50}}, "weights"),
    ({"weights": {"quality": 50.5, "personalization": 49.5}}, "weights"),
    ({"screening_policy": {"empty": "keep"}}, "rule_empty"),
    ({"screening_policy": {"unfinished": "mask"}}, "rule_unfinished"),
    ({"screening_policy": {"bogus": "mask"}}, "screening_policy"),
    ({"exclusions": {"nonsense": 3}}, "exclusions"),
    ({"exclusions": {"one_sided": 50}}, "one_sided"),
    ({"exclusions": {"one_sided": 101}}, "one_sided"),
    ({"exclusions": {"too_fast": -1}}, "too_fast"),
    ({"exclusions": {"late": 2}}, "late"),
    ({"stratum_features": ["shoe_size"]}, "stratum_features"),
    ({"minimum_strata": 0}, "minimum_strata"),
    ({"minimum_per_stratum": 0}, "minimum_per_stratum"),
    ({"planned_votes": 1_000_001}, "planned_votes"),
    ({"personas_n": -1}, "personas_n"),
    ({"stop_rule": "whim"}, "stop_rule"),
    ({"tie_model": "whim"}, "tie_model"),
    ({"contestants": [1_000_001, 1_000_002]}, "contestants"),
    ({"raters": [1_000_001]}, "raters"),
]


@pytest.mark.parametrize(("changes", "field"), WRONG_PLANS)
def test_a_plan_is_checked_whoever_sends_it(changes: dict[str, Any], field: str) -> None:
    world = make_world()
    with pytest.raises(InvalidInput) as refusal:
        draft_round(world, **changes)
    assert refusal.value.field == field


def test_what_makes_sense_is_taken() -> None:
    draft_round(
        make_world(),
        exclusions={"one_sided": 51, "too_fast": 600_000, "late": 1, "owner": 0},
        screening_policy={"unfinished": "exclude", "model": "keep"},
        closes_at=timezone.now() + FUTURE,
    )


def test_contestants_that_read_the_same_are_refused() -> None:
    world = make_world(contestants=2)
    alike = [
        Contestant.objects.create(name="Alpha 1", version=""),
        Contestant.objects.create(name="Alpha", version="1"),
    ]
    with pytest.raises(InvalidInput, match="Alpha 1") as refusal:
        draft_round(world, contestants=[row.pk for row in [*world.contestants, *alike]])
    assert refusal.value.field == "contestants"


def test_a_round_cannot_close_before_it_opens() -> None:
    world = make_world()
    with pytest.raises(InvalidInput) as refusal:
        draft_round(world, stop_rule="date", closes_at=timezone.now() + PAST)
    assert refusal.value.field == "closes_at"
    round_ = screened_round(world, stop_rule="date", closes_at=timezone.now() + FUTURE)
    Round.objects.filter(pk=round_.pk).update(closes_at=timezone.now() + PAST)
    with pytest.raises(Refused, match="closing date is over"):
        sealing.open_round(actor=world.admin, round_=round_)
    assert Round.objects.get(pk=round_.pk).state == RoundState.SCREENING


# Jobs


def test_what_beat_sends_expires_and_never_waits_behind_long_work() -> None:
    """In `repair`; only what looks after processes runs where they are, on the GPU node."""
    schedule: dict[str, Any] = settings.CELERY_BEAT_SCHEDULE
    queues = {}
    for entry in schedule.values():
        assert 0 < entry["options"]["expires"] <= entry["schedule"]
        queues[entry["task"]] = settings.CELERY_TASK_ROUTES[entry["task"]]["queue"]
    assert settings.CELERY_TASK_DEFAULT_QUEUE not in queues.values()
    assert {task for task, queue in queues.items() if queue != "repair"} == {"workers.watch_runs"}


def test_the_worker_takes_from_every_queue_that_is_used() -> None:
    used = {route["queue"] for route in settings.CELERY_TASK_ROUTES.values()} - {"gpu"}
    text = (Path(__file__).resolve().parents[2] / "Procfile").read_text()
    served = text.split(" -Q ")[1].split()[0].split(",")
    assert used <= set(served)

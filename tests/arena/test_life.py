"""The life of a round, from draft to unsealed, and what its states refuse."""

from __future__ import annotations

import pytest
from django.db import IntegrityError, connection, transaction

from arena.enums import TRANSITIONS, RoundState
from arena.models import Battle, Entry, Rating, Round, Slot, Vote
from arena.selectors.votes import counted_votes
from arena.services import closing, ratings, rounds, screening, sealing
from tests.arena.factories import (
    closed_round,
    draft_round,
    make_world,
    open_round,
    plan_for,
    screened_round,
    unsealed_round,
    vote_all,
)
from tests.conftest import make_user
from webapp.accounts.enums import Role
from webapp.catalog.models import Seal
from webapp.catalog.services.personas import withdraw_consent
from webapp.core.errors import InvalidInput, Refused

pytestmark = pytest.mark.django_db


def test_a_round_lives_from_draft_to_unsealed() -> None:
    world = make_world()
    round_ = draft_round(world)
    assert round_.contexts.count() == 12
    screening.start_screening(actor=world.admin, round_=round_)
    screening.screen_round(round_.pk)
    round_ = sealing.open_round(actor=world.admin, round_=Round.objects.get(pk=round_.pk))
    assert len(round_.commitment) == 64
    assert Slot.objects.filter(round=round_).count() == 12
    assert Battle.objects.filter(round=round_).count() == 24
    assert vote_all(round_, world.raters) == 12
    assert closing.close_due_rounds() == 1
    round_.refresh_from_db()
    assert round_.state == RoundState.CLOSED


def test_unsealing_takes_two_administrators() -> None:
    world = make_world()
    round_ = closed_round(world)
    closing.approve_unsealing(actor=world.admin, round_=round_, reason="done")
    round_.refresh_from_db()
    assert round_.state == RoundState.CLOSED
    with pytest.raises(Refused):
        closing.approve_unsealing(actor=world.admin, round_=round_, reason="again")
    closing.approve_unsealing(actor=world.second_admin, round_=round_, reason="done")
    round_.refresh_from_db()
    assert round_.state == RoundState.UNSEALED
    assert not Seal.objects.filter(released_at=None).exists()


def test_who_became_an_administrator_later_cannot_help_to_unseal() -> None:
    round_ = closed_round(make_world())
    late = make_user("late", Role.ADMIN)
    with pytest.raises(Refused) as caught:
        closing.approve_unsealing(actor=late, round_=round_, reason="a second self")
    assert caught.value.code == "joined_later"


def test_the_database_knows_the_same_moves_as_the_code() -> None:
    world = make_world()
    round_ = draft_round(world)
    for target in RoundState.values:
        if target in TRANSITIONS[RoundState.DRAFT] or target == RoundState.DRAFT:
            continue
        with pytest.raises(IntegrityError), transaction.atomic():
            Round.objects.filter(pk=round_.pk).update(
                state=target, commitment="x", protocol="x", salt="x"
            )


SEALED_WRITES = [
    "UPDATE arena_round SET weights = '{\"quality\": 100}' WHERE id = {round}",
    "UPDATE arena_round SET planned_votes = 1 WHERE id = {round}",
    "UPDATE arena_round SET commitment = 'x' WHERE id = {round}",
    "UPDATE arena_round SET state = 'draft' WHERE id = {round}",
    "DELETE FROM arena_round WHERE id = {round}",
    "UPDATE arena_battle SET left_is_x = NOT left_is_x WHERE round_id = {round}",
    "DELETE FROM arena_battle WHERE round_id = {round}",
    "UPDATE arena_slot SET x_id = y_id, y_id = x_id WHERE round_id = {round}",
    "UPDATE arena_slot SET target = 9 WHERE round_id = {round}",
    "UPDATE arena_entry SET shown_sha256 = 'x' WHERE id = {entry}",
    "UPDATE arena_entry SET spans = '[[0, 1]]' WHERE id = {entry}",
    "DELETE FROM arena_roundcontestant WHERE round_id = {round}",
    "UPDATE arena_context SET stratum = 'x' WHERE round_id = {round}",
    "UPDATE arena_vote SET quality = 'right'",
    "DELETE FROM arena_vote",
    "UPDATE catalog_answertext SET text = 'x'",
    "UPDATE catalog_answer SET contestant_id = contestant_id + 1",
    "UPDATE catalog_seal SET holder = 'x'",
    'UPDATE catalog_prompt SET messages = \'[{"role": "user", "content": "Other?"}]\'',
    "UPDATE arena_roundrater SET pseudonym = 'x'",
    "DELETE FROM arena_roundrater",
    "INSERT INTO arena_roundrater (round_id, user_id, pseudonym, axes) "
    "SELECT {round}, id, 'x', '[]' FROM accounts_user WHERE username = 'ada'",
]


@pytest.mark.parametrize("statement", SEALED_WRITES)
def test_a_raw_statement_cannot_change_a_sealed_round(statement: str) -> None:
    world = make_world()
    round_ = open_round(world)
    vote_all(round_, world.raters, limit=2)
    assert Vote.objects.count() == 2
    entry = Entry.objects.filter(context__round=round_)[0]
    text = statement.replace("{round}", str(round_.pk)).replace("{entry}", str(entry.pk))
    with pytest.raises(IntegrityError), transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(text)


COUNTED_WRITES = [
    "UPDATE arena_round SET vote_digest = 'x' WHERE id = {round}",
    "UPDATE arena_round SET closed_at = opened_at WHERE id = {round}",
    "UPDATE arena_round SET state = 'unsealed' WHERE id = {round}",
    "UPDATE arena_assignment SET state = 'skipped' WHERE round_id = {round}",
    "UPDATE arena_assignment SET head_id = NULL WHERE round_id = {round}",
    "DELETE FROM arena_assignment WHERE round_id = {round}",
    "UPDATE arena_rating SET rating = 2000",
    "DELETE FROM arena_ratingsnapshot",
]


@pytest.mark.parametrize("statement", COUNTED_WRITES)
def test_a_raw_statement_cannot_change_what_was_counted(statement: str) -> None:
    round_ = closed_round(make_world())
    with pytest.raises(IntegrityError), transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(statement.replace("{round}", str(round_.pk)))


def test_a_sealed_text_cannot_be_swapped_by_taking_it_out_and_putting_it_back() -> None:
    world = make_world()
    round_ = open_round(world)
    entry = Entry.objects.filter(context__round=round_)[0]
    version = entry.context.persona_version
    assert version is not None
    swaps: list[tuple[str, list[int | str]]] = [
        (
            "INSERT INTO catalog_answertext (answer_id, text) VALUES (%s, %s)",
            [entry.answer_id, "x"],
        ),
        (
            "INSERT INTO catalog_personatext (version_id, summary) VALUES (%s, %s)",
            [version.pk, "x"],
        ),
    ]
    for statement, values in swaps:
        withdraw_consent(actor=world.admin, persona=version.persona)
        with pytest.raises(IntegrityError), transaction.atomic(), connection.cursor() as cursor:
            cursor.execute(statement, values)


@pytest.mark.postgres
@pytest.mark.parametrize("table", ["core_event", "arena_vote", "arena_battle", "arena_rating"])
def test_guarded_tables_cannot_be_emptied(table: str) -> None:
    with pytest.raises(IntegrityError), transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(f"TRUNCATE {table} CASCADE")


def test_a_sealed_round_takes_no_further_parts() -> None:
    world = make_world()
    round_ = open_round(world)
    slot = Slot.objects.filter(round=round_)[0]
    with pytest.raises(IntegrityError), transaction.atomic():
        Slot.objects.create(
            round=round_, context=slot.context, x=slot.y, y=slot.x, order=99, target=1
        )


def test_a_closed_round_takes_no_votes_even_raw() -> None:
    world = make_world()
    round_ = closed_round(world)
    vote = Vote.objects.filter(assignment__round=round_)[0]
    vote.pk, vote.revision, vote.receipt = None, 9, "f" * 64
    with pytest.raises(IntegrityError), transaction.atomic():
        vote.save(force_insert=True)


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"name": "  "}, "name"),
        ({"axes": []}, "axes"),
        ({"weights": {"quality": 50, "personalization": 49}}, "weights"),
        ({"votes_per_battle": 4}, "votes_per_battle"),
        ({"stop_rule": "date"}, "closes_at"),
        ({"personas_n": 99}, "personas_n"),
        ({"holdout_percent": 60}, "holdout_percent"),
        ({"with_personas": False}, "axes"),
    ],
)
def test_a_plan_that_cannot_work_is_refused_by_field(
    changes: dict[str, object], field: str
) -> None:
    world = make_world()
    with pytest.raises(InvalidInput) as caught:
        rounds.compose_round(actor=world.admin, plan=plan_for(world, **changes))
    assert caught.value.field == field


def test_one_kind_of_user_proves_nothing() -> None:
    world = make_world(personas=1)
    round_ = screened_round(world, planned_votes=6)
    with pytest.raises(Refused) as caught:
        sealing.open_round(actor=world.admin, round_=round_)
    assert caught.value.code == "too_uniform"


def test_an_answer_enters_one_round_only() -> None:
    world = make_world()
    first = open_round(world)
    second = screened_round(world, name="Round two")
    assert Entry.objects.filter(context__round=second).count() == 0
    with pytest.raises(InvalidInput):
        sealing.open_round(actor=world.admin, round_=second)
    assert Seal.objects.filter(holder=f"round:{first.pk}").count() == 36


def test_back_to_draft_frees_the_answers_and_cancelling_an_open_round_does_not() -> None:
    world = make_world()
    round_ = screened_round(world)
    rounds.back_to_draft(actor=world.admin, round_=round_)
    assert not Seal.objects.exists()
    round_ = open_round(world, name="Another")
    rounds.cancel_round(actor=world.admin, round_=round_, reason="a mistake")
    round_.refresh_from_db()
    assert round_.state == RoundState.CANCELLED
    assert Seal.objects.filter(released_at=None).count() == 36


def test_mixed_cells_are_not_composed_and_holdout_stays_holdout() -> None:
    world = make_world(personas=4, prompts=4)
    round_ = open_round(world, holdout_percent=50, planned_votes=6, minimum_strata=1)
    held = round_.contexts.filter(holdout=True)
    assert held.count() == 4
    assert round_.contexts.filter(holdout=False).count() == 4
    persona = held[0].persona_version.persona  # type: ignore[union-attr]
    persona.refresh_from_db()
    assert persona.split == "holdout"
    persona.split = "rotating"
    with pytest.raises(IntegrityError), transaction.atomic():
        persona.save()


def test_ratings_are_stored_once_and_recomputing_gives_the_same() -> None:
    round_ = unsealed_round(make_world())
    before = list(round_.snapshots.values_list("pk", "vote_digest", "details"))
    ratings.rate_round(round_.pk)
    assert list(round_.snapshots.values_list("pk", "vote_digest", "details")) == before
    results = ratings.compute(round_, counted_votes(round_))
    stored = {
        (row.axis, row.stratum, str(row.contestant)): (row.strength, row.rating, row.lo, row.hi)
        for row in Rating.objects.filter(snapshot__round=round_, snapshot__variant="all")
    }
    again = {
        (axis, stratum, row.contestant): (row.strength, row.rating, row.lo, row.hi)
        for (axis, stratum), result in results.items()
        for row in result.rows
    }
    assert stored == again

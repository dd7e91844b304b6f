"""What sealing commits to, and that nothing else is served or published afterwards."""

from __future__ import annotations

import hashlib
import json
import zipfile
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, cast

import pytest
from django.db import connection
from django.test import Client
from django.urls import reverse

from arena import exports
from arena.blinding import canonical_json
from arena.models import Assignment, Entry, Round, RoundRater, Slot, Vote
from arena.selectors import ballots, sealed
from arena.services import closing, leases, ratings, rounds, sealing, votes
from tests.arena.factories import (
    World,
    make_answer,
    make_world,
    open_round,
    screened_round,
    unsealed_round,
    vote_all,
)
from tests.conftest import make_user
from webapp.accounts.enums import Role
from webapp.catalog.models import Contestant, PersonaText, Prompt
from webapp.catalog.services.personas import withdraw_consent
from webapp.core.errors import InvalidInput, Refused
from webapp.core.models import Event

pytestmark = pytest.mark.django_db


@pytest.fixture
def world() -> World:
    return make_world()


def past_triggers(table: str, statement: str, *values: object) -> None:
    """What somebody who owns the database can do: take the triggers off and write."""
    with connection.cursor() as cursor:
        if connection.vendor == "postgresql":
            cursor.execute("SET CONSTRAINTS ALL IMMEDIATE")
            cursor.execute(f"ALTER TABLE {table} DISABLE TRIGGER USER")
        else:
            query = "SELECT name FROM sqlite_master WHERE type = 'trigger' AND tbl_name = %s"
            cursor.execute(query, [table])
            for (name,) in cursor.fetchall():
                cursor.execute(f"DROP TRIGGER {name}")
        cursor.execute(statement, cast(Any, values))


def sha(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def alter_answers() -> None:
    past_triggers("catalog_answertext", "UPDATE catalog_answertext SET text = 'FORGED'")


def alter_questions() -> None:
    messages = json.dumps([{"role": "user", "content": "FORGED"}])
    past_triggers("catalog_prompt", "UPDATE catalog_prompt SET messages = %s", messages)


def break_questions() -> None:
    past_triggers("catalog_prompt", "UPDATE catalog_prompt SET messages = %s", '["FORGED"]')


def alter_summaries() -> None:
    past_triggers("catalog_personatext", "UPDATE catalog_personatext SET summary = 'FORGED'")


# --- serving ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("alter", "part"),
    [
        (alter_answers, "the text of an answer"),
        (alter_questions, "the question"),
        (break_questions, "the question"),
        (alter_summaries, "the persona summary"),
    ],
)
def test_what_was_altered_after_sealing_is_refused_and_logged(
    world: World, alter: Callable[[], None], part: str, caplog: pytest.LogCaptureFixture
) -> None:
    round_ = open_round(world)
    client = Client()
    client.force_login(world.raters[0])
    page = client.get(reverse("arena:vote"))
    assert page.status_code == 200
    token = page.context["pair"].token
    alter()
    paths = [reverse("arena:vote"), f"{reverse('arena:diff')}?token={token}"]
    answers = [client.get(path) for path in paths]
    answers.append(client.post(f"/api/v1/voting/rounds/{round_.pk}/ballot/"))
    for answer in answers:
        assert answer.status_code == 409
        assert b"FORGED" not in answer.content
    lines = [record for record in caplog.records if record.name == "palate.sealing"]
    assert len(lines) == 3
    row = Assignment.objects.get()
    for line in lines:
        assert line.getMessage() == f"{part} of a sealed battle was altered"
        assert vars(line)["battle"] == row.battle.public_id
        assert "FORGED" not in str(vars(line))


def test_what_is_as_sealed_is_served_with_its_masks() -> None:
    world = make_world(text=lambda c, p, q: f"I am Quarry number {c}, for {p}, on {q}.")
    round_ = open_round(world, screening_policy={"self_reference": "mask", "contestant": "mask"})
    row = leases.current_ballot(user=world.raters[0], round_=round_)
    assert row is not None
    left, right = ballots.sides(ballots.assignment_parts(row.pk))
    assert "Quarry" not in left + right
    assert "▇▇▇" in left


def test_erased_texts_show_a_bar_and_are_no_forgery(world: World) -> None:
    round_ = open_round(world)
    row = leases.current_ballot(user=world.raters[0], round_=round_)
    assert row is not None
    for persona in world.personas:
        withdraw_consent(actor=world.admin, persona=persona)
    assert not PersonaText.objects.exists()
    assert ballots.sides(ballots.assignment_parts(row.pk)) == ("▇▇▇", "▇▇▇")


# --- receipts ---------------------------------------------------------------------------------


def test_a_receipt_binds_the_two_texts_as_they_were_displayed(world: World) -> None:
    round_ = open_round(world)
    shown = {}
    client = Client()
    client.force_login(world.raters[0])
    for _ in range(4):
        row = leases.current_ballot(user=world.raters[0], round_=round_)
        assert row is not None
        left, right = ballots.sides(ballots.assignment_parts(row.pk))
        shown[row.battle.public_id] = (sha(left), sha(right))
        ballot = votes.Ballot({"quality": "left", "personalization": "tie"})
        votes.cast_vote(user=world.raters[0], token=row.token, ballot=ballot)
    for url in (f"{reverse('arena:receipts')}?format=json", "/api/v1/voting/receipts/"):
        data = client.get(url).json()
        rows = data.get("receipts") or data["results"]
        assert len(rows) == 4
        for kept in rows:
            names = {"round", "battle", "rater", "revision", "verdicts", "nonce"}
            record = kept.get("record", kept)
            record = {k: record[k] for k in names | {"left_sha256", "right_sha256"}}
            assert hashlib.sha256(canonical_json(record)).hexdigest() == kept["receipt"]
            assert (record["left_sha256"], record["right_sha256"]) == shown[record["battle"]]


def test_an_undo_binds_them_too(world: World) -> None:
    round_ = open_round(world)
    vote_all(round_, world.raters[:1], limit=1)
    row = Assignment.objects.get()
    votes.undo_vote(user=world.raters[0], round_=round_, token=row.token)
    undone = Vote.objects.get(revision=2)
    pseudonym = ballots.pseudonym_of(world.raters[0], round_)
    record = ballots.receipt_record(undone, pseudonym)
    assert record["verdicts"] == {}
    assert hashlib.sha256(canonical_json(record)).hexdigest() == undone.receipt


# --- the commitment ---------------------------------------------------------------------------


def test_the_leaf_names_question_and_persona_summary_by_their_hashes(world: World) -> None:
    round_ = open_round(world)
    found = {(b.prompt_sha256, b.summary_sha256) for b in sealed.sealed_battles(round_)}
    questions = {
        hashlib.sha256(canonical_json(p.messages)).hexdigest() for p in Prompt.objects.all()
    }
    assert {question for question, _ in found} <= questions
    summaries = {sha(text.summary) for text in PersonaText.objects.all()}
    assert {summary for _, summary in found} <= summaries
    assert len(found) == 12


def test_a_context_without_a_persona_has_no_summary_hash(world: World) -> None:
    for model in world.contestants:
        for question in world.prompts:
            make_answer(model, question, None, f"{model} on {question.pk} for anybody")
    plan: dict[str, Any] = {"with_personas": False, "axes": ["quality"], "minimum_strata": 1}
    round_ = open_round(world, weights={"quality": 100}, planned_votes=6, **plan)
    assert {battle.summary_sha256 for battle in sealed.sealed_battles(round_)} == {""}


def test_the_protocol_lists_the_raters_by_pseudonym(world: World) -> None:
    round_ = open_round(world)
    listed = json.loads(round_.protocol)["raters"]
    names = RoundRater.objects.filter(round=round_).values_list("pseudonym", flat=True)
    assert listed == sorted(names)
    assert len(set(listed)) == 3
    assert all(len(name) == 16 for name in listed)


def finish(world: World, round_: Round) -> Round:
    round_ = closing.close_round(actor=world.admin, round_=round_, reason="enough for a test")
    ratings.rate_round(round_.pk)
    for actor in (world.admin, world.second_admin):
        round_ = closing.approve_unsealing(actor=actor, round_=round_, reason="all votes are in")
    return round_


def broken(round_: Round) -> str:
    """Why the bundle cannot be built."""
    with pytest.raises(Refused) as caught:
        exports.bundle_file(Round.objects.get(pk=round_.pk))
    assert caught.value.code == "bundle_broken"
    return str(caught.value.__cause__)


def test_votes_of_a_rater_who_was_added_later_are_not_published(world: World) -> None:
    round_ = open_round(world)
    added = make_user("late", Role.RATER)
    past_triggers(
        "arena_roundrater",
        "INSERT INTO arena_roundrater (round_id, user_id, pseudonym, axes) "
        "VALUES (%s, %s, 'feedfeedfeedfeed', '[\"quality\", \"personalization\"]')",
        round_.pk,
        added.pk,
    )
    assert vote_all(round_, [added])
    assert "not listed" in broken(finish(world, round_))


def test_a_pseudonym_that_was_rewritten_is_noticed(world: World) -> None:
    round_ = unsealed_round(world)
    past_triggers(
        "arena_roundrater",
        "UPDATE arena_roundrater SET pseudonym = '0000000000000000' WHERE user_id = %s",
        world.raters[0].pk,
    )
    assert "not listed" in broken(round_)


def test_a_rater_who_was_removed_is_noticed(world: World) -> None:
    round_ = unsealed_round(world)
    past_triggers(
        "arena_roundrater", "DELETE FROM arena_roundrater WHERE user_id = %s", world.raters[0].pk
    )
    assert "not listed" in broken(round_)


def test_the_bundle_is_refused_where_votes_and_stored_digest_differ(world: World) -> None:
    round_ = unsealed_round(world)
    exports.bundle_file(round_).close()
    past_triggers(
        "arena_round", "UPDATE arena_round SET vote_digest = %s WHERE id = %s", "0" * 64, round_.pk
    )
    assert "vote digest" in broken(round_)


@pytest.mark.parametrize(
    ("table", "column"),
    [("catalog_prompt", "text_hash"), ("catalog_personaversion", "summary_sha256")],
)
def test_the_bundle_is_refused_where_question_or_summary_hash_changed(
    world: World, table: str, column: str
) -> None:
    round_ = unsealed_round(world)
    past_triggers(
        table, f"UPDATE {table} SET {column} = REPLACE(REPLACE({column}, '0', '9'), '1', '8')"
    )
    assert "commitment" in broken(round_)


def test_the_manifest_names_the_audit_line_of_the_unsealing(world: World) -> None:
    round_ = unsealed_round(world)
    with zipfile.ZipFile(exports.bundle_file(round_)) as archive:
        manifest = json.loads(archive.read("manifest.json"))
    line = Event.objects.get(action="round_unsealed", object_id=str(round_.pk))
    assert manifest["audit"] == {"n": line.n, "hash": line.hash}


# --- contestants ------------------------------------------------------------------------------


def test_contestants_with_the_same_texts_both_play() -> None:
    world = make_world(contestants=4, text=lambda c, p, q: f"Text {min(c, 2)} {p} {q}.")
    round_ = open_round(world, planned_votes=36, screening_policy={"duplicate": "keep"})
    pairs = set(Slot.objects.filter(round=round_).values_list("x__contestant", "y__contestant"))
    playing = {contestant for pair in pairs for contestant in pair}
    assert playing == {contestant.pk for contestant in world.contestants}
    assert len({frozenset(pair) for pair in pairs}) == 6


def fake_entries(texts: dict[int, list[str]]) -> list[Entry]:
    """Entries of contestants (by number) with one text per context."""
    rows = [
        SimpleNamespace(contestant_id=pk, context_id=context, shown_sha256=text)
        for pk, shown in texts.items()
        for context, text in enumerate(shown)
        if text
    ]
    return cast("list[Entry]", rows)


def test_planning_names_depend_on_the_texts_and_not_on_who_wrote_them() -> None:
    seed = b"k" * 32
    kinds = [["a", "b"], ["b", "a"], ["a", "b"], ["a", ""]]
    one = sealing.contestant_handles(fake_entries(dict(enumerate(kinds, 1))), seed)
    two = sealing.contestant_handles(
        fake_entries(dict(zip((9, 3, 5, 2), kinds, strict=True))), seed
    )
    assert len(set(one.values())) == 4
    assert set(one.values()) == set(two.values())
    assert one[2] == two[3]  # the same texts in other contexts are another contestant
    assert {one[1], one[3]} == {two[9], two[5]}
    other = sealing.contestant_handles(fake_entries({1: ["a", "b"]}), b"l" * 32)
    assert other[1] not in one.values()


def test_a_contestant_without_answers_is_named(world: World) -> None:
    world.contestants.append(Contestant.objects.create(name="Absent", version="3"))
    round_ = screened_round(world)
    with pytest.raises(InvalidInput, match=r"^Absent 3 has no answer"):
        sealing.open_round(actor=world.admin, round_=round_)


def test_a_contestant_whose_answers_were_all_screened_out_stays_unnamed() -> None:
    """Its excerpts can be read: a name would link them, once the rule is changed (V1)."""
    world = make_world(contestants=4, text=lambda c, p, q: " " if c == 3 else f"Text {c} {p} {q}.")
    round_ = screened_round(world)
    with pytest.raises(InvalidInput, match="Screening took out all answers") as caught:
        sealing.open_round(actor=world.admin, round_=round_)
    assert not any(contestant.name in str(caught.value) for contestant in world.contestants)
    assert Round.objects.get(pk=round_.pk).opened_at is None


# --- strata -----------------------------------------------------------------------------------


def test_only_contexts_that_can_be_compared_count_for_the_strata() -> None:
    """The answers to one kind of user are empty: its contexts are there, and nothing to compare."""
    world = make_world(text=lambda c, p, q: " " if p % 2 else f"Text {c} {p} {q}.")
    round_ = screened_round(world, minimum_per_stratum=5)
    assert round_.contexts.filter(stratum="expertise=novice").count() == 6
    assert sealing.round_shortfalls(round_)
    with pytest.raises(Refused) as caught:
        sealing.open_round(actor=world.admin, round_=round_)
    assert caught.value.code == "too_uniform"


def test_one_usable_answer_does_not_make_a_comparison() -> None:
    world = make_world(
        contestants=2,
        prompts=4,
        text=lambda c, p, q: " " if (c, p % 2) == (1, 1) and q else f"Text {c} {p} {q}.",
    )
    with pytest.raises(Refused, match="novice"):
        open_round(world, planned_votes=6, minimum_per_stratum=3)
    rounds.back_to_draft(actor=world.admin, round_=Round.objects.get())
    round_ = open_round(world, planned_votes=6, minimum_per_stratum=2)
    assert json.loads(round_.protocol)["contexts"] == {
        "total": 10,
        "holdout": 0,
        "by_stratum": {"expertise=expert": 8, "expertise=novice": 2},
    }

"""Personas, prompts, contestants, answers: the services and what the database refuses by itself."""

from __future__ import annotations

import pytest
from django.db import DatabaseError, connection, transaction

from tests.catalog.factories import make_answer, make_contestant, make_persona, make_prompt, seal
from webapp.accounts.models import User
from webapp.catalog import selectors
from webapp.catalog.enums import ContestantKind, Where
from webapp.catalog.models import (
    Answer,
    AnswerText,
    Exposure,
    PersonaText,
    PersonaVersion,
    Prompt,
)
from webapp.catalog.services import answers, personas
from webapp.catalog.services.answers import Draft, Outcome
from webapp.catalog.texts import style_features
from webapp.core.audit import verify_chain
from webapp.core.errors import Forbidden, InvalidInput, Refused
from webapp.core.models import Event

pytestmark = pytest.mark.django_db


def test_summary_of_a_hundred_characters() -> None:
    persona = make_persona(summary="  " + "我" * 100 + " ")
    assert PersonaText.objects.get(version__persona=persona).summary == "我" * 100
    with pytest.raises(InvalidInput, match="101 characters; at most 100"):
        personas.add_persona_version(actor=None, persona=persona, summary="x" * 101)


def test_versions_are_numbered_and_only_new_ones_kept() -> None:
    persona = make_persona(summary="one")
    again = personas.add_persona_version(actor=None, persona=persona, summary="one ")
    two = personas.add_persona_version(actor=None, persona=persona, summary="two")
    assert (again.n, two.n, persona.versions.count()) == (1, 2, 2)


def test_features_are_allow_listed() -> None:
    with pytest.raises(InvalidInput, match="Allowed: expertise, goal"):
        make_persona(features={"income": "high"})
    with pytest.raises(InvalidInput):
        make_persona(features={"goal": "several words here"})
    kept = make_persona(features={"expertise": "novice", "language": "中文", "goal": ""})
    assert kept.features == {"expertise": "novice", "language": "中文"}


def test_pseudonym_is_taken_once() -> None:
    make_persona()
    with pytest.raises(InvalidInput, match="already"):
        make_persona()


@pytest.mark.parametrize("text", ["a\0b", "a\ud83d", " ", "\u200b"])
def test_unusable_texts_are_refused(text: str) -> None:
    with pytest.raises(InvalidInput):
        make_persona(summary=text)
    with pytest.raises(InvalidInput):
        make_prompt(text)


def test_withdrawn_consent_erases_and_keeps_hashes(alice: User, bob: User) -> None:
    persona = make_persona(owner=bob, consent_scope="study")
    sealed = make_answer(persona=persona)
    make_answer("Another.", persona=persona, draw=1)
    other = make_answer("Not hers.")
    seal(sealed)
    gone = personas.withdraw_consent(actor=bob, persona=persona)
    assert (gone.summaries, gone.answers, gone.sealed) == (1, 2, 1)
    assert list(AnswerText.objects.values_list("answer", flat=True)) == [other.pk]
    assert not PersonaText.objects.exists()
    assert Answer.objects.count() == 3
    assert PersonaVersion.objects.get(persona=persona).summary_sha256
    assert personas.withdraw_consent(actor=alice, persona=persona).answers == 0
    assert Event.objects.filter(action="withdraw_consent").count() == 1
    with pytest.raises(Refused):
        personas.add_persona_version(actor=alice, persona=persona, summary="back")
    with pytest.raises(Refused):
        personas.record_consent(actor=alice, persona=persona, scope="again")
    with pytest.raises(Refused):
        make_answer("New.", persona=persona, draw=2)
    verify_chain()


def test_only_the_owner_or_an_administrator_withdraws(bob: User, vera: User) -> None:
    persona = make_persona(owner=bob)
    with pytest.raises(Forbidden):
        personas.withdraw_consent(actor=vera, persona=persona)
    assert PersonaText.objects.exists()


def test_prompts_are_kept_once() -> None:
    first = make_prompt("Why?", category="science", language="en")
    assert make_prompt("Why?", category="other") == first
    turns = [{"role": "user", "content": "Why?"}]
    assert make_prompt(turns) == first
    longer = make_prompt(
        [*turns, {"role": "assistant", "content": "So."}, {"role": "user", "content": "Why?"}]
    )
    assert longer != first
    assert Prompt.objects.count() == 2
    with pytest.raises(InvalidInput, match="last turn"):
        make_prompt([*turns, {"role": "assistant", "content": "So."}])


def test_contestants_by_name_and_version() -> None:
    first = make_contestant("x", version="1", sampling={"temperature": 0.7})
    assert make_contestant("x", version="1") == first
    assert make_contestant("x", version="1", sampling={"temperature": 0.7}) == first
    assert make_contestant("x", version="2", sampling={"temperature": 1}) != first
    with pytest.raises(Refused, match=r"sampling.*another version"):
        make_contestant("x", version="1", sampling={"temperature": 1})
    with pytest.raises(Refused, match="kind"):
        make_contestant("x", version="1", kind=ContestantKind.ENDPOINT)


def test_a_slot_takes_one_answer_for_ever(alice: User) -> None:
    answer = make_answer("One.")

    def write(text: str, draw: int = 0) -> list[Outcome]:
        draft = Draft(answer.contestant_id, answer.prompt_id, None, text, draw)
        return answers.write_answers(drafts=[draft, draft], exposed_to=alice)

    assert write("One.") == [Outcome.KNOWN, Outcome.KNOWN]
    assert write("Two.") == [Outcome.CONFLICT, Outcome.CONFLICT]
    assert write("Two.", draw=1) == [Outcome.ADDED, Outcome.KNOWN]
    assert Exposure.objects.filter(user=alice, where=Where.IMPORTED).count() == 2


def test_a_sealed_slot_never_says_whether_a_text_is_the_same(alice: User) -> None:
    answer = make_answer("One.")
    held = seal(answer)

    def write(text: str) -> list[Outcome]:
        drafts = [Draft(answer.contestant_id, answer.prompt_id, None, t) for t in (text, "else")]
        return answers.write_answers(drafts=drafts, exposed_to=alice)

    assert write("One.") == write("Two.") == [Outcome.SEALED, Outcome.SEALED]
    held.released_at = held.sealed_at
    held.save()
    assert write("One.") == [Outcome.KNOWN, Outcome.CONFLICT]


def test_a_seal_hides_its_text_under_every_contestant_and_draw() -> None:
    free, held = make_answer("One."), make_answer("Two.", draw=1)
    make_answer("Two.", draw=2)
    other = make_answer("Two.", contestant=make_contestant("quarry"))
    sealed = seal(held)

    def readable(answer: Answer) -> list[str]:
        return [row.text for row in selectors.readable_texts(answer.contestant)]

    assert readable(free) == ["One."]
    assert readable(other) == []
    sealed.released_at = sealed.sealed_at
    sealed.save()
    assert readable(free) == ["One.", "Two.", "Two."]
    assert readable(other) == ["Two."]


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE catalog_answertext SET text = 'x'",
        "UPDATE catalog_answer SET text_sha256 = 'x'",
        "DELETE FROM catalog_answer",
        "UPDATE catalog_personatext SET summary = 'x'",
        "UPDATE catalog_personaversion SET n = 7",
        "UPDATE catalog_prompt SET text_hash = 'x'",
        "UPDATE catalog_contestant SET system_prompt = 'x'",
        "UPDATE catalog_exposure SET user_id = 0",
    ],
)
def test_the_database_refuses_by_itself(statement: str, alice: User) -> None:
    answer = make_answer(persona=make_persona())
    answers.note_exposure(user=alice, answers=[answer.pk], where=Where.WROTE)
    with pytest.raises(DatabaseError), transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(statement)


@pytest.mark.parametrize(
    ("text", "words", "lists", "questions"),
    [
        ("One two, three.", 3, 0.0, 0.0),
        ("我喜欢 Python 3。", 5, 0.0, 0.0),
        ("- a\n- b\nc", 3, 0.667, 0.0),
        ("1. a\n2) b\n3、c", 6, 1.0, 0.0),
        ("Why? Because. 为什么？", 5, 0.0, 0.667),
        ("don't stop-gap", 2, 0.0, 0.0),
        ("3.5 is a number", 5, 0.0, 0.0),
    ],
)
def test_style_features(text: str, words: int, lists: float, questions: float) -> None:
    found = style_features(text)
    assert found == {
        "characters": len(text),
        "words": words,
        "lists": lists,
        "questions": questions,
    }

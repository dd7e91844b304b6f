"""A seal covers the text, whoever's answer it stands on: what was in a round enters no other."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import pytest

from arena.models import Entry, Round
from arena.services import rounds, screening
from tests.arena.factories import (
    World,
    draft_round,
    make_answer,
    make_world,
    open_round,
    screened_round,
    unsealed_round,
)
from tests.threads import at_once
from webapp.catalog.models import AnswerText, Contestant

pytestmark = pytest.mark.django_db


def say_again(world: World) -> None:
    """A further draw of every answer with the same text."""
    for text in list(AnswerText.objects.select_related("answer")):
        old = text.answer
        make_answer(old.contestant, old.prompt, old.persona_version, text.text, draw=1)


def texts_of(round_: Round) -> set[str]:
    entries = Entry.objects.filter(context__round=round_)
    return set(entries.values_list("answer__text_sha256", flat=True))


@pytest.mark.parametrize("make", [screened_round, open_round, unsealed_round])
def test_a_text_of_another_round_is_not_taken_again(make: Callable[..., Round]) -> None:
    world = make_world()
    say_again(world)
    first = make(world)
    second = screened_round(world, name="Round two")
    assert texts_of(first)
    assert not texts_of(second)


def test_a_text_that_another_contestant_showed_is_not_taken_either() -> None:
    world = make_world()
    taken = list(AnswerText.objects.filter(answer__contestant=world.contestants[0]))
    first = open_round(world, contestants=[row.pk for row in world.contestants[:2]])
    for text in taken:
        old = text.answer
        make_answer(world.contestants[2], old.prompt, old.persona_version, text.text, draw=5)
    ids = [row.pk for row in world.contestants[1:]]
    second = screened_round(world, name="Round two", contestants=ids)
    assert texts_of(first).isdisjoint(texts_of(second))
    assert texts_of(second)  # the first draws of the third contestant are still free


def test_screening_again_takes_the_same_texts_once_they_are_free() -> None:
    world = make_world()
    say_again(world)
    first = screened_round(world)
    rounds.back_to_draft(actor=world.admin, round_=first)
    second = screened_round(world, name="Round two")
    assert len(texts_of(second)) == 36


def test_equal_texts_within_one_round_are_left_to_the_duplicate_rule() -> None:
    world = make_world(text=lambda c, p, q: f"Text {min(c, 1)} {p} {q}.")
    round_ = screened_round(world)
    entries = Entry.objects.filter(context__round=round_)
    assert entries.count() == 36
    assert set(entries.values_list("hits__rule", flat=True)) == {None, "duplicate"}


@pytest.mark.postgres
@pytest.mark.django_db(transaction=True)
def test_two_rounds_that_screen_at_once_never_take_the_same_text() -> None:
    world = make_world(contestants=2)
    others = make_world_of_echoes(world)
    plans = ([row.pk for row in world.contestants], others)
    made = [draft_round(world, name=f"Round {n}", contestants=ids) for n, ids in enumerate(plans)]
    for round_ in made:
        Round.objects.filter(pk=round_.pk).update(state="screening")
    at_once([partial(screening.screen_round, round_.pk) for round_ in made])
    first, second = (texts_of(round_) for round_ in made)
    assert first or second
    assert first.isdisjoint(second)


def make_world_of_echoes(world: World) -> list[int]:
    """Two more contestants that say word for word the same."""
    ids = []
    for model in world.contestants:
        echo = Contestant.objects.create(name=f"Echo of {model.name}", version="1")
        ids.append(echo.pk)
        for text in AnswerText.objects.filter(answer__contestant=model):
            old = text.answer
            make_answer(echo, old.prompt, old.persona_version, text.text)
    return ids

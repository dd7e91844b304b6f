"""A small world and a round in any state, made through the services."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from arena.enums import RoundState
from arena.models import Assignment, Round
from arena.services import closing, leases, ratings, rounds, screening, sealing, votes
from arena.services.rounds import RoundPlan
from tests.conftest import make_user
from webapp.accounts.enums import Role
from webapp.accounts.models import User
from webapp.catalog.models import (
    Answer,
    AnswerText,
    Contestant,
    Persona,
    PersonaText,
    PersonaVersion,
    Prompt,
)
from webapp.catalog.texts import prompt_hash

NAMES = ("Harbor", "Quarry", "Meadow", "Willow", "Lantern", "Orchard")


def sha(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def make_persona(name: str, *, expertise: str, summary: str = "", language: str = "en") -> Persona:
    persona = Persona.objects.create(
        pseudonym=name, features={"expertise": expertise, "language": language}
    )
    text = summary or f"{name}: {expertise}, wants it short."
    version = PersonaVersion.objects.create(persona=persona, n=1, summary_sha256=sha(text))
    PersonaText.objects.create(version=version, summary=text)
    return persona


def make_prompt(text: str, *, category: str = "general", language: str = "en") -> Prompt:
    messages = [{"role": "user", "content": text}]
    return Prompt.objects.create(
        messages=messages,
        text_hash=prompt_hash(messages),
        category=category,
        language=language,
    )


def make_answer(
    contestant: Contestant,
    prompt: Prompt,
    version: PersonaVersion | None,
    text: str,
    *,
    draw: int = 0,
    finish_reason: str = "stop",
) -> Answer:
    answer = Answer.objects.create(
        contestant=contestant,
        prompt=prompt,
        persona_version=version,
        draw=draw,
        text_sha256=sha(text),
        finish_reason=finish_reason,
    )
    AnswerText.objects.create(answer=answer, text=text)
    return answer


@dataclass
class World:
    """Contestants with one answer per persona and prompt, and people who vote."""

    admin: User
    second_admin: User
    raters: list[User]
    personas: list[Persona]
    prompts: list[Prompt]
    contestants: list[Contestant]


def make_world(
    *,
    contestants: int = 3,
    personas: int = 4,
    prompts: int = 3,
    raters: int = 3,
    names: Sequence[str] = NAMES,
    text: Callable[[int, int, int], str] | None = None,
) -> World:
    """`text(contestant, persona, prompt)` writes the answers; by default all are different."""
    write = text or (lambda c, p, q: f"Answer with style {c} for person {p} to question {q}.")
    people = [
        make_persona(f"persona-{p}", expertise="novice" if p % 2 else "expert")
        for p in range(personas)
    ]
    questions = [make_prompt(f"Question number {q}?") for q in range(prompts)]
    models = [Contestant.objects.create(name=names[c], version="1") for c in range(contestants)]
    for c, model in enumerate(models):
        for p, person in enumerate(people):
            version = person.versions.get()
            for q, question in enumerate(questions):
                make_answer(model, question, version, write(c, p, q))
    return World(
        admin=make_user("ada", Role.ADMIN),
        second_admin=make_user("ben", Role.ADMIN),
        raters=[make_user(f"rater{n}", Role.RATER) for n in range(raters)],
        personas=people,
        prompts=questions,
        contestants=models,
    )


def plan_for(world: World, **changes: Any) -> RoundPlan:
    defaults: dict[str, Any] = {
        "name": "Round one",
        "contestants": [row.pk for row in world.contestants],
        "raters": [row.pk for row in world.raters],
        "planned_votes": 12,
        "stratum_features": ["expertise"],
    }
    return RoundPlan(**{**defaults, **changes})


def draft_round(world: World, **changes: Any) -> Round:
    return rounds.compose_round(actor=world.admin, plan=plan_for(world, **changes))


def screened_round(world: World, **changes: Any) -> Round:
    round_ = draft_round(world, **changes)
    screening.start_screening(actor=world.admin, round_=round_)
    screening.screen_round(round_.pk)
    round_.refresh_from_db()
    return round_


def open_round(world: World, **changes: Any) -> Round:
    return sealing.open_round(actor=world.admin, round_=screened_round(world, **changes))


def left_is_better(_row: Assignment) -> dict[str, str]:
    return {"quality": "left", "personalization": "tie"}


def vote_all(
    round_: Round,
    raters: Sequence[User],
    choose: Callable[[Assignment], dict[str, str]] = left_is_better,
    limit: int = 10_000,
) -> int:
    """Let the raters take turns until nothing is left or `limit` votes are given."""
    given, waiting = 0, list(raters)
    while waiting and given < limit:
        rater = waiting.pop(0)
        row = leases.current_ballot(user=rater, round_=round_)
        if row is None:
            continue
        ballot = votes.Ballot(choose(row), active_ms=5000)
        votes.cast_vote(user=rater, token=row.token, ballot=ballot)
        given += 1
        waiting.append(rater)
    return given


def closed_round(world: World, **changes: Any) -> Round:
    choose = changes.pop("choose", left_is_better)
    round_ = open_round(world, **changes)
    vote_all(round_, world.raters, choose)
    round_ = closing.close_round(actor=world.admin, round_=round_, reason="enough for a test")
    ratings.rate_round(round_.pk)
    return round_


def unsealed_round(world: World, **changes: Any) -> Round:
    round_ = closed_round(world, **changes)
    for actor in (world.admin, world.second_admin):
        round_ = closing.approve_unsealing(actor=actor, round_=round_, reason="all votes are in")
    assert round_.state == RoundState.UNSEALED
    return round_

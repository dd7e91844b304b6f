"""A sealed round of both axes: composed, answered, screened, voted on over HTTP, unsealed."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx

from arena.enums import AnswerJobState, RoundState, Variant
from arena.models import AnswerJob, Round
from arena.selectors.leaderboard import Board, read_board
from arena.services import answering, closing, rounds, screening, sealing
from arena.services.ratings import missing_variants
from arena.services.simulated import make_simulated_raters
from training.demo.loop import town
from training.demo.loop.people import Opinion, Person, together, vote
from training.demo.tiny import StageFailed
from training.demo.world import Corner
from training.demo.world import Person as Inhabitant
from webapp.accounts.models import User
from webapp.accounts.services import create_api_token
from webapp.catalog.models import Contestant, Persona, Prompt
from webapp.catalog.services.personas import create_persona
from webapp.catalog.services.prompts import get_or_create_prompt

RATERS, ACCURACY = 8, 0.92
VOTES, HOLDOUT = 480, 25
REASON = "The pre-registered number of votes is reached."
POLL, PATIENCE = 0.5, 1200.0
Say = Callable[[str], object]


@dataclass(frozen=True)
class Guests:
    """The personas and prompts of a round."""

    personas: list[int]
    prompts: list[int]


def guests(people: Sequence[Inhabitant], questions: Sequence[str], category: str) -> Guests:
    """Made once: nobody is trained on them before their round is unsealed."""
    known = dict(Persona.objects.values_list("pseudonym", "pk"))
    for person in people:
        if person.name not in known:
            told = person.as_json()
            made = create_persona(
                actor=None,
                pseudonym=person.name,
                summary=person.summary,
                features=told["features"],
            )
            known[person.name] = made.pk
    prompts = [
        get_or_create_prompt(messages=text, category=category, language="en").pk
        for text in questions
    ]
    return Guests([known[person.name] for person in people], prompts)


def of_corners(corners: list[Corner]) -> Guests:
    return guests(list(town.people(corners)), list(town.questions(corners)), "tasting")


def held_out() -> Guests:
    """Who was held out in earlier rounds stays held out, and is asked again."""
    personas = Persona.objects.filter(split="holdout").values_list("pk", flat=True)
    prompts = Prompt.objects.filter(split="holdout").values_list("pk", flat=True)
    return Guests(list(personas), list(prompts))


def raters(seed: int) -> list[Person]:
    """Seed users with tokens of their own."""
    return [
        Person(user.username, create_api_token(user=user, name="loop"), ACCURACY, seed)
        for user in seed_users()
    ]


def seed_users() -> list[User]:
    return make_simulated_raters(RATERS)


def plan(name: str, contestants: list[Contestant], who: Guests, votes: int) -> rounds.RoundPlan:
    return rounds.RoundPlan(
        name=name,
        contestants=[contestant.pk for contestant in contestants],
        raters=[user.pk for user in seed_users()],
        personas=who.personas,
        prompts=who.prompts,
        planned_votes=votes,
        holdout_percent=HOLDOUT,
        stratum_features=["expertise"],
        minimum_strata=2,
        simulated=True,
    )


def composed(
    actor: Any, name: str, contestants: list[Contestant], who: Guests, votes: int = VOTES
) -> Round:
    """The draft; the one of this name where it is there already."""
    known = Round.objects.filter(name=name).exclude(state=RoundState.CANCELLED).first()
    if known is not None:
        return known
    return rounds.compose_round(actor=actor, plan=plan(name, contestants, who, votes))


def opened(actor: Any, round_: Round, say: Say) -> Round:
    """Answers are made, screened, frozen; then the round is sealed and opens."""
    round_ = Round.objects.get(pk=round_.pk)
    if round_.state == RoundState.DRAFT:
        answered(actor, round_, say)
        screening.start_screening(actor=actor, round_=round_)
    until(lambda: Round.objects.get(pk=round_.pk).screened_at is not None, "screening")
    round_ = Round.objects.get(pk=round_.pk)
    if round_.state == RoundState.SCREENING:
        sealing.open_round(actor=actor, round_=round_)
    return Round.objects.get(pk=round_.pk)


def answered(actor: Any, round_: Round, say: Say) -> AnswerJob:
    """Every slot has an answer or a recorded failure."""
    job = answering.start_answering(actor=actor, round_=round_)
    if job.state == AnswerJobState.CANCELLED:
        answering.resume_answering(actor=actor, round_=round_)
    until(lambda: _job(round_).state != AnswerJobState.RUNNING, "answering")
    job = _job(round_)
    say(f"answers of “{round_}”: {job.made} made, {job.failed} failed, of {job.total}")
    if job.failed:
        answering.resume_answering(actor=actor, round_=round_, again=True)
        until(lambda: _job(round_).state != AnswerJobState.RUNNING, "answering")
    return _job(round_)


def _job(round_: Round) -> AnswerJob:
    return AnswerJob.objects.get(round=round_)


def voted(address: str, people: list[Person], round_: Round, opinion: Opinion) -> int:
    """Everybody votes until the round closes by its own rule. New votes."""
    given = 0
    while Round.objects.get(pk=round_.pk).state == RoundState.OPEN:
        found = together(lambda person: vote(address, person, round_.pk, opinion), people)
        given += sum(found.values())
        if not any(found.values()):
            time.sleep(POLL)
            if closing.is_due(Round.objects.get(pk=round_.pk)):
                closing.close_due_rounds()
    return given


def unsealed(administrators: Sequence[Any], round_: Round) -> Round:
    """Two administrators agree once the ratings are there."""
    until(lambda: not missing_variants(Round.objects.get(pk=round_.pk)), "ratings")
    for who in administrators:
        row = Round.objects.get(pk=round_.pk)
        if row.state == RoundState.CLOSED:
            closing.approve_unsealing(actor=who, round_=row, reason=REASON)
    return Round.objects.get(pk=round_.pk)


def until(holds: Callable[[], bool], what: str) -> None:
    end = time.monotonic() + PATIENCE
    while not holds():
        if time.monotonic() > end:
            raise StageFailed(f"{what}: not done in {PATIENCE:.0f} s")
        time.sleep(POLL)


def board(round_: Round, axis: str, variant: str = Variant.ALL) -> Board:
    return read_board(round_, axis=axis, variant=variant)


def verified(address: str, token: str, round_: Round, folder: Path, script: Path) -> bool:
    """The published bundle, fetched over HTTP and checked by the script that stands alone."""
    path = folder / f"round-{round_.pk}.zip"
    where = f"{address}/api/v1/rounds/{round_.pk}/bundle/"
    found = httpx.get(where, headers={"Authorization": f"Token {token}"}, timeout=120)
    found.raise_for_status()
    path.write_bytes(found.content)
    done = subprocess.run([sys.executable, str(script), str(path)], capture_output=True, text=True)
    return done.returncode == 0

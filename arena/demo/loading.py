"""Loading the demo through the same services that the pages use. May run again without harm."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from django.conf import settings

from arena.demo.contestants import CONTESTANTS, PLANTED, write_all
from arena.demo.people import DEMO_LOGINS, DEMO_PASSWORD, OPEN_ROUND_RATERS, PERSONAS
from arena.demo.topics import OPEN, TASTING, load_topics
from arena.enums import RoundState
from arena.models import Round
from arena.services import closing, ratings, rounds, screening, sealing
from arena.services.rounds import RoundPlan
from arena.services.simulated import Simulation, make_simulated_raters, simulate_votes
from webapp.accounts.models import User
from webapp.accounts.services import create_user
from webapp.catalog.models import Contestant, Persona, Prompt
from webapp.catalog.services.answers import Draft, write_answers
from webapp.catalog.services.contestants import get_or_create_contestant
from webapp.catalog.services.personas import create_persona
from webapp.catalog.services.prompts import get_or_create_prompt
from webapp.core.errors import Refused

SIMULATED_ROUND = "Spring tasting (simulated votes)"
OPEN_ROUND = "Autumn tasting"
SIMULATED_VOTES, SIMULATED_RATERS, VOTES_PER_BATTLE = 2000, 30, 4
OPEN_VOTES = 120
STRATA = ("expertise", "language")

Say = Callable[[str], object]
OnVote = Callable[[], object]


@dataclass
class Loaded:
    """What the rounds are made of: database rows by their demo keys."""

    users: dict[str, User]
    personas: dict[str, Persona]
    prompts: dict[str, Prompt]
    contestants: dict[str, Contestant]


def is_loaded() -> bool:
    """Whether both rounds stand as the demo leaves them (or people went on from there)."""
    begun = (RoundState.DRAFT, RoundState.SCREENING)
    opened = Round.objects.filter(name=OPEN_ROUND).exclude(state__in=begun)
    told = Round.objects.filter(name=SIMULATED_ROUND, state=RoundState.UNSEALED)
    return opened.exists() and told.exists()


def load(*, say: Say = lambda _text: None, on_vote: OnVote = lambda: None) -> bool:
    """Load what is missing. False: everything was there. Raises Refused outside a demo."""
    if not settings.DEMO:
        raise Refused(
            "Demo accounts have public passwords: set PALATE_DEMO=1 to load them.", code="no_demo"
        )
    if is_loaded():
        return False
    say("people and personas")
    loaded = load_catalog(_load_users(), say)
    say("a round to vote in")
    _open_round(loaded)
    say(f"a round with {SIMULATED_VOTES:,} simulated votes")
    _simulated_round(loaded, on_vote)
    return True


def _load_users() -> dict[str, User]:
    names = [name for name, _role in DEMO_LOGINS]
    known = {user.username: user for user in User.objects.filter(username__in=names)}
    for name, role in DEMO_LOGINS:
        if name not in known:
            known[name] = create_user(username=name, password=DEMO_PASSWORD, role=role)
    return known


def load_catalog(users: dict[str, User], say: Say) -> Loaded:
    personas = {row.pseudonym: _persona(row, users) for row in PERSONAS}
    topics = load_topics()
    prompts = {
        topic.key: get_or_create_prompt(
            messages=topic.messages, category=topic.category, language=topic.language
        )
        for topic in topics
    }
    contestants = {
        row.name: get_or_create_contestant(
            name=row.name,
            version=row.version,
            vendor=row.vendor,
            uses_persona=row.uses_persona,
            sampling={"temperature": 0.7},
        )
        for row in CONTESTANTS
    }
    loaded = Loaded(users, personas, prompts, contestants)
    say("answers")
    _load_answers(loaded)
    return loaded


def _persona(row: Any, users: dict[str, User]) -> Persona:
    known = Persona.objects.filter(pseudonym=row.pseudonym).first()
    if known is not None:
        return known
    return create_persona(
        actor=None,
        pseudonym=row.pseudonym,
        summary=row.summary,
        features=row.features,
        owner=users.get(row.owner),
        consent_scope="demonstration, made-up person",
    )


def _load_answers(loaded: Loaded) -> None:
    versions = {name: persona.versions.get(n=1).pk for name, persona in loaded.personas.items()}
    drafts = [
        Draft(
            contestant_id=loaded.contestants[answer.contestant.name].pk,
            prompt_id=loaded.prompts[answer.topic.key].pk,
            persona_version_id=versions[answer.persona.pseudonym],
            text=answer.text,
            finish_reason=answer.finish_reason,
        )
        for answer in write_all(load_topics())
    ]
    write_answers(drafts=drafts)


def _prompts_of(loaded: Loaded, kind: str) -> list[int]:
    return [loaded.prompts[topic.key].pk for topic in load_topics() if topic.round == kind]


def _plan(loaded: Loaded, kind: str, **changes: Any) -> RoundPlan:
    return RoundPlan(
        contestants=[row.pk for row in loaded.contestants.values()],
        personas=[row.pk for row in loaded.personas.values()],
        prompts=_prompts_of(loaded, kind),
        stratum_features=STRATA,
        minimum_strata=4,
        minimum_per_stratum=2,
        **changes,
    )


def bring_to_open(loaded: Loaded, plan: RoundPlan) -> Round:
    """Compose, screen and open, from wherever an interrupted run left the round."""
    admin = loaded.users["ada"]
    found = Round.objects.filter(name=plan.name).exclude(state=RoundState.CANCELLED).first()
    round_ = found or rounds.compose_round(actor=admin, plan=plan)
    if round_.state == RoundState.DRAFT:
        screening.start_screening(actor=admin, round_=round_)
        round_.refresh_from_db()
    if round_.state == RoundState.SCREENING:
        screening.screen_round(round_.pk)
        round_.refresh_from_db()
        round_ = sealing.open_round(actor=admin, round_=round_)
    return round_


def _open_round(loaded: Loaded) -> None:
    plan = _plan(
        loaded,
        OPEN,
        name=OPEN_ROUND,
        raters=[loaded.users[name].pk for name in OPEN_ROUND_RATERS],
        planned_votes=OPEN_VOTES,
    )
    bring_to_open(loaded, plan)


def _simulated_round(loaded: Loaded, on_vote: OnVote) -> None:
    raters = make_simulated_raters(SIMULATED_RATERS)
    plan = _plan(
        loaded,
        TASTING,
        name=SIMULATED_ROUND,
        raters=[rater.pk for rater in raters],
        planned_votes=SIMULATED_VOTES,
        votes_per_battle=VOTES_PER_BATTLE,
        exclusions={"too_fast": 5000},
        simulated=True,
    )
    round_ = bring_to_open(loaded, plan)
    if round_.state == RoundState.OPEN:
        simulation = Simulation(raters=SIMULATED_RATERS, votes=SIMULATED_VOTES)
        simulate_votes(round_=round_, strengths=PLANTED, simulation=simulation, on_vote=on_vote)
        round_ = closing.close_round(actor=None, round_=round_)
    ratings.rate_round(round_.pk)
    for name in ("ada", "ben"):
        if closing.approvals_missing(round_):
            closing.approve_unsealing(
                actor=loaded.users[name],
                round_=round_,
                reason="Demonstration: all simulated votes are in.",
            )

"""Contestants whose answers are made here, and rounds of them, through the services."""

from __future__ import annotations

from typing import Any

from arena.models import AnswerJob, Round
from arena.services import answering, answering_work
from tests.arena.factories import NAMES, World, draft_round, make_world
from webapp.accounts.models import User
from webapp.catalog.models import Contestant
from webapp.catalog.services.contestant_settings import endpoint_settings
from webapp.catalog.services.making import Making, add_contestant


def endpoint_contestant(admin: User, name: str, url: str, **changes: Any) -> Contestant:
    kept: dict[str, Any] = {"url": url, "model": name.lower(), "timeout": 2, "at_once": 4}
    kept |= {k: changes.pop(k) for k in ("model", "key", "timeout", "at_once") if k in changes}
    making = Making("endpoint", endpoint_settings(**kept), **changes)
    return add_contestant(actor=admin, name=name, version="1", making=making)


def makers_world(*urls: str, personas: int = 3, prompts: int = 2, **changes: Any) -> World:
    """A contestant per address; nobody has answered yet."""
    world = make_world(contestants=0, personas=personas, prompts=prompts)
    world.contestants = [
        endpoint_contestant(world.admin, NAMES[n], url, **changes) for n, url in enumerate(urls)
    ]
    return world


def start(world: World, round_: Round | None = None, **options: Any) -> AnswerJob:
    return answering.start_answering(
        actor=world.admin, round_=round_ or draft_round(world), **options
    )


def finished(job: AnswerJob) -> AnswerJob:
    done = answering_work.run_job(job.pk)
    assert done is not None
    return done


def answered_round(world: World, **changes: Any) -> Round:
    """A draft whose answers are made."""
    round_ = draft_round(world, **changes)
    finished(start(world, round_))
    return round_

"""Answers made here while others act at the same moment, on PostgreSQL: once, and never twice."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import pytest
from django.conf import settings as site
from django.db import connection

from arena.enums import AnswerJobState, RoundState
from arena.models import AnswerJob, Round, WantedAnswer
from arena.services import answering, answering_work, rounds, screening
from tests.arena.factories import World, draft_round
from tests.arena.makers import finished, makers_world, start
from tests.endpoints import Endpoint
from tests.threads import at_once
from webapp.catalog.models import Answer, Seal
from webapp.core.errors import PalateError
from webapp.core.models import Event

pytestmark = [pytest.mark.postgres, pytest.mark.django_db(transaction=True)]


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Endpoint]:
    monkeypatch.setattr(site, "OUTBOUND_ALLOW", ["127.0.0.1"])
    for module in (answering, answering_work, screening):
        monkeypatch.setattr(module, "enqueue", lambda name, pk: None)
    with Endpoint() as made:
        yield made


@pytest.fixture
def world(server: Endpoint) -> World:
    return makers_world(server.url, server.url)


def refusals(acts: list[Callable[[], Any]]) -> list[str]:
    """Do all at once; the codes of those that were refused."""
    return [result.code for result in at_once(acts) if isinstance(result, PalateError)]


def test_it_really_is_postgresql() -> None:
    assert connection.vendor == "postgresql"


def test_eight_clicks_start_one_job(world: World) -> None:
    round_ = draft_round(world)
    assert not refusals([partial(start, world, round_)] * 8)
    assert AnswerJob.objects.count() == 1
    assert WantedAnswer.objects.count() == 12
    assert Event.objects.filter(action="start_answering").count() == 1


def test_the_same_job_by_four_workers_is_done_once(server: Endpoint, world: World) -> None:
    job = start(world)
    at_once([partial(answering_work.run_job, job.pk)] * 4)
    job.refresh_from_db()
    assert (job.state, job.made, len(server.asked)) == (AnswerJobState.DONE, 12, 12)
    assert Answer.objects.count() == Seal.objects.count() == 12


def test_two_rounds_of_the_same_contexts_at_once(server: Endpoint, world: World) -> None:
    """Both plan the same draws; whoever writes later takes the next, or finds its text taken."""
    jobs = [start(world, draft_round(world)) for _n in range(2)]
    at_once([partial(answering_work.run_job, job.pk) for job in jobs])
    for job in jobs:
        job.refresh_from_db()
        assert (job.state, job.made + job.failed) == (AnswerJobState.DONE, 12)
    assert Answer.objects.count() == sum(job.made for job in jobs) == Seal.objects.count()
    codes = set(WantedAnswer.objects.filter(state="failed").values_list("code", flat=True))
    assert codes <= {"taken"}


def test_going_on_and_screening_at_once(server: Endpoint, world: World) -> None:
    """Either the round is screened, or its answers are made again: never both."""
    for _n in range(6):
        round_ = draft_round(world)
        finished(start(world, round_))
        AnswerJob.objects.filter(round=round_).update(failure_limit=100)
        refusals(
            [
                partial(screening.start_screening, actor=world.admin, round_=round_),
                partial(answering.resume_answering, actor=world.admin, round_=round_),
            ]
        )
        round_ = Round.objects.get(pk=round_.pk)
        running = AnswerJob.objects.get(round=round_).state == AnswerJobState.RUNNING
        assert running == (round_.state == RoundState.DRAFT)


def test_cancelling_while_answers_are_written(server: Endpoint, world: World) -> None:
    server.delay = 0.05
    round_ = draft_round(world)
    job = start(world, round_)
    cancel = partial(rounds.cancel_round, actor=world.admin, round_=round_, reason="a test")
    refusals([partial(answering_work.run_job, job.pk), cancel])
    job.refresh_from_db()
    assert job.state in (AnswerJobState.CANCELLED, AnswerJobState.DONE)
    made = WantedAnswer.objects.filter(job=job, state="made").count()
    assert made == Answer.objects.count() == job.made

"""The answers of a round on its page: started, watched, stopped, tried again; told in totals."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
from django.conf import settings as site
from django.test import Client
from django.urls import reverse

from arena.enums import AnswerJobState
from arena.models import AnswerJob, Round
from arena.services import answering_work, closing, ratings, screening, sealing
from tests.arena.factories import World, draft_round, vote_all
from tests.arena.makers import finished, makers_world, start
from tests.endpoints import Endpoint
from webapp.catalog.models import AnswerText

pytestmark = pytest.mark.django_db


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Endpoint]:
    monkeypatch.setattr(site, "OUTBOUND_ALLOW", ["127.0.0.1"])
    monkeypatch.setattr(answering_work, "backoff", lambda tries: 0.01)
    with Endpoint() as made:
        yield made


@pytest.fixture
def world(server: Endpoint) -> World:
    return makers_world(server.url, server.url, server.url)


def page(client: Client, round_: Round) -> str:
    url = reverse("arena:round_detail", args=[round_.pk])
    return re.sub(r"\s+", " ", client.get(url).content.decode())


def post(client: Client, name: str, round_: Round, **data: str) -> str:
    response = client.post(reverse(f"arena:{name}", args=[round_.pk]), data, follow=True)
    return re.sub(r"\s+", " ", response.content.decode())


def test_from_making_to_screening_by_plain_forms(
    client: Client, server: Endpoint, world: World
) -> None:
    server.plan = lambda n, asked: "blank" if n == 2 else "good"
    client.force_login(world.admin)
    round_ = draft_round(world)
    first = page(client, round_)
    assert "3 contestants of this round are asked here, once in each of the 6 contexts" in first
    assert "Screen the answers" not in first
    running = post(client, "answers_start", round_, failure_limit="20")
    job = AnswerJob.objects.get()
    assert (job.failure_limit, job.state) == (20, AnswerJobState.RUNNING)
    assert "0 of 18, 0 failed; not known yet how long" in running
    assert reverse("arena:answers_progress", args=[round_.pk]) in running
    assert "Stopped. What was made stays." in post(client, "answers_stop", round_)
    stopped = page(client, round_)
    assert "0 answers made, 0 failed, 18 not asked." in stopped
    assert "Go on" in stopped
    post(client, "answers_resume", round_)
    finished(job)
    done = page(client, round_)
    assert "17 answers made, 1 failed, 0 not asked." in done
    assert "The reply is empty." in done
    assert "Screen the answers" in done
    assert "Try 1 failure again" in done
    post(client, "answers_resume", round_, again="1")
    finished(AnswerJob.objects.get())
    assert "18 answers made, 0 failed, 0 not asked." in page(client, round_)
    assert "Screening has begun." in post(client, "screen", round_)


def test_who_is_over_the_limit_is_named_without_a_number(
    client: Client, server: Endpoint, world: World
) -> None:
    server.plan = lambda n, asked: "refuses" if asked["model"] == "quarry" else "good"
    client.force_login(world.admin)
    round_ = draft_round(world)
    finished(start(world, round_))
    shown = page(client, round_)
    assert "Without an answer in more than 5 % of the contexts: Quarry 1." in shown
    assert "Screen the answers" not in shown
    assert "Too many answers are missing of: Quarry 1." in post(client, "screen", round_)


def test_the_progress_stops_asking_when_it_is_done(
    client: Client, server: Endpoint, world: World
) -> None:
    client.force_login(world.admin)
    round_ = draft_round(world)
    job = start(world, round_)
    url = reverse("arena:answers_progress", args=[round_.pk])
    running = client.get(url)
    assert "hx-get" in running.content.decode()
    assert "HX-Refresh" not in running
    finished(job)
    done = client.get(url)
    assert "hx-get" not in done.content.decode()
    assert done["HX-Refresh"] == "true"


def test_no_answer_no_contestant_and_no_time_stands_on_the_page(
    client: Client, server: Endpoint, world: World
) -> None:
    server.plan = lambda n, asked: "too_long" if n == 1 else "good"
    client.force_login(world.admin)
    round_ = draft_round(world)
    finished(start(world, round_, failure_limit=20))
    shown = page(client, round_)
    card = shown[shown.index('id="answers"') : shown.index("What to do next")]
    for name in map(str, world.contestants):
        assert name not in card
    for text in AnswerText.objects.values_list("text", flat=True):
        assert text not in shown
    assert "millisecond" not in card


@pytest.mark.parametrize("name", ["answers_start", "answers_stop", "answers_resume"])
def test_only_administrators_and_only_by_post(
    client: Client, server: Endpoint, world: World, name: str
) -> None:
    round_ = draft_round(world)
    url = reverse(f"arena:{name}", args=[round_.pk])
    client.force_login(world.raters[0])
    assert client.post(url, {"failure_limit": "5"}).status_code == 403
    assert client.get(reverse("arena:answers_progress", args=[round_.pk])).status_code == 403
    client.force_login(world.admin)
    assert client.get(url).status_code == 405
    assert not AnswerJob.objects.exists()


@pytest.mark.parametrize("limit", ["", "51", "-1", "many", "1" * 30])
def test_a_limit_that_makes_no_sense_is_refused(
    client: Client, server: Endpoint, world: World, limit: str
) -> None:
    client.force_login(world.admin)
    round_ = draft_round(world)
    shown = post(client, "answers_start", round_, failure_limit=limit)
    assert "Between 0 and 50 percent." in shown
    assert not AnswerJob.objects.exists()


def test_what_answers_took_is_told_after_unsealing_only(
    client: Client, server: Endpoint, world: World
) -> None:
    server.plan = lambda n, asked: "blank" if n == 0 else "good"
    round_ = draft_round(world)
    finished(start(world, round_, failure_limit=20))
    screening.start_screening(actor=world.admin, round_=round_)
    screening.screen_round(round_.pk)
    round_ = sealing.open_round(actor=world.admin, round_=Round.objects.get(pk=round_.pk))
    vote_all(round_, world.raters)
    client.force_login(world.raters[0])
    assert "What the answers took" not in page(client, round_)
    closing.close_round(actor=world.admin, round_=round_, reason="enough for a test")
    ratings.rate_round(round_.pk)
    for actor in (world.admin, world.second_admin):
        closing.approve_unsealing(actor=actor, round_=round_, reason="all votes are in")
    shown = page(client, round_)
    assert "What the answers took" in shown
    costs = shown[shown.index("What the answers took") :]
    assert re.findall(r'</th><td class="num">(\d+)</td><td class="num">(\d+)</td>', costs)[:3] in (
        [("5", "1"), ("6", "0"), ("6", "0")],
        [("6", "0"), ("5", "1"), ("6", "0")],
        [("6", "0"), ("6", "0"), ("5", "1")],
    )


def test_the_page_asks_the_same_number_of_queries_for_more_answers(
    client: Client, server: Endpoint, django_assert_max_num_queries: object
) -> None:
    client.force_login((world := makers_world(server.url, server.url, personas=6)).admin)
    round_ = draft_round(world)
    finished(start(world, round_))
    url = reverse("arena:round_detail", args=[round_.pk])
    with django_assert_max_num_queries(40):  # type: ignore[operator]
        client.get(url)

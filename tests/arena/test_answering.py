"""Answers made for a round, by a real server: every slot one answer or one recorded failure."""

from __future__ import annotations

import json
import logging
import threading
import time
from collections import Counter
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest
from django.conf import settings as site
from django.db import IntegrityError, transaction
from django.utils import timezone

from arena.enums import AnswerJobState, RoundState, WantedState
from arena.models import AnswerJob, Entry, Round, WantedAnswer
from arena.selectors.answering import costs_of, progress_of
from arena.services import answering, answering_work, rounds, screening, sealing
from tests.arena.factories import (
    NAMES,
    World,
    draft_round,
    make_answer,
    make_world,
    plan_for,
    vote_all,
)
from tests.arena.makers import (
    answered_round,
    endpoint_contestant,
    finished,
    makers_world,
    start,
)
from tests.endpoints import Endpoint, Plan, nasty
from webapp.catalog.models import Answer, AnswerCost, AnswerText, Seal
from webapp.catalog.selectors import readable_texts
from webapp.catalog.services.made_answers import write_made_answers
from webapp.catalog.services.personas import withdraw_consent
from webapp.core.errors import Forbidden, InvalidInput, Refused
from webapp.core.models import Event

pytestmark = pytest.mark.django_db
SECRET = "sk-very-secret-value"


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Loopback may be called, and pauses that nobody asked for are short."""
    monkeypatch.setattr(site, "OUTBOUND_ALLOW", ["127.0.0.1"])
    monkeypatch.setenv("PALATE_KEY_TEST", SECRET)
    monkeypatch.setattr(answering_work, "backoff", lambda tries: 0.01)


@pytest.fixture
def server() -> Iterator[Endpoint]:
    with Endpoint(stall=4.0) as made:
        yield made


def always(*names: str) -> Plan:
    """These behaviours one after the other, the last one from then on."""
    return lambda n, asked: names[min(n, len(names) - 1)]


def states(job: AnswerJob) -> dict[str, int]:
    return dict(Counter(job.wanted.values_list("state", flat=True)))


def codes(job: AnswerJob) -> dict[str, int]:
    return dict(Counter(job.wanted.filter(state="failed").values_list("code", flat=True)))


# --- the ordinary way ---------------------------------------------------------------------------


def test_every_context_gets_an_answer_of_every_contestant(server: Endpoint) -> None:
    world = makers_world(server.url, server.url)
    job = finished(start(world))
    assert (job.state, job.total, job.made, job.failed) == (AnswerJobState.DONE, 12, 12, 0)
    assert states(job) == {"made": 12}
    assert Answer.objects.count() == AnswerText.objects.count() == len(server.asked) == 12
    row = job.wanted.select_related("answer__body", "context").earliest("pk")
    assert row.answer is not None
    assert row.answer.persona_version_id == row.context.persona_version_id
    assert (row.answer.draw, row.answer.finish_reason) == (0, "stop")
    assert row.answer.features["words"] > 0
    cost = AnswerCost.objects.get(answer=row.answer)
    assert (cost.prompt_tokens, cost.completion_tokens, cost.tries) == (21, 7, 1)
    assert {asked["model"] for asked in server.asked} == {"harbor", "quarry"}


def test_a_round_of_made_answers_is_screened_opened_and_voted_on(server: Endpoint) -> None:
    world = makers_world(server.url, server.url, server.url)
    round_ = answered_round(world)
    screening.start_screening(actor=world.admin, round_=round_)
    screening.screen_round(round_.pk)
    round_.refresh_from_db()
    round_ = sealing.open_round(actor=world.admin, round_=round_)
    assert round_.state == RoundState.OPEN
    assert Entry.objects.filter(context__round=round_, excluded_by="").count() == 18
    assert vote_all(round_, world.raters) > 0
    wanted = WantedAnswer.objects.filter(job__round=round_)
    with pytest.raises(IntegrityError), transaction.atomic():
        wanted.update(code="changed")  # frozen with the round


def test_only_contestants_that_see_the_summary_are_sent_it(server: Endpoint) -> None:
    world = makers_world(personas=2, prompts=1)
    template = "You answer briefly. The reader: {persona}"
    seeing = endpoint_contestant(
        world.admin, "Seer", server.url, system_prompt=template, uses_persona=True
    )
    blind = endpoint_contestant(
        world.admin, "Blind", server.url, system_prompt="You answer briefly."
    )
    world.contestants = [seeing, blind]
    finished(start(world))
    summaries = [persona.versions.get().text.summary for persona in world.personas]
    sent: dict[str, list[str]] = {"seer": [], "blind": []}
    for asked in server.asked:
        sent[asked["model"]].append(asked["messages"][0]["content"])
    assert sorted(sent["seer"]) == sorted(
        f"You answer briefly. The reader: {summary}" for summary in summaries
    )
    assert sent["blind"] == ["You answer briefly."] * 2


def test_sampling_settings_and_the_key_are_sent_and_the_key_is_kept_nowhere(
    server: Endpoint, caplog: pytest.LogCaptureFixture
) -> None:
    server.plan = always("refuses", "good")
    sampling = {"temperature": 0.2, "max_tokens": 99, "top_k": 5}
    world = makers_world(server.url, server.url, key="PALATE_KEY_TEST", sampling=sampling)
    with caplog.at_level(logging.DEBUG):
        job = finished(start(world))
    assert server.headers[0]["Authorization"] == f"Bearer {SECRET}"
    assert sampling.items() <= server.asked[0].items()
    assert codes(job) == {"refused_by_server": 1}
    kept: list[Any] = [contestant.__dict__ for contestant in world.contestants]
    for model in (AnswerJob, WantedAnswer, Event, AnswerCost):
        kept += model.objects.values()
    assert SECRET not in str(kept) + caplog.text
    said = AnswerText.objects.values_list("text", flat=True)
    assert not any(text in caplog.text for text in said)


def test_a_missing_key_is_a_failure_and_nothing_is_sent(
    server: Endpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = makers_world(server.url, server.url, key="PALATE_KEY_TEST")
    monkeypatch.delenv("PALATE_KEY_TEST")
    job = finished(start(world))
    assert codes(job) == {"key_missing": 12}
    assert not server.asked


def test_a_private_address_is_not_called(server: Endpoint, monkeypatch: pytest.MonkeyPatch) -> None:
    world = makers_world(server.url, server.url)
    monkeypatch.setattr(site, "OUTBOUND_ALLOW", [])
    assert codes(finished(start(world))) == {"address_refused": 12}
    assert not server.asked


# --- a server that misbehaves -------------------------------------------------------------------


@pytest.mark.parametrize("name", ["busy", "broken", "cuts", "garbage", "bad_utf8", "no_choices"])
def test_what_may_pass_is_asked_again(server: Endpoint, name: str) -> None:
    server.plan = always(name, "good")
    job = finished(start(makers_world(server.url, server.url, personas=2, prompts=1)))
    assert states(job) == {"made": 4}
    assert len(server.asked) == 5
    assert AnswerCost.objects.filter(tries=2).count() == 1


@pytest.mark.parametrize(
    ("name", "code", "status", "asked"),
    [
        ("refuses", "refused_by_server", 401, 1),
        ("redirects", "redirect", 307, 1),
        ("too_long", "refused_by_server", 400, 1),
        ("blank", "reply_blank", None, 1),
        ("broken", "server_error", 500, 6),
        ("cuts", "broken_answer", None, 6),
        ("garbage", "bad_json", 200, 3),
        ("no_choices", "reply_shape", None, 3),
    ],
)
def test_a_failure_is_recorded_with_its_reason_and_never_an_answer(
    server: Endpoint, name: str, code: str, status: int | None, asked: int
) -> None:
    server.plan = lambda n, said: name if said["model"] == "harbor" else "good"
    job = finished(start(makers_world(server.url, server.url, personas=1, prompts=2)))
    failed = job.wanted.filter(state=WantedState.FAILED)
    assert set(failed.values_list("code", "http_status", "tries")) == {(code, status, asked)}
    assert (job.made, job.failed) == (2, 2)
    assert Answer.objects.count() == 2


@pytest.mark.parametrize("name", ["stalls", "drips"])
def test_a_server_that_never_ends_is_left_in_time(server: Endpoint, name: str) -> None:
    server.plan = always(name, "good")
    began = time.monotonic()
    job = finished(start(makers_world(server.url, server.url, timeout=1, personas=1, prompts=1)))
    assert states(job) == {"made": 2}
    assert 1.0 <= time.monotonic() - began < 60


def test_answers_come_in_a_stream_or_cut_by_the_limit(server: Endpoint) -> None:
    server.plan = always("streams", "cut_short")
    job = finished(start(makers_world(server.url, server.url, personas=1, prompts=1, at_once=1)))
    rows = Answer.objects.filter(pk__in=job.wanted.values("answer")).order_by("pk")
    assert [row.finish_reason for row in rows] == ["stop", "length"]
    assert [row.body.text[:11] for row in rows] == ["An answer (", "An answer ("]


def test_retry_after_is_honoured_by_the_whole_endpoint(server: Endpoint) -> None:
    server.plan = always("busy", "good")
    finished(start(makers_world(server.url, server.url, at_once=1)))
    told = server.busy_at[0]
    assert min(at - told for at in server.at if at > told) >= 0.99
    assert len(server.asked) == 13


def test_a_long_wait_is_handed_over_and_goes_on_when_it_is_over(
    server: Endpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    server.plan = always("busy", "good")
    monkeypatch.setattr(answering_work, "HAND_OVER_S", 0.5)
    job = finished(start(makers_world(server.url, server.url, at_once=1)))
    assert (job.state, job.heartbeat_at) == (AnswerJobState.RUNNING, None)
    assert job.resume_at is not None
    assert answering.restart_stalled() == 0  # not due yet
    AnswerJob.objects.update(resume_at=timezone.now() - timedelta(seconds=1))
    assert answering.restart_stalled() == 1
    time.sleep(1.0)
    monkeypatch.setattr(answering_work, "HAND_OVER_S", 60.0)
    assert finished(job).state == AnswerJobState.DONE


def test_a_long_job_hands_over_to_a_new_task(
    server: Endpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    sent: list[tuple[str, int]] = []
    monkeypatch.setattr(answering_work, "enqueue", lambda name, pk: sent.append((name, pk)))
    monkeypatch.setattr(answering_work, "TURN_S", -1.0)
    job = finished(start(makers_world(server.url, server.url)))
    assert (job.state, job.heartbeat_at) == (AnswerJobState.RUNNING, None)
    assert sent == [("make_answers", job.pk)]
    monkeypatch.setattr(answering_work, "TURN_S", 60.0)
    assert finished(job).made == 12


def test_no_more_are_asked_at_once_than_the_endpoint_takes(server: Endpoint) -> None:
    server.delay = 0.05
    world = makers_world(server.url, server.url, server.url, personas=4, prompts=3)
    narrow = endpoint_contestant(world.admin, "Narrow", server.url, at_once=3)
    world.contestants.append(narrow)
    job = finished(start(world))
    assert job.made == 48
    assert server.most == 3  # one limit for all who share the address, the narrowest


def test_little_is_lost_when_writing_is_slower_than_asking(
    server: Endpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What was answered and not written is asked again after a kill: it must stay little."""
    world = makers_world(server.url, server.url, personas=6, prompts=4, at_once=2)
    most = 0
    real = answering_work.Work.answered

    def answered(work: answering_work.Work) -> Any:
        nonlocal most
        time.sleep(0.02)
        most = max(most, len(work.calls))
        return real(work)

    monkeypatch.setattr(answering_work.Work, "answered", answered)
    monkeypatch.setattr(answering_work, "AT_ONCE", 1)
    assert finished(start(world)).made == 48
    assert most == 4


def test_who_fails_again_and_again_is_given_up_and_can_be_tried_again(server: Endpoint) -> None:
    failing = {"harbor"}
    server.plan = lambda n, asked: "refuses" if asked["model"] in failing else "good"
    world = makers_world(server.url, server.url, personas=5, prompts=5, at_once=2)
    round_ = draft_round(world)
    job = finished(start(world, round_))
    assert states(job) == {"made": 25, "failed": 25}
    found = codes(job)
    assert 10 <= found["refused_by_server"] <= 12
    assert found["given_up"] == 25 - found["refused_by_server"]
    assert progress_of(round_).over == ["Harbor 1"]
    with pytest.raises(InvalidInput, match="Harbor 1"):
        screening.start_screening(actor=world.admin, round_=round_)
    failing.clear()
    answering.resume_answering(actor=world.admin, round_=round_, again=True)
    job = finished(job)
    assert (states(job), job.made, job.failed) == ({"made": 50}, 50, 0)
    screening.start_screening(actor=world.admin, round_=round_)


def test_the_failure_limit_blocks_screening_and_opening(server: Endpoint) -> None:
    server.plan = always("blank", "good")
    world = makers_world(server.url, server.url)
    round_ = draft_round(world, planned_votes=5)
    finished(start(world, round_, failure_limit=16))  # 1 of 6 is 16.7 percent
    with pytest.raises(InvalidInput) as error:
        screening.start_screening(actor=world.admin, round_=round_)
    assert error.value.code == "missing_answers"
    AnswerJob.objects.update(failure_limit=17)
    screening.start_screening(actor=world.admin, round_=round_)
    screening.screen_round(round_.pk)
    round_.refresh_from_db()
    AnswerJob.objects.update(failure_limit=16)
    with pytest.raises(InvalidInput):
        sealing.open_round(actor=world.admin, round_=round_)
    AnswerJob.objects.update(failure_limit=17)
    sealing.open_round(actor=world.admin, round_=round_)


def test_a_round_whose_answers_nobody_made_cannot_be_screened(server: Endpoint) -> None:
    world = makers_world(server.url, server.url)
    with pytest.raises(InvalidInput, match="Harbor 1, Quarry 1"):
        screening.start_screening(actor=world.admin, round_=draft_round(world))


# --- killed, stopped, taken over ----------------------------------------------------------------


def test_a_killed_job_goes_on_and_no_slot_gets_two_answers(
    server: Endpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two deaths in the middle of writing, a server that misbehaves: one answer or one failure."""
    server.plan = nasty(1)
    server.stall = 1.2
    world = makers_world(*[server.url] * 3, personas=6, prompts=4, timeout=1, at_once=8)
    job = start(world)
    real = write_made_answers
    deaths = [12, 30]

    def dying(**given: Any) -> Any:
        found = real(**given)
        if deaths and Answer.objects.count() >= deaths[0]:
            deaths.pop(0)
            raise KeyboardInterrupt  # between the statements of one transaction
        return found

    monkeypatch.setattr(answering_work, "write_made_answers", dying)
    for _death in range(2):
        with pytest.raises(KeyboardInterrupt):
            answering_work.run_job(job.pk)
        assert answering_work.run_job(job.pk) is None  # it may still be alive
        AnswerJob.objects.update(heartbeat_at=timezone.now() - timedelta(minutes=1))
    job = finished(job)
    assert job.state == AnswerJobState.DONE
    assert (job.made + job.failed, job.total) == (72, 72)
    made = job.wanted.filter(state=WantedState.MADE)
    assert made.count() == job.made == Answer.objects.count() == AnswerText.objects.count()
    assert len(set(made.values_list("answer", flat=True))) == job.made
    assert not job.wanted.filter(state=WantedState.FAILED, code="").exists()
    assert not Answer.objects.exclude(draw=0).exists()
    assert not AnswerText.objects.filter(text="").exists()


def test_a_process_that_was_taken_over_writes_nothing_more(
    server: Endpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = start(makers_world(server.url, server.url))
    real = write_made_answers

    def taken_over(**given: Any) -> Any:
        AnswerJob.objects.update(heartbeat_at=timezone.now() + timedelta(seconds=1))
        return real(**given)

    monkeypatch.setattr(answering_work, "write_made_answers", taken_over)
    answering_work.run_job(job.pk)
    assert (Answer.objects.count(), states(job)) == (0, {"waiting": 12})


def test_stopped_and_gone_on_with(server: Endpoint, monkeypatch: pytest.MonkeyPatch) -> None:
    world = makers_world(server.url, server.url)
    round_ = draft_round(world)
    job = start(world, round_)
    original = answering_work.Work.keep

    def keep(work: answering_work.Work, found: Any) -> None:
        original(work, found)
        if Answer.objects.exists():
            answering.stop_answering(actor=world.admin, round_=round_)

    monkeypatch.setattr(answering_work, "AT_ONCE", 1)
    monkeypatch.setattr(answering_work.Work, "keep", keep)
    job = finished(job)
    assert (job.state, job.made) == (AnswerJobState.CANCELLED, 1)
    assert progress_of(round_).left == 11
    monkeypatch.setattr(answering_work.Work, "keep", original)
    first = Answer.objects.get().pk
    answering.resume_answering(actor=world.admin, round_=round_)
    job = finished(job)
    assert (job.state, job.made) == (AnswerJobState.DONE, 12)
    assert Answer.objects.filter(pk=first).exists()
    actions = Event.objects.filter(action__contains="answering").values_list("action", flat=True)
    assert list(actions.order_by("n")) == [
        "start_answering", "stop_answering", "resume_answering", "answering_done",
    ]  # fmt: skip


def test_two_processes_at_once_do_the_work_once(server: Endpoint) -> None:
    job = start(makers_world(server.url, server.url))
    AnswerJob.objects.filter(pk=job.pk).update(heartbeat_at=timezone.now())
    assert answering_work.run_job(job.pk) is None
    assert not server.asked


def test_starting_twice_starts_once(server: Endpoint) -> None:
    world = makers_world(server.url, server.url)
    round_ = draft_round(world)
    one, two = start(world, round_), start(world, round_)
    assert one.pk == two.pk
    assert WantedAnswer.objects.count() == 12
    assert Event.objects.filter(action="start_answering").count() == 1


# --- the life of the round ----------------------------------------------------------------------


def test_answers_are_sealed_for_their_round_from_the_first_moment(server: Endpoint) -> None:
    world = makers_world(server.url, server.url)
    round_ = answered_round(world)
    assert Seal.objects.filter(holder=round_.holder).count() == 12
    assert not any(readable_texts(contestant).exists() for contestant in world.contestants)
    screening.start_screening(actor=world.admin, round_=round_)
    screening.screen_round(round_.pk)
    rounds.back_to_draft(actor=world.admin, round_=Round.objects.get(pk=round_.pk))
    assert Seal.objects.filter(holder=round_.holder).count() == 12
    assert not any(readable_texts(contestant).exists() for contestant in world.contestants)


def test_a_recomposed_round_uses_what_was_made(server: Endpoint) -> None:
    world = makers_world(server.url, server.url)
    round_ = answered_round(world)
    rounds.recompose_round(actor=world.admin, round_=round_, plan=plan_for(world))
    assert not AnswerJob.objects.exists()
    job = start(world, Round.objects.get(pk=round_.pk))
    assert states(job) == {"made": 12}
    assert (job.made, job.total) == (12, 12)
    assert Seal.objects.filter(holder=round_.holder).count() == 12
    finished(job)
    assert len(server.asked) == 12


def test_another_round_gets_fresh_answers(server: Endpoint) -> None:
    """An answer enters one round only, and a text too: repeating one is a recorded failure."""
    world = makers_world(server.url, server.url, personas=1, prompts=2)
    answered_round(world)
    job = finished(start(world, draft_round(world)))
    assert set(job.wanted.values_list("draw", flat=True)) == {1}
    assert codes(job) == {"taken": 4}  # this server says the same again
    assert Answer.objects.count() == 4


def test_what_is_being_made_keeps_the_round_from_being_screened(server: Endpoint) -> None:
    world = makers_world(server.url, server.url)
    round_ = draft_round(world)
    start(world, round_)
    with pytest.raises(Refused) as error:
        screening.start_screening(actor=world.admin, round_=round_)
    assert error.value.code == "answering"


def test_answers_are_made_for_drafts_only_and_by_administrators(server: Endpoint) -> None:
    world = makers_world(server.url, server.url)
    round_ = draft_round(world)
    for act in (
        lambda actor: (
            start(world, round_)
            if actor is None
            else answering.start_answering(actor=actor, round_=round_)
        ),
        lambda actor: answering.stop_answering(actor=actor, round_=round_),
        lambda actor: answering.resume_answering(actor=actor, round_=round_),
    ):
        with pytest.raises(Forbidden):
            act(world.raters[0])
    rounds.cancel_round(actor=world.admin, round_=round_, reason="a test")
    with pytest.raises(Refused):
        start(world, Round.objects.get(pk=round_.pk))


def test_cancelling_the_round_stops_the_job(server: Endpoint) -> None:
    world = makers_world(server.url, server.url)
    round_ = draft_round(world)
    job = start(world, round_)
    rounds.cancel_round(actor=world.admin, round_=round_, reason="a test")
    assert answering_work.run_job(job.pk) is None
    assert not server.asked


def test_withdrawn_consent_is_a_failure_and_nothing_is_sent(server: Endpoint) -> None:
    world = makers_world(server.url, server.url, personas=2, prompts=1)
    job = start(world)
    withdraw_consent(actor=world.admin, persona=world.personas[0])
    job = finished(job)
    assert codes(job) == {"withdrawn": 2}
    assert len(server.asked) == 2


def test_consent_that_is_withdrawn_while_an_answer_is_on_its_way(
    server: Endpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = makers_world(server.url, server.url, personas=1, prompts=1)
    job = start(world)
    real = write_made_answers

    def late(**given: Any) -> Any:
        if world.personas[0].withdrawn_at is None:
            withdraw_consent(actor=world.admin, persona=world.personas[0])
        return real(**given)

    monkeypatch.setattr(answering_work, "write_made_answers", late)
    assert codes(finished(job)) == {"withdrawn": 2}
    assert not AnswerText.objects.exists()


def test_imported_contestants_are_left_alone(server: Endpoint) -> None:
    world = make_world(contestants=1, personas=2, prompts=2)
    world.contestants.append(endpoint_contestant(world.admin, NAMES[1], server.url))
    job = finished(start(world))
    assert (job.total, job.made, len(server.asked)) == (4, 4, 4)


def test_a_slot_that_was_taken_meanwhile_moves_on(server: Endpoint) -> None:
    """Two rounds may plan the same draw; the later one to write takes the next."""
    world = makers_world(server.url, server.url, personas=1, prompts=1)
    job = start(world)
    version = world.personas[0].versions.get()
    for contestant in world.contestants:
        make_answer(contestant, world.prompts[0], version, f"Something else of {contestant}.")
    finished(job)
    rows = job.wanted.select_related("answer")
    assert {row.answer.draw for row in rows if row.answer} == {1}


# --- what is told -------------------------------------------------------------------------------


def test_progress_is_told_in_totals_with_an_estimate(server: Endpoint) -> None:
    server.plan = always("blank", "too_long", "good")
    world = makers_world(server.url, server.url, at_once=1)
    round_ = answered_round(world)
    found = progress_of(round_)
    assert (found.contestants, found.contexts, found.left, found.finished) == (2, 6, 0, 12)
    assert [n for _reason, n in found.reasons] == [1, 1]
    assert any("status 400" in reason for reason, _n in found.reasons)
    assert found.job is not None
    assert found.job.pace is not None
    AnswerJob.objects.update(made=2, failed=0, total=12, pace=30.0)
    assert progress_of(round_).minutes == 5
    AnswerJob.objects.update(pace=0.1)
    assert progress_of(round_).minutes == 1
    assert found.minutes is None  # nothing is left


def test_what_answers_took_is_told_when_the_round_is_unsealed(server: Endpoint) -> None:
    world = makers_world(server.url, server.url)
    round_ = answered_round(world)
    with pytest.raises(Refused):
        costs_of(round_)
    round_.state = RoundState.UNSEALED
    assert [cost.made for cost in costs_of(round_)] == [0, 0]  # nothing was screened


def test_the_log_says_what_failed_unexpectedly_without_text(
    server: Endpoint, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    world = makers_world(server.url, server.url, personas=1, prompts=1)
    prompt = json.dumps(world.prompts[0].messages)

    def fails(source: Any, request: Any, place: Any) -> Any:
        with place:
            raise ValueError(f"{prompt} {SECRET}")

    monkeypatch.setattr(answering_work, "_answered", fails)
    assert codes(finished(start(world))) == {"unexpected": 2}
    told = [record for record in caplog.records if record.name == "palate.answers"]
    assert {vars(record)["error"] for record in told} == {"ValueError"}
    assert SECRET not in str([vars(record) for record in told])
    assert threading.active_count() < 50


def test_the_number_of_queries_does_not_grow_with_the_answers(
    server: Endpoint, django_assert_max_num_queries: Any
) -> None:
    world: World = makers_world(server.url, server.url, personas=6, prompts=4)
    round_ = answered_round(world)
    with django_assert_max_num_queries(8):
        progress_of(round_)

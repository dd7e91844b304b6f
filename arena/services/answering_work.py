"""The work of an answer job: asks what is wanted, writes what comes back, records what fails.

Threads ask, one thread writes. An answer, its seal and its row are one transaction, so that a
killed job goes on from the rows and no slot gets two. `heartbeat_at` is also the fence: each commit
names the heartbeat that it saw last, and a process that was taken over finds another and stops.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterable, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import IO, Any

from django.db import transaction
from django.db.models import Min, Q
from django.utils import timezone

from arena.enums import AnswerJobState, WantedState
from arena.models import AnswerJob, WantedAnswer
from arena.selectors.answering import made_here
from arena.services.answering import STALE
from arena.services.answering_lanes import Lane, backoff, lanes_of, request_for, summary_of
from webapp.catalog.answering.protocol import (
    AnswerError,
    AnswerSource,
    Final,
    Made,
    Request,
    TryAgain,
)
from webapp.catalog.answering.sources import source_of
from webapp.catalog.services.answers import Draft
from webapp.catalog.services.made_answers import WITHDRAWN, MadeDraft, write_made_answers
from webapp.core import audit
from webapp.core.holding import alive
from webapp.core.jobs import enqueue

log = logging.getLogger("palate.answers")
TURN_S = 2500.0  # after so long the job hands over to a new task; what was asked may take 900 s
BEAT_S = 5.0
HAND_OVER_S = 60.0  # a longer pause is not waited for: the job is sent again when it is over
GIVE_UP = 10  # so many failures in a row that the source is to blame for end a contestant
AT_ONCE = 50  # answers in one transaction
READ = 100  # rows read at once
AHEAD = 2  # answers that wait to be written, with those on their way, in widths of the lane
WIDEST = 64  # threads
PACE_WEIGHT = 0.05
# After these the lane as a whole is left alone for a while, not only the one question.
TROUBLES = ("busy", "no_connection", "not_resolved", "tls", "engine_died")


class TakenOverError(Exception):
    """Another process goes on with this job, or it was stopped."""


@dataclass
class Call:
    """A question on its way."""

    row: WantedAnswer
    lane: Lane


Outcome = Made | AnswerError


def run_job(pk: int) -> AnswerJob | None:
    """Work on a job until it is done. None where another process has it; harmless to call twice."""
    with alive(f"answers-{pk}") as free:
        job = _claim(pk) if free else None
        if job is None:
            return None
        work = Work(job)
        try:
            with suppress(TakenOverError):
                work.do()
        finally:
            work.close()
    return AnswerJob.objects.filter(pk=pk).first()


def _claim(pk: int) -> AnswerJob | None:
    """Compare and set: one process gets the job, unless the one that had it fell silent."""
    now = timezone.now()
    free = Q(heartbeat_at=None) | Q(heartbeat_at__lt=now - STALE)
    mine = AnswerJob.objects.filter(free, pk=pk, state=AnswerJobState.RUNNING)
    if not mine.update(heartbeat_at=now, resume_at=None):
        return None
    return AnswerJob.objects.select_related("round", "created_by").get(pk=pk)


class Work:
    """One turn at a job."""

    def __init__(self, job: AnswerJob) -> None:
        self.job = job
        self.makers = {maker.pk: maker for maker in made_here(job.round)}
        self.sources = {pk: source_of(maker) for pk, maker in self.makers.items()}
        self.lanes = lanes_of(self.sources, job.pauses)
        width = min(WIDEST, sum(lane.places.width for lane in self.lanes))
        self.pool = ThreadPoolExecutor(max(1, width), "answers")
        self.calls: dict[Future[Made], Call] = {}
        self.bad: dict[int, int] = {}  # failures in a row, by contestant
        self.ends = time.monotonic() + TURN_S
        self.beaten = self.kept = time.monotonic()

    def close(self) -> None:
        self.pool.shutdown(wait=False, cancel_futures=True)
        for source in self.sources.values():
            source.close()

    def do(self) -> None:
        while True:
            if time.monotonic() < self.ends:
                for lane in self.lanes:
                    self.fill(lane)
            self.keep(self.answered())
            if time.monotonic() - self.beaten > BEAT_S:
                self.update()
            if not self.calls and self.rest():
                return

    def rest(self) -> bool:
        """Nothing is on its way: end, hand over, or wait a little. True ends this turn."""
        if time.monotonic() >= self.ends:
            self.hand_over(None)
            return True
        left = self.job.wanted.filter(state=WantedState.WAITING)
        if not left.exists():
            self.finish()
            return True
        due = self.next_due()
        seconds = (due - timezone.now()).total_seconds() if due else 0.0
        if seconds > HAND_OVER_S:
            self.hand_over(due)
            return True
        time.sleep(min(max(seconds, 0.1), 1.0))
        return False

    def next_due(self) -> datetime | None:
        """When the next question may be asked; None for now."""
        now, clock = timezone.now(), time.monotonic()
        times = []
        for lane in self.lanes:
            rows = self.job.wanted.filter(state=WantedState.WAITING, contestant__in=lane.makers)
            if not rows.exists():
                continue
            if rows.filter(not_before=None).exists():
                first = now
            else:
                first = rows.aggregate(first=Min("not_before"))["first"] or now
            times.append(max(first, now + timedelta(seconds=lane.paused_until - clock)))
        return min(times, default=None)

    # Asking

    def fill(self, lane: Lane) -> None:
        """Ask as much as the lane may be asked now; what is not written yet would be lost."""
        most = AHEAD * lane.places.width
        while lane.asked < most and time.monotonic() >= lane.paused_until:
            row = self.next_of(lane)
            if row is None:
                return
            if row.contestant_id != lane.loaded and lane.in_turn:
                if lane.asked:
                    return
                if lane.loaded:
                    self.sources[lane.loaded].close()
                lane.loaded = row.contestant_id
            place = lane.places.take()
            if place is None:
                return
            lane.queue.popleft()
            self.ask(lane, row, place)

    def next_of(self, lane: Lane) -> WantedAnswer | None:
        """The first row of the lane that is due, left in the queue."""
        if not lane.queue and time.monotonic() - lane.looked_at > 0.2:
            lane.looked_at = time.monotonic()
            lane.queue.extend(self.due_rows(lane))
        return lane.queue[0] if lane.queue else None

    def due_rows(self, lane: Lane) -> Iterable[WantedAnswer]:
        due = Q(not_before=None) | Q(not_before__lte=timezone.now())
        away = [call.row.pk for call in self.calls.values()]
        rows = self.job.wanted.filter(
            due, state=WantedState.WAITING, contestant__in=lane.makers
        ).exclude(pk__in=away)
        order = ("contestant", "pk") if lane.in_turn else ("pk",)
        return rows.select_related(
            "context__prompt", "context__persona_version__persona", "context__persona_version__text"
        ).order_by(*order)[:READ]

    def ask(self, lane: Lane, row: WantedAnswer, place: IO[str]) -> None:
        summary = summary_of(row)
        if summary is None:
            place.close()
            self.write([(row, Final(WITHDRAWN))])
            return
        maker = self.makers[row.contestant_id]
        request = request_for(maker, row, summary)
        future = self.pool.submit(_answered, self.sources[maker.pk], request, place)
        self.calls[future] = Call(row, lane)
        lane.asked += 1

    def answered(self) -> list[tuple[Call, Outcome]]:
        """What came back, some at a time; waits a moment for the first."""
        if not self.calls:
            return []
        done, _late = wait(self.calls, timeout=0.5, return_when=FIRST_COMPLETED)
        found: list[tuple[Call, Outcome]] = []
        for future in list(done)[:AT_ONCE]:
            call = self.calls.pop(future)
            call.lane.asked -= 1
            found.append((call, _outcome(future)))
        return found

    # Keeping

    def keep(self, found: Sequence[tuple[Call, Outcome]]) -> None:
        """Write what came back in one transaction; put off what may be asked again."""
        ended: list[tuple[WantedAnswer, Made | Final]] = []
        for call, outcome in found:
            row, lane = call.row, call.lane
            row.tries += 1
            if isinstance(outcome, TryAgain):
                final = self.put_off(row, lane, outcome)
                if final is not None:
                    ended.append((row, final))
            else:
                lane.troubles = 0
                ended.append((row, outcome if isinstance(outcome, Made) else _final(outcome)))
        if ended:
            self.write(ended)

    def put_off(self, row: WantedAnswer, lane: Lane, error: TryAgain) -> Final | None:
        """Ask again later, as the server says or after a growing pause; Final after enough."""
        if error.wait is not None:
            self.pause(lane, error.wait)
        elif error.code in TROUBLES:
            lane.troubles += 1
            self.pause(lane, backoff(lane.troubles))
        if row.tries >= error.tries:
            return Final(error.code, http_status=error.http_status, blame=error.blame)
        seconds = error.wait if error.wait is not None else backoff(row.tries)
        with transaction.atomic():
            self.update()
            self.job.wanted.filter(pk=row.pk, state=WantedState.WAITING).update(
                tries=row.tries,
                code=error.code,
                http_status=error.http_status,
                not_before=timezone.now() + timedelta(seconds=seconds),
            )
        return None

    def pause(self, lane: Lane, seconds: float) -> None:
        """Leave the whole lane alone; kept in the job, so that a restart does not forget it."""
        until = time.monotonic() + seconds
        if until > lane.paused_until:
            lane.paused_until = until
            at = timezone.now() + timedelta(seconds=seconds)
            self.job.pauses = {**self.job.pauses, lane.name: at.isoformat()}

    def write(self, ended: Sequence[tuple[WantedAnswer, Made | Final]]) -> None:
        made = [(row, said) for row, said in ended if isinstance(said, Made)]
        failed = [(row, said) for row, said in ended if isinstance(said, Final)]
        with transaction.atomic():
            self.update()
            kept = write_made_answers(
                made=[_draft(row, said) for row, said in made], holder=self.job.round.holder
            )
            for (row, _said), answer in zip(made, kept, strict=True):
                if isinstance(answer, str):
                    failed.append((row, Final(answer)))
                else:
                    self.end(row, state=WantedState.MADE, answer_id=answer, code="")
            for row, error in failed:
                status = error.http_status
                self.end(row, state=WantedState.FAILED, code=error.code, http_status=status)
            lost = self.give_up(made, failed)
            self.update(
                made=self.job.made + len(ended) - len(failed),
                failed=self.job.failed + len(failed) + lost,
                pace=self.pace(len(ended)),
            )

    def end(self, row: WantedAnswer, **values: Any) -> None:
        """Set the row's outcome, once. A row that has one already is somebody else's: undo all."""
        mine = self.job.wanted.filter(pk=row.pk, state=WantedState.WAITING)
        if not mine.update(tries=row.tries, not_before=None, **values):
            raise TakenOverError

    def give_up(
        self,
        made: Sequence[tuple[WantedAnswer, Made]],
        failed: Sequence[tuple[WantedAnswer, Final]],
    ) -> int:
        """Where a source fails again and again, the rest of its contestant fails unasked."""
        lost = 0
        for row, _said in made:
            self.bad[row.contestant_id] = 0
        for row, error in failed:
            bad = self.bad.get(row.contestant_id, 0) + 1 if error.blame else 0
            self.bad[row.contestant_id] = bad
            if bad >= GIVE_UP:
                away = {call.row.pk for call in self.calls.values()}
                rest = self.job.wanted.filter(
                    state=WantedState.WAITING, contestant=row.contestant_id
                ).exclude(pk__in=away)
                lost += rest.update(state=WantedState.FAILED, code="given_up", not_before=None)
                for lane in self.lanes:
                    lane.queue.clear()
        return lost

    def pace(self, n: int) -> float:
        """Mean seconds from one finished answer to the next, newer ones weighing more."""
        now = time.monotonic()
        latest, self.kept = (now - self.kept) / n, now
        if self.job.pace is None:
            return latest
        weight = min(0.5, PACE_WEIGHT * n)
        return self.job.pace + weight * (latest - self.job.pace)

    # The row of the job

    def update(self, **values: Any) -> None:
        """Write down how far it is, only while the job is ours."""
        values = {"heartbeat_at": timezone.now(), "pauses": self.job.pauses, **values}
        mine = AnswerJob.objects.filter(
            pk=self.job.pk, state=AnswerJobState.RUNNING, heartbeat_at=self.job.heartbeat_at
        )
        if not mine.update(**values):
            raise TakenOverError
        for name, value in values.items():
            setattr(self.job, name, value)
        self.beaten = time.monotonic()

    def hand_over(self, due: datetime | None) -> None:
        """Let go; a new task goes on, now or when the pause is over (repair sends it)."""
        with transaction.atomic():
            self.update(heartbeat_at=None, resume_at=due)
            if due is None:
                enqueue("make_answers", self.job.pk)

    def finish(self) -> None:
        with transaction.atomic():
            self.update(state=AnswerJobState.DONE, finished_at=timezone.now())
            audit.record(
                actor=None,
                action="answering_done",
                obj=self.job.round,
                made=self.job.made,
                failed=self.job.failed,
            )


# Pure parts


def _answered(source: AnswerSource, request: Request, place: IO[str]) -> Made:
    with place:
        return source.answer(request)


def _outcome(future: Future[Made]) -> Outcome:
    """The answer or the error; an error that nobody foresaw is a failure too, and is logged."""
    try:
        return future.result()
    except AnswerError as error:
        return error
    except Exception as error:
        log.error("a source of answers failed unexpectedly", extra={"error": type(error).__name__})
        return Final("unexpected")


def _final(error: AnswerError) -> Final:
    return Final(error.code, http_status=error.http_status, blame=error.blame)


def _draft(row: WantedAnswer, made: Made) -> MadeDraft:
    draft = Draft(
        contestant_id=row.contestant_id,
        prompt_id=row.context.prompt_id,
        persona_version_id=row.context.persona_version_id,
        text=made.text,
        draw=row.draw,
        finish_reason=made.finish_reason,
    )
    return MadeDraft(
        draft, made.milliseconds, made.prompt_tokens, made.completion_tokens, max(1, row.tries)
    )

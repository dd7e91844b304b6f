"""Having the answers of a draft made: started, stopped, gone on with. The work is a job's.

What is wanted is planned once, under the round's lock: a row per context and contestant. The job
(`answering_work`) goes on from these rows, whatever died meanwhile.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from typing import Any

from django.core.cache import cache
from django.db import transaction
from django.db.models import Count, Max, Q
from django.utils import timezone
from django.utils.translation import gettext as _

from arena import policies
from arena.enums import AnswerJobState, WantedState
from arena.models import AnswerJob, Context, Round, WantedAnswer
from arena.selectors.answering import FAILURE_LIMIT, made_here
from arena.services.rounds import locked
from arena.services.screening import AnswerKey, free_answers, seal_answers
from webapp.catalog.models import Answer, Contestant
from webapp.core import audit
from webapp.core.errors import InvalidInput, Refused
from webapp.core.jobs import enqueue

BATCH = 100  # contexts planned at once
STALE = timedelta(seconds=30)  # without a sign of life for so long, the process is gone


def start_answering(*, actor: Any, round_: Round, failure_limit: int = FAILURE_LIMIT) -> AnswerJob:
    """Have every missing answer of the draft made. Sent twice, it starts once."""
    if not isinstance(failure_limit, int) or not 0 <= failure_limit <= 50:
        raise InvalidInput(_("Between 0 and 50 percent."), field="failure_limit")
    with transaction.atomic():
        round_ = locked(round_.pk)
        policies.check_edit(actor, round_)
        job = AnswerJob.objects.filter(round=round_).first()
        if job is not None:
            return job
        makers = made_here(round_)
        if not makers or not round_.contexts.exists():
            raise Refused(
                _("No contestant of this round has its answers made here."), code="nothing_to_make"
            )
        job = AnswerJob.objects.create(round=round_, failure_limit=failure_limit, created_by=actor)
        for rows in _planned(job, round_, makers):
            WantedAnswer.objects.bulk_create(rows, batch_size=500)
            seal_answers(round_, {row.answer_id for row in rows if row.answer_id is not None})
        _count(job)
        audit.record(
            actor=actor,
            action="start_answering",
            obj=round_,
            wanted=job.total - job.made,
            failure_limit=failure_limit,
        )
        enqueue("make_answers", job.pk)
    return job


def _planned(
    job: AnswerJob, round_: Round, makers: list[Contestant]
) -> Iterator[list[WantedAnswer]]:
    """What is wanted, some contexts at a time. A free answer that exists is taken, not made anew.

    Each persona gets answers of its own, also from contestants that do not see the summary: the
    same text under two personas would tell raters which contestant that is.
    """
    ids = sorted(maker.pk for maker in makers)
    contexts = list(Context.objects.filter(round=round_).select_related("prompt").order_by("pk"))
    for start in range(0, len(contexts), BATCH):
        some = contexts[start : start + BATCH]
        free, draws = free_answers(round_, some, ids), _last_draws(some, ids)
        rows = []
        for context in some:
            for maker in ids:
                key = (maker, context.prompt_id, context.persona_version_id)
                answer = free.get(key)
                rows.append(
                    WantedAnswer(
                        job=job,
                        context=context,
                        contestant_id=maker,
                        answer=answer,
                        state=WantedState.MADE if answer else WantedState.WAITING,
                        draw=answer.draw if answer else draws.get(key, -1) + 1,
                    )
                )
        yield rows


def _last_draws(contexts: list[Context], makers: list[int]) -> dict[AnswerKey, int]:
    rows = (
        Answer.objects.filter(
            contestant__in=makers, prompt__in={context.prompt_id for context in contexts}
        )
        .values_list("contestant", "prompt", "persona_version")
        .annotate(last=Max("draw"))
        .order_by()
    )
    return {(maker, prompt, version): last for maker, prompt, version, last in rows}


def _count(job: AnswerJob) -> None:
    """Bring the job's totals in line with its rows, in the caller's transaction."""
    counts = job.wanted.aggregate(
        total=Count("pk"),
        made=Count("pk", filter=Q(state=WantedState.MADE)),
        failed=Count("pk", filter=Q(state=WantedState.FAILED)),
    )
    for name, value in counts.items():
        setattr(job, name, value)
    job.save(update_fields=list(counts))


def stop_answering(*, actor: Any, round_: Round) -> None:
    """Stop after what is being written now. What was made stays, and can be gone on with."""
    with transaction.atomic():
        round_ = locked(round_.pk)
        policies.check_edit(actor, round_)
        mine = AnswerJob.objects.filter(round=round_, state=AnswerJobState.RUNNING)
        if mine.update(state=AnswerJobState.CANCELLED):
            job = AnswerJob.objects.get(round=round_)
            audit.record(
                actor=actor, action="stop_answering", obj=round_, made=job.made, failed=job.failed
            )


def resume_answering(*, actor: Any, round_: Round, again: bool = False) -> None:
    """Go on where it stopped; with `again` the recorded failures are tried once more.

    Nothing happens while it runs: a double click resumes once.
    """
    with transaction.atomic():
        round_ = locked(round_.pk)
        policies.check_edit(actor, round_)
        job = AnswerJob.objects.select_for_update().filter(round=round_).first()
        if job is None:
            raise Refused(_("Nothing was started yet."), code="not_started")
        if job.state == AnswerJobState.RUNNING:
            return
        failed = job.wanted.filter(state=WantedState.FAILED)
        anew = failed.update(state=WantedState.WAITING, tries=0) if again else 0
        job.wanted.filter(state=WantedState.WAITING).update(not_before=None)
        job.state, job.heartbeat_at, job.resume_at = AnswerJobState.RUNNING, None, None
        job.finished_at, job.pauses = None, {}
        job.save(update_fields=["state", "heartbeat_at", "resume_at", "finished_at", "pauses"])
        _count(job)
        audit.record(
            actor=actor,
            action="resume_answering",
            obj=round_,
            left=job.total - job.made - job.failed,
            tried_again=anew,
        )
        enqueue("make_answers", job.pk)


def restart_stalled() -> int:
    """Send jobs again whose process is gone or whose pause is over (beat)."""
    now = timezone.now()
    silent = Q(heartbeat_at=None) | Q(heartbeat_at__lt=now - STALE)
    due = Q(resume_at=None) | Q(resume_at__lte=now)
    rows = AnswerJob.objects.filter(silent, due, state=AnswerJobState.RUNNING).order_by("pk")
    pks = [
        pk for pk in rows.values_list("pk", flat=True)[:100] if cache.add(f"answering:{pk}", 1, 30)
    ]
    for pk in pks:
        enqueue("make_answers", pk)
    return len(pks)

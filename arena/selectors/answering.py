"""How far the answers of a round are. Totals only: nothing here links a text to its maker (V1, V2).

What the answers took is told once the round is unsealed.
"""

from __future__ import annotations

from dataclasses import dataclass
from statistics import median
from typing import Any

from django.db.models import Avg, Count
from django.utils import timezone
from django.utils.translation import gettext as _

from arena.enums import AnswerJobState, RoundState, WantedState
from arena.models import AnswerJob, Entry, Round, WantedAnswer
from webapp.catalog.answering.reasons import reason
from webapp.catalog.enums import MADE_HERE
from webapp.catalog.models import AnswerCost, Contestant
from webapp.core.errors import InvalidInput, Refused

FAILURE_LIMIT = 5  # percent of the contexts, unless the job says otherwise


def made_here(round_: Round) -> list[Contestant]:
    """Contestants of the round whose answers are made, not imported."""
    rows = Contestant.objects.filter(
        pk__in=round_.round_contestants.values("contestant"), kind__in=MADE_HERE
    )
    return list(rows.order_by("pk"))


def job_of(round_: Round) -> AnswerJob | None:
    return AnswerJob.objects.filter(round=round_).first()


def over_the_limit(round_: Round) -> list[Contestant]:
    """Contestants that leave too many contexts without an answer, waiting ones included."""
    makers = made_here(round_)
    if not makers:
        return []
    job = job_of(round_)
    limit = job.failure_limit if job else FAILURE_LIMIT
    rows = WantedAnswer.objects.filter(job__round=round_, state=WantedState.MADE)
    made = dict(rows.values_list("contestant").annotate(n=Count("pk")).order_by())
    contexts = round_.contexts.count()
    return [
        maker for maker in makers if 100 * (contexts - made.get(maker.pk, 0)) > limit * contexts
    ]


def check_answers_are_made(round_: Round) -> None:
    """Raise while answers are being made, or a contestant is over its failure limit."""
    job = job_of(round_)
    if job is not None and job.state == AnswerJobState.RUNNING:
        raise Refused(
            _("Answers are still being made. Wait until they are, or stop it."), code="answering"
        )
    over = over_the_limit(round_)
    if over:
        names = ", ".join(sorted(map(str, over)))
        raise InvalidInput(
            _(
                "Too many answers are missing of: %(names)s. Make them, or leave the contestant "
                "out of the round."
            )
            % {"names": names},
            field="contestants",
            code="missing_answers",
        )


@dataclass(frozen=True)
class AnswerProgress:
    """What the page of a round says of its answers."""

    job: AnswerJob | None
    contestants: int  # whose answers are made here
    contexts: int
    reasons: list[tuple[str, int]]
    over: list[str]
    waits_until: Any = None

    @property
    def running(self) -> bool:
        return self.job is not None and self.job.state == AnswerJobState.RUNNING

    @property
    def left(self) -> int:
        return self.job.total - self.job.made - self.job.failed if self.job else 0

    @property
    def finished(self) -> int:
        return self.job.made + self.job.failed if self.job else 0

    @property
    def minutes(self) -> int | None:
        """An estimate from the pace of the last answers, at least one; None while it is unknown."""
        if self.job is None or self.job.pace is None or not self.left:
            return None
        return max(1, round(self.left * self.job.pace / 60))


def progress_of(round_: Round) -> AnswerProgress:
    """In a few queries, however many answers there are."""
    makers = made_here(round_)
    if not makers:
        return AnswerProgress(None, 0, 0, [], [])
    job = job_of(round_)
    counts = (
        WantedAnswer.objects.filter(job=job, state=WantedState.FAILED)
        .values("code", "http_status")
        .annotate(n=Count("pk"))
        .order_by("-n", "code", "http_status")
    )
    over = over_the_limit(round_) if job and job.state != AnswerJobState.RUNNING else []
    now = timezone.now()
    waits = job.resume_at if job and job.resume_at and job.resume_at > now else None
    return AnswerProgress(
        job=job,
        contestants=len(makers),
        contexts=round_.contexts.count(),
        reasons=[(reason(row["code"], row["http_status"]), row["n"]) for row in counts],
        over=sorted(map(str, over)),
        waits_until=waits,
    )


@dataclass(frozen=True)
class Cost:
    """What one contestant's answers in a round took; None where nothing is known."""

    contestant: Contestant
    made: int
    failed: int
    seconds: float | None  # median of a call
    prompt_tokens: float | None  # means per answer
    completion_tokens: float | None


def costs_of(round_: Round) -> list[Cost]:
    """Per contestant whose answers were made here. Refused until the round is unsealed."""
    if round_.state != RoundState.UNSEALED:
        raise Refused(_("This is told when the round is unsealed."), code="sealed")
    makers = made_here(round_)
    if not makers:
        return []
    entries = Entry.objects.filter(context__round=round_)
    rows = AnswerCost.objects.filter(answer__in=entries.values("answer")).select_related("answer")
    by_maker: dict[int, list[AnswerCost]] = {}
    for row in rows.iterator():
        by_maker.setdefault(row.answer.contestant_id, []).append(row)
    failed = dict(
        WantedAnswer.objects.filter(job__round=round_, state=WantedState.FAILED)
        .values_list("contestant")
        .annotate(n=Count("pk"))
        .order_by()
    )
    return [
        _cost(maker, by_maker.get(maker.pk, []), failed.get(maker.pk, 0))
        for maker in sorted(makers, key=str)
    ]


@dataclass(frozen=True)
class PerAnswer:
    """Means per answer; None where nobody counted."""

    prompt_tokens: float | None
    completion_tokens: float | None
    milliseconds: float | None


def cost_per_answer(round_: Round) -> dict[int, PerAnswer]:
    """By contestant whose answers were made here, in one query. Refused until unsealed."""
    if round_.state != RoundState.UNSEALED:
        raise Refused(_("This is told when the round is unsealed."), code="sealed")
    rows = (
        AnswerCost.objects.filter(answer__entries__context__round=round_)
        .values_list("answer__contestant")
        .annotate(Avg("prompt_tokens"), Avg("completion_tokens"), Avg("milliseconds"))
        .order_by()
    )
    return {pk: PerAnswer(*means) for pk, *means in rows}


def _cost(maker: Contestant, rows: list[AnswerCost], failed: int) -> Cost:
    times = [row.milliseconds for row in rows]
    return Cost(
        contestant=maker,
        made=len(rows),
        failed=failed,
        seconds=median(times) / 1000 if times else None,
        prompt_tokens=_mean([row.prompt_tokens for row in rows]),
        completion_tokens=_mean([row.completion_tokens for row in rows]),
    )


def _mean(values: list[int | None]) -> float | None:
    known = [value for value in values if value is not None]
    return sum(known) / len(known) if known else None

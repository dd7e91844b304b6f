"""The life of a counterfactual job: started, worked off, reviewed.

A source item and what came of it are one transaction, so that a killed job goes on where the last
commit left it. `heartbeat_at` is the fence, as in imports and exports. Calls to an endpoint happen
outside of transactions.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from datetime import timedelta
from typing import Any

from django.db import DatabaseError, IntegrityError, transaction
from django.db.models import Q
from django.utils import timezone
from django.utils.translation import gettext as _

from annotation import policies
from annotation.enums import Axis, ItemFlag, ItemState, JobState, ReviewState, RewriterKind
from annotation.models import CounterfactualJob, Item, ItemOrigin, ItemText, Project, Rewrite
from annotation.services.counterfactual_pairs import (
    Opposites,
    keep_pair,
    posterior_of,
    propose,
    sources,
)
from annotation.services.item_locks import lock_items
from annotation.services.items import add_flag, remove_flag
from annotation.services.rewriters import RewriteError, rewriter_of
from annotation.services.texts import REASON_LIMIT, checked_text
from webapp.core import audit
from webapp.core.chat import checked_endpoint
from webapp.core.errors import InvalidInput, Refused
from webapp.core.holding import alive
from webapp.core.jobs import enqueue

STALE = timedelta(seconds=150)  # longer than a call to an endpoint may take
TURN_S = 3000.0  # after so long the job hands over to a new task
FAILURES = 5  # so many calls in a row that fail end the job
MOST = 10_000


class TakenOverError(Exception):
    """Another process goes on with this job, or it was cancelled."""


def read_options(kind: str, options: Mapping[str, Any]) -> dict[str, Any]:
    """Checked options of a job. Raises InvalidInput naming the field."""
    found: dict[str, Any] = {
        "axis": options.get("axis", Axis.PERSONALIZATION),
        "minimum": _whole(options.get("minimum", 80), "minimum", 0, 100),
        "limit": _whole(options.get("limit", 200), "limit", 1, MOST),
        "seed": _whole(options.get("seed", 0), "seed", 0, 2**31 - 1),
    }
    if found["axis"] not in Axis.values:
        raise InvalidInput(_("Choose one of the values that are offered."), field="axis")
    if kind not in RewriterKind.values:
        raise InvalidInput(_("Choose one of the values that are offered."), field="rewriter")
    if kind == RewriterKind.ENDPOINT:
        found |= _endpoint(options)
    return found


def _whole(value: Any, field: str, low: int, high: int) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
        message = _("A whole number from %(low)s to %(high)s.") % {"low": low, "high": high}
        raise InvalidInput(message, field=field)
    return value


def _endpoint(options: Mapping[str, Any]) -> dict[str, str]:
    """Address, model and the name of the variable that holds the key."""
    asked = (str(options.get(name) or "") for name in ("url", "model", "key"))
    endpoint = checked_endpoint(*asked)
    return {"url": endpoint.url, "model": endpoint.model, "key": endpoint.key}


def start_job(
    *,
    actor: Any,
    project: Project,
    rewriter: str = RewriterKind.RULES,
    options: Mapping[str, Any] | None = None,
    key: str,
    send: bool = True,
) -> CounterfactualJob:
    """Make counterfactual pairs in the background. The same `key` gives the same job."""
    policies.check_manage(actor)
    asked = read_options(rewriter, options or {})
    if Axis.PERSONALIZATION not in project.axes or asked["axis"] not in project.axes:
        raise InvalidInput(
            _("Counterfactual pairs are about personalization; this project does not ask for it."),
            field="axis",
        )
    total = min(sources(project, asked["axis"]).count(), asked["limit"])
    try:
        with transaction.atomic():
            job = CounterfactualJob.objects.create(
                project=project,
                rewriter=rewriter,
                options=asked,
                total=total,
                key=key or None,
                created_by=actor,
            )
            audit.record(
                actor=actor, action="start_counterfactuals", obj=job, rewriter=rewriter, **asked
            )
            if send:
                enqueue("run_counterfactuals", job.pk)
    except IntegrityError as error:
        known = CounterfactualJob.objects.filter(key=key, project=project).first()
        if known is None:
            message = _("This key was used for another project.")
            raise InvalidInput(message, field="key", code="taken") from error
        return known
    return job


# Doing the work


def run_job(pk: int) -> CounterfactualJob | None:
    """Work on a job until it is done. None where another process has it; harmless to call twice."""
    with alive(f"counterfactuals-{pk}") as free:
        job = _claim(pk) if free else None
        if job is None:
            return None
        try:
            _Work(job).do()
        except TakenOverError:
            pass
        except DatabaseError:
            raise  # gone on with by the repair
        except Exception:
            _fail(job)
            raise
    job.refresh_from_db()
    return job


def _fail(job: CounterfactualJob) -> None:
    """What went wrong stands in the log; tried again, it would go wrong at the same answer."""
    mine = CounterfactualJob.objects.filter(
        pk=job.pk, state=JobState.RUNNING, heartbeat_at=job.heartbeat_at
    )
    mine.update(state=JobState.FAILED, report={**job.report, "failure": "unexpected"})


def _claim(pk: int) -> CounterfactualJob | None:
    now = timezone.now()
    free = Q(heartbeat_at=None) | Q(heartbeat_at__lt=now - STALE)
    mine = CounterfactualJob.objects.filter(free, pk=pk, state=JobState.RUNNING)
    if not mine.update(heartbeat_at=now):
        return None
    return CounterfactualJob.objects.select_related("project", "created_by").get(pk=pk)


class _Work:
    """One turn at a job."""

    def __init__(self, job: CounterfactualJob) -> None:
        self.job = job
        self.ends = time.monotonic() + TURN_S
        self.failures = 0
        self.opposites = Opposites.load()
        self.rewriter = rewriter_of(job.rewriter, job.options, self.pause)

    def do(self) -> None:
        axis, report = self.job.options["axis"], self.job.report
        while self.job.done < self.job.options["limit"]:
            source = sources(self.job.project, axis).filter(pk__gt=report.get("cursor", 0)).first()
            if source is None:
                break
            self.one(source, axis)
            report = self.job.report
            if self.failures >= FAILURES:
                self.update(state=JobState.FAILED, report={**report, "failure": "endpoint"})
                return
            if time.monotonic() > self.ends:
                with transaction.atomic():
                    self.update(heartbeat_at=None)
                    enqueue("run_counterfactuals", self.job.pk)
                return
        self.finish()

    def one(self, source: Item, axis: str) -> None:
        """Rewrite one answer; keep both directions, or count why not."""
        try:
            if 100 * posterior_of(source, axis) < self.job.options["minimum"]:
                raise RewriteError("posterior")
            seed = str(self.job.options["seed"])
            proposal = propose(source, axis, self.opposites, self.rewriter, seed)
            with transaction.atomic():
                keep_pair(self.job, proposal)
                self.count(source, made=proposal.style)
        except RewriteError as error:
            self.failures = self.failures + 1 if error.endpoint else 0
            self.count(source, refused=error.code)
        else:
            self.failures = 0

    def count(self, source: Item, *, made: str = "", refused: str = "") -> None:
        report = {**self.job.report, "cursor": source.pk}
        for name, what in (("made", made), ("refusals", refused)):
            if what:
                counts = dict(report.get(name, {}))
                report[name] = {**counts, what: counts.get(what, 0) + 1}
        self.update(done=self.job.done + 1, refused=self.job.refused + bool(refused), report=report)

    def update(self, **values: Any) -> None:
        """Write down how far it is, only while the job is ours."""
        values = {"heartbeat_at": timezone.now(), **values}
        mine = CounterfactualJob.objects.filter(
            pk=self.job.pk, state=JobState.RUNNING, heartbeat_at=self.job.heartbeat_at
        )
        if not mine.update(**values):
            raise TakenOverError
        for name, value in values.items():
            setattr(self.job, name, value)

    def pause(self, seconds: float) -> None:
        """Wait as a server asked, with signs of life."""
        ends = time.monotonic() + seconds
        while (left := ends - time.monotonic()) > 0:
            time.sleep(min(left, 5.0))
            self.update()

    def finish(self) -> None:
        with transaction.atomic():
            self.update(state=JobState.DONE, total=self.job.done)
            audit.record(
                actor=self.job.created_by,
                action="counterfactuals_done",
                obj=self.job,
                pairs=self.job.done - self.job.refused,
                refused=self.job.refused,
            )


def cancel_job(*, actor: Any, job: CounterfactualJob) -> None:
    """Stop after the answer in work; pairs that were made stay."""
    policies.check_manage(actor)
    with transaction.atomic():
        mine = CounterfactualJob.objects.filter(pk=job.pk, state=JobState.RUNNING)
        if mine.update(state=JobState.CANCELLED):
            audit.record(actor=actor, action="cancel_counterfactuals", obj=job)


def repair_jobs() -> int:
    """Send jobs again whose process is gone (beat)."""
    old = timezone.now() - STALE
    silent = Q(heartbeat_at__lt=old) | Q(heartbeat_at=None, created_at__lt=old)
    waiting = CounterfactualJob.objects.filter(silent, state=JobState.RUNNING).order_by("pk")
    pks = list(waiting.values_list("pk", flat=True)[:20])
    for pk in pks:
        enqueue("run_counterfactuals", pk)
    return len(pks)


# Reviewing


def review_pair(
    *, actor: Any, project: Project, pair: str, accept: bool, note: str = ""
) -> list[Rewrite]:
    """Accept or reject both directions of a pair. The last word counts; rejected items leave."""
    policies.check_manage(actor)
    note = checked_text(note, field="note", limit=REASON_LIMIT)
    with transaction.atomic():
        rows = Rewrite.objects.filter(pair=pair, job__project=project)
        found = list(rows.select_for_update(of=("self",)).order_by("pk"))
        if len(found) != 2:
            raise Refused(_("There is no such pair."), code="gone")
        items = [row.item_id for row in found]
        if ItemText.objects.filter(item__in=items).count() != 2:
            raise Refused(_("The texts of this pair were erased."), code="erased")
        state = ReviewState.ACCEPTED if accept else ReviewState.REJECTED
        rows.update(state=state, note=note, reviewed_by=actor, reviewed_at=timezone.now())
        to = ItemState.DONE if accept else ItemState.DROPPED
        lock_items(items, scored=lambda: ())
        # What was made gold since stays so: people are scored by it.
        Item.objects.filter(pk__in=items).exclude(state=ItemState.GOLD).update(state=to)
        (remove_flag if accept else add_flag)(items, ItemFlag.REJECTED)
        audit.record(actor=actor, action="review_rewrite", obj=found[0], accept=accept, items=items)
    return list(rows.order_by("pk"))


def erase_rewrites_of(persona: Any) -> int:
    """Withdrawn consent: both directions go where one was made from the persona's answer (V14).

    Runs in the withdrawal's transaction. Number of items erased.
    """
    pairs = Rewrite.objects.filter(
        Q(suited_to__persona=persona) | Q(opposite__persona=persona)
    ).values("item")
    erased = ItemText.objects.filter(item__in=pairs).delete()[0]
    ItemOrigin.objects.filter(item__in=pairs).update(details={})
    Item.objects.filter(pk__in=pairs).update(state=ItemState.DROPPED)
    return erased

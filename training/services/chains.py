"""Chains: made, started by hand or by the clock, moved on, cancelled, tried again.

A chain survives a kill anywhere: one transaction looks where it stands, lets one thing be made and
notes it. Whoever comes next, however often, finds the rest.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from django.core.exceptions import ObjectDoesNotExist
from django.db import DatabaseError, IntegrityError, transaction
from django.db.models import Max, Q
from django.utils import timezone
from django.utils.translation import gettext as _

from training import gate_policies, policies
from training.chains import STAGES, Move, next_step
from training.enums import ACTIVE_CHAIN, ENDED, ChainStage, ChainState, GateState, StepState
from training.models import Chain, ChainLink, ChainRun, ChainStep, GateRun, TrainingRun
from training.selectors.chains import due_night
from training.services import runs
from training.services.chain_recipes import check_round_known, checked_arrows, checked_recipe
from training.services.chain_stages import WORK, Found, failed, newest, revive, same_as_before
from webapp.catalog.services.checks import check_text
from webapp.core import audit
from webapp.core.errors import Forbidden, InvalidInput, PalateError, Refused
from webapp.core.jobs import enqueue

log = logging.getLogger("palate.chains")
ENDINGS = {"off": "off", "same": "same", "done": "complete"}
TURNS = 2 * len(STAGES) + 2  # starting and ending every stage, with room


def create_chain(
    *,
    actor: Any,
    name: str,
    recipe: Mapping[str, Any],
    arrows: Mapping[str, str] | None = None,
    hour: int | None = None,
    key: str | None = None,
) -> Chain:
    """A chain; arrows that are not named are off. The same `key` gives the same chain."""
    _check_person(actor)
    if key and (known := Chain.objects.filter(key=key).first()):
        return known
    values = _values(name, recipe, arrows, hour)
    now = timezone.now()
    try:
        with transaction.atomic():
            chain = Chain.objects.create(
                key=key, created_by=actor, enabled_by=actor, enabled_at=now, **values
            )
            audit.record(actor=actor, action="create_chain", obj=chain, hour=chain.hour)
    except IntegrityError as error:
        if key and (known := Chain.objects.filter(key=key).first()):
            return known
        raise _taken(name) from error
    return chain


def edit_chain(
    *,
    actor: Any,
    chain: Chain,
    name: str,
    recipe: Mapping[str, Any],
    arrows: Mapping[str, str] | None,
    hour: int | None,
) -> Chain:
    """Other settings from the next start on; arrows count at once, in the name of this person."""
    _check_person(actor)
    values = _values(name, recipe, arrows, hour)
    try:
        with transaction.atomic():
            row = _locked_chain(chain.pk)
            since = row.enabled_at if row.hour == hour else timezone.now()
            Chain.objects.filter(pk=row.pk).update(enabled_by=actor, enabled_at=since, **values)
            audit.record(actor=actor, action="change_chain", obj=row, hour=hour)
            enqueue("advance_chains", 0)
    except IntegrityError as error:
        raise _taken(name) from error
    return Chain.objects.get(pk=chain.pk)


def set_arrows(*, actor: Any, chain: Chain, arrows: Mapping[str, str]) -> Chain:
    """Switch arrows; those that are not named stay. What is under way follows them at once."""
    _check_person(actor)
    with transaction.atomic():
        row = _locked_chain(chain.pk)
        wanted = checked_arrows({**row.arrows, **arrows})
        check_round_known(row.recipe["round"], wanted)
        if wanted != row.arrows:
            Chain.objects.filter(pk=row.pk).update(arrows=wanted, enabled_by=actor)
            audit.record(actor=actor, action="switch_arrows", obj=row, **wanted)
            enqueue("advance_chains", 0)
    return Chain.objects.get(pk=chain.pk)


def _values(
    name: str, recipe: Mapping[str, Any], arrows: Mapping[str, str] | None, hour: int | None
) -> dict[str, Any]:
    if hour is not None and not 0 <= hour < 24:
        raise InvalidInput(_("Between 0 and 23."), field="hour", code="hour")
    wanted = checked_arrows(arrows)
    name = check_text(name.strip(), "name", limit=60)
    return {
        "name": name, "recipe": checked_recipe(recipe, wanted), "arrows": wanted, "hour": hour,
    }  # fmt: skip


def _taken(name: str) -> InvalidInput:
    message = _("There is a chain “%(name)s” already.") % {"name": name}
    return InvalidInput(message, field="name", code="taken")


def start_chain(*, actor: Any, chain: Chain, key: str | None = None) -> ChainRun:
    """Begin by hand. The same `key` begins once; two times of one chain never overlap."""
    _check_person(actor)
    with transaction.atomic():
        row = _locked_chain(chain.pk)
        if key and (known := ChainRun.objects.filter(chain=row, key=key).first()):
            return known
        if row.runs.filter(state__in=ACTIVE_CHAIN).exists():
            raise Refused(_("This chain is under way already."), code="running")
        return _begin(row, actor, key=key)


def start_due(now: datetime | None = None) -> int:
    """Begin the chains whose hour came; how many. A night that was begun is not begun again."""
    begun = 0
    for pk in Chain.objects.filter(hour__isnull=False).values_list("pk", flat=True):
        with transaction.atomic():
            chain = _locked_chain(pk)
            night = due_night(chain, now or timezone.now())
            busy = chain.runs.filter(state__in=ACTIVE_CHAIN).exists()
            if night is None or busy or chain.runs.filter(night=night).exists():
                continue
            _begin(chain, chain.enabled_by, night=night)
            begun += 1
    return begun


def _begin(chain: Chain, by: Any, **how: Any) -> ChainRun:
    number = (chain.runs.aggregate(last=Max("number"))["last"] or 0) + 1
    run = ChainRun.objects.create(chain=chain, number=number, recipe=chain.recipe, by=by, **how)
    ChainStep.objects.bulk_create(ChainStep(chain_run=run, stage=stage) for stage in STAGES)
    audit.record(actor=by, action="start_chain", obj=run, number=number)
    enqueue("advance_chains", run.pk)
    return run


def advance_all() -> int:
    """Move on whatever is under way; the number of chains looked at."""
    rows = list(ChainRun.objects.filter(state__in=ACTIVE_CHAIN).values_list("pk", flat=True))
    for pk in rows:
        try:
            advance_chain(pk=pk)
        except Exception:  # one that cannot go on holds up no other
            log.exception("chain not moved on", extra={"chain_run": pk})
    return len(rows)


def advance_chain(*, pk: int) -> ChainRun:
    """Do whatever is due. Harmless however often, and from however many processes at once."""
    for _turn in range(TURNS):
        with transaction.atomic():
            run = _locked(pk)
            if run.state not in ACTIVE_CHAIN or not _advance(run):
                break
    return ChainRun.objects.get(pk=pk)


def _advance(run: ChainRun) -> bool:
    """One move; False where there is nothing more to do now."""
    try:
        policies.check_manage(run.by)
    except PalateError:
        return _stop(run, ChainState.FAILED, "actor", run.stage)
    steps = {step.stage: step for step in run.steps.select_related("chain_run__chain")}
    move = _next(run, steps)
    if move.what in ("ask", "audit"):
        _set(run, ChainState.WAITING, move.what, move.stage)
        return False
    if move.what in ENDINGS:
        return _stop(run, ChainState.DONE, ENDINGS[move.what], move.stage)
    if move.what == "failed":
        return _stop(run, ChainState.FAILED, "step", move.stage)
    step = steps[move.stage]
    step.chain_run = run
    if move.what == "start":
        step.state, step.started_at = StepState.RUNNING, step.started_at or timezone.now()
        step.save(update_fields=["state", "started_at"])
    _set(run, ChainState.RUNNING, "", move.stage)
    return _follow(run, step)


def _next(run: ChainRun, steps: Mapping[str, ChainStep]) -> Move:
    let = {stage for stage, step in steps.items() if step.let_at is not None}
    states = {stage: step.state for stage, step in steps.items()}
    news = run.night is None or not same_as_before(steps[ChainStage.FREEZE])
    return next_step(states, run.chain.arrows, let, _audited(steps[ChainStage.GATE]), news)


def _audited(step: ChainStep) -> bool:
    """Whether the successes of the gate were read (V20)."""
    link = newest(step, "gate")
    if link is None or link.gate is None:
        return False
    try:
        gate_policies.check_audited(link.gate)
    except Refused:
        return False
    return True


def _follow(run: ChainRun, step: ChainStep) -> bool:
    """Have a stage make what it lacks, and note where it ended."""
    repeats = step.repeats
    try:
        with transaction.atomic():  # all that one look makes, or nothing
            found = WORK[step.stage](step)
    except (PalateError, ObjectDoesNotExist) as error:
        step.repeats = repeats
        found = failed(str(error))
    except DatabaseError:
        raise  # it passes, or nothing could be written down anyway; the next look tries again
    except Exception as error:  # else it would be tried at every look, for ever
        log.exception("stage broke", extra={"chain_run": run.pk, "stage": step.stage})
        step.repeats = repeats
        found = failed(_("Unexpected: %(error)s") % {"error": f"{type(error).__name__}: {error}"})
    if found.state == StepState.RUNNING:
        return False
    _end(run, step, found)
    return True


def _end(run: ChainRun, step: ChainStep, found: Found) -> None:
    ChainStep.objects.filter(pk=step.pk).update(
        state=found.state, message=found.message[:4000], ended_at=timezone.now()
    )
    said = {"stage": step.stage, "state": str(found.state)}
    audit.record(actor=None, action="chain_stage_ended", obj=run, **said)


def _stop(run: ChainRun, state: str, reason: str, stage: str) -> bool:
    _set(run, state, reason, stage, ended_at=timezone.now())
    audit.record(actor=None, action="chain_ended", obj=run, state=str(state), reason=reason)
    return False


def _set(run: ChainRun, state: str, reason: str, stage: str, **more: Any) -> None:
    """Where it stands. The caller holds the row."""
    policies.check_chain_move(run, state)
    if (run.state, run.reason, run.stage) != (state, reason, stage):
        ChainRun.objects.filter(pk=run.pk).update(state=state, reason=reason, stage=stage, **more)
        run.state, run.reason, run.stage = str(state), reason, stage


def go_on(*, actor: Any, step: ChainStep) -> ChainStep:
    """Let a chain go on into this stage. Pressing twice lets it go on once."""
    _check_person(actor)
    with transaction.atomic():
        run = _locked(step.chain_run_id)
        row = ChainStep.objects.get(pk=step.pk)
        if row.let_at is not None:
            return row
        if run.state not in ACTIVE_CHAIN or row.state != StepState.PENDING:
            raise Refused(_("Nothing waits here any more."), code="over")
        if (run.reason, run.stage) not in (("ask", row.stage), ("audit", row.stage)):
            raise Refused(_("The chain has not come to this stage yet."), code="early")
        row.let_by, row.let_at = actor, timezone.now()
        row.save(update_fields=["let_by", "let_at"])
        audit.record(actor=actor, action="let_chain_go_on", obj=run, stage=row.stage)
        enqueue("advance_chains", run.pk)
    return row


def retry_step(*, actor: Any, step: ChainStep) -> ChainStep:
    """Try a failed stage again, from now on in this person's name. Two clicks try once."""
    _check_person(actor)
    with transaction.atomic():
        chain = _locked_chain(ChainRun.objects.get(pk=step.chain_run_id).chain_id)
        run = _locked(step.chain_run_id)
        row = ChainStep.objects.select_related("chain_run__chain").get(pk=step.pk)
        stopped = run.state == ChainState.FAILED and run.reason == "actor"
        if run.state in ACTIVE_CHAIN and row.state != StepState.FAILED:
            return row
        if not stopped and (run.state != ChainState.FAILED or row.state != StepState.FAILED):
            raise Refused(_("Nothing failed here."), code="not_failed")
        if chain.runs.filter(state__in=ACTIVE_CHAIN).exclude(pk=run.pk).exists():
            raise Refused(_("A later time of this chain is under way."), code="running")
        if row.state == StepState.FAILED:
            revive(row, actor)
            ChainStep.objects.filter(pk=row.pk).update(
                state=StepState.RUNNING, attempt=row.attempt + 1, repeats=0, message="",
                ended_at=None,
            )  # fmt: skip
        ChainRun.objects.filter(pk=run.pk).update(by=actor)
        _set(run, ChainState.RUNNING, "", row.stage, ended_at=None)
        audit.record(actor=actor, action="retry_chain", obj=run, stage=row.stage)
        enqueue("advance_chains", run.pk)
    return ChainStep.objects.get(pk=step.pk)


def cancel_chain(*, actor: Any, run: ChainRun) -> ChainRun:
    """End it where it is; what it trains or measures stops at the next step. Harmless twice."""
    _check_person(actor)
    with transaction.atomic():
        row = _locked(run.pk)
        if row.state in (ChainState.DONE, ChainState.CANCELLED):
            return row
        _set(row, ChainState.CANCELLED, "", row.stage, ended_at=timezone.now())
        for found in _under_way(row):
            runs.cancel(actor=actor, run=found)
        audit.record(actor=actor, action="cancel_chain", obj=row)
    return ChainRun.objects.get(pk=run.pk)


def _under_way(run: ChainRun) -> list[TrainingRun]:
    """Runs of this time that have not ended: its own, and evaluations of no other gate."""
    links = ChainLink.objects.filter(step__chain_run=run)
    gates = GateRun.objects.filter(chain_links__in=links)
    others = GateRun.objects.filter(state=GateState.MEASURING).exclude(pk__in=gates)
    shared = Q(pk__in=others.values("candidate_evaluation")) | Q(
        pk__in=others.values("baseline_evaluation")
    )
    measured = Q(pk__in=gates.values("candidate_evaluation")) | Q(
        pk__in=gates.values("baseline_evaluation")
    )
    own = Q(pk__in=links.filter(run__isnull=False).values("run"))
    return list(TrainingRun.objects.filter(own | (measured & ~shared)).exclude(state__in=ENDED))


def _check_person(actor: Any) -> None:
    """Everything that a chain starts is made in somebody's name."""
    if actor is None:
        raise Forbidden(_("A chain needs an administrator, by name."))
    policies.check_manage(actor)


def _locked(pk: int) -> ChainRun:
    """The run with its row locked; what it joins is read after the wait."""
    ChainRun.objects.select_for_update().only("pk").get(pk=pk)
    return ChainRun.objects.select_related("chain", "by").get(pk=pk)


def _locked_chain(pk: int) -> Chain:
    Chain.objects.select_for_update().only("pk").get(pk=pk)
    return Chain.objects.select_related("enabled_by").get(pk=pk)

"""Composing a round and moving it through its life. The only place that sets `Round.state`."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from django.db import transaction
from django.db.models import QuerySet
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from arena import policies
from arena.blinding import SeededStream, new_seed
from arena.enums import AnswerJobState, Axis, RoundState
from arena.leakage import DEFAULT_POLICY
from arena.models import (
    AnswerJob,
    Context,
    Entry,
    Round,
    RoundContestant,
    RoundRater,
    WantedAnswer,
)
from arena.sampling import HOLDOUT, Candidate, SampledContext, SampleError, sample_contexts
from arena.services.plans import RoundPlan as RoundPlan
from arena.services.plans import check_plan
from webapp.catalog.enums import MADE_HERE, Split
from webapp.catalog.models import Contestant, Persona, PersonaVersion, Prompt, Seal
from webapp.catalog.strata import stratum_of
from webapp.core import audit
from webapp.core.errors import InvalidInput, Refused


def compose_round(*, actor: Any, plan: RoundPlan) -> Round:
    """Make a draft with its contexts. Raises InvalidInput naming the field."""
    policies.check_compose(actor)
    check_plan(plan)
    seed = new_seed()
    with transaction.atomic():
        round_ = Round.objects.create(created_by=actor, seed=seed.hex(), **_columns(plan))
        _fill(round_, plan, seed)
        audit.record(actor=actor, action="compose_round", obj=round_, name=round_.name)
    return round_


def recompose_round(*, actor: Any, round_: Round, plan: RoundPlan) -> Round:
    """Compose a draft anew with other choices and a fresh seed."""
    check_plan(plan)
    seed = new_seed()
    with transaction.atomic():
        round_ = locked(round_.pk)
        policies.check_edit(actor, round_)
        AnswerJob.objects.filter(round=round_).delete()  # answers that were made can be used again
        Seal.objects.filter(holder=round_.holder, released_at=None).delete()
        for rows in (round_.contexts, round_.round_contestants, round_.round_raters):
            rows.all().delete()
        Round.objects.filter(pk=round_.pk).update(seed=seed.hex(), **_columns(plan))
        round_.refresh_from_db()
        _fill(round_, plan, seed)
        audit.record(actor=actor, action="recompose_round", obj=round_, name=round_.name)
    return round_


def _fill(round_: Round, plan: RoundPlan, seed: bytes) -> None:
    RoundContestant.objects.bulk_create(
        RoundContestant(round=round_, contestant_id=pk) for pk in sorted(set(plan.contestants))
    )
    RoundRater.objects.bulk_create(
        RoundRater(round=round_, user_id=pk) for pk in sorted(set(plan.raters))
    )
    _add_contexts(round_, plan, seed)


def _columns(plan: RoundPlan) -> dict[str, Any]:
    axes = [axis for axis in Axis.values if axis in plan.axes]
    return {
        "name": plan.name.strip(),
        "simulated": plan.simulated,
        "axes": axes,
        "weights": {axis: plan.weights.get(axis, 0) for axis in axes},
        "tie_model": plan.tie_model,
        "drop_both_bad": plan.drop_both_bad,
        "screening_policy": {**DEFAULT_POLICY, **plan.screening_policy},
        "exclusions": dict(plan.exclusions),
        "planned_votes": plan.planned_votes,
        "votes_per_battle": plan.votes_per_battle,
        "stop_rule": plan.stop_rule,
        "closes_at": plan.closes_at,
        "stratum_features": list(plan.stratum_features),
        "minimum_strata": plan.minimum_strata,
        "minimum_per_stratum": plan.minimum_per_stratum,
        "holdout_percent": plan.holdout_percent,
        "lease_minutes": plan.lease_minutes,
        "anchor_id": plan.anchor,
    }


def _add_contexts(round_: Round, plan: RoundPlan, seed: bytes) -> None:
    prompts = _prompts(plan)
    if plan.with_personas:
        cells = _sampled(plan, _personas(plan, round_.stratum_features), prompts, seed)
    else:
        cells = [SampledContext("", prompt.id, prompt.stratum, "rotating") for prompt in prompts]
        cells = _first(cells, plan.prompts_n, seed)
    cells = _without_retired(cells)
    newest = _newest_versions({int(cell.persona) for cell in cells if cell.persona})
    Context.objects.bulk_create(
        (
            Context(
                round=round_,
                persona_version_id=newest[int(cell.persona)] if cell.persona else None,
                prompt_id=int(cell.prompt),
                stratum=cell.stratum,
                holdout=cell.kind == HOLDOUT,
            )
            for cell in cells
        ),
        batch_size=500,
    )


def _without_retired(cells: list[SampledContext]) -> list[SampledContext]:
    """Contexts whose votes became training pairs do not come back (V11)."""
    rows = Context.objects.filter(retired_at__isnull=False)
    retired = {
        (str(persona or ""), str(prompt))
        for persona, prompt in rows.values_list("persona_version__persona", "prompt")
    }
    left = [cell for cell in cells if (cell.persona, cell.prompt) not in retired]
    if not left:
        raise InvalidInput(
            _("The votes on all these contexts became training pairs. Choose other prompts."),
            field="prompts",
            code="retired",
        )
    return left


def _first(cells: list[SampledContext], n: int, seed: bytes) -> list[SampledContext]:
    if not n:
        return cells
    if n > len(cells):
        raise InvalidInput(
            _("%(n)s prompts asked, there are %(have)s.") % {"n": n, "have": len(cells)},
            field="prompts_n",
        )
    return SeededStream(seed, "bare prompts").shuffled(cells)[:n]


def _sampled(
    plan: RoundPlan, personas: list[Candidate], prompts: list[Candidate], seed: bytes
) -> list[SampledContext]:
    if not personas:
        raise InvalidInput(_("There is no persona with a summary yet."), field="persona_mode")
    n = plan.personas_n or len(personas)
    m = plan.prompts_n or len(prompts)
    share = Fraction(plan.holdout_percent, 100)
    try:
        return sample_contexts(personas, prompts, n, m, share, seed)
    except SampleError as error:
        message = _SAMPLE_MESSAGES.get(error.code, _SAMPLE_MESSAGES["pool_too_small"])
        raise InvalidInput(str(message), field="personas_n", code=error.code) from error


_SAMPLE_MESSAGES = {
    "pool_too_small": gettext_lazy(
        "There are too few personas or prompts for this sample. What was held out before stays "
        "held out. Ask for fewer, or import more."
    ),
    "bad_size": gettext_lazy("At least one persona and one prompt are needed."),
    "bad_share": gettext_lazy("Between 0 and 50 percent."),
}


def _holdout(split: str) -> bool | None:
    return {Split.HOLDOUT.value: True, Split.ROTATING.value: False}.get(split)


def _personas(plan: RoundPlan, features: list[str]) -> list[Candidate]:
    """The pool: the chosen personas, or all with a summary and without withdrawn consent."""
    rows = Persona.objects.filter(withdrawn_at=None, versions__text__isnull=False).distinct()
    if plan.personas:
        rows = rows.filter(pk__in=plan.personas)
    return [
        Candidate(str(row.pk), stratum_of(row.features, features), _holdout(row.split))
        for row in rows.order_by("pk")
    ]


def _prompts(plan: RoundPlan) -> list[Candidate]:
    """The pool: what imported contestants have answered; all, where every answer is made here."""
    rows = Prompt.objects.all()
    imported = Contestant.objects.filter(pk__in=plan.contestants).exclude(kind__in=MADE_HERE)
    if imported.exists():
        rows = rows.filter(answers__contestant__in=imported).distinct()
    if plan.prompts:
        rows = rows.filter(pk__in=plan.prompts)
    pool = [
        Candidate(str(row.pk), row.category, _holdout(row.split)) for row in rows.order_by("pk")
    ]
    if not pool:
        raise InvalidInput(
            _("None of the chosen prompts has an answer by the chosen contestants.")
            if imported.exists()
            else _("None of the chosen prompts exists."),
            field="prompts",
        )
    return pool


def _newest_versions(personas: set[int]) -> dict[int, int]:
    rows = PersonaVersion.objects.filter(persona__in=personas, text__isnull=False).order_by("n")
    return dict(rows.values_list("persona_id", "pk"))


def locked(pk: int) -> Round:
    """The round with its row locked; call inside a transaction."""
    return Round.objects.select_for_update().get(pk=pk)


def move(round_: Round, to: str, *, actor: Any, **columns: Any) -> None:
    """Move a locked round: policy, compare-and-set, audit, in the caller's transaction."""
    policies.check_move(round_, to)
    was = round_.state
    changed = Round.objects.filter(pk=round_.pk, state=was).update(state=to, **columns)
    if not changed:
        raise Refused(_("The round was changed meanwhile. Load the page again."), code="moved")
    round_.state = to
    for name, value in columns.items():
        setattr(round_, name, value)
    audit.record(actor=actor, action=f"round_{to}", obj=round_, was=was)


def back_to_draft(*, actor: Any, round_: Round) -> None:
    """Undo screening: nothing was shown to a rater yet, so the answers are free again."""
    policies.check_compose(actor)
    with transaction.atomic():
        round_ = locked(round_.pk)
        move(round_, RoundState.DRAFT, actor=actor, screened_at=None, screening_done=0)
        made = WantedAnswer.objects.filter(job__round=round_, answer__isnull=False)
        _drop_entries(round_, still_sealed=made.values("answer"))


def _drop_entries(round_: Round, still_sealed: QuerySet[Any, Any] | None = None) -> None:
    """Answers that were made for this round stay sealed for it while it is a draft (V1)."""
    seals = Seal.objects.filter(holder=round_.holder, released_at=None)
    if still_sealed is not None:
        seals = seals.exclude(answer__in=still_sealed)
    seals.delete()
    Entry.objects.filter(context__round=round_).delete()


def cancel_round(*, actor: Any, round_: Round, reason: str) -> None:
    """Cancel; the round stays listed, and texts that were shown stay sealed."""
    policies.check_compose(actor)
    if not reason.strip():
        raise InvalidInput(_("Say why the round is cancelled."), field="reason")
    with transaction.atomic():
        round_ = locked(round_.pk)
        was_open = round_.opened_at is not None
        move(
            round_,
            RoundState.CANCELLED,
            actor=actor,
            cancelled_at=timezone.now(),
            cancel_reason=reason.strip()[:300],
        )
        AnswerJob.objects.filter(round=round_, state=AnswerJobState.RUNNING).update(
            state=AnswerJobState.CANCELLED
        )
        if not was_open:
            _drop_entries(round_)


def contestants_of(round_: Round) -> list[Contestant]:
    return list(Contestant.objects.filter(pk__in=round_.round_contestants.values("contestant")))

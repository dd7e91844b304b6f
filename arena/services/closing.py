"""Closing, unsealing: the end of a round. Ratings are computed in between, by a job."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.db import transaction
from django.db.models import Count, F, Q
from django.utils import timezone
from django.utils.translation import gettext as _

from arena import policies
from arena.blinding import vote_digest
from arena.enums import AssignmentState, RoundState, StopRule
from arena.models import Round, UnsealApproval
from arena.selectors.votes import receipts_of
from arena.services.leases import HELD, sweep_expired
from arena.services.ratings import missing_variants
from arena.services.rounds import locked, move
from webapp.accounts.enums import Role
from webapp.catalog.models import Seal
from webapp.core import audit
from webapp.core.errors import InvalidInput, Refused
from webapp.core.jobs import enqueue


def close_round(*, actor: Any, round_: Round, reason: str = "") -> Round:
    """Close, by rule (actor None) or by hand with a reason. Ratings follow as a job."""
    with transaction.atomic():
        round_ = locked(round_.pk)
        if actor is not None:
            policies.check_compose(actor)
            if not reason.strip():
                raise InvalidInput(_("Say why the round closes before its rule."), field="reason")
        move(
            round_,
            RoundState.CLOSED,
            actor=actor,
            closed_at=timezone.now(),
            vote_digest=vote_digest(receipts_of(round_).iterator()),
        )
        audit.record(actor=actor, action="close_reason", obj=round_, reason=reason.strip()[:300])
        enqueue("rate_round", round_.pk)
    return round_


def close_due_rounds() -> int:
    """Close each open round whose stopping rule is met: by counts and dates, never by results."""
    closed = 0
    for round_ in Round.objects.filter(state=RoundState.OPEN):
        sweep_expired(round_)
        if is_due(round_):
            try:
                close_round(actor=None, round_=round_)
            except Refused:  # somebody else closed it meanwhile
                continue
            closed += 1
    return closed


def is_due(round_: Round) -> bool:
    """Whether the pre-registered stopping rule is met."""
    if round_.closes_at is not None and round_.closes_at <= timezone.now():
        return True
    if round_.stop_rule != StopRule.VOTES:
        return False
    counts = round_.assignments.aggregate(
        voted=Count("pk", filter=Q(state=AssignmentState.VOTED)),
        held=Count("pk", filter=Q(state__in=HELD, shown_at__isnull=False)),
    )
    # Who is in the middle of a battle may finish it: nobody's work is thrown away.
    return bool(counts["voted"] >= round_.planned_votes and not counts["held"])


def approve_unsealing(*, actor: Any, round_: Round, reason: str) -> Round:
    """Agree to unseal; with enough administrators the round is unsealed at once, irreversibly."""
    if not reason.strip():
        raise InvalidInput(_("Give a reason; it is published with the round."), field="reason")
    with transaction.atomic():
        round_ = locked(round_.pk)
        policies.check_approve_unseal(actor, round_)
        if missing_variants(round_):
            raise Refused(_("The ratings are not computed yet."), code="not_rated")
        UnsealApproval.objects.get_or_create(
            round=round_, user=actor, defaults={"reason": reason.strip()[:300]}
        )
        audit.record(actor=actor, action="approve_unsealing", obj=round_, reason=reason.strip())
        if approvals_missing(round_) == 0:
            _unseal(round_, actor)
    return round_


def approvals_missing(round_: Round) -> int:
    """How many further administrators have to agree."""
    agreed = round_.approvals.filter(
        user__is_active=True,
        user__role=Role.ADMIN,
        user__date_joined__lt=F("round__opened_at"),  # a second self invited later does not count
    ).count()
    needed: int = settings.UNSEAL_APPROVALS
    return max(needed - agreed, 0)


def _unseal(round_: Round, actor: Any) -> None:
    now = timezone.now()
    move(round_, RoundState.UNSEALED, actor=actor, unsealed_at=now)
    Seal.objects.filter(holder=round_.holder, released_at=None).update(released_at=now)

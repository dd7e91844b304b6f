"""What a round's state allows and who may: `check_x` raises the reason, `may_x` says yes or no."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.utils import timezone
from django.utils.translation import gettext as _

from arena.enums import TRANSITIONS, AssignmentState, RoundState
from arena.models import Assignment, Round, RoundRater
from webapp.accounts.policies import check_admin, is_admin, may_vote_in_rounds
from webapp.core.errors import Forbidden, PalateError, Refused


def check_move(round_: Round, to: str) -> None:
    """Raise unless the life cycle allows the move."""
    if to not in TRANSITIONS[round_.state]:
        raise Refused(
            _("A round that is %(state)s cannot become %(to)s.")
            % {"state": round_.get_state_display(), "to": RoundState(to).label},
            code="illegal_move",
        )


def check_compose(actor: Any) -> None:
    check_admin(actor)


def check_edit(actor: Any, round_: Round) -> None:
    check_admin(actor)
    if round_.state != RoundState.DRAFT:
        raise Refused(
            _("Only a draft can be changed. Cancel it and compose a new one."), code="not_draft"
        )


def check_vote(user: Any, round_: Round) -> None:
    """Raise unless this user is a rater of this open round."""
    check_voter(user)
    if not RoundRater.objects.filter(round=round_, user=user).exists():
        raise not_a_rater()
    check_takes_votes(round_)


def check_voter(user: Any) -> None:
    """Raise unless this user's role votes at all."""
    if not may_vote_in_rounds(user):
        raise Forbidden(_("Only seed users and annotators vote."), code="role")


def not_a_rater() -> Forbidden:
    return Forbidden(_("You are not a rater of this round."), code="not_rater")


def check_takes_votes(round_: Round) -> None:
    if round_.state != RoundState.OPEN:
        raise Refused(_("This round takes no votes any more."), code="round_closed")
    if round_.closes_at is not None and round_.closes_at <= timezone.now():
        raise Refused(_("This round takes no votes any more."), code="round_closed")


def check_votable(row: Assignment) -> None:
    """Raise unless this battle may be voted on: shown, voted on before, or let expire."""
    if row.state == AssignmentState.RESERVED:
        raise Refused(_("This battle was not shown yet."), code="not_shown")
    if row.state == AssignmentState.SKIPPED:
        raise Refused(
            _("You gave this battle back; it takes no vote of yours any more."), code="skipped"
        )


def check_still_possible(round_: Round) -> None:
    """Raise when the round could not run as composed any more: its closing date is over."""
    if round_.closes_at is not None and round_.closes_at <= timezone.now():
        raise Refused(
            _("The closing date is over. Go back to the draft and choose a later one."),
            code="date_over",
        )


def check_approve_unseal(actor: Any, round_: Round) -> None:
    check_admin(actor)
    check_move(round_, RoundState.UNSEALED)
    if round_.opened_at is not None and actor.date_joined >= round_.opened_at:
        # Else one administrator could invite a second self and unseal alone.
        raise Refused(
            _("Only who was an administrator before the round opened can agree to unseal it."),
            code="joined_later",
        )
    if round_.approvals.filter(user=actor).exists() and settings.UNSEAL_APPROVALS > 1:
        raise Refused(
            _("You have agreed already; another administrator has to agree too."),
            code="same_person",
        )


def may_approve_unseal(actor: Any, round_: Round) -> bool:
    try:
        check_approve_unseal(actor, round_)
    except PalateError:
        return False
    return True


def may_see_results(user: Any, round_: Round) -> bool:
    """Results exist for anybody only after unsealing (V2)."""
    if round_.state != RoundState.UNSEALED:
        return False
    return bool(settings.LEADERBOARD_PUBLIC or user.is_authenticated)


def may_administer(user: Any) -> bool:
    return is_admin(user)

"""What a project's state allows and who may: `check_x` raises the reason, `may_x` answers."""

from __future__ import annotations

from typing import Any

from django.utils.translation import gettext as _

from annotation.enums import MEMBER_MOVES, TRANSITIONS, MemberState, ProjectState, Verdict
from annotation.models import Member, Project
from webapp.accounts.enums import Role
from webapp.accounts.policies import check_admin, check_role
from webapp.core.errors import Forbidden, PalateError, Refused

WORKERS = (Role.ANNOTATOR, Role.RATER)  # an administrator sees what is gold, so he never labels

ADJUDICATING = (MemberState.ONBOARDING, MemberState.WORKING)


def check_manage(actor: Any) -> None:
    """Raise unless this user manages projects."""
    check_admin(actor)


def may_manage(actor: Any) -> bool:
    return _holds(check_manage, actor)


def check_worker(user: Any) -> None:
    """Raise unless this user's role labels at all."""
    check_role(user, *WORKERS)


def may_work(user: Any) -> bool:
    return _holds(check_worker, user)


def check_move(project: Project, to: str) -> None:
    """Raise unless the life cycle allows the move."""
    if to not in TRANSITIONS[project.state]:
        raise Refused(
            _("A project that is %(state)s cannot become %(to)s.")
            % {"state": project.get_state_display(), "to": ProjectState(to).label},
            code="illegal_move",
        )


def check_open(project: Project) -> None:
    """Raise unless the project hands out items."""
    if project.state != ProjectState.OPEN:
        raise Refused(_("This project hands out no items now."), code="project_not_open")


def check_works(member: Member | None) -> None:
    """Raise unless this member may get items."""
    if member is None or member.state == MemberState.LEFT:
        raise not_a_member()
    if member.state == MemberState.PAUSED:
        raise Refused(
            _("Your work here is paused. Read the guidelines again; a manager will write to you."),
            code="paused",
        )


def may_get_items(member: Member) -> bool:
    return _holds(check_works, member)


def check_member_move(member: Member, to: str) -> None:
    """Raise unless a manager may put this member into that state. The same state is no move."""
    if to != member.state and to not in MEMBER_MOVES[member.state]:
        raise Refused(
            _("Somebody in the state “%(state)s” cannot be moved to “%(to)s”.")
            % {"state": member.get_state_display(), "to": MemberState(to).label},
            code="illegal_move",
        )


def check_set_aside(member: Member) -> None:
    """Raise while this member may still be given items: her next labels would count again.

    Named annotators of an import have no account and are given none.
    """
    if member.user_id is not None and member.state not in (MemberState.PAUSED, MemberState.LEFT):
        raise Refused(_("Pause this annotator first."), code="works")


def may_be_set_aside(member: Member) -> bool:
    return _holds(check_set_aside, member)


def check_adjudicates(user: Any, member: Member | None) -> None:
    """Raise unless this user decides disputed items; `member` is his seat in the project, if any.

    Administrators do, and members who were chosen for it.
    """
    if may_manage(user):
        return
    check_worker(user)
    if member is None or not member.adjudicates or member.state not in ADJUDICATING:
        raise Forbidden(_("You do not decide disputed items here."), code="not_adjudicator")


def may_adjudicate(user: Any, member: Member | None) -> bool:
    return _holds(check_adjudicates, user, member)


def check_never_labelled(labelled: bool) -> None:
    """Raise where an adjudicator has labelled the item himself."""
    if labelled:
        raise Forbidden(
            _("You labelled this item yourself, so somebody else decides it."), code="own_label"
        )


def allowed_outcomes(project: Project) -> list[str]:
    """The canonical verdicts that this project allows, in the order of the keys."""
    barred = set()
    if not project.allow_tie:
        barred.add(Verdict.TIE)
    if not project.allow_both_bad:
        barred.add(Verdict.BOTH_BAD)
    return [value for value in Verdict.values if value not in barred]


def not_a_member() -> Forbidden:
    return Forbidden(_("You do not work in this project."), code="not_member")


def not_yours() -> Forbidden:
    return Forbidden(_("This item was not given to you."), code="not_yours")


def _holds(check: Any, *args: Any) -> bool:
    try:
        check(*args)
    except PalateError:
        return False
    return True

"""Who may. `check_x` raises a reason, `may_x` answers templates."""

from __future__ import annotations

from typing import Any

from django.utils.translation import gettext as _

from webapp.accounts.enums import VOTING_ROLES, Role
from webapp.core.errors import Forbidden


def is_admin(user: Any) -> bool:
    return bool(user.is_authenticated and user.is_active and user.role == Role.ADMIN)


def may_vote_in_rounds(user: Any) -> bool:
    return bool(user.is_authenticated and user.is_active and user.role in VOTING_ROLES)


def check_role(user: Any, *roles: Role) -> None:
    if not (user.is_authenticated and user.is_active and user.role in roles):
        names = ", ".join(str(role.label) for role in roles)
        raise Forbidden(_("Only for: %(roles)s.") % {"roles": names}, code="role")


def check_admin(user: Any) -> None:
    check_role(user, Role.ADMIN)

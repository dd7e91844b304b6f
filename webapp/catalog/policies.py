"""What the state of a persona allows, and who may. `check_x` raises a reason, `may_x` answers."""

from __future__ import annotations

from typing import Any

from django.utils.translation import gettext as _

from webapp.accounts.policies import is_admin
from webapp.catalog.models import Persona
from webapp.core.errors import Forbidden, Refused


def may_manage_persona(user: Any, persona: Persona) -> bool:
    """Administrators, and the person behind it."""
    return is_admin(user) or (user.is_authenticated and persona.owner_id == user.pk)


def check_may_manage_persona(user: Any, persona: Persona) -> None:
    if not may_manage_persona(user, persona):
        raise Forbidden(_("Only for administrators and the persona's owner."), code="role")


def check_consent_stands(persona: Persona) -> None:
    if persona.withdrawn_at is not None:
        raise Refused(
            _("The consent of “%(name)s” was withdrawn, which is final.")
            % {"name": persona.pseudonym},
            code="withdrawn",
        )


def check_may_import(user: Any) -> None:
    """`None` is the operator at the command line."""
    if user is not None and not is_admin(user):
        raise Forbidden(_("Only administrators import."), code="role")

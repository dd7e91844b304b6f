"""Every write on users and invitations."""

from __future__ import annotations

import hashlib
import secrets
from datetime import timedelta
from typing import Any

from django.conf import settings
from django.contrib.auth.password_validation import validate_password
from django.core.exceptions import ValidationError
from django.db import transaction
from django.utils import timezone
from django.utils.translation import gettext as _
from knox.models import AuthToken

from webapp.accounts.enums import Role
from webapp.accounts.models import Invitation, User
from webapp.accounts.policies import check_admin
from webapp.core import audit
from webapp.core.errors import InvalidInput, Refused


def token_hash(token: str) -> str:
    return hashlib.sha256(token.encode()).hexdigest()


def invite(*, actor: Any, role: str, note: str = "") -> tuple[Invitation, str]:
    """Make an invitation. The token is returned once and never kept."""
    check_admin(actor)
    if role not in Role.values:
        raise InvalidInput(_("Choose one of the roles."), field="role")
    token = secrets.token_urlsafe(24)
    with transaction.atomic():
        invitation = Invitation.objects.create(
            token_hash=token_hash(token),
            role=role,
            note=note[:100],
            created_by=actor,
            expires_at=timezone.now() + timedelta(days=settings.INVITATION_DAYS),
        )
        audit.record(actor=actor, action="invite", obj=invitation, role=role)
    return invitation, token


def withdraw_invitation(*, actor: Any, invitation: Invitation) -> None:
    check_admin(actor)
    with transaction.atomic():
        changed = Invitation.objects.filter(
            pk=invitation.pk, used_at=None, withdrawn_at=None
        ).update(withdrawn_at=timezone.now())
        if changed:
            audit.record(actor=actor, action="withdraw_invitation", obj=invitation)


def open_invitation(token: str) -> Invitation:
    """The invitation behind a link, or a refusal that says why it cannot be used."""
    return _usable(Invitation.objects.filter(token_hash=token_hash(token)).first())


def _usable(invitation: Invitation | None) -> Invitation:
    if invitation is None or invitation.withdrawn_at is not None:
        raise Refused(_("This invitation does not exist or was withdrawn."), code="unknown")
    if invitation.used_at is not None:
        raise Refused(_("This invitation was used already. Sign in instead."), code="used")
    if invitation.expires_at <= timezone.now():
        raise Refused(_("This invitation has expired. Ask for a new one."), code="expired")
    return invitation


def accept_invitation(*, token: str, username: str, password: str) -> User:
    """Make the account. Two clicks make one account: the row is locked, then looked at."""
    with transaction.atomic():
        rows = Invitation.objects.select_for_update()
        invitation = _usable(rows.filter(token_hash=token_hash(token)).first())
        user = create_user(username=username, password=password, role=invitation.role)
        invitation.used_at, invitation.used_by = timezone.now(), user
        invitation.save(update_fields=["used_at", "used_by"])
        audit.record(actor=user, action="accept_invitation", obj=invitation)
    return user


def create_user(*, username: str, password: str, role: str) -> User:
    """Make an account with one role. Administrators may enter the admin site."""
    username = username.strip()
    user = User(username=username, role=role, is_staff=role == Role.ADMIN)
    if User.objects.filter(username__iexact=username).exists():
        raise InvalidInput(_("This name is taken."), field="username", code="taken")
    try:
        validate_password(password, user)
        user.set_password(password)
        user.full_clean(exclude=["password"])
    except ValidationError as error:
        field = "password" if not hasattr(error, "error_dict") else next(iter(error.error_dict))
        raise InvalidInput(" ".join(error.messages), field=field) from error
    user.save()
    return user


def switch_account(*, actor: Any, user: User, active: bool) -> None:
    """Switch an account off or on, with a line in the audit log. Nothing else of it changes."""
    with transaction.atomic():
        if User.objects.filter(pk=user.pk, is_active=not active).update(is_active=active):
            action = "switch_account_on" if active else "switch_account_off"
            audit.record(actor=actor, action=action, obj=user)


def create_api_token(*, user: User, name: str) -> str:
    """A token for the API; knox keeps its hash alone, so it is shown once."""
    with transaction.atomic():
        _instance, token = AuthToken.objects.create(user=user)
        audit.record(actor=user, action="create_token", obj=user, name=name[:60])
    return str(token)


def revoke_api_token(*, user: User, key: str) -> None:
    with transaction.atomic():
        deleted, _rows = AuthToken.objects.filter(user=user, token_key=key).delete()
        if deleted:
            audit.record(actor=user, action="revoke_token", obj=user)


def save_preferences(*, user: User, **changes: Any) -> None:
    """Merge changes into the preferences under a row lock (two tabs lose nothing)."""
    with transaction.atomic():
        locked = User.objects.select_for_update().get(pk=user.pk)
        locked.preferences = {**locked.preferences, **changes}
        locked.save(update_fields=["preferences"])
    user.preferences = locked.preferences

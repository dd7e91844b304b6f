"""Users and invitations. Nobody registers himself."""

from __future__ import annotations

from typing import Any, ClassVar

from django.conf import settings
from django.contrib.auth.models import AbstractUser, UserManager
from django.db import models
from django.utils.translation import gettext_lazy as _

from webapp.accounts.enums import Role


class PalateUserManager(UserManager["User"]):
    """`createsuperuser` makes the first administrator; everybody else comes by invitation."""

    use_in_migrations = False

    def create_superuser(
        self,
        username: str,
        email: str | None = None,
        password: str | None = None,
        **extra_fields: Any,
    ) -> User:
        extra_fields.setdefault("role", Role.ADMIN)
        return super().create_superuser(username, email, password, **extra_fields)


class User(AbstractUser):
    """A person with one role. Key bindings and the like are kept in `preferences`."""

    role = models.CharField(_("role"), max_length=16, choices=Role.choices, default=Role.VIEWER)
    preferences = models.JSONField(default=dict, blank=True)

    objects: ClassVar[PalateUserManager] = PalateUserManager()


class Invitation(models.Model):
    """A link that makes one account with a given role, once, until it expires.

    Only a hash of the token is kept: who reads the database cannot accept an invitation.
    """

    token_hash = models.CharField(max_length=64, unique=True)
    role = models.CharField(_("role"), max_length=16, choices=Role.choices)
    note = models.CharField(_("note"), max_length=100, blank=True)
    created_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="invitations"
    )
    created_at = models.DateTimeField(auto_now_add=True)
    expires_at = models.DateTimeField()
    used_at = models.DateTimeField(null=True)
    used_by = models.OneToOneField(
        settings.AUTH_USER_MODEL, null=True, on_delete=models.PROTECT, related_name="invitation"
    )
    withdrawn_at = models.DateTimeField(null=True)

    class Meta:
        ordering = ["-created_at"]

    def __str__(self) -> str:
        return f"{self.role} ({self.note})"

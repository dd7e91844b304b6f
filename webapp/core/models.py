"""The audit log: append-only and hash-chained."""

from __future__ import annotations

from django.conf import settings
from django.db import models
from django.utils.translation import gettext_lazy as _


class Event(models.Model):
    """One line of the audit log. `hash` covers the line and the hash before it."""

    n = models.PositiveBigIntegerField(unique=True)
    at = models.DateTimeField()
    actor = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, on_delete=models.PROTECT, related_name="+"
    )
    action = models.CharField(max_length=64)
    object_type = models.CharField(max_length=64)
    object_id = models.CharField(max_length=64)
    details = models.JSONField(default=dict)
    previous_hash = models.CharField(max_length=64)
    hash = models.CharField(max_length=64, unique=True)

    class Meta:
        ordering = ["n"]
        verbose_name = _("event")
        verbose_name_plural = _("events")
        indexes = [models.Index(fields=["object_type", "object_id"])]

    def __str__(self) -> str:
        return f"{self.n} {self.action}"


class ChainHead(models.Model):
    """The one row whose lock puts audit lines in order."""

    n = models.PositiveBigIntegerField(default=0)
    hash = models.CharField(max_length=64, default="0" * 64)

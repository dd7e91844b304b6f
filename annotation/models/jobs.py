"""Exports, counterfactual jobs and webhooks: rows that a job works on."""

from __future__ import annotations

from django.conf import settings
from django.db import models
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from annotation.enums import DeliveryState, JobState, ReviewState, RewriterKind
from annotation.models.items import Item
from annotation.models.projects import Project
from webapp.catalog.models import PersonaVersion, public_id


class ExportRun(models.Model):
    """One export: what was asked, how far it is, what came of it. Its files stand apart."""

    project = models.ForeignKey(Project, on_delete=models.PROTECT, related_name="exports")
    format = models.CharField(max_length=24)
    options = models.JSONField(default=dict)
    state = models.CharField(max_length=12, choices=JobState.choices, default=JobState.RUNNING)
    rows_done = models.PositiveBigIntegerField(default=0)
    rows_total = models.PositiveBigIntegerField(default=0)
    report = models.JSONField(default=dict)
    path = models.CharField(max_length=500, blank=True)
    size = models.PositiveBigIntegerField(default=0)
    sha256 = models.CharField(max_length=64, blank=True)
    message = models.CharField(max_length=300, blank=True)
    key = models.CharField(max_length=64, null=True, unique=True)
    heartbeat_at = models.DateTimeField(null=True)
    created_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, on_delete=models.PROTECT, related_name="+"
    )
    created_at = models.DateTimeField(auto_now_add=True)
    finished_at = models.DateTimeField(null=True)

    class Meta:
        ordering = ["-pk"]


class CounterfactualJob(models.Model):
    """Rewrites of highly rated answers against their persona, and the reverse, in equal number."""

    project = models.ForeignKey(Project, on_delete=models.PROTECT, related_name="counterfactuals")
    rewriter = models.CharField(
        max_length=12, choices=RewriterKind.choices, default=RewriterKind.RULES
    )
    options = models.JSONField(default=dict)
    state = models.CharField(max_length=12, choices=JobState.choices, default=JobState.RUNNING)
    total = models.PositiveIntegerField(default=0)
    done = models.PositiveIntegerField(default=0)
    refused = models.PositiveIntegerField(default=0)
    report = models.JSONField(default=dict)
    message = models.CharField(max_length=300, blank=True)
    key = models.CharField(max_length=64, null=True, unique=True)
    heartbeat_at = models.DateTimeField(null=True)
    created_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, on_delete=models.PROTECT, related_name="+"
    )
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ["-pk"]


class Rewrite(models.Model):
    """How a counterfactual item came about. `pair` is shared by its two directions."""

    job = models.ForeignKey(CounterfactualJob, on_delete=models.PROTECT, related_name="rewrites")
    source_item = models.ForeignKey(Item, on_delete=models.PROTECT, related_name="+")
    item = models.OneToOneField(Item, on_delete=models.PROTECT, related_name="rewrite")
    suited_to = models.ForeignKey(PersonaVersion, on_delete=models.PROTECT, related_name="+")
    opposite = models.ForeignKey(PersonaVersion, on_delete=models.PROTECT, related_name="+")
    pair = models.CharField(max_length=32)
    checks = models.JSONField(default=dict)
    state = models.CharField(
        max_length=12, choices=ReviewState.choices, default=ReviewState.PROPOSED
    )
    note = models.CharField(max_length=300, blank=True)
    reviewed_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, on_delete=models.PROTECT, related_name="+"
    )
    reviewed_at = models.DateTimeField(null=True)
    created_at = models.DateTimeField(auto_now_add=True)


class Webhook(models.Model):
    """An address that is told about events. Its signing secret is derived, never stored.

    `wait_until`: nobody sends to it before, be it that a job is at it or that it failed. After
    `failing_since` no delivery succeeded; `off_reason` says why it was switched off by itself.
    """

    project = models.ForeignKey(Project, on_delete=models.PROTECT, related_name="webhooks")
    public_id = models.CharField(max_length=32, unique=True, default=public_id)
    url = models.URLField(_("address"), max_length=500)
    events = models.JSONField(default=list)
    active = models.BooleanField(default=True)
    secret_version = models.PositiveSmallIntegerField(default=1)
    failures = models.PositiveIntegerField(default=0)
    failing_since = models.DateTimeField(null=True)
    wait_until = models.DateTimeField(null=True)
    off_reason = models.CharField(max_length=300, blank=True)
    deleted_at = models.DateTimeField(null=True)
    created_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="+"
    )
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ["pk"]


class Delivery(models.Model):
    """One event on its way to a webhook, given up a day after `queued_at`.

    `last_error` is a code of webapp.core.outbound.
    """

    webhook = models.ForeignKey(Webhook, on_delete=models.PROTECT, related_name="deliveries")
    public_id = models.CharField(max_length=32, unique=True, default=public_id)
    event = models.CharField(max_length=32)
    payload = models.JSONField()
    state = models.CharField(
        max_length=12, choices=DeliveryState.choices, default=DeliveryState.WAITING
    )
    attempts = models.PositiveSmallIntegerField(default=0)
    next_at = models.DateTimeField(null=True)
    last_status = models.PositiveSmallIntegerField(null=True)
    last_error = models.CharField(max_length=300, blank=True)
    queued_at = models.DateTimeField(default=timezone.now)
    created_at = models.DateTimeField(auto_now_add=True)
    delivered_at = models.DateTimeField(null=True)

    class Meta:
        ordering = ["-pk"]
        indexes = [
            models.Index(
                fields=["webhook", "next_at"],
                name="delivery_due_of_webhook",
                condition=models.Q(state="waiting"),
            ),
            models.Index(fields=["webhook", "-id"], name="delivery_newest"),
        ]

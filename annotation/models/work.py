"""Leases and labels."""

from __future__ import annotations

from django.db import models
from django.db.models import Q
from django.utils import timezone

from annotation.enums import LeaseState, SkipReason
from annotation.models.items import Item
from annotation.models.projects import Guideline, Member
from webapp.catalog.models import public_id


class Lease(models.Model):
    """A time-limited right to label one item; the token makes sending twice harmless.

    `counted`: it holds one of the item's slots. A submitted lease that is not counted is an extra
    (late work), a gold label, or a repeat (`repeat` > 0: the item shown again, sides changed).
    `first_left`: where the item's first answer stands. Labels of an import have a lease, too.
    """

    item = models.ForeignKey(Item, on_delete=models.PROTECT, related_name="leases")
    member = models.ForeignKey(
        Member, on_delete=models.PROTECT, related_name="leases", db_index=False
    )  # `lease_of_member` serves it; see migration 0006
    repeat = models.PositiveSmallIntegerField(default=0)
    state = models.CharField(max_length=12, choices=LeaseState.choices, default=LeaseState.RESERVED)
    counted = models.BooleanField(default=False)
    token = models.CharField(max_length=32, unique=True, default=public_id)
    first_left = models.BooleanField()
    position = models.PositiveIntegerField(default=0)
    expires_at = models.DateTimeField()
    created_at = models.DateTimeField(auto_now_add=True)
    shown_at = models.DateTimeField(null=True)
    submitted_at = models.DateTimeField(null=True)
    skip_reason = models.CharField(max_length=12, choices=SkipReason.choices, blank=True)
    draft = models.JSONField(default=dict)
    head = models.ForeignKey("Label", null=True, on_delete=models.PROTECT, related_name="+")
    had_place = models.BooleanField(null=True)  # of a label that is set aside: whether it counted

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["item", "member", "repeat"], name="lease_once"),
            models.CheckConstraint(
                name="lease_counted",
                condition=Q(counted=False)
                | Q(state__in=["reserved", "shown", "submitted"], repeat=0),
            ),
            models.CheckConstraint(
                name="lease_submitted_has_label",
                condition=~Q(state="submitted") | Q(head__isnull=False, submitted_at__isnull=False),
            ),
        ]
        indexes = [
            models.Index(fields=["member", "state", "-submitted_at"], name="lease_of_member"),
            models.Index(
                fields=["expires_at"],
                name="lease_live",
                condition=Q(state__in=["reserved", "shown"]),
            ),
        ]


class Label(models.Model):
    """One revision of an annotator's answer; append-only. An undo is a revision without verdicts.

    Verdicts are canonical (first, second); `first_left` says where they stood. A strength from 1
    to 3 goes with a preference where the project asks for it.
    """

    lease = models.ForeignKey(Lease, on_delete=models.PROTECT, related_name="labels")
    item = models.ForeignKey(Item, on_delete=models.PROTECT, related_name="labels")
    member = models.ForeignKey(Member, on_delete=models.PROTECT, related_name="labels")
    revision = models.PositiveIntegerField()
    quality = models.CharField(max_length=8, blank=True)
    personalization = models.CharField(max_length=8, blank=True)
    quality_strength = models.PositiveSmallIntegerField(null=True)
    personalization_strength = models.PositiveSmallIntegerField(null=True)
    tags = models.JSONField(default=list)
    comment = models.TextField(blank=True)
    active_ms = models.PositiveIntegerField(default=0)
    guideline = models.ForeignKey(Guideline, null=True, on_delete=models.PROTECT, related_name="+")
    first_left = models.BooleanField()
    late = models.BooleanField(default=False)
    source = models.CharField(max_length=8, default="web")  # web, api, import
    # What the file of an import said that has no column here, e.g. the number of its guidelines.
    imported = models.JSONField(null=True)
    at = models.DateTimeField(default=timezone.now)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["lease", "revision"], name="label_revision")]

    @property
    def is_undo(self) -> bool:
        return not self.quality and not self.personalization

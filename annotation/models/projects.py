"""Projects, their guidelines and the people who work in them."""

from __future__ import annotations

from django.conf import settings
from django.db import models
from django.db.models import F, Q
from django.utils.translation import gettext_lazy as _

from annotation.enums import MemberState, ProjectState


class Project(models.Model):
    """What is asked about which pairs, how often, and of whom.

    Shares are whole percentages. `seed` is secret: it decides which side an answer stands on and
    where gold items come, so that neither can be foretold.
    """

    name = models.CharField(_("name"), max_length=120, unique=True)
    state = models.CharField(max_length=8, choices=ProjectState.choices, default=ProjectState.DRAFT)
    axes = models.JSONField(default=list)
    ask_strength = models.BooleanField(_("ask how much better"), default=False)
    allow_tie = models.BooleanField(_("allow “equal”"), default=True)
    allow_both_bad = models.BooleanField(_("allow “both are bad”"), default=True)
    tags = models.JSONField(default=list)

    base_overlap = models.PositiveSmallIntegerField(_("labels per item"), default=2)
    max_overlap = models.PositiveSmallIntegerField(_("at most, on disagreement"), default=3)
    gold_percent = models.PositiveSmallIntegerField(_("gold items, %"), default=5)
    gold_floor = models.PositiveSmallIntegerField(_("accuracy on gold, at least %"), default=50)
    gold_minimum = models.PositiveSmallIntegerField(_("gold labels before it counts"), default=8)
    repeat_percent = models.PositiveSmallIntegerField(_("repeated items, %"), default=3)
    onboarding_size = models.PositiveSmallIntegerField(_("items to learn with"), default=5)
    lease_minutes = models.PositiveSmallIntegerField(
        _("minutes per item"), null=True, blank=True
    )  # None: three times the usual time, see annotation.assignment
    stratum_features = models.JSONField(default=list, blank=True)
    targets = models.JSONField(default=dict, blank=True)  # {stratum: items wanted}
    price_cents = models.PositiveIntegerField(_("price of a label, in cents"), default=0)
    currency = models.CharField(_("currency"), max_length=3, default="EUR")

    seed = models.CharField(max_length=64)
    median_active_ms = models.PositiveIntegerField(default=0)
    created_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="+"
    )
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ["-pk"]
        constraints = [
            models.CheckConstraint(
                name="project_overlap",
                condition=Q(base_overlap__gte=1) & Q(max_overlap__gte=F("base_overlap")),
            )
        ]

    def __str__(self) -> str:
        return self.name


class Guideline(models.Model):
    """One version of a project's guidelines, Markdown. Append-only; every label names its own."""

    project = models.ForeignKey(Project, on_delete=models.PROTECT, related_name="guidelines")
    n = models.PositiveIntegerField()
    text = models.TextField(_("guidelines"))
    text_sha256 = models.CharField(max_length=64)
    created_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="+"
    )
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ["project_id", "-n"]
        constraints = [models.UniqueConstraint(fields=["project", "n"], name="guideline_n")]


class Member(models.Model):
    """Somebody whose labels a project holds: an account, or a named annotator of an import.

    `cursor` is the queue position up to which this member has gone, `served` counts leases: the
    place of hidden items follows from it. `gold_right` of `gold_seen` hidden gold labels agree.
    """

    project = models.ForeignKey(Project, on_delete=models.PROTECT, related_name="members")
    user = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        null=True,
        on_delete=models.PROTECT,
        related_name="annotation_memberships",
    )
    external_name = models.CharField(max_length=120, blank=True)
    pseudonym = models.CharField(max_length=64)
    adjudicates = models.BooleanField(_("adjudicates"), default=False)
    state = models.CharField(
        max_length=12, choices=MemberState.choices, default=MemberState.ONBOARDING
    )
    paused_reason = models.CharField(max_length=300, blank=True)
    axes = models.JSONField(default=list)  # the order in which this member is asked
    cursor = models.BigIntegerField(default=-1)
    served = models.PositiveIntegerField(default=0)
    gold_right = models.PositiveIntegerField(default=0)
    gold_seen = models.PositiveIntegerField(default=0)
    gate_from = models.DateTimeField(null=True)  # gold before a manager's word does not pause
    aside_at = models.DateTimeField(null=True)  # what she gave before is set aside, but for gold
    guideline_read = models.ForeignKey(
        Guideline, null=True, on_delete=models.PROTECT, related_name="+"
    )
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ["pk"]
        constraints = [
            models.UniqueConstraint(
                fields=["project", "user"],
                condition=Q(user__isnull=False),
                name="member_once",
            ),
            models.UniqueConstraint(
                fields=["project", "external_name"],
                condition=Q(user__isnull=True),
                name="member_external_once",
            ),
            models.UniqueConstraint(fields=["project", "pseudonym"], name="member_pseudonym_once"),
            models.CheckConstraint(
                name="member_account_or_name",
                condition=Q(user__isnull=False, external_name="")
                | (Q(user__isnull=True) & ~Q(external_name="")),
            ),
        ]

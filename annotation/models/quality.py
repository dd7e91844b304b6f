"""Decisions, adjudication, appeals, reported problems, and what the statistics job leaves."""

from __future__ import annotations

from django.conf import settings
from django.db import models
from django.db.models import Q

from annotation.enums import (
    AdjudicationReason,
    AdjudicationState,
    AppealState,
    DecisionSource,
    ProblemKind,
)
from annotation.models.items import Item
from annotation.models.projects import Member, Project
from annotation.models.work import Lease
from webapp.catalog.models import public_id


class Decision(models.Model):
    """The outcome of an item on one axis. Append-only; the item points at the one that holds.

    `posterior` is {"first": p, "second": p, "tie": p, "both_bad": p} over the verdicts that the
    project allows, from the labels at hand and the annotators' accuracy on gold. `verdict` is
    empty while unresolved.
    """

    item = models.ForeignKey(Item, on_delete=models.PROTECT, related_name="decisions")
    axis = models.CharField(max_length=24)
    n = models.PositiveIntegerField()
    verdict = models.CharField(max_length=8, blank=True)
    source = models.CharField(max_length=12, choices=DecisionSource.choices)
    posterior = models.JSONField(default=dict)
    labels = models.PositiveIntegerField(default=0)
    decided_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, on_delete=models.PROTECT, related_name="+"
    )
    blind_verdict = models.CharField(max_length=8, blank=True)
    reason = models.CharField(max_length=16, choices=AdjudicationReason.choices, blank=True)
    note = models.TextField(blank=True)
    at = models.DateTimeField(auto_now_add=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["item", "axis", "n"], name="decision_n"),
            models.CheckConstraint(
                name="decision_has_verdict",
                condition=Q(source="unresolved", verdict="")
                | (~Q(source="unresolved") & ~Q(verdict="")),
            ),
        ]


class Adjudication(models.Model):
    """An adjudicator at work on a disputed item: blind first, then with the labels in sight."""

    item = models.ForeignKey(Item, on_delete=models.PROTECT, related_name="adjudications")
    adjudicator = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="+"
    )
    state = models.CharField(
        max_length=12, choices=AdjudicationState.choices, default=AdjudicationState.BLIND
    )
    token = models.CharField(max_length=32, unique=True, default=public_id)
    first_left = models.BooleanField(default=True)
    blind = models.JSONField(default=dict)  # {axis: verdict}, canonical
    expires_at = models.DateTimeField()
    created_at = models.DateTimeField(auto_now_add=True)
    revealed_at = models.DateTimeField(null=True)
    done_at = models.DateTimeField(null=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["item"],
                condition=Q(state__in=["blind", "revealed"]),
                name="adjudication_one_at_a_time",
            )
        ]


class Appeal(models.Model):
    """An annotator contests what became of an item she labelled. Gold or not is never said."""

    lease = models.ForeignKey(Lease, on_delete=models.PROTECT, related_name="appeals")
    state = models.CharField(max_length=8, choices=AppealState.choices, default=AppealState.OPEN)
    text = models.TextField()
    answer = models.TextField(blank=True)
    answered_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, on_delete=models.PROTECT, related_name="+"
    )
    created_at = models.DateTimeField(auto_now_add=True)
    answered_at = models.DateTimeField(null=True)

    class Meta:
        ordering = ["-pk"]
        constraints = [models.UniqueConstraint(fields=["lease"], name="appeal_once")]


class Problem(models.Model):
    """An annotator says that something is wrong with an item."""

    item = models.ForeignKey(Item, on_delete=models.PROTECT, related_name="problems")
    member = models.ForeignKey(Member, on_delete=models.PROTECT, related_name="+")
    kind = models.CharField(max_length=12, choices=ProblemKind.choices)
    note = models.TextField(blank=True)
    resolution = models.CharField(max_length=300, blank=True)
    resolved_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, on_delete=models.PROTECT, related_name="+"
    )
    created_at = models.DateTimeField(auto_now_add=True)
    resolved_at = models.DateTimeField(null=True)

    class Meta:
        ordering = ["-pk"]
        constraints = [models.UniqueConstraint(fields=["item", "member"], name="problem_once")]


class SoftLabel(models.Model):
    """Posterior of an item on one axis over the whole project (Dawid–Skene); renewed by a job."""

    item = models.ForeignKey(Item, on_delete=models.PROTECT, related_name="soft_labels")
    axis = models.CharField(max_length=24)
    posterior = models.JSONField(default=dict)
    updated_at = models.DateTimeField(auto_now=True)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["item", "axis"], name="soft_label_once")]


class StatisticsSnapshot(models.Model):
    """What the statistics job found, as the pages show it. `labels_seen` tells how old it is."""

    project = models.ForeignKey(Project, on_delete=models.PROTECT, related_name="statistics")
    labels_seen = models.PositiveBigIntegerField(default=0)
    report = models.JSONField(default=dict)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ["-pk"]
        indexes = [models.Index(fields=["project", "-id"], name="statistics_newest")]

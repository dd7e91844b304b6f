"""The gate of policies: what is demanded, what was found, edge cases, audit marks, promotions."""

from __future__ import annotations

from django.conf import settings
from django.db import models
from django.db.models import F, Q
from django.utils.translation import gettext_lazy as _

from training.enums import AuditVerdict, EdgeSource, GateState, PromotionKind, Verdict
from training.models.curves import Checkpoint
from training.models.datasets import Dataset
from training.models.runs import TrainingRun
from webapp.catalog.models import Persona


class GateSpec(models.Model):
    """A fixed item set, scorers, rules and a baseline, named by `content_sha256`. Append-only.

    Items are the prompts of a split of a frozen dataset; `items_sha256` names them. `scorers` maps
    each axis to names that the engine knows ("quality/auditors", "rules", …); `quality` and
    `personalization` are the runs behind them. `rules` is what `training.gating.rules` reads,
    `sampling` how answers are drawn. `audit` successes must be read before a promotion.
    """

    name = models.CharField(_("name"), max_length=120, unique=True)
    content_sha256 = models.CharField(max_length=64)
    dataset = models.ForeignKey(Dataset, on_delete=models.PROTECT, related_name="gates")
    split = models.CharField(max_length=20, default="gate")
    items_sha256 = models.CharField(max_length=64)
    items = models.PositiveIntegerField()
    baseline = models.ForeignKey(TrainingRun, on_delete=models.PROTECT, related_name="+")
    quality = models.ForeignKey(TrainingRun, null=True, on_delete=models.PROTECT, related_name="+")
    personalization = models.ForeignKey(
        TrainingRun, null=True, on_delete=models.PROTECT, related_name="+"
    )
    scorers = models.JSONField()
    rules = models.JSONField()
    sampling = models.JSONField()
    edge_draw = models.PositiveSmallIntegerField(default=50)
    audit = models.PositiveSmallIntegerField(default=10)
    created_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, on_delete=models.PROTECT, related_name="+"
    )
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ["-pk"]

    def __str__(self) -> str:
        return self.name


class GateRun(models.Model):
    """One model judged by one gate, from two evaluations on the same items. Decided once.

    `result` is the decision as JSON with the report on edge cases; `edges` the items
    of the edge cases that were asked.
    """

    spec = models.ForeignKey(GateSpec, on_delete=models.PROTECT, related_name="runs")
    candidate = models.ForeignKey(TrainingRun, on_delete=models.PROTECT, related_name="gates")
    checkpoint = models.ForeignKey(
        Checkpoint, null=True, on_delete=models.PROTECT, related_name="gates"
    )
    state = models.CharField(max_length=10, choices=GateState.choices, default=GateState.MEASURING)
    candidate_evaluation = models.ForeignKey(
        TrainingRun, null=True, on_delete=models.PROTECT, related_name="+"
    )
    baseline_evaluation = models.ForeignKey(
        TrainingRun, null=True, on_delete=models.PROTECT, related_name="+"
    )
    edges = models.JSONField(default=list)
    verdict = models.CharField(max_length=16, choices=Verdict.choices, blank=True)
    result = models.JSONField(default=dict)
    n_ok = models.PositiveIntegerField(default=0)
    n_err = models.PositiveIntegerField(default=0)
    key = models.CharField(max_length=64, null=True, unique=True)
    created_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, on_delete=models.PROTECT, related_name="+"
    )
    created_at = models.DateTimeField(auto_now_add=True)
    decided_at = models.DateTimeField(null=True)

    class Meta:
        ordering = ["-pk"]
        constraints = [
            models.CheckConstraint(
                name="gate_decided_has_verdict",
                condition=~Q(state="decided") | (~Q(verdict="") & Q(decided_at__isnull=False)),
            )
        ]


class EdgeCase(models.Model):
    """A prompt under a persona on which somebody failed; its text is a `RowText` (V14).

    `item` is the id by which evaluations know it.
    """

    name = models.CharField(max_length=80, unique=True)
    row_sha256 = models.CharField(max_length=64)
    item = models.CharField(max_length=64)
    persona = models.ForeignKey(Persona, null=True, on_delete=models.PROTECT, related_name="+")
    stratum = models.CharField(max_length=200, blank=True)
    source = models.CharField(max_length=12, choices=EdgeSource.choices)
    reason = models.CharField(max_length=300, blank=True)
    gate = models.ForeignKey(GateRun, null=True, on_delete=models.PROTECT, related_name="born")
    created_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, on_delete=models.PROTECT, related_name="+"
    )
    created_at = models.DateTimeField(auto_now_add=True)
    retired_at = models.DateTimeField(null=True)

    class Meta:
        ordering = ["pk"]
        constraints = [models.UniqueConstraint(fields=["item"], name="edge_case_once")]

    def __str__(self) -> str:
        return self.name


class AuditMark(models.Model):
    """What somebody found who read one success of a gate. Append-only; the newest counts."""

    gate = models.ForeignKey(GateRun, on_delete=models.PROTECT, related_name="marks")
    item = models.CharField(max_length=64)
    draw = models.PositiveSmallIntegerField(default=0)
    verdict = models.CharField(max_length=8, choices=AuditVerdict.choices)
    note = models.CharField(max_length=500, blank=True)
    by = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="+")
    at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ["pk"]
        indexes = [models.Index(fields=["gate", "item", "draw"], name="audit_mark_of_answer")]


class Promotion(models.Model):
    """What lets a model become a contestant of kind checkpoint. Append-only (V20).

    By a gate: passed, with its audit done. By an override: a reason and two administrators. As a
    baseline: a model that no reward has trained, marked so. The contestant's name and version are
    fixed here; triggers refuse a contestant of kind checkpoint without this row.
    """

    kind = models.CharField(max_length=10, choices=PromotionKind.choices)
    run = models.ForeignKey(TrainingRun, on_delete=models.PROTECT, related_name="promotions")
    checkpoint = models.ForeignKey(
        Checkpoint, null=True, on_delete=models.PROTECT, related_name="promotions"
    )
    gate = models.ForeignKey(
        GateRun, null=True, on_delete=models.PROTECT, related_name="promotions"
    )
    name = models.CharField(max_length=120)
    version = models.CharField(max_length=64, blank=True)
    reason = models.CharField(max_length=500, blank=True)
    by = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, on_delete=models.PROTECT, related_name="+"
    )
    second = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, on_delete=models.PROTECT, related_name="+"
    )
    at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ["-pk"]
        constraints = [
            models.UniqueConstraint(fields=["name", "version"], name="promotion_of_name_once"),
            models.CheckConstraint(
                name="promotion_has_grounds",
                condition=Q(kind="gate", gate__isnull=False)
                | Q(kind="baseline")
                | (
                    Q(kind="override", by__isnull=False, second__isnull=False)
                    & ~Q(reason="")
                    & ~Q(by=F("second"))
                ),
            ),
        ]


class OverrideRequest(models.Model):
    """One administrator asks to promote what did not pass; another one agrees or declines."""

    run = models.ForeignKey(TrainingRun, on_delete=models.PROTECT, related_name="+")
    gate = models.ForeignKey(GateRun, null=True, on_delete=models.PROTECT, related_name="+")
    name = models.CharField(max_length=120)
    version = models.CharField(max_length=64, blank=True)
    reason = models.CharField(max_length=500)
    by = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="+")
    at = models.DateTimeField(auto_now_add=True)
    answered_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, on_delete=models.PROTECT, related_name="+"
    )
    answered_at = models.DateTimeField(null=True)
    agreed = models.BooleanField(null=True)
    key = models.CharField(max_length=64, null=True, unique=True)

    class Meta:
        ordering = ["-pk"]

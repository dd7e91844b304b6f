"""What a base model could do before any reinforcement learning (F18, H12)."""

from __future__ import annotations

from django.conf import settings
from django.db import models

from training.models.datasets import Dataset


class BaselineEvaluation(models.Model):
    """A base model evaluated on the gate split of a frozen dataset. Append-only.

    `base_sha256` names the weights where they are known; a run on other weights needs another
    evaluation. `split_sha256` names the rows.
    """

    base = models.CharField(max_length=200)
    base_sha256 = models.CharField(max_length=64, blank=True)
    dataset = models.ForeignKey(Dataset, on_delete=models.PROTECT, related_name="baselines")
    split_sha256 = models.CharField(max_length=64)
    passed = models.BooleanField()
    result = models.JSONField(default=dict)
    created_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, on_delete=models.PROTECT, related_name="+"
    )
    at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ["-pk"]
        indexes = [models.Index(fields=["base", "split_sha256"], name="baseline_of_base")]

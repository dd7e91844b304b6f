"""Noting what a base model could do on a gate split before reinforcement learning (F18, H12)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.db import transaction

from training import policies
from training.models import BaselineEvaluation, Dataset
from webapp.catalog.services.checks import check_text
from webapp.core import audit


def record_baseline(
    *,
    actor: Any,
    base: str,
    dataset: Dataset,
    passed: bool,
    result: Mapping[str, Any],
    base_sha256: str = "",
) -> BaselineEvaluation:
    """Append an evaluation of `base` on the gate split of a dataset; the newest one holds."""
    policies.check_manage(actor)
    digest = policies.check_has_gate(dataset)
    base = check_text(base.strip(), "base", limit=200)
    with transaction.atomic():
        made = BaselineEvaluation.objects.create(
            base=base,
            base_sha256=base_sha256,
            dataset=dataset,
            split_sha256=digest,
            passed=passed,
            result=dict(result),
            created_by=actor,
        )
        audit.record(actor=actor, action="record_baseline", obj=made, base=base, passed=passed)
    return made

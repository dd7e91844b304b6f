"""Where a model comes from: base, datasets, reward models, gate. Frozen into its contestant."""

from __future__ import annotations

from typing import Any

from training.enums import PromotionKind, Role
from training.models import Promotion, RunInput, TrainingRun
from training.selectors.inputs import digest_of_run

DEPTH = 10  # bases that are followed


def lineage(promotion: Promotion) -> dict[str, Any]:
    """Names and hashes as JSON; nothing that a later change could rewrite (V10)."""
    run, gate = promotion.run, promotion.gate
    found: dict[str, Any] = {
        "promotion": promotion.kind,
        "baseline": promotion.kind == PromotionKind.BASELINE,
        "reason": promotion.reason,
        "run": described(run),
        "bases": [described(base) for base in bases(run)],
        "datasets": [],
        "reward_models": [],
        "gate": None,
    }
    for row in RunInput.objects.filter(run=run).select_related("dataset", "source"):
        if row.dataset is not None:
            found["datasets"].append(
                {
                    "role": row.role,
                    "name": row.dataset.name,
                    "split": row.split,
                    "sha256": row.sha256,
                }
            )
        elif row.source is not None and row.role != Role.BASE:
            found["reward_models"].append({"role": row.role, **described(row.source)})
    if gate is not None:
        found["gate"] = {
            "id": gate.pk,
            "name": gate.spec.name,
            "content_sha256": gate.spec.content_sha256,
            "verdict": gate.verdict,
        }
    return found


def described(run: TrainingRun) -> dict[str, Any]:
    return {
        "id": run.pk,
        "name": run.name,
        "kind": run.kind,
        "config_sha256": run.config_sha256,
        "weights_sha256": digest_of_run(run),
    }


def bases(run: TrainingRun) -> list[TrainingRun]:
    """The chain of models that this one started from, the nearest first."""
    found: list[TrainingRun] = []
    while len(found) < DEPTH:
        row = RunInput.objects.filter(run=run, role=Role.BASE).select_related("source").first()
        if row is None or row.source is None:
            return found
        run = row.source
        found.append(run)
    return found

"""Where a model comes from: base, datasets, reward models, gate. Frozen into its contestant."""

from __future__ import annotations

from typing import Any

from training.ancestry import ancestry_of, rewards_of
from training.enums import PromotionKind
from training.models import Promotion, RunInput, TrainingRun
from training.quantisation_policies import quantised
from training.selectors.checkpoints import digest_of_checkpoint
from training.selectors.inputs import digest_of_run


def lineage(promotion: Promotion) -> dict[str, Any]:
    """Names and hashes as JSON; nothing that a later change could rewrite (V10)."""
    run, gate = promotion.run, promotion.gate
    found: dict[str, Any] = {
        "promotion": promotion.kind,
        "baseline": promotion.kind == PromotionKind.BASELINE,
        "reason": promotion.reason,
        "run": described(run),
        "bases": [described(base) for base in ancestry_of(run)[1:]],
        "datasets": [],
        "reward_models": [{"role": role, **described(model)} for role, model in rewards_of(run)],
        "gate": None,
        "checkpoint": None,
        "quantisation": None,
    }
    for row in RunInput.objects.filter(run=run).select_related("dataset"):
        if row.dataset is not None:
            found["datasets"].append(
                {
                    "role": row.role,
                    "name": row.dataset.name,
                    "split": row.split,
                    "sha256": row.sha256,
                }
            )
    if gate is not None:
        found["gate"] = {
            "id": gate.pk,
            "name": gate.spec.name,
            "content_sha256": gate.spec.content_sha256,
            "verdict": gate.verdict,
        }
    if (kept := promotion.checkpoint) is not None:
        share = round(100 * kept.step / run.steps) if run.steps else None
        named = {"step": kept.step, "percent": share, "sha256": digest_of_checkpoint(kept)}
        found["checkpoint"] = named
    if (rounded := quantised(run, promotion.checkpoint)) is not None:
        found["quantisation"] = rounded.as_json()
    return found


def described(run: TrainingRun) -> dict[str, Any]:
    return {
        "id": run.pk,
        "name": run.name,
        "kind": run.kind,
        "config_sha256": run.config_sha256,
        "weights_sha256": digest_of_run(run),
    }

"""Changes that rules propose, always from the settings that the run really had."""

from __future__ import annotations

from typing import Any

from training.engine.config.schema import RunConfig

BETA_LIMIT = 0.1  # above this a policy hardly moves


def more_beta(config: RunConfig) -> dict[str, Any]:
    """Half as much again, at most 0.1; where there was none, the usual 0.04."""
    beta = config.grpo.beta
    if beta >= BETA_LIMIT:
        return {}
    return {"grpo.beta": round(min(BETA_LIMIT, beta * 1.5), 4) if beta else 0.04}


def half_rate(config: RunConfig) -> dict[str, Any]:
    return {"grpo.learning_rate": config.grpo.learning_rate / 2}


def steadier(config: RunConfig) -> dict[str, Any]:
    """Against a collapse: half the rate, more pull to the reference, clipped gradients."""
    changes = {**half_rate(config), **more_beta(config)}
    if config.grpo.max_grad_norm > 1:
        changes["grpo.max_grad_norm"] = 1.0
    return changes


def more_redundancy(config: RunConfig) -> dict[str, Any]:
    return {"reward.redundancy": round(max(0.1, config.reward.redundancy * 2), 3)}


def cautious_ensemble(config: RunConfig) -> dict[str, Any]:
    """Trust the reward models less where they disagree."""
    if config.reward.ensemble == "mean":
        return {"reward.ensemble": "lower"}
    return {"reward.spread_weight": config.reward.spread_weight * 2}


def more_persona(config: RunConfig) -> dict[str, Any]:
    """α lower by 0.1 after its first point, not below 0.2: personalization counts for more."""
    first, *later = config.reward.alpha
    lowered = [(p, round(max(0.2, a - 0.1), 3)) for p, a in later]
    if not later or lowered == later:
        return more_entropy(config)
    return {"reward.alpha": [list(first), *map(list, lowered)]}


def cooler(config: RunConfig) -> dict[str, Any]:
    return {"grpo.temperature": 0.9} if config.grpo.temperature > 0.9 else {}


def more_entropy(config: RunConfig) -> dict[str, Any]:
    return {"grpo.entropy": round(config.grpo.entropy * 2, 4) if config.grpo.entropy else 0.01}


def longer(config: RunConfig) -> dict[str, Any]:
    return {"grpo.max_completion": config.grpo.max_completion * 2}


def by_branch(config: RunConfig) -> dict[str, Any]:
    if config.reward.aggregation == "normalize_then_sum":
        return {}
    return {"reward.aggregation": "normalize_then_sum"}

"""How far the pairs of a dataset may lean to one style."""

from __future__ import annotations

from training.balance import COUNTERFACTUAL, NATURAL, Limits
from training.enums import Kind


def balance_limits(kind: str, axis: str) -> Limits | None:
    """None where leaning is no fault: the better answer in content may well be the longer one."""
    if kind == Kind.COUNTERFACTUALS:
        return COUNTERFACTUAL
    return NATURAL if axis == "personalization" and kind == Kind.PREFERENCES else None

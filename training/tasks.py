"""What rules can judge of a task. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from training.engine.contracts import Rollout
from training.engine.rewards.verifier import Verifier
from training.engine.snapshots import task_of

VALUES = {"quality": "rules", "personalization": "personalization"}  # of the verifier, by axis


def judged_axes(task: Mapping[str, Any] | None) -> tuple[str, ...]:
    """The axes on which the verifier gives any answer to this task a value."""
    found = Verifier().score(Rollout((), "", task=task_of(task)))
    return tuple(a for a, name in VALUES.items() if found and found.values.get(name) is not None)

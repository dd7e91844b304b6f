"""What a rule says: what it saw, on which curves, and which change of the settings it proposes.

A proposal is a difference of the configuration that an administrator may start as a new run.
Nothing changes by itself.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from training.engine.config.schema import RunConfig
from training.engine.monitor.history import History


@dataclass(frozen=True)
class Finding:
    rule: str
    step: int
    message: str
    curves: tuple[str, ...]  # what to draw as evidence
    window: tuple[int, int]  # steps
    numbers: Mapping[str, float] = field(default_factory=dict)
    changes: Mapping[str, Any] = field(default_factory=dict)  # dotted settings
    advice: str = ""
    severity: str = "warning"  # warning, critical


@dataclass(frozen=True)
class Rule:
    """One row of the catalogue: symptom → cause → remedy, and the function that sees it."""

    name: str
    symptom: str
    cause: str
    remedy: str
    look: Callable[[History, RunConfig], Finding | None]

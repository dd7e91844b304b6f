"""Strata: personas that agree in chosen features."""

from __future__ import annotations

from collections.abc import Iterable, Mapping


def stratum_of(features: Mapping[str, str], names: Iterable[str]) -> str:
    """The stratum of a persona: its chosen features as "expertise=novice, language=zh"."""
    return ", ".join(f"{name}={features.get(name, '?')}" for name in sorted(names))

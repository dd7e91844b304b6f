"""Who else holds texts of a persona, and must erase them when consent is withdrawn (V14).

The catalog knows no domain; a domain that keeps such texts says so when it is loaded.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

Erase = Callable[[Any], int]  # takes the persona, runs in the withdrawal's transaction
_erasers: list[Erase] = []


def also_erase(erase: Erase) -> None:
    """Call `erase` with every persona whose consent is withdrawn. Registering twice is once."""
    if erase not in _erasers:
        _erasers.append(erase)


def erase_elsewhere(persona: Any) -> int:
    """Number of texts erased outside the catalog."""
    return sum(erase(persona) for erase in _erasers)

"""What all tests of annotation share."""

from __future__ import annotations

import pytest

from annotation.services import gold


@pytest.fixture(autouse=True)
def the_gate_pauses_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tests need not wait for the lot; test_gold.py has the delay itself."""
    monkeypatch.setattr(gold, "GATE_DELAY", 1)

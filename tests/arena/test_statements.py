"""Every note that the rating arithmetic can make has a sentence in the reader's language."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from arena.selectors.statements import note_sentence

ROOT = Path(__file__).resolve().parents[2]
CODES = sorted(
    {
        code
        for path in (ROOT / "arena" / "ratings").glob("*.py")
        for code in re.findall(r'Note\(\s*"([a-z_]+)"', path.read_text())
    }
)


def test_there_are_codes() -> None:
    assert len(CODES) > 10


@pytest.mark.parametrize("code", CODES)
def test_a_note_is_said_by_its_code_and_not_by_its_english_text(code: str) -> None:
    said = note_sentence({"code": code, "text": "raw text", "names": ["Harbor"]})
    assert said
    assert "raw text" not in said

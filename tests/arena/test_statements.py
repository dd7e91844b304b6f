"""Every note that the rating arithmetic can make has a sentence in the reader's language."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from django.template import Context, Template
from django.utils.translation import override

from arena.selectors.statements import note_sentence, side_sentences
from webapp.catalog.strata import stratum_label

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


@pytest.mark.parametrize(
    ("stratum", "said"),
    [
        ("", "all personas"),
        ("expertise=expert, language=en", "expertise: expert, language: en"),
        ("domain=law, tax, tone=?", "field of work: law, tax, wanted tone: not known"),
        ("something else", "something else"),
    ],
)
def test_a_stratum_is_said_with_the_names_of_its_features(stratum: str, said: str) -> None:
    with override("en"):
        assert stratum_label(stratum) == said
        shown = Template("{% load arena_labels %}{{ s|stratum }}").render(Context({"s": stratum}))
    assert shown == said


def test_a_stratum_is_said_in_chinese() -> None:
    with override("zh-hans"):
        assert "专业程度" in stratum_label("expertise=expert")


@pytest.mark.parametrize(
    ("elo", "said"),
    [(-0.3, "0"), (0.3, "0"), (0.0, "0"), (-12.6, "−13"), (1234.0, "+1,234")],
)
def test_points_of_the_side_have_a_sign_unless_they_are_none(elo: float, said: str) -> None:
    with override("en"):
        [sentence] = side_sentences({"elo": elo, "left_share": 0.5})
    assert f"was worth {said} points" in sentence

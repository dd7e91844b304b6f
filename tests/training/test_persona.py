"""One renderer, and what it never lets through."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from training.engine.persona.redact import MARK, redact
from training.engine.persona.render import persona_text, policy_messages, reward_messages


def test_policy_and_reward_model_read_the_same_bytes() -> None:
    persona, question = "Busy expert. Wants the conclusion first.", "How do I clean the lamp?"
    asked = policy_messages(persona, question)
    judged = reward_messages("personalization", persona, question, "Use a cloth.")
    assert judged[:-1] == asked
    assert judged[-1] == {"role": "assistant", "content": "Use a cloth."}


def test_the_quality_branch_never_sees_the_persona() -> None:
    left = reward_messages("quality", "Busy expert.", "How?", "So.")
    right = reward_messages("quality", "Patient beginner.", "How?", "So.")
    assert left == right
    assert "expert" not in str(left)


def test_a_system_turn_of_the_prompt_is_kept_after_the_summary() -> None:
    prompt = ({"role": "system", "content": "Answer in French."}, {"role": "user", "content": "Hi"})
    assert policy_messages("Expert.", prompt) == [
        {"role": "system", "content": "Expert.\n\nAnswer in French."},
        {"role": "user", "content": "Hi"},
    ]


@given(st.text(max_size=400))
def test_a_summary_has_one_line_and_at_most_100_characters(text: str) -> None:
    found = persona_text(text)
    assert len(found) <= 100
    assert "\n" not in found


@pytest.mark.parametrize(
    ("text", "gone"),
    [
        ("Write to ann.lee@example.co.uk please", "ann.lee"),
        ("call +49 170 1234567 now", "1234567"),
        ("电话13812345678，住在上海", "13812345678"),
        ("身份证11010519491231002X的用户", "19491231"),
        ("see https://example.com/u/ann?x=1", "example.com"),
        ("ask @ann_lee there", "ann_lee"),
        ("微信号：annlee_99", "annlee_99"),
    ],
)
def test_what_names_a_person_is_taken_out(text: str, gone: str) -> None:
    found = redact(text)
    assert gone not in found
    assert MARK in found
    assert redact(found) == found


def test_listed_names_go_as_whole_words_and_ordinary_numbers_stay() -> None:
    assert redact("Ann plans an annual trip in 2026 for 1,200 euros", ["Ann"]) == (
        "▇ plans an annual trip in 2026 for 1,200 euros"
    )
    assert redact("王小明喜欢列表", ["王小明"]) == "▇喜欢列表"

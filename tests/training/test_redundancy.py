"""Stock phrases, repetition and padding cost; length does not. English and Chinese."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from training.engine.rewards.redundancy import redundancy, repetition, stock_phrases
from training.engine.rewards.units import contains, join, sentences, units

EN = (
    "Unplug the lamp before you open it. Two screws hold the shade; a small driver fits. "
    "Wipe the glass with a damp cloth and let it dry for ten minutes. Check the cable for cracks "
    "where it enters the base. Fit a bulb of at most 40 watts, because the shade is paper. "
    "If it flickers, tighten the ring under the socket by a quarter turn."
)
ZH = (
    "先拔掉电源再打开灯罩。灯罩由两颗螺丝固定，用小号十字螺丝刀即可拆下。玻璃用湿布擦净，晾十分钟。"
    "检查电线进入底座处有没有裂纹。灯泡不要超过四十瓦，因为灯罩是纸做的。若仍闪烁，把灯座下的圆环拧紧四分之一圈。"
)


@pytest.mark.parametrize("text", [EN, ZH, EN + ZH, "Use a soft cloth.", "用软布擦。", ""])
def test_a_dense_text_costs_nothing_however_long(text: str) -> None:
    assert redundancy(text).total == 0


@pytest.mark.parametrize(
    "text",
    [
        "According to your needs, I tailored this plan for you. " + EN,
        "根据您的需求，我为您量身定制了这个方案。" + ZH,
        "ACCORDING  TO YOUR\nNEEDS: " + EN,
        "according to your needs " + EN,
    ],
)
def test_the_known_ritual_costs_in_both_languages(text: str) -> None:
    found = redundancy(text)
    assert found.total >= 0.3
    assert any("stock phrase" in line for line in found.evidence)


def test_a_longer_phrase_counts_once() -> None:
    assert stock_phrases("方案为您量身定制。") == ["为您量身定制"]


@pytest.mark.parametrize(
    "text",
    [
        "Use a soft cloth on it. " * 6,
        "用软布擦干净这盏灯。" * 6,
        "the the the the",
        "好的好的好的好的好的好的",
    ],
)
def test_repetition_costs(text: str) -> None:
    assert repetition(text) > 0.4


def test_a_sentence_without_end_costs_and_short_ones_do_not() -> None:
    words = " ".join(f"word{i}" for i in range(60))
    assert redundancy(words + ".").sentences == 1
    assert redundancy(words.replace("word30", "word30.")).sentences == 0


def test_greeting_and_closing_cost_their_share() -> None:
    text = "您好，感谢您的提问。用软布擦。祝您生活愉快！"
    assert redundancy(text).ceremony > 0.5
    assert redundancy("Hello. " + EN).ceremony < 0.05


def test_phrases_that_an_administrator_adds_count() -> None:
    text = "In the spirit of clarity, use a cloth."
    assert redundancy(text).total == 0
    assert redundancy(text, ["in the spirit of clarity"]).total > 0.3


@given(st.text(max_size=300))
def test_any_text_has_a_penalty_between_0_and_1(text: str) -> None:
    assert 0 <= redundancy(text).total <= 1


def test_units_are_words_and_chinese_characters() -> None:
    assert units("Don't use ＡＢ 3.5 瓦的灯") == ["don't", "use", "ab", "3.5", "瓦", "的", "灯"]
    assert join(["use", "软", "布", "now"]) == "use 软布 now"
    assert contains("start here", "art") is False
    assert contains("把灯关掉", "灯关") is True
    assert sentences("一。二！Three 3.5 four. ") == ["一。", "二！", "Three 3.5 four."]

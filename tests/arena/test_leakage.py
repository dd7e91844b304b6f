"""Screening of answers: what is found, what is left alone, and that masks hide it."""

from __future__ import annotations

import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from arena.leakage import (
    DEFAULT_POLICY,
    IDENTITY_RULES,
    MASK,
    ContestantNames,
    Hit,
    RulePolicy,
    Screener,
    ScreeningRule,
    allowed_policies,
    find_duplicates,
    mask,
    mask_spans,
    masked_excerpt,
    text_fingerprint,
)
from arena.leakage_fold import fold

Rule = ScreeningRule
PLAIN = Screener()
ROUND = Screener(
    [
        ContestantNames("pythia-12b", vendor="EleutherAI"),
        ContestantNames("theblackcat102/pythia-1b-deduped-sft (k50)"),
        ContestantNames("warm-coach"),
        ContestantNames("Terse"),
        ContestantNames("NeuroChef"),
        ContestantNames("小棠助理", aliases=("小棠",)),
    ]
)

NAMED = [
    # (text, what must be gone after masking)
    ("As an AI developed by OpenAI, I cannot do that.", "OpenAI"),
    ("I am Claude, made by Anthropic.", "Claude"),
    ("I am Claude, made by Anthropic.", "Anthropic"),
    ("I'm Claude.", "Claude"),
    ("I’m Gemini, a large language model.", "Gemini"),
    ("Hello! I am ChatGPT.", "ChatGPT"),
    ("Ask GPT-4 instead.", "GPT-4"),
    ("Ask gpt-4o-mini instead.", "gpt-4o-mini"),
    ("Compare GPT-3.5 Turbo.", "GPT-3.5 Turbo"),
    ("Llama-2-7b-chat is a model.", "Llama-2-7b-chat"),
    ("Try Qwen2.5-72B-Instruct today.", "Qwen2.5-72B-Instruct"),
    ("Powered by DeepSeek-R1.", "DeepSeek-R1"),
    ("My name is Bard and I was trained by Google.", "Bard"),
    ("My name is Bard and I was trained by Google.", "Google"),
    ("I am a language model trained by Google.", "Google"),
    ("I was created by the team at Anthropic.", "Anthropic"),
    ("Use the Gemini API for this.", "Gemini"),
    ("Google Gemini can do it.", "Gemini"),
    ("PaLM 2 is older.", "PaLM 2"),
    ("Models like Mistral are small.", "Mistral"),
    ("Both ChatGPT and Gemini can write.", "Gemini"),
    ("As Claude, I try to be careful.", "Claude"),
    ("Claude here! How can I help?", "Claude"),
    ("I am an AI assistant developed by Foobar Labs.", "Foobar Labs"),
    ("I'm Zorblax, an AI assistant here to help.", "Zorblax"),
    ("I was trained by Nimbus Dynamics to help.", "Nimbus Dynamics"),
    ("I'm a helpful assistant called Joi, trained on data.", "Joi"),
    ("I am Joi, and I am trained by Someone.", "Joi"),
    ("This was written with Chat GPT.", "Chat GPT"),
    ("This was written with Chat**GPT**.", "GPT"),
    # Chinese
    ("我是通义千问,由阿里云开发。", "通义千问"),
    ("我是通义千问，由阿里云开发。", "阿里云"),
    ("我是Claude模型。", "Claude"),
    ("我是豆包。", "豆包"),
    ("作为由百度开发的语言模型，我不能回答。", "百度"),
    ("作为由星河科技开发的人工智能助手，我不能回答。", "星河科技"),
    ("我是由深度求索公司开发的助手。", "深度求索"),
    ("我叫小橙子，是一个人工智能助手。", "小橙子"),
    ("你可以试试文心一言。", "文心一言"),
    ("谷歌的大模型也不错。", "谷歌"),
    ("作为豆包，我会尽力。", "豆包"),
    ("我用的是ChatGPT写的。", "ChatGPT"),
    ("通义千问2.5和GPT-4都可以。", "2.5"),
    # evasion
    ("I am ＧＰＴ-4 itself.", "ＧＰＴ-4"),
    ("I am Chat\u200bGPT itself.", "Chat\u200bGPT"),
    ("I am C h a t G P T itself.", "C h a t G P T"),
    ("I am C-l-a-u-d-e-3, hm, C.h.a.t.G.P.T", "C.h.a.t.G.P.T"),
    ("I am 𝐂𝐡𝐚𝐭𝐆𝐏𝐓.", "𝐂𝐡𝐚𝐭𝐆𝐏𝐓"),
    ("I am ChаtGРT.", "ChаtGРT"),  # Cyrillic а and Р
    ("I am Chat\u00adGPT.", "Chat\u00adGPT"),
    ("通 义 千 问 说的。", "通 义 千 问"),
]

INNOCENT = [
    "We sat under a palm tree and read a haiku.",
    "Just google it, or look it up on Google Maps.",
    "The Gemini twins, the zodiac sign between Taurus and Cancer.",
    "I'm a Gemini and my moon is in Leo.",
    "Mercury is the closest planet to the sun; Mercury has 2 craters that matter.",
    "Claude Monet painted water lilies.",
    "Feed the llama and the alpaca twice a day.",
    "The falcon circled; the orca surfaced; the mistral blew.",
    "Apple released a new phone, built by Foxconn.",
    "I bought a phone. It was designed by Apple in California.",
    "The anthropic principle says little.",
    "As a child, I loved the bard's songs.",
    "His magnum opus is a sonnet.",
    "The phi coefficient is 0.3; I opt for phi.",
    "It is nova season, and bloom is everywhere.",
    "Meta-analysis: we grok the meta level.",
    "I am sitting under a palm in Amazon country.",
    "As an AI language model, I do not have feelings.",
    "Model trains are fun, and so is a role model.",
    "As an example, it was created by Picasso.",
    "Step 4: opt 2 eggs. Step 5: rest.",
    "我们在棕榈树下吃豆包。",
    "百度一下就知道了。",
    "星星之火可以燎原，星火相传。",
    "盘古开天辟地的故事。",
    "我是双子座的。",
    "海纳百川，有容乃大。",
    "这部手机由华为生产，由苹果设计。",
    "我在阿里工作，由老板安排。",
    "作为一个人工智能语言模型，我没有感情。",
    "我觉得这个方案由他开发更好。",
    "",
]


@pytest.mark.parametrize(("text", "secret"), NAMED)
def test_names_are_masked(text: str, secret: str) -> None:
    masked = PLAIN.mask(text)
    assert MASK in masked
    assert secret.lower() not in masked.lower()


@pytest.mark.parametrize("text", INNOCENT)
def test_ordinary_words_stay(text: str) -> None:
    assert PLAIN.mask(text) == text


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("pythia-12b is old", f"{MASK} is old"),
        ("Pythia 12B is old", f"{MASK} is old"),
        ("PYTHIA_12b is old", f"{MASK} is old"),
        ("pythia12b is old", f"{MASK} is old"),
        ("pythia-1b-deduped-sft is old", f"{MASK} is old"),
        ("The model Pythia is old; I am Pythia.", None),
        ("The Pythia sat at Delphi.", "The Pythia sat at Delphi."),
        ("I was built by EleutherAI.", f"I was built by {MASK}."),
        ("Try warm-coach, or be a warm coach.", f"Try {MASK}, or be a warm coach."),
        ("Be terse. I am Terse.", f"Be terse. I am {MASK}."),
        ("NeuroChef cooks", f"{MASK} cooks"),
        ("我是小棠，你好", f"我是{MASK}，你好"),
        ("小棠助理说", f"{MASK}说"),
    ],
)
def test_the_rounds_own_names(text: str, expected: str | None) -> None:
    masked = ROUND.mask(text)
    if expected is None:
        assert "I am ▇▇▇" in masked
    else:
        assert masked == expected


def test_masking_is_the_same_for_every_author_order() -> None:
    names = [ContestantNames("pythia-12b"), ContestantNames("Terse"), ContestantNames("Qwen2")]
    text = "I am Terse, not Pythia 12B nor Qwen2-7B."
    assert Screener(names).mask(text) == Screener(reversed(names)).mask(text)


def test_all_masks_have_one_width() -> None:
    assert PLAIN.mask("I am Claude.") == PLAIN.mask("I am Qwen2.5-72B-Instruct.")


@pytest.mark.parametrize(
    "text",
    [
        "Error code: 429 - {'error': 'rate limit'}",
        "Internal server error",
        "I'm sorry, an error occurred",
        "Sorry, an unexpected error has occurred. Try again.",
        "**NETWORK ERROR DUE TO HIGH TRAFFIC. PLEASE REGENERATE.**",
        'Traceback (most recent call last):\n  File "x.py", line 1',
        '{"error": {"message": "model overloaded"}}',
        "502 Bad Gateway",
        "CUDA out of memory. Tried to allocate 2 GiB",
        "服务器内部错误，请稍后再试",
        "系统繁忙，请稍后再试。",
        "抱歉，发生了错误。",
    ],
)
def test_error_texts(text: str) -> None:
    assert Rule.ERROR_TEXT in {hit.rule for hit in PLAIN.screen(text, "stop")}


@pytest.mark.parametrize(
    "text",
    [
        "A 502 Bad Gateway means that the proxy got no answer.",
        "502 Bad Gateway means that the proxy got no answer.",
        "An error budget helps. Internal server errors are counted.",
        "Internal server errors are hard to debug.",
        "Python prints a traceback:\n```\nTraceback (most recent call last):\n```\nRead it up.",
        "系统错误通常表示内存不足。",
    ],
)
def test_answers_about_errors(text: str) -> None:
    assert Rule.ERROR_TEXT not in {hit.rule for hit in PLAIN.screen(text, "stop")}


@pytest.mark.parametrize(
    "text", ["", " \n\t", "\u200b\u200d\ufeff", "\u00a0\u3000", "\u2060 \u00ad"]
)
def test_empty_texts(text: str) -> None:
    assert PLAIN.screen(text) == (Hit(0, len(text), Rule.EMPTY),)


FINISHED = [
    "Paris",
    "42",
    "It is done.",
    "It is done!",
    "It is done 🎉",
    'He said "it is done."',
    "好的，已经完成了。",
    "Use this:\n```python\nprint(1)\n```",
    "Try:\n- apples\n- pears and plums",
    "1. Mix the flour.\n2. Bake it.",
    "# Title\n\nText is here.\n\n| a | b |\n|---|---|\n| 1 | 2 |",
    "See https://example.org/a/b",
    "The answer is **yes**",
    "古池や",
    "第一步：准备。\n- 面粉\n- 鸡蛋",
]
CUT = [
    "The quick brown fox jumps over the lazy dog. Then it went to the",
    "It depends on many things,",
    "这个问题很复杂，我们需要从多个角度来分析。首先，我们应该考虑到每一个人的",
    "首先，",
    "Use this:\n```python\nprint(1)",
    "There are three. One is good. The second one never came back to the house",
    "1. Mix the flour.\n2. Bake it well.\n3. Let it rest until",
    "It is (",
]


@pytest.mark.parametrize("text", FINISHED)
def test_finished(text: str) -> None:
    assert Rule.UNFINISHED not in {hit.rule for hit in PLAIN.screen(text)}
    assert Rule.UNFINISHED in {hit.rule for hit in PLAIN.screen(text, "length")}


@pytest.mark.parametrize("text", CUT)
def test_cut(text: str) -> None:
    assert Rule.UNFINISHED in {hit.rule for hit in PLAIN.screen(text)}
    assert Rule.UNFINISHED not in {hit.rule for hit in PLAIN.screen(text, "stop")}


def test_duplicates_within_a_context_only() -> None:
    entries = [
        (1, "c1", "Same text."),
        (2, "c1", "same\u200b  ＴＥＸＴ. "),
        (3, "c1", "Other text."),
        (4, "c2", "Same text."),
        (5, "c1", ""),
        (6, "c1", " "),
    ]
    assert find_duplicates(entries) == [(1, 2)]
    assert text_fingerprint("") == ""


def test_excerpt_masks_the_hit_and_its_neighbours() -> None:
    text = "Hello, I am Claude, and ChatGPT is by OpenAI; " + "x" * 100
    hits = PLAIN.screen(text, "stop")
    for hit in hits:
        for radius in (3, 8, 20, 60):
            excerpt = masked_excerpt(text, hits, hit, radius)
            assert MASK in excerpt
            assert not any(word in excerpt for word in ("Claude", "Chat", "GPT", "Open", "laud"))
    middle = next(hit for hit in hits if text[hit.start : hit.end] == "ChatGPT")
    assert masked_excerpt(text, hits, middle, 8) == f"…{MASK}, and {MASK} is by {MASK}…"
    short = "I am Claude."
    hits = PLAIN.screen(short)
    assert masked_excerpt(short, hits, hits[0]) == f"I am {MASK}."


def test_excerpt_of_a_whole_text_hit_masks_names() -> None:
    text = "Error code: 429 from OpenAI"
    hits = PLAIN.screen(text, "stop")
    error = next(hit for hit in hits if hit.rule is Rule.ERROR_TEXT)
    assert masked_excerpt(text, hits, error) == f"Error code: 429 from {MASK}"


def test_only_identity_rules_are_masked() -> None:
    text = "Internal server error"
    assert mask(text, PLAIN.screen(text)) == text


def test_mask_spans_joins_overlaps() -> None:
    assert mask_spans("abcdef", [(1, 3), (2, 4), (5, 6)]) == f"a{MASK}e{MASK}"


def test_every_rule_has_a_policy_that_it_allows() -> None:
    for rule in Rule:
        assert DEFAULT_POLICY[rule] in allowed_policies(rule)
    assert RulePolicy.MASK not in allowed_policies(Rule.EMPTY)


PIECES = st.sampled_from(
    ["I am ", "Claude", "GPT-4", "OpenAI", " ", ", ", "我是", "通义千问", "Gemini", "palm", "-",
     "4",     "\u200b", "Ｇ", "model ", "by ", "Google", "pythia", "12b", "由", "百度", "开发的",
     "ﬁ", "é", "İ",     "C h a t G P T", "\n", "x", "▇▇▇", "大模型", "As "]
)  # fmt: skip


@settings(max_examples=400, deadline=None)
@given(st.lists(PIECES, max_size=14), st.sampled_from(["", " ", ", ", "\n", "。"]))
def test_spans_fit_and_masking_leaves_no_name(pieces: list[str], glue: str) -> None:
    text = glue.join(pieces)
    hits = [hit for hit in ROUND.screen(text) if hit.rule in IDENTITY_RULES]
    last = 0
    for hit in hits:
        assert last <= hit.start < hit.end <= len(text)
        last = hit.end
    masked = mask(text, hits)
    assert "通义千问" not in masked
    if glue:
        assert "GPT-4" not in masked
        assert "OpenAI" not in masked


@given(st.text(max_size=60))
def test_fold_keeps_positions(text: str) -> None:
    folded = fold(text)
    assert len(folded.cased) == len(folded.low)
    for place in range(len(folded.low)):
        start, end = folded.span(place, place + 1)
        assert 0 <= start < end <= len(text)


@pytest.mark.parametrize(
    "piece",
    [
        "gpt gemini ",
        "a b c ",
        "i am an ai ",
        "我是由",
        "gpt-1.1",
        "i was made by ",
        "(((",
        "```\n",
        "1. a\n",
    ],
)
def test_long_hostile_texts_take_linear_time(piece: str) -> None:
    text = (piece * 40_000)[:120_000] + "z"
    started = time.process_time()
    PLAIN.screen(text)
    assert time.process_time() - started < 50

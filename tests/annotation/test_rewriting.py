"""The rule rewriter and the checks of rewrites: the style changes, the content stays."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from annotation.rewriting.checks import findings
from annotation.rewriting.rules import RULES, rewrite
from annotation.rewriting.styles import OPPOSITE, STYLES, changed, style_of, tone_of
from webapp.catalog.texts import style_features

CONCISE_EN = (
    "Use `ALTER TABLE t RENAME COLUMN a TO b;`. On PostgreSQL 14 it takes a short lock. "
    "Set lock_timeout first; retry if it fails. See https://example.org/a_b?c=1."
)
STEPS_EN = """Sure! Great question. Let's go through this step by step.

1. First, open the settings window (you will find it in the upper right corner).
2. Then choose Network, because that is where the address stands.
3. Write down 192.168.0.1 so that you can compare it later.

For example, a router shows this on its label.

```sh
ping 192.168.0.1   # 3 times
```

I hope this helps! Let me know if you have questions."""
CONCISE_ZH = "直接用 `git rebase -i HEAD~3`，把要合并的提交改成 squash。不要改已经推送的 2 个提交。"
STEPS_ZH = """当然可以！我们一步一步来看。
1. 首先，打开终端，因为命令都在那里输入。
2. 然后输入 `ls -l`，这样就能看到文件大小。
3. 找到超过 100 MB 的文件，放进《备份》文件夹。

例如视频通常很大。
希望对你有帮助！"""
TEXTS = {"en": (CONCISE_EN, STEPS_EN), "zh": (CONCISE_ZH, STEPS_ZH)}


def style_changes(text: str, to: str) -> bool:
    said = rewrite(text, to)
    tones = (tone_of(text), tone_of(said))
    return changed(to, style_features(text), style_features(said), tones)


@pytest.mark.parametrize("lang", TEXTS)
def test_steps_become_a_few_sentences_and_back(lang: str) -> None:
    concise, steps = TEXTS[lang]
    for text, to in ((steps, "concise"), (concise, "stepwise")):
        assert style_changes(text, to), rewrite(text, to)
        assert findings(text, rewrite(text, to)) == []


@pytest.mark.parametrize("lang", TEXTS)
@pytest.mark.parametrize("to", ["formal", "casual"])
def test_the_tone_changes_and_nothing_else(lang: str, to: str) -> None:
    for text in TEXTS[lang]:
        assert style_changes(text, to), rewrite(text, to)
        assert findings(text, rewrite(text, to)) == []


def test_the_concise_form_drops_talk_and_keeps_what_is_said() -> None:
    assert rewrite(STEPS_EN, "concise") == (
        "Open the settings window. Then choose Network. Write down 192.168.0.1.\n\n"
        "```sh\nping 192.168.0.1   # 3 times\n```"
    )
    assert rewrite(STEPS_ZH, "concise") == (
        "打开终端。然后输入 `ls -l`。找到超过 100 MB 的文件，放进《备份》文件夹。"
    )


def test_the_stepwise_form_numbers_every_statement() -> None:
    said = rewrite(CONCISE_EN, "stepwise")
    for n, start in enumerate(("Use `ALTER TABLE", "On PostgreSQL 14", "Set lock_timeout"), 1):
        assert f"{n}. " in said
        assert start in said


def test_there_and_back_leaves_the_statements() -> None:
    for concise, _steps in TEXTS.values():
        again = rewrite(rewrite(concise, "stepwise"), "concise")
        assert again == concise


def test_a_detail_that_names_something_is_no_talk() -> None:
    text = "Sure, Berlin it is. For example, in 1989 the `wall` fell. Take the train."
    said = rewrite(text, "concise")
    assert "Berlin" in said
    assert "1989" in said
    assert "`wall`" in said


def test_code_is_never_touched() -> None:
    code = "```py\ndo not = 'it is'  # 你! yes\n```"
    text = f"{code}\n\nIt is `do not` what you are after!"
    for to in STYLES:
        said = rewrite(text, to)
        assert code in said
        assert "`do not`" in said


@settings(max_examples=200, deadline=None)
@given(st.text(max_size=400), st.sampled_from(STYLES))
def test_no_text_breaks_the_rules_and_they_repeat(text: str, to: str) -> None:
    assert rewrite(text, to) == rewrite(text, to)


PIECES = st.sampled_from(
    [
        "Take 3 eggs.", "Ask Maria about `x = 1`.", "Open the NetworkManager, because it is there.",
        "- first part", "* second part (which is longer than the first one)", "## A heading",
        "\n```\nlet x = 5\n```\n", "打开第 2 个文件。", "《红楼梦》有 120 回，因为很长。",
        "It costs 4.50 now!",
        "Sure!", "希望对你有帮助！", "See https://example.org/x.", "He said “keep it”.",
    ]
)  # fmt: skip


@settings(max_examples=200, deadline=None)
@given(st.lists(PIECES, min_size=1, max_size=8), st.sampled_from(["\n", "\n\n", " "]))
def test_rules_lose_no_number_name_or_code(parts: list[str], glue: str) -> None:
    """Length and language are for the check to refuse; anchors must stay in any case."""
    text = glue.join(parts)
    for to in RULES:
        kept = [
            f
            for f in findings(text, rewrite(text, to))
            if f.code not in ("length", "language", "keywords", "empty")
        ]
        assert not kept, (to, rewrite(text, to))


@pytest.mark.parametrize(
    ("original", "rewritten", "code"),
    [
        ("It costs 12 euros.", "It costs euros.", "numbers"),
        ("It costs 12 euros.", "It costs 12 euros or 13 euros.", "numbers_new"),
        ("Run it:\n```\na\n```", "Run it:\n```\nb\n```", "code"),
        ("Run `a` now.", "Run it now.", "spans"),
        ("Ask for Maria there.", "Ask for her there.", "names"),
        ("Ask for her there.", "Ask for Maria and then Paul and Otto there.", "names_new"),
        ("读《红楼梦》这本书。", "读这本书。", "names"),
        ("A good answer to it.", "好的回答就是这样。", "language"),
        ("Short one.", "Short one. " * 30, "length"),
        ("Cats like warm milk daily.", "Dogs chase grey rabbits often.", "keywords"),
        ("Something.", "  \n", "empty"),
    ],
)
def test_lost_or_new_content_is_found(original: str, rewritten: str, code: str) -> None:
    assert code in [finding.code for finding in findings(original, rewritten)]


def test_list_numbers_and_step_numbers_are_no_content() -> None:
    assert findings("Do this. Then that.", "Step 1: Do this.\n2. Then that.") == []


@pytest.mark.parametrize(
    ("features", "style"),
    [
        ({"expertise": "expert"}, "concise"),
        ({"expertise": "Novice"}, "stepwise"),
        ({"expertise": "expert", "detail": "detailed"}, "stepwise"),
        ({"tone": "formal"}, "formal"),
        ({"expertise": "新手"}, "stepwise"),
        ({"goal": "learn"}, ""),
        ({}, ""),
    ],
)
def test_features_name_a_style(features: dict[str, str], style: str) -> None:
    assert style_of(features) == style
    assert not style or OPPOSITE[OPPOSITE[style]] == style


def test_a_longer_text_without_steps_is_not_stepwise() -> None:
    before, after = style_features("Do it."), style_features("Do it. " * 5)
    assert not changed("stepwise", before, after, (0, 0))
    assert not changed("concise", before, before, (0, 0))

"""Word-level differences."""

import re
import time
from html import unescape

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from webapp.core.worddiff import diff, nearly_identical, similarity


@pytest.mark.parametrize(
    ("left", "right", "marked_left", "marked_right"),
    [
        ("same", "same", "same", "same"),
        (
            "the quick fox",
            "the slow fox",
            "the <mark>quick</mark> fox",
            "the <mark>slow</mark> fox",
        ),
        ("a b", "a b c", "a b", "a b <mark>c</mark>"),
        ("", "new", "", "<mark>new</mark>"),
        ("我喜欢苹果", "我喜欢香蕉", "我喜欢<mark>苹果</mark>", "我喜欢<mark>香蕉</mark>"),
        ("end.", "end!", "end<mark>.</mark>", "end<mark>!</mark>"),
        ("a  b\n", "a b", "a  b\n", "a b"),
        ("<b>x</b>", "<i>x</i>", "&lt;<mark>b</mark>&gt;x&lt;/<mark>b</mark>&gt;", None),
    ],
)
def test_what_is_marked(left: str, right: str, marked_left: str, marked_right: str | None) -> None:
    a, b = diff(left, right)
    assert a == marked_left
    assert marked_right is None or b == marked_right


def test_markup_in_texts_is_shown() -> None:
    for side in diff("<script>alert(1)</script>", "<img src=x onerror=alert(1)>"):
        assert not re.search(r"<(?!/?mark>)", side)


def _words() -> st.SearchStrategy[str]:
    return st.one_of(
        st.text(alphabet="ab中文 \n.<&", max_size=40), st.text(max_size=30).map(lambda t: t * 2)
    )


@settings(max_examples=200, deadline=None)
@given(_words(), _words())
def test_sides_are_treated_alike_and_texts_survive(left: str, right: str) -> None:
    a, b = diff(left, right)
    assert (b, a) == diff(right, left)
    assert unescape(re.sub("</?mark>", "", a)) == left
    assert unescape(re.sub("</?mark>", "", b)) == right
    assert similarity(left, right) == similarity(right, left)
    assert 0 <= similarity(left, right) <= 1


@settings(max_examples=100, deadline=None)
@given(_words(), _words())
def test_what_is_not_marked_stands_in_both(left: str, right: str) -> None:
    a, b = (
        re.sub(r"\s", "", re.sub("<mark>.*?</mark>", "", side, flags=re.S))
        for side in diff(left, right)
    )
    assert a == b


def test_similarity_in_known_cases() -> None:
    text = "one two three four five six seven eight nine ten"
    assert similarity(text, text) == 1
    assert similarity(text, text.replace("ten", "11")) == pytest.approx(0.9)
    assert similarity("a", "b") == 0
    assert similarity("", "") == 1
    assert nearly_identical(text, text + " eleven")
    assert not nearly_identical(text, text[:20])


@pytest.mark.parametrize(
    ("left", "right"),
    [
        ("a " * 5_000, "a b " * 2_500),
        ("a b c d " * 5_000, "d c b a " * 5_000),
        ("word " * 40_000, "word " * 39_000 + "other " * 1_000),
        ("\n".join(map(str, range(5_000))), "\n".join(map(str, range(5_000, 10_000)))),
        ("中" * 50_000, "文" * 50_000),
    ],
)
def test_large_texts_cost_bounded_time(left: str, right: str) -> None:
    started = time.process_time()
    diff(left, right)
    similarity(left, right)
    assert time.process_time() - started < 60  # what grows as a square takes far longer

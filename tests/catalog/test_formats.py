"""Parsers: every kind of bad row is refused with its place; the rows around it are kept."""

from __future__ import annotations

import io
import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.catalog.factories import persona, row
from webapp.catalog.formats import FORMATS, choose, detect
from webapp.catalog.formats.reading import JsonReader, list_items
from webapp.catalog.formats.rows import FormatError, Limits, Parsed, Refusal, Row
from webapp.catalog.refusals import ROWS, as_error_line

LIMITS = Limits(features=("expertise", "language"), item=4096)
GOOD = json.dumps(row()).encode()


def parse(raw: bytes, format: str = "palate", skip: int = 0) -> list[Parsed]:
    return list(FORMATS[format](io.BytesIO(raw), limits=LIMITS, skip=skip))


def line(**changes: Any) -> bytes:
    return json.dumps(row(**changes), ensure_ascii=False).encode()


# (name, the bad line, code, field, column or what stands there)
REFUSED: list[tuple[str, bytes, str, str, int | str]] = [
    ("malformed", b'{"prompt": "a", "answer" "b"}', "json", "", 26),
    ("cut off", b'{"prompt": "a"', "json", "", 15),
    ("not JSON", b"prompt,answer", "json", "", 1),
    ("no object", b"[1, 2]", "type", "", 1),
    ("nested", b"[" * 4000, "json", "", 1),
    ("UTF-8", b'{"prompt": "\xe6\x88\x91\xff"}', "utf8", "", 14),
    ("NUL escape", line(answer="a\0b"), "nul", "answer", r"\u0000"),
    ("NUL byte", b'{"prompt": "a\0b"}', "nul", "", 14),
    ("surrogate", GOOD.replace(b"small", b"\\ud83d"), "surrogate", "answer", r"\ud83d"),
    ("low surrogate", GOOD.replace(b"aurora", b"\\udc00"), "surrogate", "contestant", r"\udc00"),
    ("key surrogate", GOOD.replace(b'"answer"', b'"\\ud83d"'), "surrogate", "", r"\ud83d"),
    ("true for text", line(answer=True), "type", "answer", 1),
    ("number for text", line(answer=7), "type", "answer", 1),
    ("null for text", line(answer=None), "type", "answer", 1),
    ("list for contestant", line(contestant=[1]), "type", "contestant", 1),
    ("true for draw", line(draw=True), "type", "draw", 1),
    ("half a draw", line(draw=0.5), "type", "draw", 1),
    ("negative draw", line(draw=-1), "range", "draw", 1),
    ("no answer", b'{"prompt": "a", "contestant": "b"}', "missing", "answer", 1),
    ("empty answer", line(answer=""), "empty", "answer", 1),
    ("blank answer", line(answer=" \n\u200b\u3000"), "empty", "answer", 1),
    ("empty prompt", line(prompt=""), "empty", "prompt", 1),
    ("no turns", line(prompt=[]), "empty", "prompt", 1),
    (
        "last turn",
        line(prompt=[{"role": "assistant", "content": "a"}]),
        "last_turn",
        "prompt",
        1,
    ),
    ("role", line(prompt=[{"role": "bot", "content": "a"}]), "choice", "prompt[0].role", 1),
    ("long summary", line(persona=persona(summary="我" * 101)), "long", "persona.summary", 1),
    ("no summary", line(persona={"pseudonym": "a"}), "missing", "persona.summary", 1),
    ("age", line(persona=persona(age=44)), "unknown_field", "persona.age", 1),
    (
        "feature",
        line(persona=persona(features={"income": "high"})),
        "unknown_feature",
        "persona.features.income",
        1,
    ),
    (
        "feature text",
        line(persona=persona(expertise="very well read")),
        "slug",
        "persona.features.expertise",
        1,
    ),
    ("NaN", line(settings={"temperature": float("nan")}), "number", "", "NaN"),
    ("infinite", b'{"draw": -Infinity}', "number", "", 10),
    ("too large", b'{"draw": 1e999}', "number", "", 10),
    ("key twice", b'{"prompt": "a", "prompt": "b"}', "duplicate_key", "", 1),
    ("typing error", line(persnoa=None), "unknown_field", "persnoa", 1),
    ("huge", line(answer="a" * 5000), "line_long", "", 1),
    ("reason", line(finish_reason="tired"), "choice", "finish_reason", 1),
    ("long name", line(contestant="m" * 121), "long", "contestant.name", 1),
]


@pytest.mark.parametrize(
    ("bad", "code", "field", "column"),
    [case[1:] for case in REFUSED],
    ids=[case[0] for case in REFUSED],
)
def test_bad_lines(bad: bytes, code: str, field: str, column: int | str) -> None:
    """The bad line 2 is refused with code, field and column; lines 1 and 3 are kept."""
    before, refusal, after = parse(b"\n".join([GOOD, bad, GOOD]))
    assert isinstance(before, Row)
    assert isinstance(after, Row)
    assert after.place.line == 3
    assert isinstance(refusal, Refusal)
    assert (refusal.code, refusal.field) == (code, field)
    if isinstance(column, str):
        column = bad.decode().index(column) + 1
    assert (refusal.place.line, refusal.place.column) == (2, column)
    said = as_error_line(refusal, "rows.jsonl")
    assert said["reason"]
    assert said["right"]
    assert "%(" not in said["reason"] + said["right"]


def test_every_reason_can_be_said() -> None:
    """No sentence waits for a parameter that its refusal does not have (see the table above)."""
    tested = {case[2] for case in REFUSED}
    by_services = {
        "slot_conflict",
        "withdrawn",
        "feature_conflict",
        "contestant_conflict",
        "contestant_kind",
        "rest",
        "rest_long",
    }
    assert set(ROWS) == tested | by_services


def test_bom_crlf_and_blank_lines() -> None:
    found = parse(b"\xef\xbb\xbf" + GOOD + b"\r\n\r\n  \n" + GOOD + b"\r\n")
    assert [type(entry) for entry in found] == [Row, Row]
    assert [entry.place.line for entry in found] == [1, 4]
    assert found[-1].offset == len(GOOD) * 2 + 3 + 2 + 2 + 3 + 2


def test_chinese_and_emoji_stay_as_they_are() -> None:
    said = "先别急。\u3000第一步：看清问题 🙂\u202e"
    for ascii_only in (True, False):
        raw = json.dumps(row(answer=said, contestant="星河"), ensure_ascii=ascii_only)
        (found,) = parse(raw.encode())
        assert isinstance(found, Row)
        assert found.answer == said
        assert found.contestant.name == "星河"


def test_summary_is_counted_in_characters_after_stripping() -> None:
    (found,) = parse(line(persona=persona(summary="  " + "我" * 99 + "🙂 ")))
    assert isinstance(found, Row)
    assert found.persona is not None
    assert len(found.persona.summary) == 100


def test_a_row_with_everything() -> None:
    (found,) = parse(
        line(
            persona=persona(features={"expertise": "novice"}, language="zh", consent="study"),
            prompt=[
                {"role": "user", "content": "a"},
                {"role": "assistant", "content": "b"},
                {"role": "user", "content": "c"},
            ],
            contestant={"name": "x", "version": "2", "vendor": "y", "uses_persona": True},
            settings={"temperature": 0.5},
            draw=3,
            finish_reason="length",
            category="how-to",
            language="zh",
            meta={"anything": [1, None]},
        )
    )
    assert isinstance(found, Row)
    assert found.persona is not None
    assert found.persona.features == (("expertise", "novice"), ("language", "zh"))
    assert found.contestant.sampling == '{"temperature":0.5}'
    assert (found.draw, found.finish_reason, len(found.messages)) == (3, "length", 3)


@settings(deadline=None)
@given(st.integers(0, 8))
def test_skipping_is_leaving_out(skip: int) -> None:
    """What resume relies on: the first n rows and refusals are left out, nothing else changes."""
    raw = b"\n".join([GOOD, b"{", b"", GOOD, line(answer=""), b"\xff", GOOD, GOOD])
    assert parse(raw, skip=skip) == parse(raw)[skip:]


# Lists

ITEM = b'{"instruction": "i", "output": "o", "generator": "g"}'


def test_alpaca_eval_list() -> None:
    bad = ITEM.replace(b'"o"', b"true")
    raw = b"\xef\xbb\xbf[\n" + ITEM + b",\r\n" + bad + b",\n" + ITEM + b"]"
    first, refused, last = parse(raw, "alpaca_eval")
    assert isinstance(first, Row)
    assert isinstance(last, Row)
    assert isinstance(refused, Refusal)
    assert (refused.field, refused.place.item, refused.place.line) == ("output", 2, 3)
    assert last.place.item == 3
    assert first.persona is None


@pytest.mark.parametrize(
    ("bad", "code"),
    [
        (ITEM.replace(b'"o"', b'"\\ud83d"'), "surrogate"),
        (ITEM.replace(b'"o"', b'"\\u0000"'), "nul"),
        (ITEM.replace(b'"o"', b'"\xff"'), "utf8"),
        (ITEM.replace(b'"o"', b"NaN"), "number"),
        (ITEM.replace(b'"i"', b'""'), "empty"),
        (b"[1]", "type"),
        (b'{"instruction": "i"}', "missing"),
    ],
)
def test_bad_items_in_a_list(bad: bytes, code: str) -> None:
    first, refused, last = parse(b"[" + ITEM + b",\n" + bad + b",\n" + ITEM + b"]", "alpaca_eval")
    assert isinstance(first, Row)
    assert isinstance(last, Row)
    assert isinstance(refused, Refusal)
    assert (refused.code, refused.place.item, refused.place.line) == (code, 2, 2)


@pytest.mark.parametrize(
    ("tail", "line_", "column"),
    [
        (b',\n  {"instruction" "i"}]', 2, 18),
        (b"\n", 2, 1),
        (b",\n]", 2, 1),
        (b"\n" + ITEM + b"]", 2, 1),
    ],
)
def test_a_broken_list_keeps_what_stood_before(tail: bytes, line_: int, column: int) -> None:
    row_, refused = parse(b"[" + ITEM + tail, "alpaca_eval")
    assert isinstance(row_, Row)
    assert isinstance(refused, Refusal)
    assert refused.code == "rest"
    assert (refused.place.line, refused.place.column) == (line_, column)
    said = as_error_line(refused, "rows.json")
    assert "%(" not in said["reason"] + said["right"]


def test_a_huge_item_ends_the_list_in_flat_memory() -> None:
    raw = b"[" + ITEM + b',{"instruction": "' + b"x" * 2_000_000 + b'"}]'
    row_, refused = parse(raw, "alpaca_eval")
    assert isinstance(row_, Row)
    assert isinstance(refused, Refusal)
    assert refused.code == "rest_long"


@settings(deadline=None, max_examples=60)
@given(st.lists(st.recursive(st.text() | st.integers() | st.booleans() | st.none(), st.lists)))
def test_lists_are_read_as_the_json_module_reads_them(values: list[Any]) -> None:
    raw = json.dumps(values, indent=1).encode()
    items = list(list_items(JsonReader(io.BytesIO(raw), limit=1000)))
    good = [item.value for item in items if item.bad is None]
    assert len(items) == len(values)
    assert good == [v for v, item in zip(values, items, strict=True) if item.bad is None]
    assert all(item.bad is None or item.bad.code in ("nul", "surrogate") for item in items)


def oasst(**changes: Any) -> dict[str, Any]:
    result = {"sampling_config": "k50", "sampling_params": {"top_k": 50}, "outputs": ["a", "b"]}
    return {
        "model_name": "maker/model-1b",
        "args": {"n": None},
        "prompts": [{"prompt": "p", "results": [result, {**result, "sampling_config": "greedy"}]}],
        **changes,
    }


def test_oasst_sampling() -> None:
    rows = parse(json.dumps(oasst()).encode(), "oasst_sampling")
    assert all(isinstance(entry, Row) for entry in rows)
    found = [(r.contestant.label, r.draw, r.answer) for r in rows if isinstance(r, Row)]
    assert found == [
        ("maker/model-1b k50", 0, "a"),
        ("maker/model-1b k50", 1, "b"),
        ("maker/model-1b greedy", 0, "a"),
        ("maker/model-1b greedy", 1, "b"),
    ]
    assert parse(json.dumps(oasst()).encode(), "oasst_sampling", skip=3) == rows[3:]


def test_oasst_model_name_may_come_last() -> None:
    report = oasst()
    report["model_name"] = report.pop("model_name")
    assert len(parse(json.dumps(report, indent=2).encode(), "oasst_sampling")) == 4


def test_oasst_refuses_outputs_one_by_one() -> None:
    report = oasst()
    report["prompts"][0]["results"][0]["outputs"] = ["a", "", True, "d"]
    kinds = [
        entry.code if isinstance(entry, Refusal) else entry.draw
        for entry in parse(json.dumps(report).encode(), "oasst_sampling")
    ]
    assert kinds == [0, "empty", "type", 3, 0, 1]


@pytest.mark.parametrize("raw", [b"{}", b'{"model_name": "x"}', b'{"prompts": {}}', b'{"a": '])
def test_oasst_without_its_keys(raw: bytes) -> None:
    with pytest.raises(FormatError):
        parse(raw, "oasst_sampling")


# Telling formats apart


@pytest.mark.parametrize(
    ("raw", "format"),
    [
        (GOOD, "palate"),
        (b"\xef\xbb\xbf" + GOOD + b"\n{", "palate"),
        (b"[" + ITEM + b"]", "alpaca_eval"),
        (json.dumps(oasst()).encode(), "oasst_sampling"),
        (json.dumps(oasst(), indent=2).encode(), "oasst_sampling"),
        (b"[1]", ""),
        (b"a,b\n1,2", ""),
    ],
)
def test_detection(raw: bytes, format: str) -> None:
    assert detect(raw) == format
    if format:
        assert choose(raw, "") == choose(raw, format) == format


@pytest.mark.parametrize(
    ("raw", "wanted", "code"),
    [
        (b"", "palate", "empty"),
        (GOOD, "alpaca_eval", "wrong"),
        (b"[" + ITEM + b"]", "palate", "wrong"),
        (b"[1]", "palate", "a_list"),
        (b"{1", "alpaca_eval", "not_list"),
        (b"a,b", "", "unknown"),
        (b"\xff\xfe{\0", "palate", "utf16"),
        (GOOD, "csv", "no_format"),
    ],
)
def test_a_wrong_format_is_said(raw: bytes, wanted: str, code: str) -> None:
    with pytest.raises(FormatError) as refusal:
        choose(raw, wanted)
    assert refusal.value.code == code

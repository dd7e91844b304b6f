"""Our own formats, tables with a mapping, and the containers that files come in."""

from __future__ import annotations

import csv
import gzip
import io
import json
import zipfile
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from annotation.formats import look, palate_csv
from annotation.formats.columns import guess
from annotation.formats.containers import open_records
from annotation.formats.rows import PairRow
from tests.annotation.pairs import LIMITS, as_list, label, lines, pairs, parse, refusals, row, told
from webapp.catalog.formats.rows import FormatError, Limits, Refusal

PERSONA = {"pseudonym": "mei", "summary": "刚开始学编程。", "features": {"expertise": "novice"}}
TURNS = [
    {"role": "system", "content": "Be brief."},
    {"role": "user", "content": "Hi"},
]
DECISION = {"verdict": "first", "source": "majority", "labels": 3, "posterior": {"first": 0.9}}
FULL = row(
    prompt=TURNS,
    persona=PERSONA,
    category="coding",
    language="zh",
    kind="counterfactual",
    synthetic=True,
    state="done",
    source="a.jsonl:7",
    details={"idx": 4, "nested": {"x": [1, None]}},
    labels=[
        label(
            "ann",
            "second",
            strengths={"quality": 2},
            tags=["terse"],
            comment='=1+1 "quoted", 好\r\n',
            active_ms=4000,
            at="2026-05-01T12:00:00.000001+00:00",
            guideline=2,
            first_left=False,
            late=True,
            extra=True,
            repeat=1,
        )
    ],
    decisions={"quality": DECISION},
)


def test_everything_of_our_format_is_read() -> None:
    (found,) = pairs(lines(FULL))
    (spec,) = found.labels
    assert (spec.annotator, spec.verdicts) == ("ann", {"quality": "second"})
    assert spec.strengths == {"quality": 2}
    assert (spec.tags, spec.active_ms, spec.guideline) == (("terse",), 4000, 2)
    assert (spec.first_left, spec.late, spec.extra, spec.repeat) == (False, True, True, 1)
    assert spec.at is not None
    assert spec.at.isoformat() == "2026-05-01T12:00:00.000001+00:00"
    assert found.messages == (("system", "Be brief."), ("user", "Hi"))
    assert found.persona is not None
    assert found.persona.summary == "刚开始学编程。"
    assert (found.kind, found.synthetic) == ("counterfactual", True)
    assert (found.state, found.source) == ("done", "a.jsonl:7")
    assert found.details == {"idx": 4, "nested": {"x": [1, None]}}
    assert found.decisions["quality"].posterior == {"first": 0.9}
    assert found.raw == FULL


@pytest.mark.parametrize(
    ("changes", "code", "field"),
    [
        ({"first": None}, "type", "first"),
        ({"first": {"txt": "a"}}, "unknown_field", "first.txt"),
        ({"second": {"text": 5}}, "type", "second.text"),
        ({"unknown": 1}, "unknown_field", "unknown"),
        ({"prompt": ""}, "empty", "prompt"),
        ({"persona": {**PERSONA, "summary": "x" * 101}}, "long", "persona.summary"),
        ({"persona": {"summary": "x"}}, "missing", "persona.pseudonym"),
        ({"labels": {}}, "type", "labels"),
        ({"labels": [{"verdicts": {"quality": "first"}}]}, "missing", "labels[0].annotator"),
        ({"labels": [label(verdict="left")]}, "choice", "labels[0].verdicts.quality"),
        ({"labels": [{"annotator": "a", "verdicts": {}}]}, "empty", "labels[0].verdicts"),
        ({"labels": [label(at="yesterday")]}, "time", "labels[0].at"),
        ({"labels": [label(at="2026-05-01T12:00:00")]}, "time", "labels[0].at"),
        ({"labels": [label(active_ms=-1)]}, "range", "labels[0].active_ms"),
        ({"labels": [label(strengths={"quality": 4})]}, "range", "labels[0].strengths.quality"),
        ({"labels": [label("n" * 121)]}, "long", "labels[0].annotator"),
        (
            {"decisions": {"quality": {"verdict": "", "source": "majority"}}},
            "decision",
            "decisions.quality.verdict",
        ),
        ({"state": "gold"}, "choice", "state"),
        ({"kind": "x"}, "choice", "kind"),
        ({"details": []}, None, None),
        ({"details": [1]}, "type", "details"),
    ],
)
def test_what_is_wrong_with_a_row_of_ours(
    changes: dict[str, Any], code: str | None, field: str | None
) -> None:
    found = refusals(lines(row(**changes)), "palate_pairs")
    assert [(bad.code, bad.field) for bad in found] == ([(code, field)] if code else [])


def test_empty_answers_are_no_mistake_of_the_file() -> None:
    (found,) = pairs(lines(row(first="", second={"text": ""})))
    assert (found.first, found.second) == ("", "")


# Bad lines


def test_a_bad_line_is_named_and_the_others_are_kept() -> None:
    """T13, T14, T16: malformed, half a surrogate, NUL, not UTF-8, far too long."""
    bad = [
        '{"prompt": "a", "first" "b"}',
        json.dumps(row(1, first="x\ud83d")),
        json.dumps(row(2, second="a\0b")),
        b'{"prompt": "\xff"}',
        '{"prompt": "a\nb"}',
        json.dumps(row(3, first="y" * 70_000)),
    ]
    found = parse(lines(row(10), *bad, row(11)))
    codes = [(e.code, e.place.line) for e in found if isinstance(e, Refusal)]
    assert codes == [
        ("json", 2),
        ("surrogate", 3),
        ("nul", 4),
        ("utf8", 5),
        ("json", 6),
        ("json", 7),
        ("line_long", 8),
    ]
    good = [entry.messages[0][1] for entry in found if isinstance(entry, PairRow)]
    assert good == ["How do I do thing 10?", "How do I do thing 11?"]
    first = next(entry for entry in found if isinstance(entry, Refusal))
    assert (first.place.column, first.row) == (25, bad[0])


def test_a_line_that_comes_back_repaired_is_read() -> None:
    back = {"file": "a", "line": 3, "code": "json", "reason": "r", "right": "w"}
    body = lines({**back, "row": row(1)}, {**back, "row": json.dumps(row(2))}, {**back, "row": "{"})
    one, two, three = parse(body)
    assert [e.messages[0][1] for e in (one, two)] == [f"How do I do thing {n}?" for n in (1, 2)]  # type: ignore[union-attr]
    assert isinstance(three, Refusal)
    assert three.code == "json"
    assert told(body) == "palate_pairs"


# Whole files


@pytest.mark.parametrize(
    ("body", "code"),
    [
        (b"", "empty"),
        (b"\xef\xbb\xbf \n", "empty"),
        ("{}".encode("utf-16"), "utf16"),
        (b"only one column\nhere\n", "one_column"),
        (b"a,b,a\n1,2,3\n", "column_twice"),
        (b'"a,b\n', "csv_header"),
        (b"\xff\xfe", "utf16"),
        (b"a\xff,b\n1,2\n", "csv_header"),
        (b"{ not json\n" * 30, "no_records"),
        (b"[1, 2]", "no_records"),
        (b"PAR1 but no table", "parquet"),
        (b"\x1f\x8b broken", "packed"),
        (b"PK\x03\x04 broken", "packed"),
        (b"\xd0\xcf\x11\xe0 a spreadsheet", "excel"),
        (gzip.compress(b"", mtime=0), "empty"),
    ],
)
def test_a_file_that_cannot_be_read_at_all_says_why(body: bytes, code: str) -> None:
    with pytest.raises(FormatError) as caught:
        told(body)
    assert caught.value.code == code


def zipped(**files: bytes) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        for name, body in files.items():
            archive.writestr(name.replace("__", "."), body)
    return out.getvalue()


def test_archives_are_opened() -> None:
    body = lines(row(1), row(2))
    assert pairs(gzip.compress(body)) == pairs(zipped(rows__jsonl=body)) == pairs(body)
    with pytest.raises(FormatError) as caught:
        told(zipped(a__jsonl=body, b__jsonl=body))
    assert (caught.value.code, caught.value.params["names"]) == ("zip_names", "a.jsonl, b.jsonl")
    cut = gzip.compress(lines(*(row(n, details={"n": str(n) * 50}) for n in range(3000))))
    with pytest.raises(FormatError):
        parse(cut[: len(cut) // 2], "palate_pairs")


def test_a_byte_order_mark_and_windows_line_ends_do_no_harm() -> None:
    body = b"\xef\xbb\xbf" + lines(row(1), row(2)).replace(b"\n", b"\r\n\r\n")
    assert [found.first for found in pairs(body)] == ["Run command 1.", "Run command 2."]
    assert len(pairs(b"\xef\xbb\xbf" + as_list(row(1)))) == 1


# CSV


def table(*rows: list[str], delimiter: str = ",") -> bytes:
    out = io.StringIO()
    csv.writer(out, delimiter=delimiter).writerows(rows)
    return out.getvalue().encode()


NASTY = 'a,b;c\t"quoted"\r\nline\n👩🏽‍💻 =1+1 \u2028 end'
cells = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=20)


@given(cells)
def test_neutralising_can_be_undone_for_every_text(text: str) -> None:
    assert palate_csv.restore(palate_csv.neutralise(text)) == text
    assert palate_csv.neutralise(text)[:1] not in ("=", "+", "-", "@", "\t", "\r", "\n")


@settings(max_examples=60)
@given(cells, cells, cells)
def test_a_table_gives_back_what_was_written(prompt: str, first: str, comment: str) -> None:
    """T15: commas, quotes, line ends, emoji, leading "="."""
    record = row(
        prompt=f"={prompt}", first={"text": f"+{first}"}, labels=[label(comment=f"@{comment}")]
    )
    body = table(list(palate_csv.COLUMNS), palate_csv.to_cells(record))
    (found,) = pairs(body, "palate_csv")
    (spec,) = found.labels
    assert found.messages[0][1] == f"={prompt}"
    assert (found.first, spec.comment) == (f"+{first}", f"@{comment}")


@pytest.mark.parametrize("record", [FULL, row(), row(first=NASTY, second="'=x", prompt="'")])
def test_rows_and_lines_say_the_same(record: dict[str, Any]) -> None:
    body = table(list(palate_csv.COLUMNS), palate_csv.to_cells(record))
    assert told(body) == "palate_csv"
    (flat,), (line,) = pairs(body), pairs(lines(record))
    for name in PairRow.__slots__:
        if name not in ("raw", "offset", "place"):
            assert getattr(flat, name) == getattr(line, name), name


HEAD = ["question", "answer_a", "answer_b", "winner", "who"]
MAPPING = {
    "prompt": "question",
    "first": "answer_a",
    "second": "answer_b",
    "label": "winner",
    "annotator": "who",
}


@pytest.mark.parametrize("delimiter", [",", ";", "\t"])
def test_columns_are_named_by_a_mapping(delimiter: str) -> None:
    body = table(HEAD, ["Q", NASTY, "b", "A", "w1"], ["Q2", "a", "b", "", ""], delimiter=delimiter)
    assert told(body) == "columns"
    one, two = pairs(body, mapping=MAPPING)
    assert (one.first, one.labels[0].verdicts) == (NASTY, {"quality": "first"})
    assert one.labels[0].annotator == "w1"
    assert two.labels == ()
    assert guess(tuple(HEAD))["first"] == "answer_a"


@pytest.mark.parametrize(
    ("said", "verdict"),
    [("a", "first"), ("2", "second"), ("2.0", "second"), ("Tie", "tie"), ("both_bad", "both_bad")],
)
def test_words_for_verdicts(said: str, verdict: str) -> None:
    (found,) = pairs(table(HEAD, ["Q", "a", "b", said, ""]), mapping=MAPPING)
    assert found.labels[0].verdicts == {"quality": verdict}


def test_words_for_verdicts_can_be_given() -> None:
    mapping = {**MAPPING, "values_first": "links, 0", "values_second": "rechts, 1"}
    body = table(HEAD, *(["Q", "a", "b", said, ""] for said in ("0", "rechts", "2")))
    one, two, three = parse(body, mapping=mapping)
    assert [e.labels[0].verdicts["quality"] for e in (one, two)] == ["first", "second"]  # type: ignore[union-attr]
    assert isinstance(three, Refusal)
    assert (three.code, three.field) == ("choice", "winner")


def test_a_persona_may_have_a_summary_alone() -> None:
    head = ["q", "good", "bad", "who"]
    mapping = {"prompt": "q", "chosen": "good", "rejected": "bad", "persona_summary": "who"}
    body = table(head, ["Q", "a", "b", "Likes it short."], ["Q", "a", "b", "x" * 101])
    one, two = parse(body, "columns", mapping=mapping)
    assert isinstance(one, PairRow)
    assert one.persona is not None
    assert one.persona.pseudonym.startswith("p-")
    assert one.labels[0].verdicts == {"quality": "first"}
    assert isinstance(two, Refusal)
    assert (two.code, two.field) == ("long", "persona.summary")


def test_bad_rows_of_a_table_are_named() -> None:
    body = (
        b"question,answer_a,answer_b,winner,who\n"
        b"Q,a,b,a,w\n"
        b"Q,too,few\n"
        b"Q,\xff,b,a,w\n"
        b'Q,"a\nb",c"d,a,w\n'
        b'Q,"a" x,b,a,w\n'
        b"Q,a,b,nobody,w\n"
        b"\n"
        b'Q,"never closed,b,a,w\nQ,a,b,a,w\n'
    )
    found = parse(body, mapping=MAPPING)
    codes = [(e.code, e.place.line) for e in found if isinstance(e, Refusal)]
    assert codes == [("cells", 3), ("utf8", 4), ("csv", 7), ("choice", 8), ("rest_csv", 10)]
    assert [e.place.line for e in found if isinstance(e, PairRow)] == [2, 5]


# Parquet


def parquet(rows: list[dict[str, Any]]) -> bytes:
    import pyarrow
    import pyarrow.parquet

    out = io.BytesIO()
    pyarrow.parquet.write_table(pyarrow.Table.from_pylist(rows), out, row_group_size=50)
    return out.getvalue()


def test_parquet_is_read_like_lines() -> None:
    conversation = [{"role": "user", "content": "Q"}, {"role": "assistant", "content": "a"}]
    other = [{"role": "user", "content": "Q"}, {"role": "assistant", "content": "b"}]
    rows = [{"chosen": conversation, "rejected": other, "score": 1.5} for _n in range(130)]
    found = pairs(parquet(rows))
    assert len(found) == 130
    assert (found[129].first, found[129].second, found[129].place.item) == ("a", "b", 130)
    flat = [{"question": "Q", "answer_a": "a", "answer_b": "b", "winner": 1, "who": 7}]
    (one,) = pairs(parquet(flat), mapping=MAPPING)
    assert (one.labels[0].annotator, one.labels[0].verdicts) == ("7", {"quality": "first"})
    blob = [{**flat[0], "answer_a": b"\xff"}]
    (bad,) = refusals(parquet(blob), mapping=MAPPING)
    assert (bad.code, bad.field) == ("type", "answer_a")


def test_examples_of_columns_are_whole_and_simple() -> None:
    """The page compares them with what is sealed before it shows their beginning."""
    long = "word " * 200
    rows = [{"q": "one", "texts": ["a"], "json": '[{"a": 1}]', "long": long, "n": 7}]
    stream: Any = io.BufferedReader(io.BytesIO(lines(*rows)))
    found = look(open_records(stream, LIMITS)).examples
    assert found == {"q": "one", "texts": "", "json": "", "long": long, "n": "7"}


def bomb(kind: str, mb: int = 8) -> bytes:
    """A small file of one long text, which unpacks to `mb` MB and more."""
    import pyarrow
    import pyarrow.parquet

    text = b"{" + b" " * (mb * 1024 * 1024)
    if kind == "gzip":
        return gzip.compress(text)
    if kind == "zip":
        out = io.BytesIO()
        with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr("rows.jsonl", text)
        return out.getvalue()
    out = io.BytesIO()
    many = 1 if kind == "parquet" else 10_000
    size = len(text) if kind == "parquet" else 64 * 1024
    once = pyarrow.array(["x" * size])
    column = pyarrow.DictionaryArray.from_arrays(pyarrow.array([0] * many, "int32"), once)
    pyarrow.parquet.write_table(
        pyarrow.table({"prompt": column, "first": column}), out, compression="zstd"
    )
    return gzip.compress(out.getvalue()) if kind == "packed table" else out.getvalue()


@pytest.mark.parametrize("kind", ["gzip", "zip", "parquet", "one text many times", "packed table"])
def test_a_small_file_may_not_unpack_to_a_huge_one(kind: str) -> None:
    body = bomb(kind)
    assert len(body) < 100_000
    limits = Limits(item=64 * 1024, unpacked=4 * 1024 * 1024)
    with pytest.raises(FormatError) as caught:
        list(open_records(io.BufferedReader(io.BytesIO(body)), limits).items)
    assert (caught.value.code, caught.value.params) == ("unpacked", {"limit": "4"})


def test_a_packed_table_within_the_limit_is_read() -> None:
    body = gzip.compress(parquet([row(n) for n in range(3)]))
    assert len(pairs(body)) == 3

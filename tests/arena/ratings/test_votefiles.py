"""Battle files: four formats, and errors that say where and what would be right."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from arena.ratings import Outcome, VoteTable
from arena.votefiles import CHUNK, RowError, VoteFileError, VoteFormat, load_votes, read_votes

PALATE = {
    "contestant_left": "amber",
    "contestant_right": "basil",
    "quality": "left",
    "personalization": "both_bad",
    "rater": "alice",
    "context": "x1",
}


def write_lines(path: Path, records: list[Any]) -> Path:
    path.write_text("".join(json.dumps(r, ensure_ascii=False) + "\n" for r in records), "utf-8")
    return path


def told(votes: VoteTable) -> list[tuple[str, str, str]]:
    names = votes.contestants
    return [
        (names[a], names[b], Outcome(int(o)).name)
        for a, b, o in zip(votes.left, votes.right, votes.outcome, strict=True)
    ]


def only_error(path: Path, form: VoteFormat) -> RowError:
    (error,) = load_votes(path, form).errors
    return error


@pytest.mark.parametrize(
    ("axis", "outcome"), [(None, "LEFT"), ("quality", "LEFT"), ("personalization", "BOTH_BAD")]
)
def test_palate_lines_carry_a_verdict_per_axis(
    tmp_path: Path, axis: str | None, outcome: str
) -> None:
    loaded = load_votes(write_lines(tmp_path / "v.jsonl", [PALATE]), VoteFormat.PALATE, axis=axis)
    assert told(loaded.votes) == [("amber", "basil", outcome)]
    assert (loaded.votes.raters, loaded.votes.contexts) == (("alice",), ("x1",))


def test_palate_csv_reads_alike_and_leaves_out_what_was_not_said(tmp_path: Path) -> None:
    path = tmp_path / "v.csv"
    path.write_text(
        "contestant_left,contestant_right,outcome,rater,context\n"
        '"amber, dry",罗勒,tie,alice,x1\n'
        '罗勒,"amber, dry",,bob,x1\n',
        "utf-8",
    )
    loaded = load_votes(path, VoteFormat.PALATE)
    assert told(loaded.votes) == [("amber, dry", "罗勒", "TIE")]
    assert loaded.errors == ()


def test_fastchat_as_array_and_as_lines(tmp_path: Path) -> None:
    words = ["model_a", "model_b", "tie", "tie (bothbad)"]
    battles = [
        {"model_a": "a", "model_b": "b", "winner": w, "judge": f"j{i}", "question_id": i, "turn": 1}
        for i, w in enumerate(words)
    ]
    array = tmp_path / "array.json"
    array.write_text(json.dumps(battles, indent=2), "utf-8")
    lines = write_lines(tmp_path / "lines.json", battles)
    for path in (array, lines):
        votes = load_votes(path, VoteFormat.FASTCHAT).votes
        assert [o for *_, o in told(votes)] == ["LEFT", "RIGHT", "TIE", "BOTH_BAD"]
        assert votes.contexts == ("0", "1", "2", "3")


def test_llmfao(tmp_path: Path) -> None:
    path = tmp_path / "v.csv"
    path.write_text(
        "id,prompt,model_x,model_y,worker,winner,left,right\n0,8,97,98,58,right,Amber,Basil\n",
        "utf-8",
    )
    votes = load_votes(path, VoteFormat.LLMFAO).votes
    assert told(votes) == [("Amber", "Basil", "RIGHT")]
    assert (votes.raters, votes.contexts) == (("58",), ("8",))


def test_pandalm_gives_a_vote_per_annotator(tmp_path: Path) -> None:
    row = {"cmp_key": "a-7b_b-7b", "instruction": "Say it.", "input": "", "response1": True}
    row |= {"annotator1": 0, "annotator2": 1, "annotator3": 2}
    path = tmp_path / "v.json"
    path.write_text(json.dumps([row]), "utf-8")
    votes = load_votes(path, VoteFormat.PANDALM).votes
    assert [o for *_, o in told(votes)] == ["TIE", "LEFT", "RIGHT"]
    assert votes.raters == ("annotator1", "annotator2", "annotator3")
    assert votes.contexts == ("Say it.\n",)


@pytest.mark.parametrize(
    ("change", "field", "expected"),
    [
        ({"quality": "better"}, "quality", "one of left, right, tie, both_bad"),
        ({"quality": True}, "quality", "one of left, right, tie, both_bad"),
        ({"quality": ["left"]}, "quality", "one of left, right, tie, both_bad"),
        ({"contestant_left": ""}, "contestant_left", "a name that is not empty"),
        ({"contestant_left": True}, "contestant_left", "a name that is not empty"),
        ({"contestant_left": "a\0"}, "contestant_left", "a name that is not empty"),
        ({"contestant_right": "amber"}, "contestant_right", "another contestant"),
        ({"rater": 1.5}, "rater", "text or a whole number"),
        ({"rater": None}, "rater", "a rater in every row, or in none"),
    ],
)
def test_a_bad_row_is_named_and_the_others_are_read(
    tmp_path: Path, change: dict[str, Any], field: str, expected: str
) -> None:
    path = write_lines(tmp_path / "v.jsonl", [PALATE, {**PALATE, **change}, PALATE])
    loaded = load_votes(path, VoteFormat.PALATE)
    (error,) = loaded.errors
    assert (error.file, error.line, error.field) == ("v.jsonl", 2, field)
    assert expected in error.expected
    assert len(loaded.votes) == 2
    assert str(error).startswith("v.jsonl, line 2, field ")


def test_a_missing_field_is_named(tmp_path: Path) -> None:
    path = tmp_path / "v.csv"
    path.write_text("left,winner\nAmber,left\n", "utf-8")
    assert only_error(path, VoteFormat.LLMFAO).field == "right"


def test_a_csv_row_of_the_wrong_width(tmp_path: Path) -> None:
    path = tmp_path / "v.csv"
    path.write_text("left,right,winner\na,b,left\na,b\na,b,left,more\n", "utf-8")
    loaded = load_votes(path, VoteFormat.LLMFAO)
    assert [error.line for error in loaded.errors] == [3, 4]
    assert len(loaded.votes) == 1


def test_a_line_that_is_not_json_does_not_stop_the_others(tmp_path: Path) -> None:
    path = tmp_path / "v.jsonl"
    path.write_text(f"{json.dumps(PALATE)}\n{{oops\n[1]\n{json.dumps(PALATE)}\n", "utf-8")
    loaded = load_votes(path, VoteFormat.PALATE)
    assert [(e.line, e.field) for e in loaded.errors] == [(2, "(record)"), (3, "(record)")]
    assert len(loaded.votes) == 2


@pytest.mark.parametrize("text", ["[{}, {", "[{} {}]", '[{"a": 1}', "[", "[{},]", "[{}] {}"])
def test_a_broken_array_is_refused(tmp_path: Path, text: str) -> None:
    path = tmp_path / "v.json"
    path.write_text(text, "utf-8")
    with pytest.raises(VoteFileError, match=r"v\.json, line 1, field \(record\): not JSON"):
        load_votes(path, VoteFormat.FASTCHAT)


def test_what_is_not_utf8_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "v.jsonl"
    path.write_bytes(b'{"contestant_left": "\xff"}\n')
    with pytest.raises(VoteFileError, match="not UTF-8"):
        load_votes(path, VoteFormat.PALATE)


def test_an_ambiguous_pair_of_names_is_refused(tmp_path: Path) -> None:
    path = write_lines(tmp_path / "v.json", [{"cmp_key": "a_b_c", "annotator1": 1}])
    assert only_error(path, VoteFormat.PANDALM).field == "cmp_key"


@pytest.mark.parametrize("text", ["", "\n\n", "[]", "[ ]\n"])
def test_an_empty_file_has_no_votes(tmp_path: Path, text: str) -> None:
    path = tmp_path / "v.json"
    path.write_text(text, "utf-8")
    loaded = load_votes(path, VoteFormat.FASTCHAT)
    assert (len(loaded.votes), loaded.errors) == (0, ())


def test_records_longer_than_a_chunk_and_their_lines(tmp_path: Path) -> None:
    long = "x" * (2 * CHUNK)
    battles = [{"model_a": long, "model_b": f"b{i}", "winner": "tie"} for i in range(3)]
    battles.append({"model_a": "a", "model_b": "b", "winner": "nobody"})
    path = tmp_path / "v.json"
    path.write_text("[\n" + ",\n".join(map(json.dumps, battles)) + "\n]\n", "utf-8")
    *votes, error = list(read_votes(path, VoteFormat.FASTCHAT))
    assert len(votes) == 3
    assert isinstance(error, RowError)
    assert (error.line, error.field) == (5, "winner")

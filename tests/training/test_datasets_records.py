"""Importing records: three kinds, each wrong row with line, field and what would be right."""

from __future__ import annotations

import json
import uuid
from typing import Any

import pytest

from tests.training.factories import admin, frozen
from training.models import Record, RowText
from training.services.records import receive_records
from webapp.catalog import selectors, uploads
from webapp.catalog.models import ImportRun
from webapp.catalog.services.imports import run_import, start_import
from webapp.catalog.services.personas import withdraw_consent
from webapp.core.errors import Forbidden, InvalidInput

pytestmark = pytest.mark.django_db
TOOL = {
    "type": "function",
    "function": {
        "name": "search",
        "description": "Find pages.",
        "parameters": {
            "type": "object",
            "properties": {"query": {"type": "string"}, "limit": {"type": "integer"}},
            "required": ["query"],
            "additionalProperties": False,
        },
    },
}
ANNA = {"pseudonym": "anna-p", "summary": "In a hurry.", "features": {"expertise": "expert"}}


def call(id_: str = "c1", name: str = "search", arguments: Any = None) -> dict[str, Any]:
    arguments = {"query": "tea"} if arguments is None else arguments
    return {"id": id_, "type": "function", "function": {"name": name, "arguments": arguments}}


def trace(*middle: dict[str, Any], tools: Any = None, end: Any = "Green tea.") -> dict[str, Any]:
    turns = middle or (
        {"role": "assistant", "content": None, "tool_calls": [call()]},
        {"role": "tool", "tool_call_id": "c1", "content": "tea: a plant"},
    )
    last = [{"role": "assistant", "content": end}] if end else []
    question = {"role": "user", "content": "Which tea?"}
    return {"messages": [question, *turns, *last], "tools": [TOOL] if tools is None else tools}


def upload(kind: str, *rows: Any, key: str = "") -> ImportRun:
    lines = [row if isinstance(row, str) else json.dumps(row, ensure_ascii=False) for row in rows]
    body = ("\n".join(lines) + "\n").encode()
    run = receive_records(
        actor=admin(), name="rows.jsonl", chunks=[body], kind=kind, key=key or uuid.uuid4().hex
    )
    run_import(pk=run.pk)
    run.refresh_from_db()
    return run


def bring_in(kind: str, *rows: Any) -> ImportRun:
    check = upload(kind, *rows)
    run = start_import(actor=admin(), check=check)
    run_import(pk=run.pk)
    run.refresh_from_db()
    return run


def refusals(run: ImportRun) -> list[tuple[str, str]]:
    path = uploads.errors_path(run.pk)
    lines = [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []
    assert all(line["reason"] and line["line"] for line in lines)
    return [(line["field"], line["code"]) for line in lines]


def test_instructions_in_three_shapes_become_a_dataset() -> None:
    run = bring_in(
        "instructions",
        {"prompt": "怎么泡茶？", "completion": "先烧水。", "language": "zh", "persona": ANNA},
        {"messages": [
            {"role": "system", "content": "Be brief."}, {"role": "user", "content": "Hi"},
            {"role": "assistant", "content": "Hello."}, {"role": "user", "content": "Tea?"},
            {"role": "assistant", "content": "Yes."},
        ]},
        {"instruction": "Translate", "input": "tea", "output": "茶", "synthetic": True},
    )  # fmt: skip
    assert (run.added, run.known, run.refused) == (3, 0, 0)
    dataset = frozen("instructions")
    assert dataset.rows == 3
    assert dataset.counts["groups"]["language"] == {"": 2, "zh": 1}
    assert dataset.counts["marks"] == {"synthetic": 1}
    assert dataset.lineage["imports"][0]["sha256"] == run.sha256
    texts = [json.loads(text.line) for text in RowText.objects.all()]
    assert {t["completion"][0]["content"] for t in texts} == {"先烧水。", "Yes.", "茶"}
    assert {len(t["prompt"]) for t in texts} == {1, 4}
    assert {t["persona"] for t in texts} == {"", "In a hurry."}


def test_a_check_writes_nothing_and_the_same_row_is_kept_once() -> None:
    row = {"prompt": "Tea?", "completion": "Yes."}
    check = upload("instructions", row, row)
    assert (check.added, check.known) == (1, 1)
    assert not Record.objects.exists()
    assert not RowText.objects.exists()
    assert bring_in("instructions", row, row).added == 1
    again = bring_in("instructions", row)
    assert (again.added, again.known) == (0, 1)
    assert Record.objects.count() == 1


def test_records_are_no_imports_of_answers() -> None:
    bring_in("instructions", {"prompt": "Tea?", "completion": "Yes."})
    assert not selectors.imports().exists()


@pytest.mark.parametrize(
    ("kind", "row", "field", "code"),
    [
        ("instructions", "{oops", "", "json"),
        ("instructions", {"prompt": "A"}, "completion", "missing"),
        ("instructions", {"prompt": "A", "completion": " "}, "completion", "empty"),
        ("instructions", {"prompt": "A", "completion": "B", "x": 1}, "x", "unknown_field"),
        ("instructions", {"messages": [{"role": "user", "content": "A"}]}, "messages", "few_turns"),
        (
            "instructions",
            {"messages": [{"role": "user", "content": "A"}, {"role": "user", "content": "B"}]},
            "messages[1]",
            "last_assistant",
        ),
        (
            "instructions",
            {"prompt": "A", "completion": "B", "persona": {"pseudonym": "x"}},
            "persona.summary",
            "missing",
        ),
        ("counterexamples", {"prompt": "A", "answer": "B"}, "reason", "missing"),
        (
            "counterexamples",
            {"prompt": "A", "answer": "B", "reason": "C", "better": "B"},
            "better",
            "same_answer",
        ),
        ("tool_traces", {"messages": []}, "tools", "missing"),
        ("tool_traces", trace(tools=[]), "tools", "empty"),
        ("tool_traces", trace(tools=[TOOL, TOOL]), "tools[1].function.name", "tool_twice"),
        (
            "tool_traces",
            trace({"role": "assistant", "content": "No idea."}, end=""),
            "messages",
            "no_calls",
        ),
        (
            "tool_traces",
            trace({"role": "assistant", "tool_calls": [call(name="find")]}),
            "messages[1].tool_calls[0].function.name",
            "unknown_tool",
        ),
        (
            "tool_traces",
            trace({"role": "assistant", "tool_calls": [call(arguments="{oops")]}),
            "messages[1].tool_calls[0].function.arguments",
            "arguments_json",
        ),
        (
            "tool_traces",
            trace({"role": "assistant", "tool_calls": [call(arguments={})]}),
            "messages[1].tool_calls[0].function.arguments",
            "argument_missing",
        ),
        (
            "tool_traces",
            trace({"role": "assistant", "tool_calls": [call(arguments={"query": 3})]}),
            "messages[1].tool_calls[0].function.arguments.query",
            "type",
        ),
        (
            "tool_traces",
            trace(
                {"role": "assistant", "tool_calls": [call(arguments={"query": "a", "limit": True})]}
            ),
            "messages[1].tool_calls[0].function.arguments.limit",
            "type",
        ),
        (
            "tool_traces",
            trace({"role": "assistant", "tool_calls": [call(arguments={"query": "a", "x": 1})]}),
            "messages[1].tool_calls[0].function.arguments.x",
            "unknown_field",
        ),
        (
            "tool_traces",
            trace({"role": "assistant", "tool_calls": [call()]}),
            "messages[2]",
            "call_unanswered",
        ),
        (
            "tool_traces",
            trace({"role": "tool", "tool_call_id": "c9", "content": "x"}),
            "messages[1].tool_call_id",
            "answer_without_call",
        ),
        (
            "tool_traces",
            trace(
                {"role": "assistant", "tool_calls": [call()]},
                {"role": "tool", "tool_call_id": "c1", "content": "x"},
                {"role": "tool", "tool_call_id": "c1", "content": "x"},
            ),
            "messages[3].tool_call_id",
            "answer_without_call",
        ),
        (
            "tool_traces",
            trace({"role": "assistant", "tool_calls": [call(), call()]}),
            "messages[1].tool_calls",
            "call_twice",
        ),
        (
            "tool_traces",
            trace(
                {"role": "assistant", "tool_calls": [call()]},
                {"role": "tool", "tool_call_id": "c1", "content": "x"},
                end="",
            ),
            "messages[2]",
            "last_assistant",
        ),
        (
            "tool_traces",
            {"messages": trace()["messages"][1:], "tools": [TOOL]},
            "messages",
            "no_question",
        ),
    ],
)
def test_a_wrong_row_is_refused_by_field(kind: str, row: Any, field: str, code: str) -> None:
    good = {
        "instructions": {"prompt": "Tea?", "completion": "Yes."},
        "counterexamples": {"prompt": "Tea?", "answer": "No!", "reason": "rude"},
        "tool_traces": trace(),
    }[kind]
    run = upload(kind, good, row)
    assert refusals(run) == [(field, code)]
    assert run.report["refusals"][0]["line"] == 2
    assert run.added == 1


def test_tool_traces_are_stored_in_one_form() -> None:
    as_text = trace(
        {"role": "assistant", "tool_calls": [call("a", arguments='{"query": "x"}'), call("b")]},
        {"role": "tool", "tool_call_id": "b", "content": "two"},
        {"role": "tool", "tool_call_id": "a", "content": "one", "name": "search"},
        end="Done.",
    )
    assert bring_in("tool_traces", trace(), as_text).added == 2
    dataset = frozen("tool_traces")
    assert dataset.rows == 2
    lines = [json.loads(text.line) for text in RowText.objects.all()]
    row = next(line for line in lines if line["messages"][-1]["content"] == "Done.")
    first = row["messages"][1]
    assert first["content"] == ""
    assert first["tool_calls"][0]["function"] == {"name": "search", "arguments": '{"query":"x"}'}
    assert row["messages"][2]["name"] == "search"
    assert json.loads(row["tools"]) == [TOOL]


def test_counter_examples_keep_reason_and_better_answer() -> None:
    bring_in(
        "counterexamples",
        {"prompt": "Tea?", "answer": "Great question! Tea!", "reason": "flattery", "better": "Yes"},
        {"prompt": "Tea?", "answer": "Tea tea tea", "reason": "stutter"},
    )
    dataset = frozen("counterexamples", sources=["import"])
    assert dataset.rows == 2
    lines = [json.loads(text.line) for text in RowText.objects.all()]
    assert {line["reason"] for line in lines} == {"flattery", "stutter"}
    assert {line["label"] for line in lines} == {False}


def test_a_file_of_another_shape_is_refused_at_once() -> None:
    for body, code in ((b"", "empty"), (b"[1]", "a_list"), ("{}".encode("utf-16"), "utf16")):
        with pytest.raises(InvalidInput) as caught:
            receive_records(
                actor=admin(), name="a", chunks=[body], kind="instructions", key=uuid.uuid4().hex
            )
        assert caught.value.code == code
    assert not ImportRun.objects.exists()


def test_only_administrators_import(bob: Any) -> None:
    with pytest.raises(Forbidden):
        receive_records(actor=bob, name="a", chunks=[b"{}"], kind="instructions", key="k")


def test_withdrawn_personas_neither_stay_nor_come_back() -> None:
    row = {"prompt": "Tea?", "completion": "Yes.", "persona": ANNA}
    bring_in("instructions", row)
    persona = Record.objects.get().persona
    assert persona is not None
    withdraw_consent(actor=admin(), persona=persona)
    assert not RowText.objects.exists()
    again = upload("instructions", {**row, "prompt": "Coffee?"})
    assert refusals(again) == [("persona.pseudonym", "withdrawn")]

"""Tool traces: the whole chain from the question over calls and their results to the answer (F6).

JSON Lines: {"messages": [...], "tools": [...]} in OpenAI's shape. Tools are declared functions with
a JSON schema; the assistant's `tool_calls` carry ids; each is answered by one turn of the role
"tool" with that `tool_call_id` before anybody else speaks; the trace ends with the answer.
`arguments` may be a JSON text or an object and is stored as canonical JSON text.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any, BinaryIO

from training.records.rows import Parsed, Turns, parse_lines
from training.records.schemas import check_arguments
from webapp.catalog.formats import fields
from webapp.catalog.formats.rows import Limits, RowError
from webapp.catalog.texts import canonical_json

KEYS = ("messages", "tools")
ROLES = ("system", "user", "assistant", "tool")
TURN_KEYS = {
    "system": ("role", "content"),
    "user": ("role", "content"),
    "assistant": ("role", "content", "tool_calls"),
    "tool": ("role", "content", "tool_call_id", "name"),
}
Tools = dict[str, Mapping[str, Any]]  # name → JSON schema of its arguments


def parse(stream: BinaryIO, *, limits: Limits, skip: int = 0) -> Iterator[Parsed]:
    return parse_lines(stream, _columns, KEYS, limits=limits, skip=skip)


def _columns(line: Mapping[str, Any]) -> tuple[dict[str, Any], Turns]:
    declared = fields.required(line, "tools")
    tools = _tools(declared)
    turns = _turns(fields.required(line, "messages"), tools)
    prompt: Turns = []
    for turn in turns:
        if turn["role"] == "assistant":
            break
        prompt.append({"role": turn["role"], "content": turn["content"]})
    return {"messages": turns, "tools": canonical_json(declared)}, prompt


def _tools(value: Any) -> Tools:
    tools: Tools = {}
    for n, entry in enumerate(_listed(value, "tools")):
        field = f"tools[{n}]"
        tool = fields.mapping(entry, field)
        fields.known_keys(tool, field, ("type", "function"))
        if tool.get("type") != "function":
            raise RowError("choice", f"{field}.type", found=str(tool.get("type"))[:40],
                           allowed="function")  # fmt: skip
        function = fields.mapping(fields.required(tool, "function", f"{field}.function"), field)
        name = fields.text(
            fields.required(function, "name", f"{field}.function.name"),
            f"{field}.function.name",
            limit=64,
        )
        if name in tools:
            raise RowError("tool_twice", f"{field}.function.name", name=name)
        schema = function.get("parameters", {})
        tools[name] = fields.mapping(schema, f"{field}.function.parameters")
    if not tools:
        raise RowError("empty", "tools")
    return tools


def _listed(value: Any, field: str) -> list[Any]:
    if not isinstance(value, list):
        raise RowError("type", field, found=fields.kind(value), wanted="list")
    return value


def _turns(value: Any, tools: Tools) -> list[dict[str, Any]]:
    entries = _listed(value, "messages")
    turns: list[dict[str, Any]] = []
    waiting: dict[str, str] = {}  # ids of calls without a result → name
    used: set[str] = set()
    for n, entry in enumerate(entries):
        field = f"messages[{n}]"
        turn = _turn(entry, field, tools)
        if turn["role"] == "tool":
            _answer_call(turn, field, waiting)
        elif waiting:
            raise RowError("call_unanswered", field, id=next(iter(waiting)))
        for call in turn["tool_calls"]:
            if call["id"] in used:
                raise RowError("call_twice", f"{field}.tool_calls", id=call["id"])
            used.add(call["id"])
            waiting[call["id"]] = call["function"]["name"]
        turns.append(turn)
    _check_course(turns, used, waiting)
    return turns


def _check_course(turns: list[dict[str, Any]], used: set[str], waiting: dict[str, str]) -> None:
    if waiting:
        raise RowError("call_unanswered", "messages", id=next(iter(waiting)))
    if not used:
        raise RowError("no_calls", "messages")
    if turns[-1]["role"] != "assistant" or not turns[-1]["content"]:
        raise RowError("last_assistant", f"messages[{len(turns) - 1}]", found=turns[-1]["role"])
    first = next(n for n, turn in enumerate(turns) if turn["role"] in ("assistant", "tool"))
    if not any(turn["role"] == "user" for turn in turns[:first]):
        raise RowError("no_question", "messages")


def _answer_call(turn: dict[str, Any], field: str, waiting: dict[str, str]) -> None:
    name = waiting.pop(turn["tool_call_id"], None)
    if name is None:
        raise RowError("answer_without_call", f"{field}.tool_call_id", id=turn["tool_call_id"])
    if turn["name"] and turn["name"] != name:
        raise RowError("other_tool", f"{field}.name", found=turn["name"], name=name)
    turn["name"] = name


def _turn(value: Any, field: str, tools: Tools) -> dict[str, Any]:
    turn = fields.mapping(value, field)
    role = fields.choice(fields.required(turn, "role", f"{field}.role"), f"{field}.role", ROLES)
    if not role:
        raise RowError("empty", f"{field}.role")
    fields.known_keys(turn, field, TURN_KEYS[role])
    calls = [
        _call(entry, f"{field}.tool_calls[{n}]", tools)
        for n, entry in enumerate(_listed(turn.get("tool_calls") or [], f"{field}.tool_calls"))
    ]
    found = {
        "role": role,
        "content": _content(turn, field, may_be_empty=bool(calls) or role == "tool"),
        "name": fields.optional_text(turn, "name", f"{field}.name", limit=64),
        "tool_call_id": "",
        "tool_calls": calls,
    }
    if role == "tool":
        found["tool_call_id"] = _id(turn, "tool_call_id", field)
    return found


def _content(turn: Mapping[str, Any], field: str, *, may_be_empty: bool) -> str:
    value = turn.get("content")
    if may_be_empty and value in (None, ""):
        return ""
    return fields.text(fields.required(turn, "content", f"{field}.content"), f"{field}.content")


def _id(source: Mapping[str, Any], name: str, field: str) -> str:
    return fields.text(fields.required(source, name, f"{field}.{name}"), f"{field}.{name}",
                       limit=128)  # fmt: skip


def _call(value: Any, field: str, tools: Tools) -> dict[str, Any]:
    call = fields.mapping(value, field)
    fields.known_keys(call, field, ("id", "type", "function"))
    function = fields.mapping(
        fields.required(call, "function", f"{field}.function"), f"{field}.function"
    )
    where = f"{field}.function.name"
    name = fields.text(fields.required(function, "name", where), where)
    if name not in tools:
        raise RowError("unknown_tool", where, name=name[:64], allowed=", ".join(sorted(tools)))
    where = f"{field}.function.arguments"
    arguments = _arguments(function.get("arguments", "{}"), where)
    check_arguments(arguments, tools[name], where)
    return {
        "id": _id(call, "id", field),
        "type": "function",
        "function": {"name": name, "arguments": canonical_json(arguments)},
    }


def _arguments(value: Any, field: str) -> Mapping[str, Any]:
    if isinstance(value, str):
        try:
            value = json.loads(value or "{}")
        except (ValueError, RecursionError) as error:
            raise RowError("arguments_json", field) from error
    return fields.mapping(value, field)

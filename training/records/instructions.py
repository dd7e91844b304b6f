"""Instructions: what was asked and a good answer. JSON Lines in one of three shapes.

{"prompt": text or turns, "completion": text}, {"messages": [… , the assistant's turn]}, or
{"instruction", "input", "output"}; besides, task, persona, language, category, synthetic and meta.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, BinaryIO

from training.records.rows import Parsed, Turns, messages, parse_lines, said
from webapp.catalog.formats import fields
from webapp.catalog.formats.rows import Limits, RowError

KEYS = ("prompt", "completion", "messages", "instruction", "input", "output", "task")


def parse(stream: BinaryIO, *, limits: Limits, skip: int = 0) -> Iterator[Parsed]:
    return parse_lines(stream, _columns, KEYS, limits=limits, skip=skip)


def _columns(line: Mapping[str, Any]) -> tuple[dict[str, Any], Turns]:
    if "messages" in line:
        prompt, answer = _conversation(line["messages"])
    elif "instruction" in line:
        prompt, answer = _instruction(line)
    else:
        prompt = messages(fields.conversation(fields.required(line, "prompt")))
        answer = fields.text(fields.required(line, "completion"), "completion")
    return {"prompt": prompt, "completion": said(answer)}, prompt


def _conversation(value: Any) -> tuple[Turns, str]:
    """All turns but the last are the prompt; the last one is the answer to be learned."""
    if not isinstance(value, list):
        raise RowError("type", "messages", found=fields.kind(value), wanted="list")
    if len(value) < 2:
        raise RowError("few_turns", "messages")
    field = f"messages[{len(value) - 1}]"
    last = fields.mapping(value[-1], field)
    fields.known_keys(last, field, ("role", "content"))
    role = fields.choice(fields.required(last, "role", f"{field}.role"), f"{field}.role",
                         fields.ROLES)  # fmt: skip
    if role != "assistant":
        raise RowError("last_assistant", field, found=role)
    content = fields.required(last, "content", f"{field}.content")
    answer = fields.text(content, f"{field}.content")
    return messages(fields.conversation(value[:-1], "messages")), answer


def _instruction(line: Mapping[str, Any]) -> tuple[Turns, str]:
    question = fields.text(line["instruction"], "instruction")
    more = fields.optional_text(line, "input", "input")
    asked = f"{question}\n\n{more}" if more else question
    answer = fields.text(fields.required(line, "output"), "output")
    return [{"role": "user", "content": asked}], answer

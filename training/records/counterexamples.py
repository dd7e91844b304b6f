"""Counter-examples: what was asked, a bad answer, why it is bad, perhaps a better one.

JSON Lines: {"prompt": text or turns, "answer": text, "reason": text, "better": text}, besides
task, persona, language, category, synthetic and meta.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, BinaryIO

from training.records.rows import Parsed, Turns, messages, parse_lines, said
from webapp.catalog.formats import fields
from webapp.catalog.formats.rows import Limits, RowError

KEYS = ("prompt", "answer", "reason", "better", "task")
REASON_LENGTH = 300


def parse(stream: BinaryIO, *, limits: Limits, skip: int = 0) -> Iterator[Parsed]:
    return parse_lines(stream, _columns, KEYS, limits=limits, skip=skip)


def _columns(line: Mapping[str, Any]) -> tuple[dict[str, Any], Turns]:
    prompt = messages(fields.conversation(fields.required(line, "prompt")))
    bad = fields.text(fields.required(line, "answer"), "answer")
    better = fields.optional_text(line, "better", "better")
    if better == bad.strip():
        raise RowError("same_answer", "better")
    reason = fields.text(fields.required(line, "reason"), "reason", limit=REASON_LENGTH)
    return {
        "prompt": prompt,
        "completion": said(bad),
        "label": False,
        "reason": reason.strip(),
        "better": said(better) if better else [],
    }, prompt

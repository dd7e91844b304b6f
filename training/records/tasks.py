"""What an answer has to reach, as rules can check it: the `task` of a row. Pure.

The keys are those of `training.engine.contracts.Task`. A task belongs to a prompt under a persona:
`words` is the length that this person wants.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

from webapp.catalog.formats import fields
from webapp.catalog.formats.rows import RowError
from webapp.catalog.texts import canonical_json

MOST, LENGTH = 50, 200  # entries of a list; characters of one
WORDS, STEPS = 10_000, 1000


def task(value: Any) -> str:
    """The task as canonical JSON without what is empty; "" for none. Raises RowError."""
    if value is None:
        return ""
    given = fields.mapping(value, "task")
    fields.known_keys(given, "task", KEYS)
    found = {name: KEYS[name](entry, f"task.{name}") for name, entry in given.items()}
    found = {name: entry for name, entry in found.items() if entry}
    if not found:
        raise RowError("task_empty", "task")
    return canonical_json(found)


def _texts(value: Any, field: str) -> list[str]:
    entries = enumerate(_list(value, field))
    return [fields.text(entry, f"{field}[{n}]", limit=LENGTH) for n, entry in entries]


def _list(value: Any, field: str) -> list[Any]:
    if not isinstance(value, list):
        raise RowError("type", field, found=fields.kind(value), wanted="list")
    if len(value) > MOST:
        raise RowError("task_many", field, count=len(value), limit=MOST)
    return value


def _numbers(value: Any, field: str) -> list[float]:
    return [_number(entry, f"{field}[{n}]") for n, entry in enumerate(_list(value, field))]


def _number(value: Any, field: str) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise RowError("type", field, found=fields.kind(value), wanted="number")
    if not math.isfinite(value):
        raise RowError("number", field, value=str(value)[:20])
    return value


def _whole(value: Any, field: str, high: int) -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        raise RowError("type", field, found=fields.kind(value), wanted="whole number")
    if not 0 <= value <= high:
        raise RowError("range", field, found=str(value)[:20], low=0, high=high)
    return value


def _steps(value: Any, field: str) -> int:
    return _whole(value, field, STEPS)


def _words(value: Any, field: str) -> list[int]:
    """Least and most; 0 is no limit. Without any limit nothing is wanted."""
    pair = _list(value, field)
    if len(pair) != 2:
        raise RowError("task_words", field)
    least, most = (_whole(entry, f"{field}[{n}]", WORDS) for n, entry in enumerate(pair))
    if most and least > most:
        raise RowError("task_words", field)
    return [least, most] if least or most else []


def _arguments(value: Any, field: str) -> dict[str, list[str]]:
    found = fields.mapping(value, field)
    if len(found) > MOST:
        raise RowError("task_many", field, count=len(found), limit=MOST)
    return {
        fields.text(name, field, limit=LENGTH): names
        for name, entry in found.items()
        if (names := _texts(entry, f"{field}.{name}"[:80]))
    }


KEYS: Mapping[str, Callable[[Any, str], Any]] = {
    "entities": _texts,
    "numbers": _numbers,
    "forbidden": _texts,
    "required_steps": _texts,
    "reference_steps": _steps,
    "words": _words,
    "arguments": _arguments,
}

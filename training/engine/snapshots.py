"""Rows of a snapshot: JSON lines or Parquet, with the keys that each kind of data has.

    instructions  persona, prompt, answer
    pairs         persona, prompt, chosen, rejected
    probes        persona, prompt, good, bad, defect
    swaps         prompt, first, second, persona_first, persona_second (who prefers which)
    prompts       persona, prompt, and perhaps id, task, reference; of a dialogue also dialogue,
                  turn, and demand where somebody asked for another style
    labelled      prompt, answer, right (true or false), task
    answers       id, persona, prompt, completion (given elsewhere)

A prompt is a question or a conversation that ends with the user's turn. `persona` may be empty.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from training.engine.contracts import Rollout, Task, as_messages
from training.engine.rundir import dumps

Row = dict[str, Any]
KEYS = {
    "instructions": ("prompt", "answer"),
    "pairs": ("prompt", "chosen", "rejected"),
    "probes": ("prompt", "good", "bad", "defect"),
    "swaps": ("prompt", "first", "second", "persona_first", "persona_second"),
    "prompts": ("prompt",),
    "labelled": ("prompt", "answer"),
    "answers": ("id", "prompt", "completion"),
}


class BadSnapshot(Exception):
    """A row that is not what its kind promises; names the file and the row."""


def read_rows(path: Path, kind: str) -> list[Row]:
    """All rows, checked; raises `BadSnapshot` at the first that lacks a key."""
    rows = []
    for number, row in enumerate(_rows(path), 1):
        missing = [key for key in KEYS[kind] if not row.get(key)]
        if missing:
            raise BadSnapshot(f"{path.name}, row {number}: {', '.join(missing)} is missing")
        rows.append({**row, "persona": row.get("persona") or ""})
    if not rows:
        raise BadSnapshot(f"{path.name} holds no rows")
    return rows


def _rows(path: Path) -> Iterator[Row]:
    if path.suffix == ".parquet":
        import pyarrow.parquet as pq

        for batch in pq.ParquetFile(path).iter_batches():
            yield from batch.to_pylist()
        return
    with path.open(encoding="utf-8") as file:
        for number, line in enumerate(file, 1):
            try:
                row = json.loads(line)
            except ValueError:
                raise BadSnapshot(f"{path.name}, line {number} is not JSON") from None
            yield row


def write_rows(path: Path, rows: Iterable[Mapping[str, Any]]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", encoding="utf-8") as out:
        for row in rows:
            out.write(dumps(row) + "\n")


def task_of(value: Mapping[str, Any] | None) -> Task | None:
    """A task as stored in a row."""
    if not value:
        return None
    texts = ("entities", "forbidden", "required_steps")
    known: dict[str, Any] = {name: tuple(value.get(name) or ()) for name in texts}
    known["numbers"] = tuple(float(n) for n in value.get("numbers") or ())
    known["reference_steps"] = int(value.get("reference_steps") or 0)
    least, most = value.get("words") or (0, 0)
    known["words"] = (int(least), int(most))
    known["arguments"] = {k: tuple(v) for k, v in (value.get("arguments") or {}).items() if v}
    return Task(**known)


def rollout_of(row: Mapping[str, Any], completion: str) -> Rollout:
    """A row of prompts with an answer to it."""
    return Rollout(
        as_messages(row["prompt"]),
        completion,
        row.get("persona") or "",
        task_of(row.get("task")),
        reference=row.get("reference") or "",
        id=str(row.get("id") or ""),
    )

"""Working files of a freeze: the rows as collected, then with their splits.

They hold texts, so they are deleted when the dataset is frozen or refused. Everything of one
dataset stands in MEDIA_ROOT/datasets/<id>/.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from django.conf import settings


@dataclass(slots=True)
class Spooled:
    """One row on its way: its text, and what the database keeps of it."""

    sha256: str
    line: str
    prompt: str
    persona: int | None
    stratum: str
    source: str
    decided: str
    synthetic: bool
    simulated: bool
    group: str
    ref: str
    origin: str  # projects, rounds, imports
    origin_id: int
    context: int | None = None
    split: str = ""

    @property
    def cell(self) -> tuple[str, str]:
        return self.prompt, str(self.persona or "")


def folder(pk: int) -> Path:
    return Path(settings.MEDIA_ROOT) / "datasets" / str(pk)


def collected(pk: int) -> Path:
    """Rows as the sources gave them, without splits."""
    return folder(pk) / "collected.jsonl"


def chosen(pk: int) -> Path:
    """Rows with splits, ready to be stored. There only when complete."""
    return folder(pk) / "chosen.jsonl"


def facts(pk: int) -> Path:
    """What was found out about the rows, beside `chosen`."""
    return folder(pk) / "facts.json"


def write_rows(path: Path, rows: Iterator[Spooled]) -> int:
    """Write all rows under a temporary name, then rename: a reader sees all of them or none."""
    path.parent.mkdir(parents=True, exist_ok=True)
    part, count = path.with_suffix(".part"), 0
    with part.open("w", encoding="utf-8") as out:
        for row in rows:
            values = {name: getattr(row, name) for name in Spooled.__slots__}
            out.write(json.dumps(values, ensure_ascii=False) + "\n")
            count += 1
    part.replace(path)
    return count


def read_rows(path: Path, skip: int = 0) -> Iterator[Spooled]:
    with path.open(encoding="utf-8") as lines:
        for number, line in enumerate(lines):
            if number >= skip:
                yield Spooled(**json.loads(line))


def write_facts(pk: int, values: dict[str, Any]) -> None:
    path = facts(pk)
    part = path.with_suffix(".part")
    part.write_text(json.dumps(values, ensure_ascii=False), encoding="utf-8")
    part.replace(path)


def read_facts(pk: int) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(facts(pk).read_text(encoding="utf-8"))
    return found


def discard(pk: int) -> None:
    shutil.rmtree(folder(pk), ignore_errors=True)

"""What the run page reads from the run directory: answers by step, the end of the log, downloads.

The database knows where an answer stands in samples.jsonl; its text stays in the directory. A
directory that is not there (another machine, removed) gives nothing, never an error.
"""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from django.db.models import Max, Min

from training.models import SampleLine, TrainingRun
from training.storage import directory
from training.words.metrics import metric_name

FILES = {
    "config.json": "application/json",
    "metrics.jsonl": "application/x-ndjson",
    "events.jsonl": "application/x-ndjson",
    "samples.jsonl": "application/x-ndjson",
    "manifest.json": "application/json",
    "reward_model.json": "application/json",
    "error.txt": "text/plain",
    "log.txt": "text/plain",
}
BOARDS = "tensorboard.zip"
MOST_ANSWERS = 64  # of one step
LONGEST = 20_000  # characters of an answer on the page
BOARD_LIMIT = 256 * 1024 * 1024  # bytes that are packed in memory for one download
FIRST_PARTS = ("quality", "personalization", "redundancy")


@dataclass(frozen=True)
class Answer:
    """One answer with what it earned. `parts` are values in the order of the table's columns."""

    persona: str
    prompt: str
    text: str
    parts: list[Any]
    reward: Any
    advantage: Any
    offset: int = 0  # its place in samples.jsonl


@dataclass(frozen=True)
class Step:
    """The answers of one step, and which steps there are."""

    step: int
    evaluation: bool
    answers: list[Answer]
    columns: list[str]
    first: int | None = None
    last: int | None = None
    before: int | None = None
    after: int | None = None
    evaluations: list[int] = field(default_factory=list)
    shown: int = 0
    total: int = 0


def answers(run: TrainingRun, wanted: int | None, evaluation: bool) -> Step | None:
    """The answers of the step closest below `wanted` (None: the last), or None where none are."""
    lines = SampleLine.objects.filter(run=run, evaluation=evaluation).order_by()
    ends = lines.aggregate(first=Min("step"), last=Max("step"))
    evaluations = list(
        SampleLine.objects.filter(run=run, evaluation=True)
        .order_by("step").values_list("step", flat=True).distinct()
    )  # fmt: skip
    if ends["last"] is None:
        if evaluation or not evaluations:
            return None
        return answers(run, wanted, True)
    below = None if wanted is None else lines.filter(step__lte=wanted).aggregate(s=Max("step"))["s"]
    step = ends["last"] if wanted is None else (ends["first"] if below is None else below)
    offsets = list(lines.filter(step=step).order_by("offset").values_list("offset", flat=True))
    rows = read_at(directory(run.directory) / "samples.jsonl", offsets[-MOST_ANSWERS:])
    names = columns(rows)
    return Step(
        step,
        evaluation,
        [answer(row, names) for row in rows],
        [metric_name(f"parts/{n}") if n in FIRST_PARTS else metric_name(n) for n in names],
        ends["first"],
        ends["last"],
        lines.filter(step__lt=step).aggregate(s=Max("step"))["s"],
        lines.filter(step__gt=step).aggregate(s=Min("step"))["s"],
        evaluations,
        len(rows),
        len(offsets),
    )


def columns(rows: list[dict[str, Any]]) -> list[str]:
    """The parts that these answers have: the three of the reward first."""
    there = {n for row in rows for n, v in row.get("parts", {}).items() if v is not None}
    first = [name for name in FIRST_PARTS if name in there]
    return first + sorted(there - set(first))


def answer(row: Mapping[str, Any], names: list[str]) -> Answer:
    parts = row.get("parts", {})
    return Answer(
        str(row.get("persona", "")),
        str(row.get("prompt", "")),
        str(row.get("completion", ""))[:LONGEST],
        [parts.get(name) for name in names],
        row.get("reward"),
        row.get("advantage"),
        int(row.get("offset") or 0),
    )


def read_at(path: Path, offsets: list[int]) -> list[dict[str, Any]]:
    """The lines that begin at these places of a file, each with its `offset`."""
    found: list[dict[str, Any]] = []
    try:
        with path.open("rb") as file:
            for offset in offsets:
                file.seek(offset)
                try:
                    row = json.loads(file.readline())
                except ValueError:
                    continue  # half a line of a killed process
                if isinstance(row, dict):
                    found.append({**row, "offset": offset})
    except OSError:
        return []
    return found


def available(run: TrainingRun) -> list[tuple[str, int]]:
    """Files that can be downloaded, with their sizes in bytes."""
    folder = directory(run.directory)
    found = [(name, (folder / name).stat().st_size) for name in FILES if (folder / name).is_file()]
    boards = sum(path.stat().st_size for path in board_files(folder))
    return found + ([(BOARDS, boards)] if 0 < boards <= BOARD_LIMIT else [])


def board_files(folder: Path) -> list[Path]:
    return sorted(folder.glob("checkpoints/**/tensorboard/events.out.*"))


def boards(run: TrainingRun) -> bytes:
    """The TensorBoard logs of a run as one archive."""
    folder, packed = directory(run.directory), io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        for path in board_files(folder):
            archive.write(path, path.relative_to(folder / "checkpoints"))
    return packed.getvalue()

"""Withdrawn consent in the directories of runs: what was written for a person is made blank (V14).

Weights cannot forget; texts can. Lines are overwritten in their place, so that every other line
keeps its own. A run that is at work goes on: what it writes later is made blank at its end.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from arena.models import Context
from training.engine.rundir import RunDir, read_json, write_json
from training.enums import RunKind
from training.models import EdgeCase, RowText, TrainingRun
from training.storage import directory
from webapp.catalog.texts import sha256

WITHDRAWN = "withdrawn.json"  # hashes of summaries
KEYS = ("persona", "persona_first", "persona_second")


def erase_from_runs(persona: Any) -> int:
    """Call it while the rows of the persona are still there; lines that were made blank."""
    lines = RowText.objects.filter(persona=persona).values_list("line", flat=True)
    gone = {sha256(text) for line in lines.iterator() if (text := json.loads(line).get("persona"))}
    runs = TrainingRun.objects.filter(inputs__dataset__items__persona=persona)
    gone |= set(persona.versions.values_list("summary_sha256", flat=True))  # of answers of rounds
    found = {*runs.values_list("directory", flat=True), *_asked(persona), *_predicted(persona)}
    return sum(_erase(directory(name), gone) for name in sorted(found)) if gone else 0


def _asked(persona: Any) -> Iterator[str]:
    """Directories of evaluations that asked edge cases of this persona."""
    cases = set(EdgeCase.objects.filter(persona=persona).values_list("item", flat=True))
    runs = TrainingRun.objects.filter(kind=RunKind.EVALUATE) if cases else []
    for run in runs:
        if cases & set(run.config.get("evaluate", {}).get("edges", ())):
            yield run.directory


def _predicted(persona: Any) -> Iterator[str]:
    """Directories of predictions on rounds that this person took part in."""
    asked = Context.objects.filter(persona_version__persona=persona)
    rounds = set(asked.values_list("round", flat=True))
    runs = TrainingRun.objects.filter(kind=RunKind.PREDICT) if rounds else []
    for run in runs:
        if run.config.get("predict", {}).get("round") in rounds:
            yield run.directory


def erase_at_end(run: TrainingRun) -> int:
    """What a run wrote about people who withdrew while it was at work."""
    return _erase(directory(run.directory), set())


def _erase(folder: Path, gone: set[str]) -> int:
    note = folder / WITHDRAWN
    known = set(read_json(note)) if note.exists() else set()
    if not folder.exists() or not known | gone:
        return 0
    write_json(note, sorted(known | gone))
    files = [RunDir(folder).samples, folder / "evaluation.jsonl", *folder.glob("data/*.jsonl")]
    return sum(blank(file, known | gone) for file in files if file.exists())


def blank(file: Path, gone: Iterable[str]) -> int:
    """Overwrite the lines about these people with empty objects of the same length."""
    found, names = 0, set(gone)
    with file.open("r+b") as lines:
        while line := lines.readline():
            if line.endswith(b"\n") and len(line) > 3 and _names(line) & names:
                lines.seek(-len(line), 1)
                lines.write(b"{}" + b" " * (len(line) - 3) + b"\n")
                found += 1
    return found


def _names(line: bytes) -> set[str]:
    """Hashes of the summaries in a line."""
    try:
        row = json.loads(line)
    except ValueError:
        return set()
    return (
        {sha256(str(row[key])) for key in KEYS if row.get(key)} if isinstance(row, dict) else set()
    )

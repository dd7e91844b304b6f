"""Proving an export before it is handed out.

What TRL reads is loaded by a process of its own, as a trainer does: `tools/check_trl.py` needs
`datasets` and, for TRL's part, the training extra, and neither belongs into the process of the site
or the worker. OpenAI's lines are checked against their documented shape, our own are read by the
parser that the import uses.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from django.conf import settings

from annotation.exports import openai
from annotation.exports.options import OPENAI, Options
from annotation.formats import palate_csv, palate_pairs
from annotation.formats.containers import open_records
from annotation.formats.rows import Options as ReadOptions
from annotation.services.export_writing import Written, columns_of, kind_of
from webapp.catalog.formats.rows import RowError
from webapp.catalog.services.checks import import_limits

SCRIPT = Path(settings.BASE_DIR) / "tools" / "check_trl.py"
LIMIT_S = 3000
EVERY = 1000
ONE_THREAD = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")


Findings = dict[str, Any]


def prove_files(
    options: Options, done: Written, work: Path, saved: Path | None, beat: Callable[[], None]
) -> Findings:
    """`ok`, the `steps` that were taken, and the first `problem` if there is one."""
    if not sum(done.rows.values()):
        return {"ok": True, "steps": [], "empty": True}
    if options.format == OPENAI:
        return _each(done, "openai", _openai_lines, beat)
    if options.own:
        return _each(done, "import", _read_back, beat)
    request = {
        "kind": kind_of(options),
        "style": options.style,
        "file_type": options.file_type,
        "columns": dict(columns_of(options)),
        "files": {split: str(path) for split, path in done.files.items()},
        "rows": dict(done.rows),
        "save_to": str(saved) if saved else "",
    }
    return prove(work, request, beat)


Check = Callable[[Path], Iterator[str]]  # what is wrong with each record, "" where nothing is


def _each(done: Written, name: str, check: Check, beat: Callable[[], None]) -> Findings:
    """Check record by record, in this process."""
    rows = 0
    for split, path in done.files.items():
        n = 0
        for n, what in enumerate(check(path), start=1):
            if what:
                problem = {"what": what, "split": split, "row": n}
                return {"ok": False, "steps": [], "problem": problem}
            if n % EVERY == 0:
                beat()
        if n != done.rows[split]:
            problem = {"what": f"{n} rows, {done.rows[split]} written", "split": split}
            return {"ok": False, "steps": [], "problem": problem}
        rows += n
    return {"ok": True, "steps": [{"name": name, "ok": True, "rows": rows}]}


def _openai_lines(path: Path) -> Iterator[str]:
    with path.open(encoding="utf-8") as lines:
        for line in lines:
            yield openai.problem(json.loads(line))


def _read_back(path: Path) -> Iterator[str]:
    """What the import's parser says to each record."""
    reading = ReadOptions(limits=import_limits())
    with path.open("rb") as stream:
        records = open_records(stream, reading.limits)
        for item in records.items:
            try:
                if item.bad:
                    raise item.bad
                value = palate_csv.from_cells(item.value) if records.columns else item.value
                list(palate_pairs.pairs(replace(item, value=value), reading))
            except RowError as bad:
                yield f"{bad.code} {bad.field}".strip()
            else:
                yield ""


def prove(work: Path, request: Mapping[str, Any], beat: Callable[[], None]) -> Findings:
    """The findings of the check; `beat` is called while it works and may end it by raising."""
    asked, answer = work / "check.json", work / "found.json"
    asked.write_text(json.dumps({**request, "answer": str(answer), "cache": str(work / "cache")}))
    with (work / "check.log").open("w") as log:
        process = subprocess.Popen(
            [sys.executable, str(SCRIPT), str(asked)],
            stdout=log,
            stderr=log,
            stdin=subprocess.DEVNULL,
            env=_environment(work),
        )
        _wait(process, beat)
    if answer.exists():
        return dict(json.loads(answer.read_text()))
    return {"ok": False, "steps": [], "problem": {"what": _last_line(work / "check.log")}}


def _environment(work: Path) -> dict[str, str]:
    """Offline, one thread, and without the site's secrets."""
    kept = {k: os.environ[k] for k in ("PATH", "HOME", "LANG", "TMPDIR") if k in os.environ}
    return {
        **kept,
        **dict.fromkeys(ONE_THREAD, "1"),
        "HF_HOME": str(work / "cache"),
        "HF_HUB_OFFLINE": "1",
        "HF_DATASETS_OFFLINE": "1",
        "HF_DATASETS_DISABLE_PROGRESS_BARS": "1",
        "TOKENIZERS_PARALLELISM": "false",
    }


def _wait(process: subprocess.Popen[bytes], beat: Callable[[], None]) -> None:
    ends = time.monotonic() + LIMIT_S
    try:
        while True:
            try:
                process.wait(timeout=2)
            except subprocess.TimeoutExpired:
                beat()
            else:
                return
            if time.monotonic() > ends:
                return
    finally:
        if process.poll() is None:
            process.kill()
            process.wait()


def _last_line(log: Path) -> str:
    lines = log.read_text(errors="replace").strip().splitlines()
    return f"The check ended without an answer: {lines[-1][:200] if lines else 'no output'}"

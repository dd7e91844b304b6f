"""Files of pairs for tests, and importing them."""

from __future__ import annotations

import io
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from annotation.formats import FORMATS, look
from annotation.formats.containers import open_records
from annotation.formats.rows import Options, PairRow, ParsedPair
from annotation.models import Project
from annotation.services import projects
from annotation.services.imports import KIND, check_options
from tests.annotation.factories import GUIDELINES, PLAIN
from tests.conftest import make_user
from webapp.accounts.enums import Role
from webapp.accounts.models import User
from webapp.catalog import uploads
from webapp.catalog.formats.rows import Limits, Refusal
from webapp.catalog.models import ImportRun
from webapp.catalog.services.imports import open_run, run_import

LIMITS = Limits(features=("expertise", "age_band"), item=64 * 1024)


def parse(body: bytes, format: str = "", **options: Any) -> list[ParsedPair]:
    """What a file says, in the format that it looks like."""

    def records() -> Any:
        return open_records(io.BufferedReader(io.BytesIO(body)), LIMITS)

    format = format or look(records()).format
    given = Options(limits=LIMITS, **options)
    return list(FORMATS[format].parse(records().items, given))


def pairs(body: bytes, format: str = "", **options: Any) -> list[PairRow]:
    found = parse(body, format, **options)
    assert all(isinstance(entry, PairRow) for entry in found), found
    return [entry for entry in found if isinstance(entry, PairRow)]


def refusals(body: bytes, format: str = "", **options: Any) -> list[Refusal]:
    return [entry for entry in parse(body, format, **options) if isinstance(entry, Refusal)]


def told(body: bytes) -> str:
    """The format that a file looks like."""
    stream: Any = io.BufferedReader(io.BytesIO(body))
    return look(open_records(stream, LIMITS)).format


def lines(*rows: Any) -> bytes:
    """Rows as JSON Lines; texts and bytes stand for themselves."""
    parts = []
    for row in rows:
        if not isinstance(row, str | bytes):
            row = json.dumps(row, ensure_ascii=False)
        parts.append(row.encode() if isinstance(row, str) else row)
    return b"\n".join(parts) + b"\n"


def as_list(*rows: Any) -> bytes:
    return json.dumps(rows, ensure_ascii=False, indent=1).encode()


def row(n: int = 0, **changes: Any) -> dict[str, Any]:
    """A good row of our own format."""
    return {
        "prompt": f"How do I do thing {n}?",
        "first": {"text": f"Run command {n}.", "producer": "Harbor"},
        "second": {"text": f"First open a window, then think of {n}.", "producer": "Quarry"},
        **changes,
    }


def label(annotator: str = "ann", verdict: str = "first", **more: Any) -> dict[str, Any]:
    return {"annotator": annotator, "verdicts": {"quality": verdict}, **more}


def make_project(name: str = "Pairs", **settings: Any) -> Project:
    manager = User.objects.filter(username="mara").first() or make_user("mara", Role.ADMIN)
    values = {**PLAIN, "axes": ["quality"], **settings}
    return projects.create_project(actor=manager, name=name, guidelines=GUIDELINES, settings=values)


def write(path: Path, rows: Sequence[Any]) -> Path:
    path.write_bytes(lines(*rows))
    return path


def import_pairs(
    project: Project, path: Path, *, format: str = "", dry_run: bool = False, **options: Any
) -> ImportRun:
    """Import a file to its end."""
    user = options.pop("user", None)
    run = open_run(
        path=path,
        format=format,
        user=user,
        dry_run=dry_run,
        kind=KIND,
        subject=project.pk,
        options=check_options(project, options),
    )
    done = run_import(pk=run.pk, take_over=True)
    assert done is not None
    return done


def numbers(run: ImportRun) -> tuple[int, int, int]:
    return run.added, run.known, run.refused


def error_rows(run: ImportRun) -> list[dict[str, Any]]:
    path = uploads.errors_path(run.pk)
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []

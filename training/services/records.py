"""The importer of records: one more kind of the catalog's imports, so their life is the same."""

from __future__ import annotations

import codecs
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO

from django.db import transaction

from training import policies
from training.models import Record, RowText
from training.records import FORMATS, Parsed, RecordRow
from training.rows import spoken, text_of
from webapp.catalog import uploads
from webapp.catalog.formats import HEAD
from webapp.catalog.formats.rows import FormatError, Refusal, RowError
from webapp.catalog.models import ImportRun, PersonaVersion
from webapp.catalog.refusals import as_error_line
from webapp.catalog.scratch import Scratch
from webapp.catalog.services.checks import import_limits
from webapp.catalog.services.importers import Sample, Stored
from webapp.catalog.services.imports import receive_upload
from webapp.catalog.services.personas import get_or_create_versions
from webapp.catalog.texts import excerpt

ROWS, CHARACTERS = 500, 4_000_000
KIND = "records"


@dataclass
class Batch:
    """What was read between two commits, in file order."""

    parsed: list[Parsed] = field(default_factory=list)
    offset: int = 0
    characters: int = 0

    @property
    def full(self) -> bool:
        return len(self.parsed) >= ROWS or self.characters >= CHARACTERS


@dataclass(frozen=True, slots=True)
class _Ready:
    """A row with its text and the persona that it is for."""

    row: RecordRow
    line: str
    sha256: str
    persona_id: int | None


class RecordsImporter:
    """`run.format` is the kind of record."""

    kind = KIND
    remembers = False

    def check_actor(self, actor: Any, subject: int | None) -> None:
        policies.check_manage(actor)

    def accept(self, path: Path, wanted: str) -> str:
        with path.open("rb") as stream:
            head = stream.read(HEAD)
        if not head.strip():
            raise FormatError("empty")
        if head.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
            raise FormatError("utf16")
        if wanted not in FORMATS:
            raise FormatError("no_format", name=wanted, formats=", ".join(FORMATS))
        if head.removeprefix(codecs.BOM_UTF8).lstrip().startswith(b"["):
            raise FormatError("a_list", wanted=wanted)
        return wanted

    def batches(self, run: ImportRun, stream: BinaryIO, scratch: Scratch | None) -> Iterator[Batch]:
        batch = Batch()
        for parsed in FORMATS[run.format](stream, limits=import_limits(), skip=run.rows_done):
            batch.parsed.append(parsed)
            batch.offset = parsed.offset
            if isinstance(parsed, RecordRow):
                batch.characters += sum(len(str(value)) for value in parsed.columns.values())
            if batch.full:
                yield batch
                batch = Batch()
        if batch.parsed:
            yield batch

    def store(self, batch: Batch, run: ImportRun, scratch: Scratch | None) -> Stored:
        with transaction.atomic():
            stored = _store(batch, run, scratch)
            if scratch is not None:
                transaction.set_rollback(True)
        return stored

    def error_line(self, refusal: Refusal, run: ImportRun) -> dict[str, Any]:
        return as_error_line(refusal, run.file_name)

    def shown_samples(self, run: ImportRun, samples: list[Sample]) -> list[dict[str, Any]]:
        return [shown for _digest, shown in samples]

    def finish(self, run: ImportRun) -> Mapping[str, Any]:
        return {"kind": run.format}


def _store(batch: Batch, run: ImportRun, scratch: Scratch | None) -> Stored:
    stored = Stored(tallies={"languages": {}})
    rows = [entry for entry in batch.parsed if isinstance(entry, RecordRow)]
    versions = get_or_create_versions(specs=[row.persona for row in rows if row.persona])
    people = _personas(versions)
    ready: list[_Ready] = []
    for entry in batch.parsed:
        if isinstance(entry, Refusal):
            stored.refusals.append(entry)
            continue
        version = versions[entry.persona] if entry.persona else None
        if isinstance(version, RowError):
            stored.refusals.append(Refusal.at(entry.place, version, entry.offset))
        else:
            ready.append(_ready(entry, run.format, people.get(version) if version else None))
    _write(ready, run, scratch, stored)
    return stored


def _personas(versions: Mapping[Any, int | RowError]) -> dict[int, int]:
    ids = [pk for pk in versions.values() if isinstance(pk, int)]
    return dict(PersonaVersion.objects.filter(pk__in=ids).values_list("pk", "persona_id"))


def _ready(row: RecordRow, kind: str, persona_id: int | None) -> _Ready:
    columns = {
        **row.columns,
        "persona": row.persona.summary if row.persona else "",
        "persona_id": row.persona.pseudonym if row.persona else "",
        "language": row.language,
        "category": row.category,
        "source": "import",
        "synthetic": row.synthetic,
    }
    line, digest = text_of(kind, columns)
    return _Ready(row, line, digest, persona_id)


def _write(
    ready: Sequence[_Ready], run: ImportRun, scratch: Scratch | None, stored: Stored
) -> None:
    digests = [entry.sha256 for entry in ready]
    known = set(
        Record.objects.filter(kind=run.format, row_sha256__in=digests).values_list(
            "row_sha256", flat=True
        )
    )
    new: dict[str, _Ready] = {}
    for entry in ready:
        fresh = entry.sha256 not in known and entry.sha256 not in new
        if fresh and scratch is not None:
            fresh = scratch.is_new("record", entry.sha256, value="")
        if fresh:
            new[entry.sha256] = entry
            stored.samples.append((entry.sha256, _sample(entry.row)))
        stored.added += fresh
        stored.known += not fresh
        languages = stored.tallies["languages"]
        languages[entry.row.language] = languages.get(entry.row.language, 0) + 1
    RowText.objects.bulk_create(
        [RowText(sha256=e.sha256, line=e.line, persona_id=e.persona_id) for e in new.values()],
        ignore_conflicts=True,
    )
    Record.objects.bulk_create(
        [_record(entry, run) for entry in new.values()], ignore_conflicts=True
    )


def _record(entry: _Ready, run: ImportRun) -> Record:
    return Record(
        imported_in=run,
        kind=run.format,
        row_sha256=entry.sha256,
        prompt_sha256=entry.row.prompt_sha256,
        persona_id=entry.persona_id,
        language=entry.row.language,
        category=entry.row.category,
        synthetic=entry.row.synthetic,
        line=entry.row.place.line,
    )


def _sample(row: RecordRow) -> dict[str, str]:
    """Excerpts for the preview."""
    if "messages" in row.columns:
        return {"persona": "", "prompt": "", "answer": excerpt(spoken(row.columns["messages"]))}
    return {
        "persona": row.persona.summary if row.persona else "",
        "prompt": excerpt(spoken(row.columns["prompt"])),
        "answer": excerpt(spoken(row.columns["completion"])),
    }


def receive_records(*, actor: Any, name: str, chunks: Any, kind: str, key: str) -> ImportRun:
    """Keep an upload of records and have it checked. The same key gives the same run."""
    return receive_upload(
        actor=actor, name=uploads.clean_name(name), chunks=chunks, format=kind, key=key, kind=KIND
    )

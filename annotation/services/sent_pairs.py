"""Pairs that a program sends: read, checked and stored like those of a file, at once."""

from __future__ import annotations

import io
import json
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from django.db import transaction

from annotation import policies
from annotation.enums import WebhookEvent
from annotation.formats import FORMATS
from annotation.formats.rows import Options
from annotation.models import Item, Project
from annotation.services.import_batches import store_pairs
from annotation.services.import_rows import Entry, PairBatch
from annotation.services.imports import KIND
from annotation.services.queue import refresh_targets
from annotation.services.webhooks import announce
from webapp.catalog.enums import ImportState
from webapp.catalog.formats.reading import json_lines
from webapp.catalog.formats.rows import Refusal
from webapp.catalog.models import ImportRun
from webapp.catalog.refusals import explain
from webapp.catalog.scratch import Scratch
from webapp.catalog.services.checks import import_limits
from webapp.core import audit

FORMAT = "palate_pairs"
NAME = "api"


@dataclass(frozen=True)
class SentRow:
    """What became of one row; `item` is a public id."""

    index: int
    status: str  # added, known, refused
    item: str | None = None
    flags: tuple[str, ...] = ()
    code: str = ""
    field: str = ""
    message: str = ""


def add_sent_pairs(*, actor: Any, project: Project, rows: Sequence[Any]) -> list[SentRow]:
    """Add pairs in our own format, each once; one result per row, in order.

    Bad rows are refused one by one, the others are added. Sending the same again adds nothing.
    """
    policies.check_manage(actor)
    batch = _read(rows, project)
    with tempfile.TemporaryDirectory() as folder, transaction.atomic():
        run = ImportRun.objects.create(
            kind=KIND,
            subject=project.pk,
            format=FORMAT,
            file_name=NAME,
            state=ImportState.RUNNING,
            created_by=actor,
        )
        with Scratch(Path(folder) / "scratch") as scratch:
            stored = store_pairs(batch, run, scratch)
        refresh_targets(project=project)
        counts = {"added": stored.added, "known": stored.known, "refused": len(stored.refusals)}
        ImportRun.objects.filter(pk=run.pk).update(
            state=ImportState.DONE, rows_done=len(rows), **counts
        )
        audit.record(actor=actor, action="import_done", obj=run, **counts)
        payload = {"import": run.pk, "state": ImportState.DONE.value, **counts}
        announce(project, WebhookEvent.IMPORT_FINISHED, payload)
    return _results(batch)


def _read(rows: Sequence[Any], project: Project) -> PairBatch:
    """The rows as a file of JSON Lines: its reader finds what no database keeps."""
    text = "\n".join(json.dumps(row) for row in rows)
    limits = import_limits()
    items = json_lines(io.BytesIO(text.encode()), limit=limits.item)
    batch = PairBatch()
    options = Options(axis=project.axes[0], limits=limits)
    for parsed in FORMATS[FORMAT].parse(iter(items), options):
        batch.add(parsed)
    return batch


def _results(batch: PairBatch) -> list[SentRow]:
    ids = {entry.item_id for entry in batch.entries if entry.added and entry.bad is None}
    names = dict(Item.objects.filter(pk__in=ids).values_list("pk", "public_id"))
    return [_result(index, parsed, names) for index, parsed in enumerate(batch.parsed)]


def _result(index: int, parsed: Entry | Refusal, names: dict[int, str]) -> SentRow:
    if isinstance(parsed, Entry) and parsed.bad is None:
        flags = parsed.added.flags if parsed.new and parsed.added else ()
        status = "added" if parsed.new else "known"
        return SentRow(index, status, names.get(parsed.item_id), tuple(flags))
    if isinstance(parsed, Entry):
        assert parsed.bad is not None
        parsed = Refusal.at(parsed.row.place, parsed.bad, 0)
    said = explain(parsed.code, parsed.params)
    message = f"{said.reason} {said.right}".strip()
    return SentRow(index, "refused", code=parsed.code, field=parsed.field, message=message)

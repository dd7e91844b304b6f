"""The catalog's own kind of import: answers that models gave already."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, BinaryIO

from webapp.catalog import uploads
from webapp.catalog.formats import FORMATS
from webapp.catalog.formats.rows import Refusal
from webapp.catalog.models import ImportRun
from webapp.catalog.policies import check_may_import
from webapp.catalog.refusals import as_error_line
from webapp.catalog.scratch import Scratch
from webapp.catalog.services.batches import Batch, batches, store_batch
from webapp.catalog.services.checks import import_limits
from webapp.catalog.services.importers import Sample, Stored


class AnswersImporter:
    kind = "answers"
    remembers = False

    def check_actor(self, actor: Any, subject: int | None) -> None:
        check_may_import(actor)

    def accept(self, path: Path, wanted: str) -> str:
        return uploads.choose_format(path, wanted)

    def batches(self, run: ImportRun, stream: BinaryIO, scratch: Scratch | None) -> Iterator[Batch]:
        return batches(FORMATS[run.format](stream, limits=import_limits(), skip=run.rows_done))

    def store(self, batch: Batch, run: ImportRun, scratch: Scratch | None) -> Stored:
        return store_batch(batch=batch, run=run, scratch=scratch)

    def error_line(self, refusal: Refusal, run: ImportRun) -> dict[str, Any]:
        return as_error_line(refusal, run.file_name)

    def shown_samples(self, run: ImportRun, samples: list[Sample]) -> list[dict[str, Any]]:
        """Where there is one contestant only, an answer beside its name would tell its maker."""
        several = len(run.report.get("contestants", {})) > 1
        return [shown if several else {**shown, "answer": ""} for _digest, shown in samples]

    def finish(self, run: ImportRun) -> Mapping[str, Any]:
        return {"sealed": run.report.get("sealed", 0)}

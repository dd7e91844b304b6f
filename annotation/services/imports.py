"""Imports of preference pairs into a project. The life of a run is that of all imports."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping
from itertools import islice
from pathlib import Path
from typing import Any, BinaryIO

from django.utils.translation import gettext as _

from annotation import policies
from annotation.enums import WebhookEvent
from annotation.formats import FORMATS, Look, check_format, look
from annotation.formats.containers import Records, container_of, open_records
from annotation.formats.prism import read_survey
from annotation.formats.rows import AXES, DATASET, Options, ParsedPair, without_labels
from annotation.models import Project
from annotation.selectors.imports import KIND as KIND
from annotation.services.import_batches import store_pairs
from annotation.services.import_rows import PairBatch, pair_batches, recall
from annotation.services.queue import refresh_targets
from annotation.services.webhooks import announce
from webapp.catalog.enums import ImportState
from webapp.catalog.formats.rows import FormatError, Refusal
from webapp.catalog.models import ImportRun
from webapp.catalog.refusals import as_error_line
from webapp.catalog.scratch import Scratch
from webapp.catalog.services.checks import check_text, import_limits
from webapp.catalog.services.importers import Sample, Stored
from webapp.catalog.texts import excerpt, sha256, unstorable
from webapp.core.errors import InvalidInput

COLUMNS_SHOWN, EXAMPLE = 200, 60
ARCHIVES = (b"\x1f\x8b", b"PK\x03\x04")


class PairsImporter:
    kind = KIND
    remembers = True

    def check_actor(self, actor: Any, subject: int | None) -> None:
        """`None` is the operator at the command line."""
        if actor is not None:
            policies.check_manage(actor)

    def accept(self, path: Path, wanted: str) -> str:
        """What the first bytes tell; the job reads on. Raises FormatError."""
        if wanted and wanted not in FORMATS:
            raise FormatError("no_format", name=wanted[:40], formats=", ".join(FORMATS))
        with path.open("rb") as stream:
            head = stream.read(4096)
        if not head.startswith(ARCHIVES):
            container_of(head)
        return wanted

    def batches(
        self, run: ImportRun, stream: BinaryIO, scratch: Scratch | None
    ) -> Iterator[PairBatch]:
        assert scratch is not None
        parsed = read_pairs(run, stream)
        for batch in pair_batches(islice(parsed, run.rows_done)):
            with scratch.step():  # imported before an interruption
                for entry in batch.entries:
                    recall(entry, scratch)
        yield from pair_batches(parsed)

    def store(self, batch: PairBatch, run: ImportRun, scratch: Scratch | None) -> Stored:
        assert scratch is not None
        return store_pairs(batch, run, scratch)

    def error_line(self, refusal: Refusal, run: ImportRun) -> dict[str, Any]:
        """With the row itself, to be repaired and sent in again."""
        return {**as_error_line(refusal, run.file_name), "row": refusal.row}

    def shown_samples(self, run: ImportRun, samples: list[Sample]) -> list[dict[str, Any]]:
        return [shown for _digest, shown in samples]

    def finish(self, run: ImportRun) -> Mapping[str, Any]:
        assert run.subject is not None
        project = Project.objects.get(pk=run.subject)
        refresh_targets(project=project)
        counts = {"added": run.added, "known": run.known, "refused": run.refused}
        payload = {"import": run.pk, "state": ImportState.DONE.value, **counts}
        announce(project, WebhookEvent.IMPORT_FINISHED, payload)
        return {"project": project.pk, "labels": run.report.get("labels_added", 0)}


def read_pairs(run: ImportRun, stream: BinaryIO) -> Iterator[ParsedPair]:
    """The rows of a run's file in its format, which is told from the file where nobody said it.

    Notes the columns in the report of the run. Raises FormatError.
    """
    options = options_of(run)
    with Path(run.path).open("rb") as first:
        shown = look(open_records(first, options.limits))
    run.report = {**run.report, "columns": _columns(shown)}
    run.format = run.format or shown.format
    check_format(run.format, shown, options)
    records = open_records(stream, options.limits)
    if run.format == "prism":
        options = dataclasses.replace(options, people=_people(records, run, options))
    parsed = FORMATS[run.format].parse(records.items, options)
    return parsed if options.labels else map(without_labels, parsed)


def options_of(run: ImportRun) -> Options:
    given = run.options
    return Options(
        axis=given.get("axis") or AXES[0],
        gold=bool(given.get("gold")),
        labels=not given.get("no_labels"),
        annotator=given.get("annotator") or DATASET,
        mapping=given.get("mapping") or {},
        limits=import_limits(),
    )


def _people(records: Records, run: ImportRun, options: Options) -> Any:
    """PRISM's survey: beside the answers in the archive, or a file of its own."""
    path = run.options.get("survey")
    if records.survey is not None:
        with records.survey() as stream:
            return read_survey(stream, options.limits)
    if not path:
        raise FormatError("survey_wanted")
    try:
        with Path(path).open("rb") as stream:
            return read_survey(stream, options.limits)
    except OSError as error:
        raise FormatError("survey_wanted") from error


def _columns(shown: Look) -> list[list[str]]:
    """Names of columns with an example each, and its hash: it tells what a seal covers (V1)."""
    found = [(name, shown.examples.get(name, "")) for name in shown.columns[:COLUMNS_SHOWN]]
    return [[name, excerpt(value, EXAMPLE), sha256(value)] for name, value in found]


# What is asked


def check_options(project: Project, options: Mapping[str, Any]) -> dict[str, Any]:
    """Options of an import as they are kept. Raises InvalidInput naming the field.

    A path is none of them: only the command line reads other files of this machine.
    """
    axis = options.get("axis") or project.axes[0]
    if axis not in project.axes:
        raise InvalidInput(_("Choose an axis that the project asks about."), field="axis")
    kept: dict[str, Any] = {"axis": axis}
    for name in ("gold", "no_labels"):
        if options.get(name):
            kept[name] = True
    if "gold" in kept and "no_labels" in kept:
        raise InvalidInput(
            _("The labels are known answers, or they are left out: choose one."), field="no_labels"
        )
    if options.get("annotator"):
        kept["annotator"] = check_text(str(options["annotator"]).strip(), "annotator", limit=120)
    mapping = options.get("mapping") or {}
    if not isinstance(mapping, dict) or not all(map(_is_text, [*mapping, *mapping.values()])):
        raise InvalidInput(_("A mapping says in texts what each column holds."), field="mapping")
    if mapping:
        kept["mapping"] = {what: column for what, column in mapping.items() if column}
    return kept


def _is_text(value: Any) -> bool:
    return isinstance(value, str) and unstorable(value) is None

"""What kinds of imports there are. The catalog has one; a domain adds its own when it is loaded.

The life of a run (`imports`, `import_work`) is the same for all: upload, check, start, batches with
their counts in one transaction each, error file, going on after a crash. An importer says how a
file of its kind is read and what one batch does.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO, Protocol

from webapp.catalog.formats.rows import Refusal
from webapp.catalog.models import ImportRun
from webapp.catalog.scratch import Scratch

Sample = tuple[str, dict[str, Any]]  # a hash to choose by, and what the preview shows


@dataclass
class Stored:
    """What came of a batch. `counts` and `tallies` are added up in the run's report."""

    added: int = 0
    known: int = 0
    refusals: list[Refusal] = field(default_factory=list)
    counts: dict[str, int] = field(default_factory=dict)
    tallies: dict[str, dict[str, int]] = field(default_factory=dict)
    samples: list[Sample] = field(default_factory=list)


class AnyBatch(Protocol):
    """What was read between two commits, in file order, and up to which byte."""

    @property
    def parsed(self) -> Sequence[Any]: ...

    @property
    def offset(self) -> int: ...


class Importer(Protocol):
    """`remembers`: it keeps a scratch in real imports, too, not only in dry runs."""

    kind: str
    remembers: bool

    def check_actor(self, actor: Any, subject: int | None) -> None:
        """Raise unless this user may import for this subject now."""

    def accept(self, path: Path, wanted: str) -> str:
        """The format of an upload, "" where the job tells it. Raises FormatError."""

    def batches(
        self, run: ImportRun, stream: BinaryIO, scratch: Scratch | None
    ) -> Iterator[AnyBatch]:
        """The batches after `run.rows_done` entries. May set `run.format` and notes."""

    def store(self, batch: Any, run: ImportRun, scratch: Scratch | None) -> Stored:
        """Write a batch in the caller's transaction; in a dry run take it back."""

    def error_line(self, refusal: Refusal, run: ImportRun) -> dict[str, Any]:
        """One line of the error file."""

    def shown_samples(self, run: ImportRun, samples: list[Sample]) -> list[dict[str, Any]]:
        """What the preview may show of the chosen samples."""

    def finish(self, run: ImportRun) -> Mapping[str, Any]:
        """Last touches of a real import, in the transaction that ends it; details for the log."""


_importers: dict[str, Importer] = {}


def register(importer: Importer) -> None:
    """Registering a kind twice is once."""
    _importers[importer.kind] = importer


def importer_of(kind: str) -> Importer:
    return _importers[kind]

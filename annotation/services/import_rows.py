"""Pairs of a file on their way into a project: what is computed, and what becomes of each."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from annotation.formats.rows import LabelSpec, PairRow, ParsedPair, flipped
from annotation.models import Project
from annotation.policies import allowed_outcomes
from annotation.services.items import Added, ItemDraft
from webapp.catalog.formats.rows import Refusal, RowError
from webapp.catalog.scratch import Scratch
from webapp.catalog.services.prompts import PromptSpec
from webapp.catalog.texts import canonical_json, sha256

ROWS, LABELS, CHARACTERS = 500, 5_000, 4_000_000


@dataclass
class Entry:
    """A row, its hashes, and what came of it: `bad` or the item it belongs to."""

    row: PairRow
    prompt: PromptSpec
    first_sha256: str
    second_sha256: str
    bad: RowError | None = None
    version_id: int | None = None
    added: Added | None = None
    new: bool = False  # like `added.new`; in a dry run earlier batches count, too
    labels_added: int = 0
    labels_known: int = 0
    labels_repeated: int = 0
    labels_beside: int = 0

    @classmethod
    def of(cls, row: PairRow) -> Entry:
        prompt = PromptSpec.of(row.messages, row.category, row.language)
        return cls(row, prompt, sha256(row.first), sha256(row.second))

    @property
    def key(self) -> tuple[Any, ...]:
        """The pair, whichever answer comes first, without asking the database."""
        persona = self.row.persona
        person = (persona.pseudonym, persona.summary) if persona else ()
        return (self.prompt.digest, person, *sorted([self.first_sha256, self.second_sha256]))

    @property
    def mirrored(self) -> bool:
        """Whether the answers stand against the order of their hashes."""
        return self.first_sha256 > self.second_sha256

    @property
    def item_id(self) -> int:
        assert self.added is not None
        return self.added.item_id

    def draft(self, file_name: str, prompt_id: int) -> ItemDraft:
        row = self.row
        return ItemDraft(
            prompt_id=prompt_id,
            prompt_digest=self.prompt.digest,
            first=row.first,
            second=row.second,
            persona_version_id=self.version_id,
            kind=row.kind,
            synthetic=row.synthetic,
            first_producer=row.first_producer,
            second_producer=row.second_producer,
            details=row.details,
            source=row.source or f"{file_name[:150]}:{row.place.item or row.place.line}",
        )


@dataclass
class PairBatch:
    """What was read between two commits, in file order."""

    parsed: list[Entry | Refusal] = field(default_factory=list)
    offset: int = 0
    labels: int = 0
    characters: int = 0

    @property
    def full(self) -> bool:
        enough = self.labels >= LABELS or self.characters >= CHARACTERS
        return len(self.parsed) >= ROWS or enough

    @property
    def entries(self) -> list[Entry]:
        return [entry for entry in self.parsed if isinstance(entry, Entry)]

    def add(self, parsed: ParsedPair) -> None:
        self.offset = max(self.offset, parsed.offset)
        if isinstance(parsed, Refusal):
            self.parsed.append(parsed)
            return
        self.parsed.append(Entry.of(parsed))
        self.labels += len(parsed.labels)
        prompt = sum(len(content) for _role, content in parsed.messages)
        self.characters += prompt + len(parsed.first) + len(parsed.second)


def pair_batches(parsed: Iterable[ParsedPair]) -> Iterator[PairBatch]:
    batch = PairBatch()
    for entry in parsed:
        batch.add(entry)
        if batch.full:
            yield batch
            batch = PairBatch()
    if batch.parsed:
        yield batch


# What a file said before: labels are told apart by how often a file said them


def mirrored_label(label: LabelSpec, mirror: bool) -> dict[str, str]:
    return {axis: flipped(v) if mirror else v for axis, v in label.verdicts.items()}


def label_digest(verdicts: dict[str, str], label: LabelSpec) -> str:
    """What a label says, for telling whether it is there already. Times do not count."""
    strengths = {axis: value for axis, value in label.strengths.items() if value}
    said = [verdicts, strengths, sorted(set(label.tags)), label.comment]
    return sha256(canonical_json(said))


def occurrence(entry: Entry, label: LabelSpec, scratch: Scratch) -> int:
    """How often the file said this very label before."""
    said = label_digest(mirrored_label(label, entry.mirrored), label)
    return scratch.count("label", *entry.key, label.annotator, said)


def gold_said_first(entry: Entry, scratch: Scratch) -> bool:
    """Whether the file says the same known answer as the first time."""
    verdicts = {a: flipped(v) if entry.mirrored else v for a, v in entry.row.gold.items()}
    value = canonical_json(verdicts)
    return scratch.first_said("gold", *entry.key, value=value) == value


def recall(entry: Entry, scratch: Scratch) -> None:
    """Note what a row says without writing it: it was imported before an interruption."""
    for label in entry.row.labels:
        occurrence(entry, label, scratch)
    if entry.row.gold:
        gold_said_first(entry, scratch)


# What a project asks


def check_row(row: PairRow, project: Project, *, gold: bool) -> None:
    """Raise RowError where a row says what the project does not ask, or too little for gold."""
    allowed = set(allowed_outcomes(project))
    for n, label in enumerate(row.labels):
        for axis, verdict in label.verdicts.items():
            _check_verdict(project, axis, verdict, allowed, f"labels[{n}].{axis}")
    for axis, verdict in row.gold.items():
        _check_verdict(project, axis, verdict, allowed, f"gold.{axis}")
    for axis, decision in row.decisions.items():
        _check_verdict(project, axis, decision.verdict, {*allowed, ""}, f"decisions.{axis}")
    if gold and not row.gold:
        raise RowError("no_gold")


def _check_verdict(
    project: Project, axis: str, verdict: str, allowed: set[str], field: str
) -> None:
    if axis not in project.axes:
        raise RowError("axis_not_asked", field, axis=axis, axes=", ".join(project.axes))
    if verdict not in allowed:
        raise RowError(
            "verdict_not_allowed", field, found=verdict, allowed=", ".join(sorted(allowed))
        )

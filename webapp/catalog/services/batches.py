"""One batch of parsed rows into the catalog, for real or to see what would come of it."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from django.db import transaction

from webapp.catalog.formats.rows import (
    ContestantSpec,
    Parsed,
    PersonaSpec,
    Refusal,
    Row,
    RowError,
)
from webapp.catalog.models import Contestant, ImportRun, Persona
from webapp.catalog.scratch import Scratch
from webapp.catalog.services.answers import Draft, Outcome, write_answers
from webapp.catalog.services.contestants import (
    differences,
    get_or_create_contestants,
    given_settings,
)
from webapp.catalog.services.importers import Stored
from webapp.catalog.services.personas import get_or_create_versions
from webapp.catalog.services.prompts import PromptSpec, get_or_create_prompts
from webapp.catalog.texts import canonical_json, excerpt, sha256, style_features

ROWS, CHARACTERS = 500, 4_000_000
SETTINGS = ("vendor", "system_prompt", "uses_persona", "sampling")


@dataclass(frozen=True, slots=True)
class Prepared:
    """A row with everything computed that needs no database."""

    row: Row
    prompt: PromptSpec
    digest: str
    features: dict[str, int | float]

    @classmethod
    def of(cls, row: Row) -> Prepared:
        prompt = PromptSpec.of(row.messages, row.category, row.language)
        return cls(row, prompt, sha256(row.answer), style_features(row.answer))


@dataclass
class Batch:
    """What was read between two commits, in file order."""

    parsed: list[Prepared | Refusal] = field(default_factory=list)
    offset: int = 0
    characters: int = 0

    @property
    def full(self) -> bool:
        return len(self.parsed) >= ROWS or self.characters >= CHARACTERS

    def add(self, parsed: Parsed) -> None:
        self.offset = parsed.offset
        if isinstance(parsed, Row):
            self.parsed.append(Prepared.of(parsed))
            self.characters += len(parsed.answer)
        else:
            self.parsed.append(parsed)


def batches(parsed: Iterable[Parsed]) -> Iterator[Batch]:
    batch = Batch()
    for entry in parsed:
        batch.add(entry)
        if batch.full:
            yield batch
            batch = Batch()
    if batch.parsed:
        yield batch


def store_batch(*, batch: Batch, run: ImportRun, scratch: Scratch | None = None) -> Stored:
    """Write a batch in the caller's transaction; with a scratch (dry run) it is taken back."""
    rows = [entry for entry in batch.parsed if isinstance(entry, Prepared)]
    with transaction.atomic():
        verdicts = _store(rows, run)
        if scratch is not None:
            verdicts = _recheck(rows, verdicts, scratch)
            transaction.set_rollback(True)
    return _summary(batch, dict(zip(map(id, rows), verdicts, strict=True)))


def _store(rows: Sequence[Prepared], run: ImportRun) -> list[Outcome | RowError]:
    """Personas, contestants, prompts, answers: always in this order, so that no two imports wait
    for each other in a circle."""
    personas = get_or_create_versions(specs=[r.row.persona for r in rows if r.row.persona])
    contestants = get_or_create_contestants(specs=[r.row.contestant for r in rows])
    prompts = get_or_create_prompts(specs=[r.prompt for r in rows])
    verdicts: list[Outcome | RowError | None] = []
    drafts = []
    for entry in rows:
        version = personas[entry.row.persona] if entry.row.persona else None
        contestant = contestants[entry.row.contestant]
        if isinstance(version, RowError) or isinstance(contestant, RowError):
            verdicts.append(version if isinstance(version, RowError) else _bad(contestant))
            continue
        verdicts.append(None)
        drafts.append(
            Draft(
                contestant_id=contestant,
                prompt_id=prompts[entry.prompt.digest],
                persona_version_id=version,
                text=entry.row.answer,
                draw=entry.row.draw,
                finish_reason=entry.row.finish_reason,
                sha256=entry.digest,
                features=entry.features,
            )
        )
    user = None if run.dry_run else run.created_by
    outcomes = iter(write_answers(drafts=drafts, exposed_to=user, imported_in=run))
    return [next(outcomes) if verdict is None else verdict for verdict in verdicts]


def _bad(value: int | RowError) -> RowError:
    assert isinstance(value, RowError)
    return value


def _recheck(
    rows: Sequence[Prepared], verdicts: Sequence[Outcome | RowError], scratch: Scratch
) -> list[Outcome | RowError]:
    """What earlier rows of the file would have changed, had they been written."""
    contestants = _contestant_errors([r.row.contestant for r in rows], scratch)
    personas = _persona_errors([r.row.persona for r in rows if r.row.persona], scratch)
    found: list[Outcome | RowError] = []
    for entry, verdict in zip(rows, verdicts, strict=True):
        if not isinstance(verdict, RowError):
            error = contestants[entry.row.contestant]
            if error is None and entry.row.persona is not None:
                error = personas[entry.row.persona]
            verdict = error or _slot_outcome(entry, verdict, scratch)
        found.append(verdict)
    return found


def _contestant_errors(
    specs: Sequence[ContestantSpec], scratch: Scratch
) -> dict[ContestantSpec, RowError | None]:
    names = {spec.name for spec in specs}
    known = {(c.name, c.version): c for c in Contestant.objects.filter(name__in=names)}
    errors: dict[ContestantSpec, RowError | None] = {}
    for spec in dict.fromkeys(specs):
        now = {name: getattr(known[spec.name, spec.version], name) for name in SETTINGS}
        key = ("contestant", spec.name, spec.version)
        first = Contestant(**json.loads(scratch.first_said(*key, value=canonical_json(now))))
        different = ", ".join(differences(first, given_settings(spec)))
        errors[spec] = (
            RowError("contestant_conflict", "contestant", names=different) if different else None
        )
    return errors


def _persona_errors(
    specs: Sequence[PersonaSpec], scratch: Scratch
) -> dict[PersonaSpec, RowError | None]:
    names = {spec.pseudonym for spec in specs}
    known = Persona.objects.filter(pseudonym__in=names).values_list("pseudonym", "features")
    for pseudonym, features in known:
        for name, value in features.items():
            scratch.first_said("feature", pseudonym, name, value=value)
    return {spec: _feature_error(spec, scratch) for spec in dict.fromkeys(specs)}


def _feature_error(spec: PersonaSpec, scratch: Scratch) -> RowError | None:
    for name, value in spec.features:
        known = scratch.first_said("feature", spec.pseudonym, name, value=value)
        if known != value:
            field = f"persona.features.{name}"
            return RowError("feature_conflict", field, name=name, known=known, found=value)
    return None


def _slot_outcome(entry: Prepared, outcome: Outcome, scratch: Scratch) -> Outcome:
    if outcome is not Outcome.ADDED:
        return outcome
    row = entry.row
    persona = (row.persona.pseudonym, row.persona.summary) if row.persona else ()
    spec = row.contestant
    key = (spec.name, spec.version, entry.prompt.digest, persona, row.draw)
    if scratch.is_new("slot", *key, value=entry.digest):
        return Outcome.ADDED
    same = scratch.first_said("slot", *key, value=entry.digest) == entry.digest
    return Outcome.KNOWN if same else Outcome.CONFLICT


def _summary(batch: Batch, verdicts: dict[int, Outcome | RowError]) -> Stored:
    """Counts of a batch, refusals in file order, rows per contestant, samples for the preview."""
    result = Stored(counts={"sealed": 0}, tallies={"contestants": {}})
    rows = result.tallies["contestants"]
    for entry in batch.parsed:
        if isinstance(entry, Refusal):
            result.refusals.append(entry)
            continue
        verdict = verdicts[id(entry)]
        if verdict is Outcome.CONFLICT:
            verdict = RowError("slot_conflict", "answer")
        if isinstance(verdict, RowError):
            result.refusals.append(Refusal.at(entry.row.place, verdict, entry.row.offset))
            continue
        label = entry.row.contestant.label
        rows[label] = rows.get(label, 0) + 1
        if verdict is Outcome.SEALED:
            result.counts["sealed"] += 1
            continue
        result.added += verdict is Outcome.ADDED
        result.known += verdict is Outcome.KNOWN
        result.samples.append((entry.digest, _sample(entry.row)))
    return result


def _sample(row: Row) -> dict[str, str]:
    """Excerpts for the preview: never with the contestant (V1)."""
    return {
        "persona": row.persona.summary if row.persona else "",
        "prompt": excerpt(row.messages[-1][1]),
        "answer": excerpt(row.answer),
    }

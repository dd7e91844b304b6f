"""Answers in bulk. A slot (contestant, prompt, persona version, draw) takes one answer."""

from __future__ import annotations

import enum
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from django.db import transaction
from django.db.models import Q

from webapp.catalog.enums import Where
from webapp.catalog.models import (
    Answer,
    AnswerText,
    Contestant,
    Exposure,
    ImportRun,
    Persona,
    PersonaVersion,
)
from webapp.catalog.models import public_id as new_public_id
from webapp.catalog.policies import check_consent_stands
from webapp.catalog.texts import sha256, style_features
from webapp.core import audit

CHUNK = 500  # rows a statement; databases limit the number of parameters


class Outcome(enum.Enum):
    ADDED = "added"  # the slot was free
    KNOWN = "known"  # the slot holds this very text
    CONFLICT = "conflict"  # the slot holds another text
    SEALED = "sealed"  # the slot belongs to a sealed round: never said whether the text is the same


Slot = tuple[int, int, int | None, int]


@dataclass(frozen=True, slots=True)
class Draft:
    """An answer to be written. Hash and style features are taken from the text."""

    contestant_id: int
    prompt_id: int
    persona_version_id: int | None
    text: str
    draw: int = 0
    finish_reason: str = ""
    sha256: str = ""
    features: dict[str, int | float] = field(default_factory=dict)

    @property
    def slot(self) -> Slot:
        return (self.contestant_id, self.prompt_id, self.persona_version_id, self.draw)

    @property
    def digest(self) -> str:
        return self.sha256 or sha256(self.text)


@dataclass(frozen=True, slots=True)
class Held:
    """What a slot holds."""

    answer_id: int
    sha256: str
    sealed: bool


def write_answers(
    *,
    drafts: Sequence[Draft],
    exposed_to: Any = None,
    where: Where = Where.IMPORTED,
    imported_in: ImportRun | None = None,
) -> list[Outcome]:
    """Write what is new in one transaction; one outcome per draft, in their order.

    `exposed_to` is the user who met these texts (importer, author): he never judges them. He is
    noted for known and sealed slots too, so that the note tells nothing about a text.
    """
    outcomes: list[Outcome] = []
    with transaction.atomic():
        check_consents({d.persona_version_id for d in drafts if d.persona_version_id})
        for start in range(0, len(drafts), CHUNK):
            chunk = drafts[start : start + CHUNK]
            outcomes += _write_chunk(chunk, exposed_to, where, imported_in)
    return outcomes


def check_consents(versions: set[int]) -> None:
    """Lock the personas of these versions and refuse those whose consent was withdrawn."""
    for start in range(0, len(versions), CHUNK):
        ids = sorted(versions)[start : start + CHUNK]
        personas = Persona.objects.select_for_update().filter(
            pk__in=PersonaVersion.objects.filter(pk__in=ids).values("persona")
        )
        for persona in personas.order_by("pseudonym"):
            check_consent_stands(persona)


def _write_chunk(
    drafts: Sequence[Draft], exposed_to: Any, where: Where, imported_in: ImportRun | None
) -> list[Outcome]:
    held = held_slots(drafts)
    first: dict[Slot, int] = {}
    for n, draft in enumerate(drafts):
        first.setdefault(draft.slot, n)
    fresh = [drafts[n] for slot, n in first.items() if slot not in held]
    added = insert_new(fresh, imported_in)
    if len(added) < len(fresh):  # another import was quicker with some of them
        held.update(held_slots([draft for draft in fresh if draft.slot not in added]))
    for draft in fresh:
        if draft.slot in added:
            held[draft.slot] = Held(added[draft.slot], draft.digest, sealed=False)
    outcomes = [
        Outcome.ADDED
        if draft.slot in added and first[draft.slot] == n
        else _outcome_ofheld_slots(draft, held[draft.slot])
        for n, draft in enumerate(drafts)
    ]
    if exposed_to is not None:
        met = sorted(slot.answer_id for slot in held.values())
        note_exposure(user=exposed_to, answers=met, where=where)
    return outcomes


def note_exposure(*, user: Any, answers: Sequence[int], where: Where) -> None:
    """Note that the user met these answers (ids). Saying it twice is harmless."""
    Exposure.objects.bulk_create(
        [Exposure(user=user, answer_id=answer, where=where) for answer in answers],
        ignore_conflicts=True,
    )


def _outcome_ofheld_slots(draft: Draft, present: Held) -> Outcome:
    if present.sealed:
        return Outcome.SEALED
    return Outcome.KNOWN if present.sha256 == draft.digest else Outcome.CONFLICT


def held_slots(drafts: Sequence[Draft]) -> dict[Slot, Held]:
    """What the slots of these drafts hold now."""
    wanted = {draft.slot for draft in drafts}
    versions = {slot[2] for slot in wanted if slot[2] is not None}
    persona = Q(persona_version__in=versions)
    if any(slot[2] is None for slot in wanted):
        persona |= Q(persona_version=None)
    rows = Answer.objects.filter(
        persona,
        contestant__in={slot[0] for slot in wanted},
        prompt__in={slot[1] for slot in wanted},
    ).values_list(
        "contestant_id",
        "prompt_id",
        "persona_version_id",
        "draw",
        "pk",
        "text_sha256",
        "seal__pk",
        "seal__released_at",
    )
    return {
        slot: Held(pk, digest, seal is not None and released is None)
        for *key, pk, digest, seal, released in rows
        if (slot := (key[0], key[1], key[2], key[3])) in wanted
    }


def insert_new(drafts: Sequence[Draft], imported_in: ImportRun | None) -> dict[Slot, int]:
    """Ids of the slots that were really written; a slot taken meanwhile is left out."""
    ordered = sorted(drafts, key=lambda d: (d.slot[0], d.slot[1], d.slot[2] or 0, d.slot[3]))
    by_public_id = {new_public_id(): draft for draft in ordered}
    Answer.objects.bulk_create(
        [
            Answer(
                contestant_id=draft.contestant_id,
                prompt_id=draft.prompt_id,
                persona_version_id=draft.persona_version_id,
                draw=draft.draw,
                text_sha256=draft.digest,
                finish_reason=draft.finish_reason,
                features=draft.features or style_features(draft.text),
                public_id=public_id,
                imported_in=imported_in,
            )
            for public_id, draft in by_public_id.items()
        ],
        ignore_conflicts=True,
    )
    written = Answer.objects.filter(public_id__in=list(by_public_id)).values_list("public_id", "pk")
    ids = {by_public_id[public_id].slot: pk for public_id, pk in written}
    texts = {draft.slot: draft.text for draft in ordered}
    AnswerText.objects.bulk_create(
        [AnswerText(answer_id=pk, text=texts[slot]) for slot, pk in ids.items()]
    )
    return ids


def read_answers(*, actor: Any, contestant: Contestant, answer_ids: Sequence[int]) -> None:
    """Note that an administrator reads these answers with their maker: he never judges them."""
    with transaction.atomic():
        note_exposure(user=actor, answers=answer_ids, where=Where.AUDITED)
        audit.record(actor=actor, action="read_answers", obj=contestant, n=len(answer_ids))

"""Writing answers that were made here. From its first moment each is sealed for its round (V1)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from django.db import transaction
from django.db.models import Max

from webapp.catalog.models import Answer, AnswerCost, Persona, PersonaVersion, Seal
from webapp.catalog.services.answers import Draft, Slot, held_slots, insert_new

WITHDRAWN, TAKEN = "withdrawn", "taken"
ROUNDS = 5  # how often a draw that others took meanwhile is chosen anew


@dataclass(frozen=True, slots=True)
class MadeDraft:
    """An answer to be written, and what it took."""

    draft: Draft
    milliseconds: int
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    tries: int = 1


def write_made_answers(*, made: Sequence[MadeDraft], holder: str) -> list[int | str]:
    """Write and seal in one transaction; per draft the answer's id, or why there is none.

    `withdrawn`: the persona's consent was withdrawn meanwhile. `taken`: another round holds this
    very text, and a text enters one round only (V5). A draw that was taken meanwhile moves on.
    """
    with transaction.atomic():
        refused = _refused([one.draft for one in made], holder)
        left = {n: one for n, one in enumerate(made) if n not in refused}
        ids: dict[int, int] = {}
        for _round in range(ROUNDS):
            left = {n: one for n, one in left.items() if n not in ids}
            if not left:
                break
            drafts = _free_draws([one.draft for one in left.values()])
            slots = dict(zip(left, (draft.slot for draft in drafts), strict=True))
            written = insert_new(drafts, None)
            ids |= {n: written[slot] for n, slot in slots.items() if slot in written}
        _note(made, ids, holder)
    return [refused[n] if n in refused else ids[n] for n in range(len(made))]


def _refused(drafts: Sequence[Draft], holder: str) -> dict[int, str]:
    """Places of drafts that must not be written. Locks the personas: a withdrawal waits, or did."""
    versions = {d.persona_version_id for d in drafts if d.persona_version_id is not None}
    personas = PersonaVersion.objects.filter(pk__in=versions).values("persona")
    rows = Persona.objects.select_for_update().filter(pk__in=personas).order_by("pseudonym")
    gone = {row.pk for row in rows if row.withdrawn_at is not None}
    withdrawn = set(
        PersonaVersion.objects.filter(pk__in=versions, persona__in=gone).values_list(
            "pk", flat=True
        )
    )
    digests = {draft.digest for draft in drafts}
    elsewhere = Seal.objects.exclude(holder=holder).filter(answer__text_sha256__in=digests)
    taken = set(elsewhere.values_list("answer__text_sha256", flat=True))
    found = {n: TAKEN for n, draft in enumerate(drafts) if draft.digest in taken}
    return found | {
        n: WITHDRAWN for n, draft in enumerate(drafts) if draft.persona_version_id in withdrawn
    }


def _free_draws(drafts: list[Draft]) -> list[Draft]:
    """The same drafts, with the next draw where theirs is taken."""
    held = held_slots(drafts)
    used: set[Slot] = set()
    found = []
    for draft in drafts:
        if draft.slot in held or draft.slot in used:
            draft = replace(draft, draw=_next_draw(draft))
        used.add(draft.slot)
        found.append(draft)
    return found


def _next_draw(draft: Draft) -> int:
    rows = Answer.objects.filter(
        contestant=draft.contestant_id,
        prompt=draft.prompt_id,
        persona_version=draft.persona_version_id,
    )
    return int(rows.aggregate(most=Max("draw"))["most"] or 0) + 1


def _note(made: Sequence[MadeDraft], ids: dict[int, int], holder: str) -> None:
    AnswerCost.objects.bulk_create(
        AnswerCost(
            answer_id=pk,
            prompt_tokens=made[n].prompt_tokens,
            completion_tokens=made[n].completion_tokens,
            milliseconds=made[n].milliseconds,
            tries=made[n].tries,
        )
        for n, pk in sorted(ids.items())
    )
    Seal.objects.bulk_create(Seal(answer_id=pk, holder=holder) for pk in sorted(ids.values()))

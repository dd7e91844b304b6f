"""What never enters a dataset: holdout, withdrawn consent, what a sealed round still asks (V11)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from django.db.models import Q

from arena.enums import SEALED_STATES, RoundState
from arena.models import Context
from webapp.catalog.enums import Split as CatalogSplit
from webapp.catalog.models import Persona, Prompt

HOLDOUT, WITHDRAWN, SEALED = "holdout", "withdrawn", "sealed"
PLANNED = (RoundState.DRAFT, RoundState.SCREENING)


@dataclass(frozen=True)
class Barred:
    """Reasons by hash of the prompt and by id of the persona."""

    prompts: Mapping[str, str]
    personas: Mapping[int, str]

    def reason(self, prompt_sha256: str, persona_id: int | None) -> str:
        by_prompt = self.prompts.get(prompt_sha256, "")
        return by_prompt or (self.personas.get(persona_id, "") if persona_id else "")


def find_barred() -> Barred:
    """As things stand now. Rounds that are planned hold out what they have drawn already."""
    sealed = Q(round__state__in=[*SEALED_STATES, RoundState.SCREENING])
    prompts = dict.fromkeys(_hashes(sealed), SEALED)
    drawn = Q(round__state__in=PLANNED, holdout=True)
    prompts.update(dict.fromkeys(_hashes(drawn), HOLDOUT))
    kept = Prompt.objects.filter(split=CatalogSplit.HOLDOUT)
    prompts.update(dict.fromkeys(kept.values_list("text_hash", flat=True), HOLDOUT))
    personas: dict[int, str] = {
        pk: HOLDOUT
        for pk in Context.objects.filter(drawn)
        .values_list("persona_version__persona", flat=True)
        .distinct()
        if pk
    }
    rows = Persona.objects.filter(Q(split=CatalogSplit.HOLDOUT) | Q(withdrawn_at__isnull=False))
    for pk, withdrawn in rows.values_list("pk", "withdrawn_at"):
        personas[pk] = WITHDRAWN if withdrawn else HOLDOUT
    return Barred(prompts, personas)


def _hashes(which: Q) -> list[str]:
    found = Context.objects.filter(which).values_list("prompt__text_hash", flat=True)
    return list(found.distinct())

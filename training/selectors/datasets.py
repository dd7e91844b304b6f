"""Reading datasets: lists, and whether the splits of all frozen ones are disjoint (V11, F21)."""

from __future__ import annotations

from dataclasses import dataclass

from django.db.models import Count, QuerySet

from training.enums import DatasetState, Split
from training.models import Dataset, DatasetItem
from webapp.catalog.enums import Split as CatalogSplit
from webapp.catalog.models import Persona, Prompt

EXAMPLES = 10


@dataclass(frozen=True)
class Leak:
    """A prompt or persona that stands where it must not."""

    of: str  # prompt, persona, row
    key: str
    why: str  # two_splits, holdout, synthetic


def datasets() -> QuerySet[Dataset]:
    return Dataset.objects.select_related("created_by")


def check_all_splits() -> list[Leak]:
    """Leaks over all frozen datasets, a few examples of each kind. Empty is right."""
    items = DatasetItem.objects.filter(dataset__state=DatasetState.FROZEN).order_by()
    leaks: list[Leak] = []
    for of, column in (("prompt", "prompt_sha256"), ("persona", "persona")):
        rows = items.exclude(**{column: None}).values(column)
        twice = rows.annotate(n=Count("split", distinct=True)).filter(n__gt=1)
        leaks += [Leak(of, str(row[column]), "two_splits") for row in twice[:EXAMPLES]]
    prompts = Prompt.objects.filter(split=CatalogSplit.HOLDOUT).values("text_hash")
    personas = Persona.objects.filter(split=CatalogSplit.HOLDOUT).values("pk")
    held = items.filter(prompt_sha256__in=prompts).values_list("prompt_sha256", flat=True)
    leaks += [Leak("prompt", key, "holdout") for key in held.distinct()[:EXAMPLES]]
    held_people = items.filter(persona__in=personas).values_list("persona", flat=True)
    leaks += [Leak("persona", str(key), "holdout") for key in held_people.distinct()[:EXAMPLES]]
    synthetic = items.filter(synthetic=True).exclude(split=Split.TRAIN)
    found = synthetic.values_list("row_sha256", flat=True)[:EXAMPLES]
    return leaks + [Leak("row", key, "synthetic") for key in found]

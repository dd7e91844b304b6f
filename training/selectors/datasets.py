"""Reading datasets: lists, and whether the splits of all frozen ones are disjoint (V11, F21)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from django.db.models import Count, QuerySet

from annotation.models import Project
from arena.enums import RoundState
from arena.models import Round
from training.enums import DatasetState, Split
from training.models import Dataset, DatasetItem, Record
from webapp.catalog.enums import Split as CatalogSplit
from webapp.catalog.models import ImportRun, Persona, Prompt
from webapp.catalog.strata import stratum_of

EXAMPLES = 10
MOST_STRATA = 60


@dataclass(frozen=True)
class Leak:
    """A prompt or persona that stands where it must not."""

    of: str  # prompt, persona, row
    key: str
    why: str  # two_splits, holdout, synthetic


def datasets() -> QuerySet[Dataset]:
    return Dataset.objects.select_related("created_by")


def names_of(dataset: Dataset) -> dict[str, dict[int, str]]:
    """Names of the projects, rounds and imports that a filter names, by id."""
    chosen = {kind: dataset.filter.get(kind, []) for kind in ("projects", "rounds", "imports")}
    projects = Project.objects.filter(pk__in=chosen["projects"]).values_list("pk", "name")
    rounds = Round.objects.filter(pk__in=chosen["rounds"]).values_list("pk", "name")
    imports = ImportRun.objects.filter(pk__in=chosen["imports"]).values_list("pk", "file_name")
    return {"projects": dict(projects), "rounds": dict(rounds), "imports": dict(imports)}


def record_imports() -> QuerySet[ImportRun]:
    return ImportRun.objects.filter(kind="records").select_related("created_by")


@dataclass(frozen=True)
class Choices:
    """What a filter can choose from."""

    projects: list[tuple[int, str]]
    rounds: list[tuple[int, str]]
    imports: list[tuple[int, str]]
    strata: list[str]
    languages: list[str]
    categories: list[str]


def unsealed_round(pk: int) -> Round | None:
    """A round whose votes may become pairs."""
    return Round.objects.filter(pk=pk, state=RoundState.UNSEALED).first()


def choices(kind: str, stratum_features: Iterable[str]) -> Choices:
    """In seven statements at most, whatever there is."""
    found = record_imports().filter(format=kind, dry_run=False, added__gt=0).order_by("pk")
    rounds = Round.objects.filter(state=RoundState.UNSEALED).order_by("pk")
    names = tuple(stratum_features)
    people = Persona.objects.filter(withdrawn_at=None).values_list("features", flat=True)
    strata = sorted({stratum_of(features, names) for features in people})
    return Choices(
        projects=list(Project.objects.order_by("pk").values_list("pk", "name")),
        rounds=list(rounds.values_list("pk", "name")),
        imports=list(found.values_list("pk", "file_name")),
        strata=strata[:MOST_STRATA],
        languages=_distinct(kind, "language"),
        categories=_distinct(kind, "category"),
    )


def _distinct(kind: str, column: str) -> list[str]:
    prompts = Prompt.objects.exclude(**{column: ""}).order_by().values_list(column, flat=True)
    records = Record.objects.filter(kind=kind).exclude(**{column: ""}).order_by()
    return sorted({*prompts.distinct(), *records.values_list(column, flat=True).distinct()})


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

"""The last step of a freeze: claim splits for ever; write hash, counts and lineage (V10)."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from typing import Any

from django.db.models import CharField, Exists, OuterRef, QuerySet
from django.db.models.functions import Cast
from django.utils import timezone

from annotation.models import Label, Project
from arena.models import Context, Round
from training.enums import DatasetState, Of
from training.models import Dataset, DatasetItem, SplitClaim
from training.rows import FORMAT
from training.selectors.barred import find_barred
from webapp.catalog.enums import Split as CatalogSplit
from webapp.catalog.models import ImportRun, Persona, Prompt
from webapp.catalog.texts import canonical_json
from webapp.core import audit

CODE_VERSION = "1"  # count up when the same sources come to give other rows
BATCH = 1000


class Overtaken(Exception):
    """Since the rows were collected, one of them was barred or went to another split."""


def seal(dataset: Dataset, facts: Mapping[str, Any]) -> None:
    """Freeze in the caller's transaction, or raise Overtaken and leave everything as it was."""
    items = DatasetItem.objects.filter(dataset=dataset)
    _check_allowed(items)
    _claim_splits(dataset, items)
    content, by_split = hashes(dataset)
    _keep_from_holdout(items)
    Context.objects.filter(pk__in=facts["contexts"], retired_at=None).update(
        retired_at=timezone.now()
    )
    Dataset.objects.filter(pk=dataset.pk).update(
        state=DatasetState.FROZEN,
        content_sha256=content,
        split_sha256=by_split,
        rows=facts["rows"],
        counts=facts["counts"],
        lineage=lineage(facts["origins"]),
        code_version=CODE_VERSION,
        frozen_at=timezone.now(),
        stage="",
    )
    audit.record(
        actor=dataset.created_by,
        action="dataset_frozen",
        obj=dataset,
        rows=facts["rows"],
        content_sha256=content,
    )


def _check_allowed(items: QuerySet[DatasetItem]) -> None:
    """What was barred since the rows were collected may not be frozen."""
    barred = find_barred()
    for chunk in _chunks(sorted(barred.personas)):
        if items.filter(persona__in=chunk).exists():
            raise Overtaken
    for names in _chunks(sorted(barred.prompts)):
        if items.filter(prompt_sha256__in=names).exists():
            raise Overtaken


def _chunks(values: list[Any]) -> Iterator[list[Any]]:
    for start in range(0, len(values), BATCH):
        yield values[start : start + BATCH]


def _claim_splits(dataset: Dataset, items: QuerySet[DatasetItem]) -> None:
    """Write the claims that are new; the unique constraint decides between two datasets."""
    prompts = items.order_by().values_list("prompt_sha256", "split").distinct()
    personas = items.exclude(persona=None).order_by().values_list("persona", "split").distinct()
    for of, rows in ((Of.PROMPT, prompts), (Of.PERSONA, personas)):
        new = [
            SplitClaim(of=of, key=str(key), split=split, dataset=dataset)
            for key, split in rows.iterator()
        ]
        SplitClaim.objects.bulk_create(new, ignore_conflicts=True, batch_size=BATCH)
    if contradicted(items).exists():
        raise Overtaken


def contradicted(items: QuerySet[DatasetItem]) -> QuerySet[DatasetItem]:
    """Rows whose prompt or persona was claimed for another split."""
    named = items.annotate(persona_key=Cast("persona_id", CharField()))
    prompts = SplitClaim.objects.filter(of=Of.PROMPT, key=OuterRef("prompt_sha256"))
    personas = SplitClaim.objects.filter(of=Of.PERSONA, key=OuterRef("persona_key"))
    other = named.annotate(
        wrong_prompt=Exists(prompts.exclude(split=OuterRef("split"))),
        wrong_persona=Exists(personas.exclude(split=OuterRef("split"))),
    )
    return other.filter(wrong_prompt=True) | other.filter(wrong_persona=True)


def hashes(dataset: Dataset) -> tuple[str, dict[str, str]]:
    """The hash of all rows with their splits, and one per split; rows go by their hash.

    It covers hashes of texts, never texts: erasing one does not change it.
    """
    head = canonical_json({"format": FORMAT, "kind": dataset.kind}) + "\n"
    whole = hashlib.sha256(head.encode())
    parts: dict[str, Any] = {}
    columns = ("row_sha256", "split", "stratum")
    rows = DatasetItem.objects.filter(dataset=dataset).order_by("row_sha256")
    for row, split, stratum in rows.values_list(*columns).iterator(chunk_size=5000):
        entry = canonical_json([row, split, stratum]).encode() + b"\n"
        whole.update(entry)
        if split not in parts:
            parts[split] = hashlib.sha256(head.encode())
        parts[split].update(entry)
    return whole.hexdigest(), {split: parts[split].hexdigest() for split in sorted(parts)}


def _keep_from_holdout(items: QuerySet[DatasetItem]) -> None:
    """What a dataset holds is never drawn for holdout contexts: the catalog tells the rounds."""
    used = {"split": CatalogSplit.NONE}
    Prompt.objects.filter(text_hash__in=items.values("prompt_sha256"), **used).update(
        split=CatalogSplit.ROTATING
    )
    Persona.objects.filter(pk__in=items.values("persona"), **used).update(
        split=CatalogSplit.ROTATING
    )


def keep_claimed_from_holdout() -> int:
    """Prompts that came into the catalog after a dataset took the same text from a file (beat)."""
    claims = SplitClaim.objects.filter(of=Of.PROMPT, key=OuterRef("text_hash"))
    rows = Prompt.objects.filter(Exists(claims), split=CatalogSplit.NONE)
    return rows.update(split=CatalogSplit.ROTATING)


def lineage(origins: Mapping[str, Mapping[str, int]]) -> dict[str, Any]:
    """Where the rows come from, as it was when they were frozen."""
    found = {name: {int(pk): n for pk, n in rows.items()} for name, rows in origins.items()}
    projects, rounds = found.get("projects", {}), found.get("rounds", {})
    imports = found.get("imports", {})
    return {
        "projects": [
            {"id": p.pk, "name": p.name, "rows": projects[p.pk], "guidelines": _guidelines(p)}
            for p in Project.objects.filter(pk__in=projects).order_by("pk")
        ],
        "rounds": [
            {
                "id": r.pk,
                "name": r.name,
                "rows": rounds[r.pk],
                "simulated": r.simulated,
                "commitment": r.commitment,
                "vote_digest": r.vote_digest,
            }
            for r in Round.objects.filter(pk__in=rounds).order_by("pk")
        ],
        "imports": [
            {"id": run.pk, "name": run.file_name, "rows": imports[run.pk], "sha256": run.sha256}
            for run in ImportRun.objects.filter(pk__in=imports).order_by("pk")
        ],
    }


def _guidelines(project: Project) -> list[int]:
    """The versions of the guidelines that the project's labels name."""
    rows = Label.objects.filter(item__project=project, guideline__isnull=False)
    return sorted(set(rows.order_by().values_list("guideline__n", flat=True).distinct()))

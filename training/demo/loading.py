"""Imports and freezes the workshop through the services of the pages. Harmless twice."""

from __future__ import annotations

import json
import random
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from annotation.models import Project
from annotation.services import imports as pair_imports
from annotation.services import projects
from training import filters
from training.demo import world
from training.demo.world import Corner, Sizes
from training.enums import DatasetState
from training.models import Dataset, DatasetItem, Record
from training.selectors.claims import assign_splits
from training.services.datasets import create_dataset, freeze_dataset
from training.services.freezing import run_freeze
from training.services.records import KIND as RECORDS
from webapp.accounts.enums import Role
from webapp.accounts.models import User
from webapp.catalog.enums import ImportState
from webapp.catalog.models import Persona
from webapp.catalog.services.imports import open_run, run_import
from webapp.catalog.strata import stratum_of
from webapp.catalog.texts import prompt_hash
from webapp.core.errors import Refused

INSTRUCTIONS = "Workshop: instructions"
QUALITY = "Workshop: quality"
PERSONALIZATION = "Workshop: personalization"
DEFECTS = "Workshop: defects"
MEASURED = ("reward_model_gate", "gate")  # where defects are looked for
GUIDELINES = {
    QUALITY: "Which answer names the right tool, whole and without fuss? Style does not count.",
    PERSONALIZATION: "Which answer has the form that this person wants? Mistakes do not count.",
}
PLAIN = {"base_overlap": 1, "max_overlap": 1, "gold_percent": 0, "repeat_percent": 0,
         "onboarding_size": 0}  # fmt: skip
PATIENCE = 120.0
# One stratum: every corner has as many experts as novices.
SPLITTING: dict[str, Any] = {**world.SHARES, "cut": False, "stratum_features": ["language"]}


@dataclass(frozen=True)
class Workshop:
    """The frozen datasets."""

    instructions: Dataset
    quality: Dataset
    personalization: Dataset
    defects: Dataset


def load(*, seed: int = 1, sizes: Sizes | None = None, actor: Any = None) -> Workshop:
    """What is missing of it. Everything follows from the seed."""
    sizes, rng = sizes or Sizes(), random.Random(seed)  # noqa: S311 - no secrets
    actor = actor or manager()
    corners = world.corners(seed)
    rows = [row for c in corners for row in world.instructions(c, sizes, rng)]
    first = _instructions(actor, rows, corners)
    split = splits(first, corners)
    clean = [name != "train" for name in split]
    pairs = list(zip(corners, clean, strict=True))
    quality = [r for c, fine in pairs for r in world.quality(c, sizes.quality, rng, clean=fine)]
    personal = [
        row
        for corner, fine in pairs
        for row in world.personalization(
            corner, 2 * sizes.swaps if fine else sizes.personalization, rng, clean=fine
        )
    ]
    broken = [
        row
        for corner, name in zip(corners, split, strict=True)
        if name in MEASURED
        for row in world.defects(corner, sizes.defects, rng)
    ]
    return Workshop(
        first,
        _pairs(actor, QUALITY, "quality", quality),
        _pairs(actor, PERSONALIZATION, "personalization", personal),
        _defects(actor, broken),
    )


def manager() -> User:
    found = User.objects.filter(role=Role.ADMIN, is_active=True).order_by("pk").first()
    if found is None:
        raise Refused("Make an administrator first.", code="no_accounts")
    return found


def splits(dataset: Dataset, corners: list[Corner]) -> list[str]:
    """Where each corner went."""
    rows = DatasetItem.objects.filter(dataset=dataset)
    found = dict(rows.values_list("prompt_sha256", "split").distinct())
    return [found[hash_of(corner)] for corner in corners]


def hash_of(corner: Corner) -> str:
    """Of one of its questions: a corner is never parted."""
    return prompt_hash([{"role": "user", "content": corner.asks[0].text}])


def _instructions(actor: Any, rows: list[Any], corners: list[Corner]) -> Dataset:
    known = Dataset.objects.filter(name=INSTRUCTIONS, state=DatasetState.FROZEN).first()
    if known is not None:
        return known
    import_rows(actor, rows, "instructions", kind=RECORDS)
    seed = teaching_seed(corners)
    values = {"categories": [world.CATEGORY], **SPLITTING, "seed": seed}
    return frozen(actor, INSTRUCTIONS, "instructions", values)


def teaching_seed(
    corners: list[Corner], teaches: Callable[[list[Corner]], bool] = world.teaches_all
) -> int:
    """The first seed of the splits with which training shows everything that can be asked."""
    records = Record.objects.filter(kind="instructions", category=world.CATEGORY)
    rows = records.values_list("prompt_sha256", "persona")
    cells = Counter((prompt, str(persona or "")) for prompt, persona in rows)
    people = Persona.objects.filter(pk__in=records.values("persona"))
    for seed in range(1, 1000):
        spec = filters.parse("instructions", {**SPLITTING, "seed": seed})
        strata = {str(p.pk): stratum_of(p.features, spec.stratum_features) for p in people}
        given = assign_splits(spec, cells, strata).cells
        found = {prompt: split for (prompt, _persona), split in given.items()}
        if teaches([c for c in corners if found[hash_of(c)] == "train"]):
            return seed
    raise Refused("No split of the workshop teaches everything.", code="no_seed")


def _pairs(actor: Any, name: str, axis: str, rows: list[Any]) -> Dataset:
    known = Dataset.objects.filter(name=name, state=DatasetState.FROZEN).first()
    if known is not None:
        return known
    project = Project.objects.filter(name=name).first() or projects.create_project(
        actor=actor, name=name, guidelines=GUIDELINES[name], settings={"axes": [axis], **PLAIN}
    )
    options = pair_imports.check_options(project, {"axis": axis})
    import_rows(
        actor, rows, "palate_pairs", kind=pair_imports.KIND, subject=project.pk, options=options
    )
    values = {**world.SHARES, "axis": axis, "sources": ["annotation"], "projects": [project.pk]}
    return frozen(actor, name, "preferences", values)


def _defects(actor: Any, rows: list[Any]) -> Dataset:
    known = Dataset.objects.filter(name=DEFECTS, state=DatasetState.FROZEN).first()
    if known is not None:
        return known
    import_rows(actor, rows, "counterexamples", kind=RECORDS)
    values: dict[str, Any] = {"sources": ["import"], "categories": [world.CATEGORY]}
    values |= {"train": 0, "reward_model_gate": 33, "gate": 67}
    return frozen(actor, DEFECTS, "counterexamples", values)


def import_rows(
    actor: Any,
    rows: Iterable[Mapping[str, Any]],
    format: str,
    *,
    kind: str,
    subject: int | None = None,
    options: Mapping[str, Any] | None = None,
) -> None:
    """A file of these rows, imported here to its end."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"workshop-{format}.jsonl"
        with path.open("w", encoding="utf-8") as out:
            out.writelines(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
        opened = open_run(
            path=path, format=format, user=actor, kind=kind, subject=subject, options=options
        )
        done = run_import(pk=opened.pk, take_over=True)
    if done is None or done.state != ImportState.DONE or done.refused:
        raise Refused(f"The workshop was not imported: {done}", code="import")


def frozen(actor: Any, name: str, kind: str, values: Mapping[str, Any]) -> Dataset:
    """Frozen here, or by the worker that got the job first."""
    dataset = Dataset.objects.filter(name=name).first() or create_dataset(
        actor=actor, name=name, kind=kind, values=values
    )
    if dataset.state == DatasetState.DRAFT:
        freeze_dataset(actor=actor, dataset=dataset)
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end:
        run_freeze(pk=dataset.pk)
        dataset.refresh_from_db()
        if dataset.state != DatasetState.FREEZING:
            break
        time.sleep(0.2)
    if dataset.state != DatasetState.FROZEN:
        raise Refused(f"“{name}” was not frozen: {dataset.report}", code="not_frozen")
    return dataset

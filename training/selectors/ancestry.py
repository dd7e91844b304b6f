"""What stands behind a contestant: the run, the contestants of its bases, its reward models.

The frozen provenance of a contestant names the runs; one that was not promoted has none.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from django.db.models import QuerySet
from django.utils.translation import gettext as _

from training.ancestry import rewards_of
from training.models import GateRun, TrainingRun
from training.roles import BRANCHES
from webapp.catalog.enums import ContestantKind
from webapp.catalog.models import Contestant
from webapp.core.errors import Refused


@dataclass(frozen=True)
class Asked:
    """A reward model, and whether it gave the reward or only judged at the gate."""

    run: TrainingRun
    rewarded: bool


def trained_contestants() -> QuerySet[Contestant]:
    """Contestants that came out of a run, the newest first."""
    rows = Contestant.objects.filter(kind=ContestantKind.CHECKPOINT)
    return rows.filter(provenance__run__id__isnull=False).order_by("-pk")


def run_of(contestant: Contestant) -> TrainingRun | None:
    """The run whose weights the contestant is."""
    known = (contestant.provenance or {}).get("run") or {}
    return TrainingRun.objects.filter(pk=known.get("id") or 0).first()


def check_trained(contestant: Contestant) -> TrainingRun:
    run = run_of(contestant)
    if run is None:
        raise Refused(
            _("“%(name)s” was not trained here.") % {"name": contestant}, code="not_trained"
        )
    return run


def base_contestants(contestant: Contestant) -> Iterator[list[Contestant]]:
    """Contestants of the models that this one started from, by model, the nearest first.

    Weights that were kept along the way are another model.
    """
    named = [base["id"] for base in (contestant.provenance or {}).get("bases") or []]
    rows = Contestant.objects.filter(provenance__run__id__in=named).exclude(pk=contestant.pk)
    by_run: dict[int, list[Contestant]] = {}
    for row in rows.order_by("pk"):
        if not row.provenance.get("checkpoint"):
            by_run.setdefault(row.provenance["run"]["id"], []).append(row)
    return (by_run[pk] for pk in named if pk in by_run)


def reward_models_of(contestant: Contestant) -> dict[str, Asked]:
    """By branch: who gave the reward to the model or the nearest ancestor; else who judged it."""
    run = run_of(contestant)
    if run is None:
        return {}
    found: dict[str, Asked] = {}
    for branch, model in rewards_of(run):
        found.setdefault(branch, Asked(model, True))
    known = (contestant.provenance or {}).get("gate") or {}
    gate = GateRun.objects.filter(pk=known.get("id") or 0).select_related(
        "spec__quality", "spec__personalization"
    )
    for judged in gate:
        for branch in BRANCHES:
            judge = getattr(judged.spec, branch)
            if judge is not None:
                found.setdefault(branch.value, Asked(judge, False))
    return found

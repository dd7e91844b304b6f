"""What a model started from, and who gave the reward along the way."""

from __future__ import annotations

from training.enums import Role, RunKind
from training.models import RunInput, TrainingRun
from training.roles import BRANCHES


def ancestry_of(run: TrainingRun) -> list[TrainingRun]:
    """The model and all that it started from, the nearest first."""
    found = [run]
    while True:
        rows = RunInput.objects.filter(run=found[-1], role=Role.BASE, source__isnull=False)
        base = rows.select_related("source").first()
        if base is None or base.source is None or base.source in found:
            return found
        found.append(base.source)


def rewards_of(run: TrainingRun) -> list[tuple[str, TrainingRun]]:
    """Branches and reward models that trained this model or one it comes from, the nearest first.

    Only GRPO is paid: a quantisation takes a reward model to measure what it lost.
    """
    paid = [one.pk for one in ancestry_of(run) if one.kind == RunKind.GRPO]
    rows = RunInput.objects.filter(run__in=paid, role__in=BRANCHES).select_related("source")
    found = sorted(rows, key=lambda row: (paid.index(row.run_id), row.pk))
    return list(dict.fromkeys((row.role, row.source) for row in found if row.source is not None))

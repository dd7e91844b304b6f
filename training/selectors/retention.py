"""Which checkpoints could be removed to get under the quota, and why each other one is kept."""

from __future__ import annotations

from dataclasses import dataclass, field

from django.conf import settings

from training.enums import ENDED, RunState
from training.models import Checkpoint, RunInput
from training.storage import GB


@dataclass(frozen=True)
class Kept:
    """`why`: pinned, active, used, final, resumable, quota."""

    checkpoint: Checkpoint
    why: str


@dataclass(frozen=True)
class Plan:
    """Bytes and checkpoints; `removed` would bring the sum from `used` to `after`."""

    quota: float
    used: int
    removed: list[Checkpoint] = field(default_factory=list)
    kept: list[Kept] = field(default_factory=list)

    @property
    def freed(self) -> int:
        return sum(checkpoint.size for checkpoint in self.removed)

    @property
    def after(self) -> int:
        return self.used - self.freed

    @property
    def fits(self) -> bool:
        """Whether the quota holds once these are gone."""
        return self.after <= self.quota


def plan(quota_gb: float | None = None) -> Plan:
    """Intermediate checkpoints of ended, unpinned runs, oldest first, until the quota holds."""
    quota = (settings.PALATE_RUNS_QUOTA_GB if quota_gb is None else quota_gb) * GB
    rows = Checkpoint.objects.filter(removed_at=None).select_related("run").order_by("at", "pk")
    checkpoints = list(rows)
    used = sum(checkpoint.size for checkpoint in checkpoints)
    used_runs = set(RunInput.objects.exclude(source=None).values_list("source", flat=True))
    found = Plan(quota, used)
    excess = used - quota
    for checkpoint in checkpoints:
        why = why_kept(checkpoint, used_runs)
        if not why and excess <= 0:
            why = "quota"
        if why:
            found.kept.append(Kept(checkpoint, why))
        else:
            found.removed.append(checkpoint)
            excess -= checkpoint.size
    return found


def why_kept(checkpoint: Checkpoint, used_runs: set[int] | None = None) -> str:
    """The reason why a checkpoint must stay; empty where it may go."""
    run = checkpoint.run
    if run.state not in ENDED:
        return "active"
    if run.pinned:
        return "pinned"
    used = RunInput.objects.filter(source=run).exists() if used_runs is None else None
    if used or (used_runs is not None and run.pk in used_runs):
        return "used"
    if checkpoint.final:
        return "final"
    return "" if run.state == RunState.SUCCEEDED or not _newest(checkpoint) else "resumable"


def _newest(checkpoint: Checkpoint) -> bool:
    """A failed or cancelled run is resumed from its newest checkpoint."""
    later = Checkpoint.objects.filter(run=checkpoint.run, removed_at=None, final=False)
    return not later.filter(step__gt=checkpoint.step).exists()

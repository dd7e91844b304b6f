"""Which checkpoints could be removed to get under the quota, and why each other one is kept."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

from django.conf import settings
from django.db.models import Max, Q

from training.enums import ENDED, GateState, RunState, Verdict
from training.models import Checkpoint, GateRun, Promotion, RunInput
from training.selectors.checkpoints import KEPT
from training.storage import GB


@dataclass(frozen=True)
class Kept:
    """`why`: pinned, active, used, final, gate, resumable, quota."""

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
    found, known = Plan(quota, used), Known.read()
    excess = used - quota
    for checkpoint in checkpoints:
        why = why_kept(checkpoint, known)
        if not why and excess <= 0:
            why = "quota"
        if why:
            found.kept.append(Kept(checkpoint, why))
        else:
            found.removed.append(checkpoint)
            excess -= checkpoint.size
    return found


def why_kept(checkpoint: Checkpoint, known: Known | None = None) -> str:
    """The reason why a checkpoint must stay; empty where it may go."""
    run = checkpoint.run
    known = known or Known.read([run.pk])
    if run.state not in ENDED:
        return "active"
    if run.pinned:
        return "pinned"
    if run.pk in known.used:
        return "used"
    if checkpoint.final:
        return "final"
    if known.asked.needs(checkpoint):
        return "gate"
    older = checkpoint.step < known.newest.get(run.pk, 0)
    return "" if run.state == RunState.SUCCEEDED or older else "resumable"


@dataclass(frozen=True)
class Known:
    """What other rows say of some runs, or of all. `newest`: the step from which one is resumed."""

    used: frozenset[int]
    newest: Mapping[int, int]
    asked: Asked

    @classmethod
    def read(cls, runs: Collection[int] | None = None) -> Known:
        used = RunInput.objects.exclude(source=None)
        saved = Checkpoint.objects.filter(removed_at=None, final=False)
        saved = saved.exclude(path__startswith=KEPT)
        if runs is not None:
            used, saved = used.filter(source__in=runs), saved.filter(run__in=runs)
        steps = saved.order_by().values_list("run").annotate(Max("step"))
        sources = frozenset(used.values_list("source", flat=True))
        return cls(sources, dict(steps), Asked.read())


@dataclass(frozen=True)
class Asked:
    """Weights that a gate measures, let pass, or that became a contestant; and all that one met."""

    held: frozenset[int]
    met: frozenset[int]

    @classmethod
    def read(cls) -> Asked:
        gates = GateRun.objects.exclude(checkpoint=None)
        open_ = Q(state=GateState.MEASURING) | Q(verdict=Verdict.PASS)
        promoted = Promotion.objects.exclude(checkpoint=None).values_list("checkpoint", flat=True)
        held = {*gates.filter(open_).values_list("checkpoint", flat=True), *promoted}
        return cls(frozenset(held), frozenset(gates.values_list("checkpoint", flat=True)))

    def needs(self, checkpoint: Checkpoint) -> bool:
        """A run that names its gate keeps its middle until that gate has spoken."""
        if checkpoint.pk in self.held:
            return True
        named = (checkpoint.run.config.get("grpo") or {}).get("gate")
        waits = checkpoint.run.state == RunState.SUCCEEDED and checkpoint.path.startswith(KEPT)
        return bool(named) and waits and checkpoint.pk not in self.met

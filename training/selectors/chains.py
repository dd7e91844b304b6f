"""Reads about chains: which night is due, what ran, who is waited for, what it cost."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta
from typing import Any

from django.utils import timezone

from training.chains import STAGES
from training.models import Chain, ChainLink, ChainRun, ChainStep, GateRun, TrainingRun


def due_night(chain: Chain, now: datetime) -> date | None:
    """The local date whose hour has come since the chain was switched on; None before.

    A night that nobody was up for is made up for on its own day, and on no later one.
    """
    if chain.hour is None:
        return None
    local = timezone.localtime(now)
    begins = local.replace(hour=chain.hour, minute=0, second=0, microsecond=0)
    if local < begins or begins < timezone.localtime(chain.enabled_at):
        return None
    return local.date()


def next_start(chain: Chain, now: datetime) -> datetime | None:
    """When it begins by itself next, if nothing is under way then; None: never."""
    if chain.hour is None:
        return None
    local = timezone.localtime(now)
    begins = local.replace(hour=chain.hour, minute=0, second=0, microsecond=0)
    night = due_night(chain, now)
    if night is not None and not chain.runs.filter(night=night).exists():
        return begins  # late already: as soon as nothing of this chain is under way
    return begins if local < begins else begins + timedelta(days=1)


@dataclass
class Cost:
    """`device` and `cpu` in seconds; `tokens` where runs say them, None where none does."""

    device: float = 0.0
    cpu: float = 0.0
    tokens: int | None = None

    def add(self, run: TrainingRun) -> None:
        if run.started_at is not None:
            end = run.ended_at or timezone.now()
            self.device += (end - run.started_at).total_seconds()
        manifest = run.manifest or {}
        self.cpu += float(manifest.get("cpu_seconds") or 0.0)
        said = (manifest.get("facts") or {}).get("tokens")
        if isinstance(said, int) and not isinstance(said, bool):
            self.tokens = (self.tokens or 0) + said


@dataclass
class StagePage:
    """One stage of one run, or of a chain that never ran (`step` is None then)."""

    stage: str
    arrow: str = ""  # into it; "" for the first
    step: ChainStep | None = None
    links: list[ChainLink] = field(default_factory=list)
    cost: Cost = field(default_factory=Cost)


def stages_of(chain: Chain, run: ChainRun | None) -> list[StagePage]:
    """The stages in their order, with what each made and what that cost."""
    steps = {step.stage: step for step in run.steps.select_related("let_by")} if run else {}
    links = ChainLink.objects.filter(step__in=steps.values()).select_related(
        "dataset", "run", "gate__spec", "gate__candidate_evaluation", "gate__baseline_evaluation",
        "contestant", "round",
    )  # fmt: skip
    by_step: dict[int, list[ChainLink]] = {}
    for link in links:
        by_step.setdefault(link.step_id, []).append(link)
    found = []
    for stage in STAGES:
        step = steps.get(stage)
        own = by_step.get(step.pk, []) if step else []
        arrow = "" if stage == STAGES[0] else chain.arrows.get(stage, "off")
        found.append(StagePage(stage, arrow, step, own, cost_of(runs_of(own))))
    return found


def runs_of(links: Iterable[ChainLink]) -> list[TrainingRun]:
    """The training runs behind what was made, the evaluations of a gate among them, each once."""
    found: dict[int, TrainingRun] = {}
    for link in links:
        gate: GateRun | None = link.gate
        several = [link.run]
        several += [gate.candidate_evaluation, gate.baseline_evaluation] if gate else []
        found |= {run.pk: run for run in several if run is not None}
    return list(found.values())


def cost_of(runs: Iterable[TrainingRun]) -> Cost:
    cost = Cost()
    for run in runs:
        cost.add(run)
    return cost


def total(stages: Iterable[StagePage]) -> Cost:
    """The sum; a run that two stages share counts once."""
    return cost_of(runs_of(link for stage in stages for link in stage.links))


def chain_list() -> Any:
    return Chain.objects.select_related("enabled_by")


def newest_run(chain: Chain) -> ChainRun | None:
    return chain.runs.select_related("by").order_by("-number").first()


def history(chain: Chain) -> Any:
    return chain.runs.select_related("by").order_by("-number")

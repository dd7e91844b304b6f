"""Gates for tests: runs that succeeded, and evaluations with planted scores."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

from django.utils import timezone

from tests.training.factories import admin
from tests.training.run_factories import instructions
from training import snapshots
from training.enums import Role, RunState
from training.models import Dataset, GateRun, GateSpec, RunInput, TrainingRun
from training.selectors.evaluated import FILE
from training.services.gates import create_gate, start_gate
from training.services.verdicts import decide_gate
from training.storage import directory

RULES = {"minimum": 10, "stratum_minimum": 5, "resamples": 1000}
Score = Callable[[int, str], float | None]  # number of the item, axis
Taken = Mapping[str, TrainingRun | tuple[Dataset, str]]


def made(name: str, kind: str = "sft", taken: Taken | None = None, **columns: Any) -> TrainingRun:
    """A run that succeeded, with its inputs; no process ran."""
    columns = {"manifest": {"files": {"model/x": name}}, **columns}
    run = TrainingRun.objects.create(
        name=name, kind=kind, preset="tiny", config_sha256=name, state=RunState.SUCCEEDED,
        directory=f"made-{name}", queued_at=timezone.now(), created_by=admin(), **columns,
    )  # fmt: skip
    for role, what in (taken or {}).items():
        own = {"source": what} if isinstance(what, TrainingRun) else {}
        if not isinstance(what, TrainingRun):
            own = {"dataset": what[0], "split": what[1]}  # type: ignore[dict-item]
        RunInput.objects.create(run=run, role=role, sha256="0" * 64, **own)
    model = directory(run.directory) / "model"
    model.mkdir(parents=True, exist_ok=True)
    (model / "config.json").write_text("{}")
    (model / "model.safetensors").write_text(name)
    return run


def reward_model(name: str, branch: str, **options: Any) -> TrainingRun:
    manifest = {
        "config": {"reward_model": {"branch": branch}},
        "facts": {"gate": {"passed": True, "checks": []}},
        "files": {"members/0": name},
    }
    return made(name, "reward_model", manifest=manifest, **options)


def policy(name: str, base: TrainingRun, judges: Mapping[str, TrainingRun]) -> TrainingRun:
    return made(name, "grpo", {Role.BASE: base, **judges})


def gate(tmp_path: Any, scorer: str = "members", rows: int = 96, **options: Any) -> GateSpec:
    """A gate of `rows` / 4 items with reward models of its own as scorers."""
    dataset = instructions(tmp_path, rows, name="Gate items")
    judges = {b: reward_model(f"judge of {b}", b) for b in ("quality", "personalization")}
    suffix = "" if scorer == "members" else f"/{scorer}"
    return create_gate(
        actor=admin(),
        name=options.pop("name", "Gate"),
        dataset=dataset,
        baseline=options.pop("baseline", None) or made("base"),
        scorers={branch: [branch + suffix] for branch in judges},
        quality=judges["quality"],
        personalization=judges["personalization"],
        rules=options.pop("rules", RULES),
        **options,
    )


def measured(spec: GateSpec, candidate: TrainingRun, score: Score, base: Score) -> GateRun:
    """Start a gate and end both evaluations with planted scores; decided."""
    run = start_gate(actor=admin(), spec=spec, candidate=candidate)
    plant(run.candidate_evaluation, spec, score)
    plant(run.baseline_evaluation, spec, base)
    decide_gate(pk=run.pk)
    return GateRun.objects.get(pk=run.pk)


def plant(run: TrainingRun | None, spec: GateSpec, score: Score) -> None:
    """Write what the engine would have written, and let the run succeed."""
    assert run is not None
    run = TrainingRun.objects.get(pk=run.pk)
    folder = directory(run.directory)
    folder.mkdir(parents=True, exist_ok=True)
    items = [row["id"] for row in snapshots.prompts(spec.dataset, spec.split)]
    items += [item for item in run.config["evaluate"]["edges"] if item not in items]
    with (folder / FILE).open("w") as out:
        for n, item in enumerate(items):
            parts = {
                name: None if (value := score(n, axis)) is None else {axis: value}
                for axis, names in spec.scorers.items()
                for name in names
            }
            row = {"id": item, "draw": 0, "persona": "", "prompt": f"question {n}"}
            out.write(json.dumps({**row, "completion": f"answer {n}", "parts": parts}) + "\n")
    for state in (RunState.STARTING, RunState.RUNNING, RunState.SUCCEEDED):
        if run.state != RunState.SUCCEEDED:
            TrainingRun.objects.filter(pk=run.pk).update(state=state)

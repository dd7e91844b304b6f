"""The whole loop on the toy world: SFT → reward models → gate → GRPO, and what came of it."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from training.engine.config.load import merge
from training.engine.monitor.history import History
from training.engine.rundir import RunDir, read_json, read_lines, sha256_file, write_json
from training.engine.start import execute
from training.engine.toy.data import Sizes, write

PLANS: dict[str, tuple[str, dict[str, str]]] = {
    "sft": ("sft", {"train": "instructions", "heldout": "instructions-heldout"}),
    "quality": (
        "reward_model",
        {
            "train": "quality",
            "heldout": "quality-heldout",
            "gate": "quality-gate",
            "probes": "probes",
        },
    ),
    "personalization": (
        "reward_model",
        {
            "train": "personalization",
            "heldout": "personalization-heldout",
            "gate": "personalization-gate",
            "swaps": "swaps",
        },
    ),
    "grpo": (
        "grpo",
        {
            "train": "prompts",
            "heldout": "prompts-heldout",
            "probes": "policy-probes",
            "swaps": "policy-swaps",
        },
    ),
}


# A few steps of everything: shows that the parts fit together, not that anything is learned.
SHORT_SIZES = Sizes(instructions=400, quality=240, personalization=160)
SHORT: dict[str, Any] = {
    "sft": {"max_steps": 16, "warmup_steps": 4},
    "reward_model": {"members": 2, "auditors": 1, "max_steps": 6, "eval_every": 6},
    "grpo": {
        "steps": 8,
        "batch": 16,
        "save_every": 4,
        "warmup_steps": 0,
        "evaluate_prompts": 8,
        "evaluate_samples": 1,
        "max_completion": 24,
    },
    "reward": {"force": "a short run: the gate cannot pass"},
}


# The known bad recipe: reward models that saw few and wrong labels, and a learning rate at which
# the policy finds every hole of theirs. Their gate refuses it; forced, alerts must speak live.
BAD_SIZES = Sizes(quality=400, noise=0.3)
BAD: dict[str, Any] = {
    "reward_model": {"max_steps": 20, "eval_every": 10, "stop_accuracy": 1.01},
    "grpo": {"steps": 100, "learning_rate": 1e-3, "scheduler": "constant", "warmup_steps": 0},
    "reward": {"force": "the known bad recipe"},
}


class StageFailed(Exception):
    """A stage that did not succeed; the message says where to look."""


def lay_out(
    folder: Path,
    seed: int = 1,
    sizes: Sizes | None = None,
    changes: Mapping[str, Any] | None = None,
) -> list[Path]:
    """Run directories of all stages, ready to be executed in this order."""
    tables = write(folder / "tables", seed, sizes or Sizes())
    found = []
    for name, (kind, data) in PLANS.items():
        run = RunDir(folder / name)
        (run.path / "data").mkdir(parents=True, exist_ok=True)
        files = {role: f"data/{table}.jsonl" for role, table in data.items()}
        for role, table in data.items():
            _link(tables[table], run.path / files[role])
        hashed = {file: sha256_file(run.path / file) for file in files.values()}
        base: dict[str, Any] = {"kind": kind, "preset": "tiny", "seed": seed}
        base["data"] = {**files, "sha256": hashed}
        if kind != "sft":
            base["model"] = {"path": str((folder / "sft" / "model").resolve())}
        if kind == "reward_model":
            base["reward_model"] = {"branch": name}
        if kind == "grpo":
            branches = ("quality", "personalization")
            base["reward"] = {b: str((folder / b).resolve()) for b in branches}
            base["reward"]["audit"] = ["truth", "rules"]
        write_json(run.config, merge(base, changes or {}))
        found.append(run.path)
    return found


def _link(source: Path, target: Path) -> None:
    target.unlink(missing_ok=True)
    os.link(source, target)


def run_all(
    folder: Path,
    seed: int = 1,
    sizes: Sizes | None = None,
    changes: Mapping[str, Any] | None = None,
    *,
    listen: bool = True,
) -> dict[str, Any]:
    """Execute the stages one after the other and report."""
    seconds: dict[str, float] = {}
    cpu: dict[str, float] = {}
    for path in lay_out(folder, seed, sizes, changes):
        began = time.monotonic()
        code = execute(path, listen=listen)
        seconds[path.name] = round(time.monotonic() - began, 1)
        cpu[path.name] = read_json(RunDir(path).manifest).get("cpu_seconds", 0.0)
        if code:
            manifest = read_json(RunDir(path).manifest)
            raise StageFailed(f"{path.name} {manifest['state']}: {manifest.get('message', '')}")
    report = {**outcome(folder), "seconds": seconds, "cpu_seconds": cpu}
    write_json(folder / "report.json", report)
    return report


def outcome(folder: Path) -> dict[str, Any]:
    """Before and after on held-out prompts, by the truth that nothing trained on."""
    run = RunDir(folder / "grpo")
    rows = run.history()
    marks = [row for row in rows.values() if "eval/audit/match" in row]
    alerts = [e for e in read_lines(run.events) if e["kind"] == "alert"]
    gates = {
        branch: read_json(folder / branch / "reward_model.json")["gate"]
        for branch in ("quality", "personalization")
    }
    return {
        "match": [row["eval/audit/match"] for row in marks],
        "quality": [row["eval/audit/quality"] for row in marks],
        "gates": {
            branch: {check["name"]: check["value"] for check in gate["checks"]}
            for branch, gate in gates.items()
        },
        "alerts": [(e["rule"], e["step"]) for e in alerts],
        "last_step": History(rows).step,
        "peak_memory_mb": read_json(run.manifest)["peak_memory_mb"],
    }

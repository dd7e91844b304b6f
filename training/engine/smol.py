"""A real small model on the CPU: GRPO by rules alone, to see that it learns to read the persona."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from training.engine.numbers import mean
from training.engine.rundir import RunDir, read_json, read_lines, sha256_file, write_json
from training.engine.start import execute
from training.engine.toy.household import write


def lay_out(folder: Path, steps: int, seed: int) -> RunDir:
    """One run of kind grpo, from the package that the preset names."""
    run = RunDir(folder)
    tables = write(folder / "data")
    data: dict[str, Any] = {
        role: f"data/{tables[table].name}"
        for role, table in (
            ("train", "prompts"), ("heldout", "prompts-heldout"), ("labelled", "labelled"),
        )
    }  # fmt: skip
    data["sha256"] = {file: sha256_file(folder / file) for file in data.values()}
    write_json(
        run.config,
        {
            "kind": "grpo",
            "preset": "smol",
            "seed": seed,
            "data": data,
            "grpo": {"steps": steps},
            "reward": {"quality": "rules", "personalization": "rules"},
        },
    )
    return run


def run_smol(folder: Path, steps: int = 20, seed: int = 1) -> tuple[int, dict[str, Any]]:
    """Exit code and report: curves over the first and last quarter, alerts, memory, seconds."""
    run = lay_out(folder, steps, seed)
    code = execute(run.path)
    rows = [row for row in run.history().values() if "loss" in row]
    n = max(1, len(rows) // 4)
    names = (
        "reward", "reward/reference", "parts/quality", "parts/personalization", "length/mean",
        "kl", "entropy", "step_time", "tokens_per_second",
    )  # fmt: skip
    manifest = read_json(run.manifest)
    report = {
        "state": manifest["state"],
        "steps": len(rows),
        "curves": {
            name: [mean(row.get(name) for row in some) for some in (rows[:n], rows[-n:])]
            for name in names
        },
        "alerts": [(e["rule"], e["step"]) for e in read_lines(run.events) if e["kind"] == "alert"],
        "peak_memory_mb": manifest["peak_memory_mb"],
        "seconds": manifest["seconds"],
    }
    write_json(folder / "report.json", report)
    return code, report

"""The manifest of a run: written last, whatever happened."""

from __future__ import annotations

import resource
import time
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from training.engine.config.load import as_dict
from training.engine.config.schema import RunConfig
from training.engine.rundir import RunDir, sha256_file, sha256_json, write_json

CODES = {"succeeded": 0, "refused": 2, "failed": 3, "stopped": 4}
RUNNING = 5
PACKAGES = ("torch", "transformers", "trl", "accelerate", "tokenizers", "peft", "vllm", "datasets")
Began = tuple[float, float]  # wall clock, CPU time of this process


def finish(
    run: RunDir, state: str, began: Began, config: RunConfig | None = None, **more: Any
) -> int:
    """What was asked, with what, and what came of it; returns the exit code."""
    if not run.main:
        return CODES[state]
    manifest = {
        "state": state,
        "seconds": round(time.time() - began[0], 2),
        "cpu_seconds": round(time.process_time() - began[1], 2),
        "peak_memory_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024,
        "versions": versions(),
        **more,
    }
    if config is not None:
        resolved = as_dict(config)
        data = config.data
        named = {data.train, data.heldout, data.gate, data.probes, data.swaps, data.labelled}
        named = (named | {data.edges, data.answers}) - {""}
        files = sorted(name for name in named if (run.path / name).exists())
        manifest |= {
            "config": resolved,
            "config_sha256": sha256_json(resolved),
            "seed": config.seed,
            "data": {name: sha256_file(run.path / name) for name in files},
            "files": hashes(run),
        }
    run.event("finished", state=state, reason=more.get("reason", ""))
    write_json(run.manifest, manifest)
    return CODES[state]


def versions() -> dict[str, str]:
    """What is installed."""
    found = {}
    for name in PACKAGES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found


def hashes(run: RunDir) -> dict[str, str]:
    """SHA-256 of the weights that this run made."""
    found = [*run.model.rglob("*.safetensors")]
    for name in ("members", "auditors", "adapter"):
        found += (run.path / name).rglob("*.safetensors")
    return {str(path.relative_to(run.path)): sha256_file(path) for path in sorted(found)}

"""A small policy of the toy world that listens to the persona, trained once a session."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest

from training.engine.rundir import RunDir, read_json, write_json
from training.engine.snapshots import write_rows
from training.engine.start import execute
from training.engine.toy import data, world


def executed(folder: Path, config: dict[str, Any]) -> dict[str, Any]:
    """Execute a run directory; its manifest."""
    run = RunDir(folder)
    write_json(run.config, {"preset": "tiny", "seed": 1, **config})
    code = execute(folder, listen=False)
    manifest: dict[str, Any] = read_json(run.manifest)
    assert code == 0, manifest
    return manifest


def listening_rows(n: int) -> list[dict[str, Any]]:
    """Answers in the style that the person wants."""
    rng = random.Random(1)
    asked, rows = data.split(rng)["train"], []
    for _ in range(n):
        ask, style = rng.choice(asked), data.styles(rng)
        who, said = data.persona(style, rng), world.good(ask, style, rng)
        rows.append({"persona": who, "prompt": ask.text, "answer": said})
    return rows


@pytest.fixture(scope="session")
def toys(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """`policy/` is a run that made a policy; `swaps.jsonl`, `prompts.jsonl`, `labelled.jsonl`."""
    folder = tmp_path_factory.mktemp("toys")
    rng = random.Random(2)
    asked = data.split(rng)["policy"]
    write_rows(folder / "swaps.jsonl", data.swaps(asked, 60, rng))
    prompts = data.prompts(asked, rng)
    write_rows(folder / "prompts.jsonl", prompts)
    write_rows(folder / "labelled.jsonl", list(_labelled(prompts)))
    (folder / "policy" / "data").mkdir(parents=True)
    write_rows(folder / "policy/data/train.jsonl", listening_rows(1120))
    config = {"kind": "sft", "data": {"heldout": ""}, "sft": {"epochs": 2, "batch": 32}}
    executed(folder / "policy", config)
    return folder


def _labelled(prompts: list[dict[str, Any]]) -> Any:
    for row in prompts:
        tool = row["task"]["entities"][0]
        asked = {"prompt": row["prompt"], "task": row["task"]}
        yield {**asked, "answer": f"Use the {tool}.", "right": True}
        yield {**asked, "answer": "Use something.", "right": False}


def quantised(toys: Path, folder: Path, bits: int, **config: Any) -> dict[str, Any]:
    """The manifest of a run that rounds the policy."""
    (folder / "data").mkdir(parents=True)
    (folder / "data/swaps.jsonl").write_bytes((toys / "swaps.jsonl").read_bytes())
    model = {"path": str(toys / "policy" / "model")}
    named = {"train": "", "heldout": "", "swaps": "data/swaps.jsonl"}
    asked = {"kind": "quantize", "model": model, "data": named, "quantize": {"bits": bits}}
    return executed(folder, {**asked, **config})

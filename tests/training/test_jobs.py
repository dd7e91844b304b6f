"""Runs in processes of their own: the whole loop in short, killing, stopping, resuming, refusing.

The loop is executed once per session; the tests continue from its models.
"""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from training.engine.config.load import merge
from training.engine.monitor.history import History
from training.engine.rundir import RunDir, read_json, read_lines, write_json

ROOT = Path(__file__).resolve().parents[2]


@contextmanager
def engine(*arguments: str) -> Iterator[subprocess.Popen[bytes]]:
    """A process of the engine; what it says goes to a file, and nothing outlives the test."""
    env = {**os.environ, "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-m", "training.engine", *arguments]
    with tempfile.TemporaryFile() as said:
        process = subprocess.Popen(command, cwd=ROOT, env=env, stdout=said, stderr=said)
        try:
            yield process
        finally:
            process.kill()
            process.wait()


def execute(folder: Path) -> tuple[int, dict[str, Any]]:
    with engine("run", str(folder)) as process:
        code = process.wait(timeout=600)
    return code, read_json(RunDir(folder).manifest)


@pytest.fixture(scope="session")
def loop(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The short loop, made by whichever process of the suite comes first."""
    base = tmp_path_factory.getbasetemp()
    base = base.parent if os.environ.get("PYTEST_XDIST_WORKER") else base
    folder = base / "short-loop"
    with (base / "short-loop.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (folder / "report.json").exists():
            with engine("tiny", "--short", str(folder)) as process:
                assert process.wait(timeout=900) == 0
    return folder


def copy_of(loop: Path, folder: Path, changes: Mapping[str, Any] | None = None) -> RunDir:
    """A GRPO run like the loop's, not yet started."""
    run = RunDir(folder)
    shutil.copytree(loop / "grpo" / "data", folder / "data")
    write_json(run.config, merge(read_json(loop / "grpo" / "config.json"), changes or {}))
    return run


def curve(run: RunDir) -> list[tuple[int, float | None, float | None]]:
    rows = run.history().items()
    return [(s, row["reward"], row["grad_norm"]) for s, row in rows if "reward" in row]


def wait_for_step(run: RunDir, step: int, process: subprocess.Popen[bytes]) -> None:
    for _ in range(1200):
        if History(run.history()).step >= step:
            return
        assert process.poll() is None
        time.sleep(0.1)
    raise AssertionError("the run does not get on")


def test_every_stage_leaves_what_the_site_reads(loop: Path) -> None:
    for name in ("sft", "quality", "personalization", "grpo"):
        run = RunDir(loop / name)
        manifest = read_json(run.manifest)
        assert manifest["state"] == "succeeded"
        assert manifest["seed"] == 1
        assert manifest["versions"]["trl"]
        assert manifest["files"]
        assert set(manifest["data"]) == set(read_json(run.config)["data"]["sha256"])
        kinds = [event["kind"] for event in read_lines(run.events)]
        assert kinds[0] == "started"
        assert kinds[-1] == "finished"
        assert list((run.path / "checkpoints").rglob("events.out.tfevents*"))
    for branch in ("quality", "personalization"):
        gate = read_json(loop / branch / "reward_model.json")["gate"]
        values = {check["name"]: check["value"] for check in gate["checks"]}
        assert values["jitter"] < 1e-4
        assert ("swap" in values) == (branch == "personalization")


def test_every_step_logs_reward_parts_and_health(loop: Path) -> None:
    run = RunDir(loop / "grpo")
    rows = {s: row for s, row in run.history().items() if "loss" in row}
    assert list(rows) == list(range(1, 9))
    wanted = {
        "reward", "reward/reference", "alpha", "parts/quality", "parts/personalization",
        "parts/redundancy", "auditor/quality", "auditor/personalization", "spread/quality",
        "weight/quality", "weight/personalization", "kl", "entropy", "grad_norm", "length/mean",
        "length/clipped", "zero_spread", "tokens_per_second", "step_time", "unscored",
        "audit/match",
    }  # fmt: skip
    for row in rows.values():
        assert wanted <= set(row)
    alphas = [row["alpha"] for row in rows.values()]
    assert alphas == sorted(alphas, key=lambda a: -(a or 0))
    assert alphas[0] == pytest.approx(0.7)


def test_the_reward_is_the_sum_of_its_logged_parts(loop: Path) -> None:
    samples = [row for row in read_lines(RunDir(loop / "grpo").samples) if not row.get("eval")]
    assert len(samples) == 8 * 8
    for row in samples:
        a = {1: 0.7}.get(row["step"])
        q, p, c = (row["parts"][n] for n in ("quality", "personalization", "redundancy"))
        if a:
            capped = min(p, q) if q < 0.3 else p
            assert row["reward"] == pytest.approx(a * q + (1 - a) * capped - 0.2 * c)
    group = [row["advantage"] for row in samples[:8]]
    assert sum(group) == pytest.approx(0, abs=1e-6)
    assert len({row["prompt_id"] for row in samples[:8]}) == 1


def test_held_out_prompts_are_looked_at_before_amid_and_after(loop: Path) -> None:
    rows = RunDir(loop / "grpo").history()
    assert [s for s, row in rows.items() if "eval/reward/reference" in row] == [0, 4, 8]


def test_a_model_that_failed_its_gate_gives_no_reward(loop: Path, tmp_path: Path) -> None:
    assert not read_json(loop / "quality" / "reward_model.json")["gate"]["passed"]
    run = copy_of(loop, tmp_path / "run", {"reward": {"force": ""}})
    code, manifest = execute(run.path)
    assert (code, manifest["state"], manifest["reason"]) == (2, "refused", "reward_model")
    assert "failed its gate" in manifest["message"]


def test_a_killed_run_resumes_to_the_same_curve(loop: Path, tmp_path: Path) -> None:
    run = copy_of(loop, tmp_path / "run")
    with engine("run", str(run.path)) as process:
        wait_for_step(run, 5, process)  # a checkpoint lies at 4
        process.kill()
    assert not run.manifest.exists()
    code, manifest = execute(run.path)
    assert (code, manifest["state"]) == (0, "succeeded")
    assert curve(run) == curve(RunDir(loop / "grpo"))  # which also is another run of this seed
    assert execute(run.path) == (0, manifest)  # once more: nothing happens


def test_a_stopped_run_ends_at_a_step_with_a_checkpoint(loop: Path, tmp_path: Path) -> None:
    run = copy_of(loop, tmp_path / "run")
    with engine("run", str(run.path)) as process:
        wait_for_step(run, 1, process)
        process.send_signal(signal.SIGSTOP)  # or it is done while the second one waits for it
        with engine("run", str(run.path)) as second:
            assert second.wait(timeout=120) == 5  # one process at a time
        process.send_signal(signal.SIGTERM)
        process.send_signal(signal.SIGCONT)
        process.wait(timeout=300)
    manifest = read_json(run.manifest)
    steps = manifest["facts"]["steps"] if manifest["state"] == "stopped" else 8
    if steps < 8:  # a fast machine may be done before the signal
        assert process.returncode == 4
        assert (run.checkpoints / f"checkpoint-{steps}").exists()
        code, _ = execute(run.path)
        assert code == 0
    assert curve(run) == curve(RunDir(loop / "grpo"))


def test_a_configuration_that_cannot_run_is_refused_without_torch(tmp_path: Path) -> None:
    run = RunDir(tmp_path)
    write_json(run.config, {"kind": "grpo", "preset": "tiny", "grpo": {"batch": 12}})
    code, manifest = execute(run.path)
    assert (code, manifest["state"], manifest["reason"]) == (2, "refused", "config")
    named = {problem["field"]: problem["nearest"] for problem in manifest["problems"]}
    assert named["grpo.batch"] == 8
    assert "model.path" in named
    assert "data.train" in named


def test_loss_that_is_no_number_ends_the_run_with_a_remedy(loop: Path, tmp_path: Path) -> None:
    run = copy_of(loop, tmp_path / "run", {"grpo": {"learning_rate": 1e30, "max_grad_norm": 1e30}})
    code, manifest = execute(run.path)
    assert (code, manifest["state"], manifest["reason"]) == (3, "failed", "nonfinite")
    assert manifest["changes"] == {"grpo.learning_rate": 5e29}
    for line in run.metrics.read_text().splitlines():
        json.loads(line, parse_constant=pytest.fail)  # neither NaN nor Infinity

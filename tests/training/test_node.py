"""The check of a GPU node: what it finds, its exit codes, and the command of the site."""

from __future__ import annotations

import json
import subprocess
import sys
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from django.core.management import call_command

from training.engine import node
from training.engine.config.load import load
from training.engine.config.preflight import Machine, check
from training.engine.node import Check
from training.engine.rundir import read_json

SMI = "NVIDIA H100 80GB HBM3, 580.65, 81559, 81000\nNVIDIA H100 80GB HBM3, 580.65, 81559, 12\n"


def fake(folder: Path, said: str, code: int = 0) -> None:
    """An nvidia-smi."""
    script = folder / "nvidia-smi"
    script.write_text(f"#!/bin/sh\ncat <<'E'\n{said}E\nexit {code}\n")
    script.chmod(0o755)


def test_what_nvidia_smi_lists(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    assert node.gpus() == []
    fake(tmp_path, SMI)
    assert [(g.driver, round(g.total_gb), round(g.free_gb)) for g in node.gpus()] == [
        ("580.65", 80, 79),
        ("580.65", 80, 0),
    ]
    fake(tmp_path, "No devices were found\n", 6)
    assert node.gpus() == []


def test_versions_are_compared_with_the_pins() -> None:
    assert node.package_check("torch", "==2.13.0").ok  # also with +cpu behind it
    assert not node.package_check("torch", "==2.12.0").ok
    missing = node.package_check("no-such-package", ">=1")
    assert (missing.ok, missing.said) == (False, "not installed, needs >=1")


def test_what_cannot_be_imported_says_why() -> None:
    assert node.imports("json") == (True, "yes")
    ok, said = node.imports("no_such_module")
    assert not ok
    assert "no_such_module" in said


@pytest.mark.parametrize(
    ("gpu", "trained", "code"),
    [(True, True, node.READY), (False, True, node.MISSING), (True, False, node.FAILED)],
)
def test_exit_codes(
    gpu: bool, trained: bool, code: int, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PALATE_MODELS", str(tmp_path))
    asked: list[str] = []

    def train(folder: Path, seconds: float, device: str) -> tuple[Check, dict[str, float]]:
        asked.append(device)
        return Check("run", trained, "x"), {"grpo": 5.0}

    monkeypatch.setattr(node, "look", lambda folder: iter([Check("gpu", gpu, "x")]))
    monkeypatch.setattr(node, "train", train)
    monkeypatch.setattr(node, "speed", lambda model, vllm: {"transformers": 9.0})
    found, report = node.check_node(1)
    assert found == code
    assert asked == ["gpu" if gpu else "cpu"]
    assert report["ready"] == (code == node.READY)
    assert json.loads(json.dumps(report)) == report
    assert ("This machine is ready" in node.show(report)) == (code == node.READY)


def test_the_short_runs_are_configurations_that_start(tmp_path: Path) -> None:
    machine = Machine(lambda name: True, gpus=1, gpu_memory_gb=80, free_disk_gb=100)
    for device in ("cpu", "gpu"):
        for run in node.lay_out(tmp_path / device, device):
            config = load(read_json(run.config))
            assert check(config, machine, run) == []
            assert config.hardware.device == device


def test_the_command_of_the_site_hands_everything_on(
    settings: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With the Python that executes runs, in a process of its own."""
    script = tmp_path / "trainer.py"
    script.write_text("import sys; print(sys.argv[1:]); sys.exit(1)")
    settings.PALATE_TRAINER = [sys.executable, str(script)]
    out = StringIO()
    with pytest.raises(SystemExit) as ended:
        call_command("check_gpu_node", "--seconds", "7", "--json", stdout=out)
    assert ended.value.code == 1
    assert out.getvalue().strip() == "['node', '--seconds', '7.0', '--json']"


def test_the_web_process_imports_no_torch_for_it() -> None:
    code = "import sys, training.engine.node as n; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0


@pytest.mark.slow
def test_a_real_run_on_this_machine(tmp_path: Path) -> None:
    """SFT and GRPO in processes of their own, stopped by SIGTERM, and the speed of the model."""
    trained, speeds = node.train(tmp_path, 4, "cpu")
    assert trained.ok, trained.said
    assert speeds["grpo"] > 0
    measured = node.speed(tmp_path / "sft" / "model", vllm=False)
    assert isinstance(measured["transformers"], float)

"""Whether this machine can train: driver, GPUs, memory, packages, and a run of a minute.

    python -m training.engine node [--seconds 60] [--json]

Exit codes: 0 ready for GPU runs, 1 something is missing (it may still train on the CPU), 3 the run
failed. torch is imported by the processes that this one starts, never here.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from training.engine.modelstore import store
from training.engine.numbers import mean
from training.engine.rundir import RunDir, read_json, sha256_file, write_json
from training.engine.start import QUIET
from training.engine.toy.data import Sizes, write

# What the extra `gpu` of pyproject.toml pins; a test compares the two.
PINS = {
    "torch": "==2.13.0",
    "transformers": ">=5.10.4,<5.18",
    "trl": "==1.16.0",
    "accelerate": ">=1.15,<2",
    "peft": ">=0.21,<1",
    "vllm": "==0.31.0",
}
LOADING = 300  # seconds that a process may take until its first step, or to end
READY, MISSING, FAILED = 0, 1, 3
QUERY = "name,driver_version,memory.total,memory.free"


@dataclass(frozen=True)
class Check:
    name: str
    ok: bool
    said: str


@dataclass(frozen=True)
class Gpu:
    name: str
    driver: str
    total_gb: float
    free_gb: float


def gpus() -> list[Gpu]:
    """What nvidia-smi lists; nothing where there is no driver."""
    command = shutil.which("nvidia-smi")
    if not command:
        return []
    asked = [command, f"--query-gpu={QUERY}", "--format=csv,noheader,nounits"]
    try:
        said = subprocess.run(asked, capture_output=True, text=True, timeout=60, check=True).stdout
    except (OSError, subprocess.SubprocessError):
        return []
    rows = [[part.strip() for part in line.split(",")] for line in said.splitlines() if line]
    return [Gpu(n, d, float(t) / 1024, float(f) / 1024) for n, d, t, f in rows]


def look(folder: Path) -> Iterator[Check]:
    """Everything that can be known without a run."""
    found = gpus()
    said = "; ".join(f"{g.name}, driver {g.driver}" for g in found) or "nvidia-smi lists none"
    yield Check("gpu", bool(found), said)
    free = "; ".join(f"{g.free_gb:.0f} of {g.total_gb:.0f} GB free" for g in found)
    yield Check("gpu memory", any(g.free_gb >= 0.9 * g.total_gb for g in found), free or "none")
    for package, wanted in PINS.items():
        yield package_check(package, wanted)
    yield Check("vllm imports", *imports("vllm"))
    disk = shutil.disk_usage(folder).free / 1e9
    yield Check("disk", disk >= 20, f"{disk:.0f} GB free, 20 are the least for a small model")
    yield Check("memory", True, f"{memory_gb():.0f} GB of main memory are available")


def package_check(package: str, wanted: str) -> Check:
    from packaging.specifiers import SpecifierSet

    try:
        have = version(package)
    except PackageNotFoundError:
        return Check(package, False, f"not installed, needs {wanted}")
    fits = SpecifierSet(wanted).contains(have.partition("+")[0])
    return Check(package, fits, have if fits else f"{have}, needs {wanted}")


def imports(package: str) -> tuple[bool, str]:
    """Imported in a process of its own: what breaks there breaks only there."""
    asked = [sys.executable, "-c", f"import {package}"]
    done = subprocess.run(asked, capture_output=True, text=True, timeout=300)
    lines = done.stderr.strip().splitlines()
    return done.returncode == 0, "yes" if done.returncode == 0 else (lines or ["no reason"])[-1]


def memory_gb() -> float:
    """Of /proc/meminfo; 0 where there is none."""
    try:
        lines = Path("/proc/meminfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return 0.0
    found = {name: rest for name, _, rest in (line.partition(":") for line in lines)}
    return float(found.get("MemAvailable", "0 kB").split()[0]) / 1e6


def lay_out(folder: Path, device: str) -> tuple[RunDir, RunDir]:
    """A few steps of SFT, and a GRPO run by rules that is stopped when its time is over."""
    tables = write(folder / "tables", 1, Sizes(instructions=320, quality=2, personalization=2))
    labelled = folder / "tables" / "labelled.jsonl"
    labelled.write_text("".join(map(_known, ("Use the cloth.", "Something."))), encoding="utf-8")
    plans: dict[str, dict[str, Path]] = {
        "sft": {"train": tables["instructions"]},
        "grpo": {"train": tables["prompts"], "labelled": labelled},
    }
    runs = []
    for kind, files in plans.items():
        run = RunDir(folder / kind)
        (run.path / "data").mkdir(parents=True)
        data: dict[str, Any] = {"heldout": ""}
        for role, file in files.items():
            shutil.copy(file, run.path / "data" / file.name)
            data[role] = f"data/{file.name}"
        data["sha256"] = {data[role]: sha256_file(run.path / data[role]) for role in files}
        more: dict[str, Any] = {"model": {"path": str(folder / "sft" / "model")}}
        more |= {"grpo": {"steps": 10_000, "evaluate_at": [], "probe_every": 0, "save_every": 1000}}
        more |= {"reward": {"quality": "rules", "personalization": "rules"}}
        values = {"kind": kind, "preset": "tiny", "data": data, "hardware": {"device": device}}
        few = {"sft": {"max_steps": 20, "warmup_steps": 2}}
        write_json(run.config, values | (more if kind == "grpo" else few))
        runs.append(run)
    return runs[0], runs[1]


def _known(answer: str) -> str:
    row = {"prompt": "How do I clean the lamp?", "answer": answer, "right": "cloth" in answer}
    return json.dumps({**row, "task": {"entities": ["cloth"]}}) + "\n"


def train(folder: Path, seconds: float, device: str) -> tuple[Check, dict[str, float]]:
    """Both in processes of their own, as the site starts them; GRPO is stopped at the limit."""
    for run in lay_out(folder, device):
        asked = [sys.executable, "-m", "training.engine", "run", str(run.path)]
        with (run.path / "log.txt").open("w") as log:
            process = subprocess.Popen(asked, stdout=log, stderr=log, start_new_session=True)
            try:
                stop_after(process, run, seconds if run.path.name == "grpo" else LOADING)
            finally:
                process.kill()
        manifest = read_json(run.manifest) if run.manifest.exists() else {"state": "was killed"}
        if manifest["state"] not in ("succeeded", "stopped"):
            said = (
                f"{run.path.name} {manifest['state']}: {manifest.get('message', 'no first step')}"
            )
            return Check("run", False, said), {}
    rows = [row for row in run.history().values() if "loss" in row]
    if not rows:
        return Check("run", False, "GRPO made no step"), {}
    step = mean(row.get("step_time") for row in rows) or 0.0
    said = f"SFT, then {len(rows)} steps of GRPO, {step:.2f} s each, on {device}"
    return Check("run", True, said), {
        "grpo": round(mean(r.get("tokens_per_second") for r in rows) or 0.0, 1)
    }


def stop_after(process: subprocess.Popen[bytes], run: RunDir, seconds: float) -> None:
    """Ask it to stop so many seconds after its first step; loading does not count."""
    end = time.monotonic() + LOADING
    stepped = False
    while process.poll() is None and time.monotonic() < end:
        if not stepped and run.history():
            stepped, end = True, time.monotonic() + seconds
        time.sleep(0.2)
    if process.poll() is None:
        os.killpg(process.pid, signal.SIGTERM)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(LOADING)


def speed(model: Path, *, vllm: bool) -> dict[str, float | str]:
    """Tokens per second of sampling, measured in processes of their own."""
    found: dict[str, float | str] = {}
    for name in ("transformers", "vllm") if vllm else ("transformers",):
        code = (
            "import sys; from pathlib import Path; from training.engine.jobs import speed; "
            f"print('speed', speed.{name}_speed(Path(sys.argv[1])))"
        )
        asked = [sys.executable, "-c", code, str(model)]
        env = {**QUIET, **os.environ}
        done = subprocess.run(asked, capture_output=True, text=True, timeout=900, env=env)
        said = [line for line in done.stdout.splitlines() if line.startswith("speed ")]
        lines = done.stderr.strip().splitlines() or ["no reason"]
        found[name] = round(float(said[-1].split()[1]), 1) if said else f"failed: {lines[-1]}"
    return found


def check_node(seconds: float, model: Path | None = None) -> tuple[int, dict[str, Any]]:
    """Exit code, and everything that was found, ready for JSON."""
    folder = store()
    folder.mkdir(parents=True, exist_ok=True)
    checks = list(look(folder))
    ready = all(check.ok for check in checks)
    device = "gpu" if checks[0].ok else "cpu"
    with tempfile.TemporaryDirectory() as temporary:
        trained, speeds = train(Path(temporary), seconds, device)
        measured: dict[str, float | str] = {}
        if trained.ok:
            vllm = device == "gpu" and all(c.ok for c in checks if c.name == "vllm imports")
            measured = speed(model or Path(temporary) / "sft" / "model", vllm=vllm)
    code = FAILED if not trained.ok else READY if ready else MISSING
    found = [asdict(check) for check in [*checks, trained]]
    return code, {
        "ready": code == READY,
        "device": device,
        "checks": found,
        "tokens_per_second": {**speeds, **measured},
    }


def show(report: dict[str, Any]) -> str:
    """The report for people."""
    lines = [f"{'✓' if c['ok'] else '✗'} {c['name']:<14} {c['said']}" for c in report["checks"]]
    lines += [f"  tokens/s       {n}: {v}" for n, v in report["tokens_per_second"].items()]
    verdict = (
        "ready for GPU runs"
        if report["ready"]
        else f"not ready for GPU runs; trains on the {report['device']}"
    )
    return "\n".join([*lines, f"This machine is {verdict}."])

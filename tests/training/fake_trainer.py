"""Stands for the engine in tests: obeys the contract of the run directory, without torch.

    python fake_trainer.py run DIR

`note` in config.json says what to do, separated by blanks: steps=5 pause=0.1 fail=REASON refuse
nan kill child deaf people. A stop file or SIGTERM ends it with a checkpoint, as in the engine.
"""

from __future__ import annotations

import fcntl
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from training.engine.rundir import RunDir, sha256_file, write_json  # noqa: E402

ASKED: list[int] = []


def options(note: str) -> dict[str, str]:
    pairs = [word.partition("=") for word in note.split()]
    return {name: value or "yes" for name, _equals, value in pairs}


def main(folder: Path) -> int:
    run = RunDir(folder)
    with (folder / "run.lock").open("a") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            time.sleep(0.5)
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                print("another process", flush=True)
                return 5
        signal.signal(signal.SIGTERM, lambda *_: ASKED.append(1))
        return work(run, json.loads(run.config.read_text()))


def work(run: RunDir, config: dict[str, Any]) -> int:
    wanted = options(config["note"])
    run.manifest.unlink(missing_ok=True)
    print("a line of the log", flush=True)
    run.beat(0, "loading")
    write_json(run.path / "seen.json", {"env": dict(os.environ), "ppid": os.getppid()})
    if "child" in wanted:
        child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(300)"])
        write_json(run.path / "child.json", {"pid": child.pid})
    if "refuse" in wanted:
        return finish(run, config, "refused", reason="config", message="nope", problems=[])
    run.event("started", pid=os.getpid())
    asked = people(run) if "people" in wanted else [{}]
    last = run.last_checkpoint()
    first = int(last.name.split("-")[1]) if last else 0
    for step in range(first + 1, int(wanted.get("steps", 5)) + 1):
        time.sleep(float(wanted.get("pause", 0)))
        value = None if "nan" in wanted and step == 3 else 1.0 / (step + config["seed"])
        line = {"step": step, "at": time.time(), "stage": "grpo", "metrics": {"loss": value}}
        run.append(run.metrics, line)
        sample = {"step": step, "completion": f"answer {step}", "parts": {}}
        for row in asked:
            run.append(run.samples, {**sample, **row})
        run.beat(step, "grpo")
        if step == 2:
            found = {"message": "so many words", "curves": ["loss"], "window": [1, 2]}
            run.event("alert", rule="hacking", step=2, changes={"grpo.beta": 0.06}, **found)
        if value is None:
            return finish(
                run, config, "failed", reason="nonfinite", message="loss is not a number",
                changes={"grpo.learning_rate": 1e-4},
            )  # fmt: skip
        if "kill" in wanted and step == 3 and not first:
            checkpoint(run, step)
            with run.metrics.open("a") as half:
                half.write('{"step": 4, "at"')
            os.kill(os.getpid(), signal.SIGKILL)
        if (run.stop_requested or ASKED) and "deaf" not in wanted:
            checkpoint(run, step)
            return finish(run, config, "stopped")
    if reason := wanted.get("fail"):
        changes = {"grpo.batch": 8} if reason == "out_of_memory" else {}
        return finish(run, config, "failed", reason=reason, message="so it went", changes=changes)
    run.model.mkdir(exist_ok=True)
    (run.model / "model.safetensors").write_bytes(b"weights %d" % config["seed"])
    return finish(run, config, "succeeded", files=weights(run), facts={"gate": {"passed": True}})


def people(run: RunDir) -> list[dict[str, Any]]:
    """Whom the samples are for: everybody."""
    rows = map(json.loads, (run.path / "data" / "train.jsonl").open())
    return [{"persona": row["persona"]} for row in rows]


def checkpoint(run: RunDir, step: int) -> None:
    folder = run.checkpoints / f"checkpoint-{step}"
    folder.mkdir(parents=True)
    (folder / "trainer_state.json").write_text('{"global_step": 1}')
    (folder / "model.safetensors").write_bytes(b"x" * 1000)
    run.event("checkpoint", stage="grpo", step=step)


def weights(run: RunDir) -> dict[str, str]:
    file = run.model / "model.safetensors"
    return {str(file.relative_to(run.path)): sha256_file(file)}


def finish(run: RunDir, config: dict[str, Any], state: str, **more: Any) -> int:
    write_json(run.manifest, {"state": state, "config": config, "seconds": 1.0, **more})
    return {"succeeded": 0, "refused": 2, "failed": 3, "stopped": 4}[state]


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[2])))

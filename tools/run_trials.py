"""Checks on real data outside the suite: `make trial DATA=folder` runs every tools/trial_*.py."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def main(folder: str) -> int:
    if not folder or not Path(folder).is_dir():
        print("Say where the data lie: make trial DATA=folder")
        return 2
    trials = sorted((ROOT / "tools").glob("trial_*.py"))
    env = {**os.environ, "PYTHONPATH": str(ROOT), "PYTHONUNBUFFERED": "1"}
    failed = []
    for trial in trials:
        print(f"\n=== {trial.stem}", flush=True)
        command = [sys.executable, str(trial), str(Path(folder).resolve())]
        if subprocess.run(command, cwd=ROOT, env=env).returncode:
            failed.append(trial.stem)
    print(f"\n{len(trials) - len(failed)} of {len(trials)} trials passed. " + " ".join(failed))
    return int(bool(failed))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))

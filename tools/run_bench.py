"""The benchmarks, one after the other; `make bench BENCH="ratings imports"` runs some of them."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
# Name → arguments that keep the run short; every script explains its own with --help.
BENCHES: dict[str, list[str]] = {
    "ratings": [],
    "coverage": ["--repetitions", "200"],
    "imports": [],
    "pair_exports": ["--check"],
    "pair_imports": [],
    "datasets": [],
    "reference_round": [],
    "http_voting": [],
    "http_labelling": [],
    "annotation_project": [],
    "kill9": [],
    "kill9_labelling": [],
    "answering": [],
    "grpo_overhead": [],
    "gate_verdicts": [],
    "loop_kills": [],
}


def main(chosen: list[str]) -> int:
    unknown = sorted(set(chosen) - set(BENCHES))
    if unknown:
        print(f"There is no benchmark {', '.join(unknown)}. Choose from: {', '.join(BENCHES)}")
        return 2
    env = {
        "OPENBLAS_NUM_THREADS": "1",
        "LOG_LEVEL": "WARNING",
        **os.environ,
        "PYTHONPATH": str(ROOT),
        "PYTHONUNBUFFERED": "1",
    }
    failed = []
    for name in chosen or [name for name in BENCHES if (ROOT / "bench" / f"{name}.py").exists()]:
        print(f"\n=== {name}", flush=True)
        started = time.monotonic()
        command = [sys.executable, "-m", f"bench.{name}", *BENCHES[name]]
        code = subprocess.run(command, cwd=ROOT, env=env).returncode
        print(f"=== {name}: {time.monotonic() - started:.0f} s, exit code {code}", flush=True)
        failed += [name] if code else []
    print("\n" + (f"Missed their aims: {', '.join(failed)}" if failed else "All aims were met."))
    return int(bool(failed))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

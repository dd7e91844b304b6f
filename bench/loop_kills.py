"""The loop while its processes are killed at random.

    python -m bench.loop_kills [--kills 5] [--seed 1] [--chance 1] [--every 60]

Plays `tools/loop.py` in a folder of its own. Every so often one of its processes gets SIGKILL: the
web server, the worker or one of its children, beat, a trainer, a process that answers, or the
player itself, which is started again. In the end the states of all runs must be as they should,
nothing may be double, and what does not depend on who labelled what (instructions,
counter-examples, the fine-tuned base) must have the hash that a quiet loop gives it
(`--compare loop.json`). Exit code 1 where it is not so.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
KINDS = {
    "web": "granian",
    "worker": "workers.app worker",
    "beat": "workers.app beat",
    "trainer": "training.engine run",
    "answers": "training.engine answer",
    "player": "tools/loop.py",
}
LIMIT = 5400.0
AGAIN = re.compile(r" \(\d+\)$")


def processes(home: str) -> Iterator[tuple[str, int]]:
    """(kind, pid) of everything that works in this folder."""
    mark = f"PALATE_HOME={home}".encode()
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with suppress(OSError):
                command = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode()
                if mark in (entry / "environ").read_bytes().split(b"\0"):
                    kind = next((k for k, words in KINDS.items() if words in command), "")
                    if kind and "keep.py" not in command:
                        yield kind, int(entry.name)


def start(home: str, seed: int) -> subprocess.Popen[bytes]:
    command = [sys.executable, "tools/loop.py", "--seed", str(seed)]
    return subprocess.Popen(command, cwd=ROOT, env={**os.environ, "PALATE_HOME": home})


def play(home: str, seed: int, kills: int, chance: random.Random, every: float) -> list[str]:
    """Until the loop has ended by itself. What was killed, and when."""
    player = start(home, seed)
    killed: list[str] = []
    times: Counter[str] = Counter()
    began = time.monotonic()
    due = began + every * chance.uniform(0.3, 1.0)
    while time.monotonic() - began < LIMIT:
        code = player.poll()
        if code is not None and code >= 0:
            return killed
        if code is not None:
            player = start(home, seed)
        if len(killed) < kills and time.monotonic() > due:
            kind = kill_one(home, chance, times)
            if kind:
                times[kind] += 1
                killed.append(f"{kind} at {time.monotonic() - began:.0f} s")
                print(f"killed: {killed[-1]}", flush=True)
            due = time.monotonic() + every * chance.uniform(0.5, 1.5)
        time.sleep(0.5)
    player.kill()
    raise SystemExit("The loop did not end.")


def kill_one(home: str, chance: random.Random, times: Counter[str]) -> str:
    """A kind by lot, of those that were hit least; then one of its processes by lot."""
    found: dict[str, list[int]] = {}
    for kind, pid in processes(home):
        found.setdefault(kind, []).append(pid)
    if not found:
        return ""
    least = min(times[kind] for kind in found)
    kind = chance.choice(sorted(kind for kind in found if times[kind] == least))
    with suppress(ProcessLookupError):
        os.kill(chance.choice(found[kind]), signal.SIGKILL)
    return kind


def wrong(facts: dict[str, Any], other: dict[str, Any] | None) -> list[str]:
    """What is not as it should be."""
    found = [*facts["missed"]]
    found += [f"{n}: {r['state']}" for n, r in facts["runs"].items() if r["state"] != "succeeded"]
    if other is None:
        return found
    # A reward model that fell through its gate is trained again by the chain: labels decide that.
    once = [{AGAIN.sub("", name) for name in one["runs"]} for one in (facts, other)]
    for name in sorted(once[0] ^ once[1]):
        found.append(f"only one of both loops has the run “{name}”")
    for name, row in facts["datasets"].items():
        if name.endswith(("instructions", "defects")) and row != other["datasets"].get(name):
            found.append(f"other rows in “{name}”")
    base = next(name for name in facts["runs"] if name.endswith(" SFT"))
    if facts["runs"][base]["weights"] != other["runs"].get(base, {}).get("weights"):
        found.append("the fine-tuned base has other weights")
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=5)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--chance", type=int, default=1)
    parser.add_argument("--every", type=float, default=60.0, help="seconds between kills, about")
    parser.add_argument("--compare", help="loop.json of a loop that nobody disturbed")
    parser.add_argument("--home", help="an empty folder that stays; else a temporary one")
    options = parser.parse_args()
    chance = random.Random(options.chance)
    with tempfile.TemporaryDirectory(prefix="palate-kills-") as folder:
        home = options.home or folder
        if any(Path(home).iterdir()):
            raise SystemExit(f"{home} is not empty: what lies there would be judged.")
        killed = play(home, options.seed, options.kills, chance, options.every)
        left = Path(home, "loop.json")
        facts = json.loads(left.read_text()) if left.exists() else None
    other = json.loads(Path(options.compare).read_text()) if options.compare else None
    bad = ["the loop ended without its report"] if facts is None else wrong(facts, other)
    print(f"killed: {'; '.join(killed)}")
    print(f"wrong: {'; '.join(bad) or 'nothing'}")
    return int(bool(bad) or len(killed) < options.kills)


if __name__ == "__main__":
    sys.exit(main())

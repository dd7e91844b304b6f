"""How fast and in how much memory datasets of the reference recipe are imported, frozen, loaded.

    python -m bench.datasets [--instructions 50000] [--traces 20000] [--pairs 10000] [--keep]

Writes JSON Lines of instructions (1 kB each) and tool traces, imports them into a fresh SQLite
database, adds pairs of two answers that somebody decided, freezes one dataset of each kind with
`manage.py freeze_dataset`, writes JSON Lines and Parquet, and loads the Parquet with `datasets`.
Prints rows per second and the peak resident memory of each process.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

WORDS = "the a plan careful answer because small steps first then check again result never often"
HANZI = "我们先看清楚问题再一步步来因为这样更容易理解并且不容易出错最后检查结果"
PERSONAS = 500
MEMORY_AIM_MB = 400  # flat: the sets themselves are 20 to 120 MB
TOOL = {
    "type": "function",
    "function": {
        "name": "search",
        "parameters": {
            "type": "object",
            "properties": {"query": {"type": "string"}},
            "required": ["query"],
        },
    },
}
PREPARE_PAIRS = """
import os, random, sys
import django
os.environ.setdefault("DJANGO_SETTINGS_MODULE", "webapp.settings")
django.setup()
from django.db import transaction
from bench.datasets import make_pairs
with transaction.atomic():
    make_pairs(int(sys.argv[1]))
"""
LOAD = """
import sys, datasets
from pathlib import Path
datasets.disable_progress_bars()
files = [str(p) for p in sorted(Path(sys.argv[1]).glob("*.parquet"))]
loaded = datasets.load_dataset("parquet", data_files=files, split="train", cache_dir=sys.argv[2])
print(len(loaded), "rows")
"""


def text(random_: random.Random, n: int) -> str:
    if n % 4 == 0:
        return "".join(random_.choices(HANZI, k=180)) + "。"
    words = WORDS.split()
    lines = [" ".join(random_.choices(words, k=16)) for _line in range(8)]
    return f"Answer {n}.\n- " + "\n- ".join(lines) + "."


def persona(n: int) -> dict[str, Any]:
    number = n % PERSONAS
    return {
        "pseudonym": f"p{number}",
        "summary": f"Person {number}: wants short and concrete help, 喜欢例子.",
        "features": {"expertise": "novice" if number % 2 else "expert"},
    }


def instructions(count: int) -> Iterator[dict[str, Any]]:
    random_ = random.Random(1)
    for n in range(count):
        yield {
            "prompt": f"Question {n}: how do I begin with this? 请说明。",
            "completion": text(random_, n),
            "category": "how-to",
            "language": "zh" if n % 4 == 0 else "en",
            **({"persona": persona(n)} if n % 5 == 0 else {}),
        }


def traces(count: int) -> Iterator[dict[str, Any]]:
    random_ = random.Random(2)
    for n in range(count):
        call = {
            "id": f"c{n}",
            "type": "function",
            "function": {"name": "search", "arguments": json.dumps({"query": f"thing {n}"})},
        }
        yield {
            "messages": [
                {"role": "user", "content": f"Find thing {n}."},
                {"role": "assistant", "content": None, "tool_calls": [call]},
                {"role": "tool", "tool_call_id": f"c{n}", "content": text(random_, n)},
                {"role": "assistant", "content": f"It is {n}."},
            ],
            "tools": [TOOL],
        }


def make_pairs(count: int) -> None:
    """Decided pairs, written in bulk: the labels themselves are not what is measured."""
    from annotation.enums import DecisionSource, ItemState
    from annotation.models import Decision, Item, Project
    from annotation.services.items import ItemDraft, add_items
    from webapp.accounts.models import User
    from webapp.catalog.formats.rows import PersonaSpec
    from webapp.catalog.services.personas import get_or_create_versions
    from webapp.catalog.services.prompts import PromptSpec, get_or_create_prompts

    random_ = random.Random(3)
    user = User.objects.create(username="bench", role="admin")
    project = Project.objects.create(name="Bench", axes=["quality"], seed="0" * 64, created_by=user)
    specs = []
    for number in range(PERSONAS):
        said = persona(number)
        features = tuple(sorted(said["features"].items()))
        specs.append(PersonaSpec(said["pseudonym"], said["summary"], features))
    versions = get_or_create_versions(specs=specs)
    for start in range(0, count, 500):
        numbers = range(start, min(start + 500, count))
        prompts = [PromptSpec.of([("user", f"Pair {n}?")], "how-to", "en") for n in numbers]
        ids = get_or_create_prompts(specs=prompts)
        drafts = [
            ItemDraft(
                prompt_id=ids[prompt.digest],
                prompt_digest=prompt.digest,
                first=text(random_, n),
                second=text(random_, n + 1),
                persona_version_id=int(versions[specs[n % PERSONAS]]),  # type: ignore[arg-type]
            )
            for n, prompt in zip(numbers, prompts, strict=True)
        ]
        pks = [added.item_id for added in add_items(project=project, drafts=drafts)]
        made = Decision.objects.bulk_create(
            [
                Decision(item_id=pk, axis="quality", n=1, verdict="first", labels=2,
                         source=DecisionSource.UNANIMOUS, posterior={"first": 0.94})
                for pk in pks
            ]
        )  # fmt: skip
        for decision in made:
            Item.objects.filter(pk=decision.item_id).update(
                state=ItemState.DONE, quality_decision=decision
            )


def timed(command: list[str], environment: dict[str, str]) -> tuple[float, float, str]:
    """Seconds, peak MB of the process, and what it said."""
    started = time.perf_counter()
    process = subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True)
    said = process.stdout.read() if process.stdout else ""
    _pid, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(f"{command} failed: {said}")
    return time.perf_counter() - started, usage.ru_maxrss / 1024, said.strip()


def report(name: str, rows: int, seconds: float, peak: float, said: str = "") -> float:
    print(f"{name:<28} {rows:>6} rows {seconds:>6.1f} s {rows / seconds:>7.0f} rows/s "
          f"peak {peak:>4.0f} MB  {said}", flush=True)  # fmt: skip
    return peak


def write(path: Path, rows: Iterator[dict[str, Any]]) -> None:
    with path.open("w") as out:
        for row in rows:
            out.write(json.dumps(row, ensure_ascii=False) + "\n")
    print(f"{path.name}: {path.stat().st_size / 1e6:.0f} MB")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--instructions", type=int, default=50_000)
    parser.add_argument("--traces", type=int, default=20_000)
    parser.add_argument("--pairs", type=int, default=10_000)
    options = parser.parse_args()
    peaks = []
    with tempfile.TemporaryDirectory() as folder:
        environment = {**os.environ, "PALATE_HOME": f"{folder}/home", "PALATE_DEMO": "1"}
        manage = [sys.executable, "manage.py"]
        timed([*manage, "migrate", "-v0"], environment)
        files = {"instructions": options.instructions, "tool_traces": options.traces}
        made = {"instructions": instructions, "tool_traces": traces}
        for kind, count in files.items():
            path = Path(folder) / f"{kind}.jsonl"
            write(path, made[kind](count))
            seconds, peak, _said = timed([*manage, "import_records", str(path), "--kind", kind],
                                         environment)  # fmt: skip
            peaks.append(report(f"import {kind}", count, seconds, peak))
        timed([sys.executable, "-c", PREPARE_PAIRS, str(options.pairs)], environment)
        for kind, count in {**files, "preferences": options.pairs}.items():
            out = Path(folder) / "out" / kind
            shares = ["--set", "train=80", "--set", "reward_model_gate=10", "--set", "gate=10"]
            axis = ["--set", "axis=quality"] if kind == "preferences" else []
            command = [*manage, "freeze_dataset", kind, "--kind", kind, *shares, *axis]
            seconds, peak, said = timed(command, environment)
            peaks.append(report(f"freeze {kind}", count, seconds, peak, said))
            command = [*command, "--out", str(out), "--parquet"]
            seconds, peak, _said = timed(command, environment)
            peaks.append(report(f"write {kind}", count, seconds, peak))
            command = [sys.executable, "-c", LOAD, str(out), f"{folder}/cache"]
            seconds, peak, said = timed(command, environment)
            report(f"load {kind}", count, seconds, peak, said)
        print(timed([*manage, "check_splits"], environment)[2])
    if max(peaks) > MEMORY_AIM_MB:
        raise SystemExit(f"More than {MEMORY_AIM_MB} MB.")


if __name__ == "__main__":
    main()

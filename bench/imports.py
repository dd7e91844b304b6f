"""How fast and in how much memory a large file is imported.

    python -m bench.imports [--rows 250000] [--keep]

Writes a palate JSONL file of about 200 MB (60 contestants, 200 personas, prompts in English and
Chinese), imports it with `manage.py import_answers` into a fresh SQLite database, then a second
time, and prints rows per second and the peak resident memory of each process.
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

CONTESTANTS, PERSONAS = 60, 200
WORDS = "the a plan careful answer because small steps first then check again result never often"
HANZI = "我们先看清楚问题再一步步来因为这样更容易理解并且不容易出错最后检查结果"


def answer(random_: random.Random, n: int) -> str:
    if n % 4 == 0:
        return "".join(random_.choices(HANZI, k=180)) + "。"
    words = WORDS.split()
    lines = [" ".join(random_.choices(words, k=16)) for _line in range(5)]
    return f"Answer {n}.\n- " + "\n- ".join(lines) + "."


def rows(count: int) -> Iterator[dict[str, Any]]:
    random_ = random.Random(1)
    for n in range(count):
        context, contestant = divmod(n, CONTESTANTS)
        prompt, persona = divmod(context, PERSONAS)
        yield {
            "persona": {
                "pseudonym": f"p{persona}",
                "summary": f"Person {persona}: wants short and concrete help, 喜欢例子.",
                "features": {"expertise": "novice" if persona % 2 else "expert"},
            },
            "prompt": f"Question {prompt}: how do I begin with this? 请说明。",
            "category": "how-to",
            "language": "zh" if n % 4 == 0 else "en",
            "contestant": {
                "name": f"model-{contestant}",
                "version": "1",
                "sampling": {"temperature": 0.7},
            },
            "answer": answer(random_, n),
            "finish_reason": "stop",
        }


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


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=250_000)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "rows.jsonl"
        with path.open("w") as out:
            for row in rows(options.rows):
                out.write(json.dumps(row, ensure_ascii=False) + "\n")
        size = path.stat().st_size / 1e6
        environment = {**os.environ, "PALATE_HOME": f"{folder}/home", "PALATE_DEMO": "1"}
        manage = [sys.executable, "manage.py"]
        timed([*manage, "migrate", "-v0"], environment)
        print(f"{options.rows} rows, {size:.0f} MB")
        for name, extra in (
            ("dry run", ["--dry-run"]),
            ("first import", []),
            ("second import", []),
        ):
            command = [*manage, "import_answers", str(path), *extra]
            seconds, peak, said = timed(command, environment)
            print(
                f"{name}: {seconds:.1f} s, {options.rows / seconds:.0f} rows/s, "
                f"peak {peak:.0f} MB. {said}"
            )


if __name__ == "__main__":
    main()

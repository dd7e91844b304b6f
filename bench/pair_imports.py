"""How fast and in how much memory a large file of pairs is imported into a project.

    python -m bench.pair_imports [--rows 250000] [--labels 1] [--database URL]

Writes a file of our own format of about 350 MB (200 personas, answers in English and Chinese, the
given number of labels a row), imports it with `manage.py import_pairs` into a fresh project, then a
second time, then as many other pairs beside them, and prints rows per second and the peak resident
memory of each process. Exit code 1 where the second import adds anything, where the memory is not
flat (a tenth of the rows takes nearly as much), or where existing rows slow the third import.

Without --database a fresh SQLite file is used; with it the schema of that PostgreSQL database is
dropped first.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import re
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from bench.imports import answer, timed

PERSONAS = 200
FLAT_MB = 60  # that ten times the rows may take more
SLOWER = 1.3  # times the first import
SETUP = """
from django.db import connection
from annotation.services.projects import create_project
from webapp.accounts.services import create_user
user = create_user(username="bench", password="a-long-enough-passphrase", role="admin")
create_project(actor=user, name="bench", guidelines="x", settings={"axes": ["quality"]})
"""
DROP = """
from django.db import connection
if connection.vendor == "postgresql":
    connection.cursor().execute("DROP SCHEMA public CASCADE; CREATE SCHEMA public")
"""


def rows(count: int, labels: int, start: int = 0) -> Iterator[dict[str, Any]]:
    random_ = random.Random(start + 1)
    for n in range(start, start + count):
        persona = n % PERSONAS
        yield {
            "prompt": f"Question {n}: how do I begin with this? 请说明。",
            "language": "zh" if n % 4 == 0 else "en",
            "persona": {
                "pseudonym": f"p{persona}",
                "summary": f"Person {persona}: wants short and concrete help, 喜欢例子.",
                "features": {"expertise": "novice" if persona % 2 else "expert"},
            },
            "first": {"text": answer(random_, n), "producer": "model-a"},
            "second": {"text": answer(random_, n), "producer": "model-b"},
            "labels": [
                {"annotator": f"annotator{k}", "verdicts": {"quality": "first"}}
                for k in range(labels)
            ],
        }


def write(path: Path, count: int, labels: int, start: int = 0) -> Path:
    with path.open("w") as out:
        for row in rows(count, labels, start):
            out.write(json.dumps(row, ensure_ascii=False) + "\n")
    return path


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=250_000)
    parser.add_argument("--labels", type=int, default=1)
    parser.add_argument("--short", action="store_true", help="first and second import only")
    parser.add_argument("--database", default="", help="postgres://…, emptied first")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        return measure(Path(folder), options)


def measure(folder: Path, options: argparse.Namespace) -> int:
    count, labels = options.rows, options.labels
    environment = {**os.environ, "PALATE_HOME": f"{folder}/home", "PALATE_DEMO": "1"}
    environment.pop("DATABASE_URL", None)
    if options.database:
        environment["DATABASE_URL"] = options.database
    manage = [sys.executable, "manage.py"]
    for command in (["shell", "-c", DROP], ["migrate", "-v0"], ["shell", "-v0", "-c", SETUP]):
        timed([*manage, *command], environment)
    small = write(folder / "small.jsonl", count // 10, labels)
    path = write(folder / "rows.jsonl", count, labels, start=count)
    more = write(folder / "more.jsonl", 1 if options.short else count, labels, start=2 * count)
    print(f"{count} rows, {labels} labels each, {path.stat().st_size / 1e6:.0f} MB")
    found: dict[str, tuple[float, float, int]] = {}
    steps: list[tuple[str, Path, list[str]]] = [
        ("a tenth", small, []),
        ("dry run", path, ["--dry-run"]),
        ("first import", path, []),
        ("second import", path, []),
        ("as many beside them", more, []),
    ]
    for name, file, extra in steps:
        if options.short and (extra or file == more):
            continue
        before = cpu()
        command = [*manage, "import_pairs", "bench", str(file), *extra]
        seconds, peak, said = timed(command, environment)
        used = cpu() - before
        size = count // 10 if file == small else count
        line = said.splitlines()[0]
        print(
            f"{name}: {seconds:.1f} s ({used:.1f} s of CPU), {size / seconds:.0f} rows/s, "
            f"peak {peak:.0f} MB. {line}",
            flush=True,
        )
        added = re.search(r"(\d+) (?:would be )?added", line)
        found[name] = (used, peak, int(added[1]) if added else 0)
    return int(bool(missed(found, count)))


def cpu() -> float:
    """Seconds of CPU of all processes that have ended: what others do here does not count."""
    times = os.times()
    return times.children_user + times.children_system


def missed(found: dict[str, tuple[float, float, int]], count: int) -> list[str]:
    """The aims that were missed, said aloud."""
    wrong = []
    if found["first import"][2] != count or found["second import"][2]:
        wrong.append("rows were lost or doubled")
    if found["first import"][1] > found["a tenth"][1] + FLAT_MB:
        wrong.append("the memory grows with the file")
    beside = found.get("as many beside them", (0.0, 0.0, 0))[0]
    if beside > SLOWER * found["first import"][0]:
        wrong.append("existing rows slow an import")
    for line in wrong:
        print(f"MISSED: {line}")
    return wrong


if __name__ == "__main__":
    sys.exit(main())

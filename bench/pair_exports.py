"""How fast and in how much memory the pairs of a large project are exported.

    python -m bench.pair_exports [--rows 100000] [--check]

Fills a project in a fresh SQLite database (items, texts, two labels and decisions each, written in
bulk), runs `manage.py export_pairs` in several formats and prints rows per second, how long the
check of the file took, and the peak resident memory of the exporting process, for a tenth of the
rows and for all of them. Fails where the larger export needs more than 1.5 times the memory.
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
from pathlib import Path
from typing import Any

from bench.imports import WORDS

FILL = """
import django, json, sys
django.setup()
from bench.pair_exports import fill
fill(int(sys.argv[1]), sys.argv[2])
"""
FORMATS = {
    "TRL, JSON Lines": ["--format", "trl_preference"],
    "TRL, Parquet, splits": [
        "--format", "trl_preference", "--file-type", "parquet", "--train", "90", "--validation",
        "5", "--test", "5",
    ],
    "Palate pairs": ["--format", "palate_pairs"],
    "Palate CSV": ["--format", "palate_csv"],
}  # fmt: skip
MOST_GROWTH = 1.5  # times the memory for ten times the rows
CHUNK = 2000


def fill(rows: int, name: str) -> None:
    """A project with this many decided items of two labels each."""
    from annotation.services.projects import create_project
    from webapp.accounts.enums import Role
    from webapp.accounts.models import User
    from webapp.accounts.services import create_user

    manager = User.objects.filter(username="mara").first() or create_user(
        username="mara", password="a-long-enough-passphrase", role=Role.ADMIN
    )
    project = create_project(actor=manager, name=name, guidelines="Read both.")
    random_ = random.Random(7)
    for start in range(0, rows, CHUNK):
        _fill_chunk(project, range(start, min(start + CHUNK, rows)), random_)


def _fill_chunk(project: Any, numbers: range, random_: random.Random) -> None:
    from annotation.models import Item
    from annotation.services.items import ItemDraft, add_items
    from webapp.catalog.formats.rows import PersonaSpec
    from webapp.catalog.services.personas import get_or_create_versions
    from webapp.catalog.services.prompts import PromptSpec, get_or_create_prompts

    prompts = [
        PromptSpec.of([("user", f"{project.name}: how do I do {n}? 请说明。")]) for n in numbers
    ]
    people = [PersonaSpec(f"{project.name}-p{n // 20}", f"Person {n // 20}.") for n in numbers]
    prompt_ids = get_or_create_prompts(specs=prompts)
    versions = get_or_create_versions(specs=people)
    words = WORDS.split()
    drafts = [
        ItemDraft(
            prompt_id=prompt_ids[prompt.digest],
            prompt_digest=prompt.digest,
            first=" ".join(random_.choices(words, k=120)),
            second=" ".join(random_.choices(words, k=80)) + "中文的回答。" * 10,
            persona_version_id=versions[person],  # type: ignore[arg-type]
            source=f"bench:{n}",
        )
        for n, prompt, person in zip(numbers, prompts, people, strict=True)
    ]
    added = [entry.item_id for entry in add_items(project=project, drafts=drafts)]
    _decide(project, list(Item.objects.filter(pk__in=added).order_by("pk")), random_)


def _decide(project: Any, items: list[Any], random_: random.Random) -> None:
    from django.db.models import OuterRef, Subquery
    from django.utils import timezone

    from annotation.enums import ItemState, LeaseState
    from annotation.models import Decision, Item, Label, Lease, Member

    now = timezone.now()
    members = [
        Member.objects.get_or_create(project=project, external_name=name, pseudonym=name)[0]
        for name in ("one", "two")
    ]
    leases = Lease.objects.bulk_create(
        [
            Lease(
                item=item, member=member, state=LeaseState.SHOWN, counted=True, first_left=True,
                expires_at=now, shown_at=now, submitted_at=now,
            )
            for item in items
            for member in members
        ]
    )  # fmt: skip
    verdicts = {item.pk: random_.choice(("first", "second", "tie")) for item in items}
    Label.objects.bulk_create(
        [
            Label(
                lease=lease, item_id=lease.item_id, member_id=lease.member_id, revision=1,
                quality=verdicts[lease.item_id], first_left=True,
            )
            for lease in leases
        ]
    )  # fmt: skip
    head = Label.objects.filter(lease=OuterRef("pk")).values("pk")[:1]
    Decision.objects.bulk_create(
        [
            Decision(
                item=item, axis="quality", n=1, verdict=verdicts[item.pk], source="unanimous",
                posterior={verdicts[item.pk]: 0.96}, labels=2,
            )
            for item in items
        ]
    )  # fmt: skip
    decision = Decision.objects.filter(item=OuterRef("pk"), axis="quality").values("pk")[:1]
    first, last = items[0].pk, items[-1].pk
    Lease.objects.filter(item__gte=first, item__lte=last).update(
        head=Subquery(head), state=LeaseState.SUBMITTED
    )
    Item.objects.filter(pk__gte=first, pk__lte=last).update(
        state=ItemState.DONE, quality_decision=Subquery(decision), target=2, live=2, done=2
    )


def timed(command: list[str], environment: dict[str, str]) -> tuple[float, float, float, str]:
    """Seconds, seconds of CPU, peak MB of this process without its children, and what it said."""
    started = time.perf_counter()
    process = subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True)
    said = process.stdout.read() if process.stdout else ""
    _pid, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(f"{command} failed: {said}")
    peak = json.loads(said.strip().splitlines()[-1])["peak_mb"]
    return time.perf_counter() - started, usage.ru_utime + usage.ru_stime, peak, said


RUN = """
import json, resource, sys
import django
django.setup()
from django.core.management import call_command
if "--unchecked" in sys.argv:
    sys.argv.remove("--unchecked")
    from annotation.services import export_proof
    export_proof.prove = lambda *args: {"ok": True, "steps": []}
call_command("export_pairs", *sys.argv[1:])
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
print(json.dumps({"peak_mb": round(peak)}))
"""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--check", action="store_true", help="with the check by TRL, once")
    options = parser.parse_args()
    grown = []
    with tempfile.TemporaryDirectory() as folder:
        environment = {
            **os.environ,
            "PALATE_HOME": f"{folder}/home",
            "SECRET_KEY": "only-for-the-benchmark",
            "DJANGO_SETTINGS_MODULE": "webapp.settings",
            "LOG_LEVEL": "ERROR",
        }
        subprocess.run([sys.executable, "manage.py", "migrate", "-v0"], env=environment, check=True)
        for name, rows in (("small", options.rows // 10), ("large", options.rows)):
            started = time.perf_counter()
            command = [sys.executable, "-c", FILL, str(rows), name]
            subprocess.run(command, env=environment, check=True)
            print(f"{rows} items made in {time.perf_counter() - started:.0f} s", flush=True)
        for title, arguments in FORMATS.items():
            peaks = []
            for name, rows in (("small", options.rows // 10), ("large", options.rows)):
                out = str(Path(folder) / "out")
                command = [sys.executable, "-c", RUN, name, "--out", out, *arguments]
                seconds, cpu, peak, _said = timed([*command, "--unchecked"], environment)
                peaks.append(peak)
                size = Path(out).stat().st_size / 1e6
                print(
                    f"{title}: {rows} items in {seconds:.1f} s, {rows / seconds:.0f} a second, "
                    f"{cpu:.1f} s CPU, {size:.0f} MB, peak {peak} MB",
                    flush=True,
                )
            grown += [title] if peaks[1] > MOST_GROWTH * peaks[0] else []
        if options.check:
            command = [sys.executable, "-c", RUN, "large", "--out", f"{folder}/out"]
            seconds, cpu, peak, said = timed(command, environment)
            checked = f"{seconds:.1f} s, {cpu:.1f} s CPU with the check's process, peak {peak} MB"
            print(f"with the check by datasets and TRL: {checked}\n{said}")
    if grown:
        print(f"More than {MOST_GROWTH} times the memory: {', '.join(grown)}")
    return int(bool(grown))


if __name__ == "__main__":
    sys.exit(main())

"""A project of annotation for the benchmarks of the site, and the truth afterwards.

    python -m bench.desk make --people 50 --items 3000 [--overlap 2] [--gold 5] [--repeats 3]
    python -m bench.desk listen PROJECT URL
    python -m bench.desk check PROJECT FILE     FILE: one token a line of what people were told

Prints JSON. Works on the database that the environment names.
"""

from __future__ import annotations

import argparse
import json
from collections import Counter
from pathlib import Path
from typing import Any

import django

django.setup()

from django.contrib.auth.hashers import make_password  # noqa: E402

from annotation.enums import Axis, ItemState, LeaseState, MemberState  # noqa: E402
from annotation.models import Guideline, Item, Label, Lease, Member, Project  # noqa: E402
from annotation.overlap import Action, next_step  # noqa: E402
from annotation.services import items, projects  # noqa: E402
from annotation.services.gold import make_gold  # noqa: E402
from annotation.services.webhooks import create_webhook  # noqa: E402
from webapp.accounts.enums import Role  # noqa: E402
from webapp.accounts.models import User  # noqa: E402
from webapp.accounts.services import create_api_token  # noqa: E402
from webapp.catalog.services.personas import create_persona  # noqa: E402
from webapp.catalog.services.prompts import PromptSpec, get_or_create_prompts  # noqa: E402

PASSWORD = "only-for-the-benchmark"
GUIDELINES = "Read both answers. **Accuracy first**, then whether it suits the person."
PARAGRAPH = "First look at what there is, then decide: `step {n}` comes before the next one. "
OUTCOME = {
    Action.WAIT: ItemState.OPEN,
    Action.SETTLE: ItemState.DONE,
    Action.DISPUTE: ItemState.DISPUTED,
}


def make_project(
    people: int, n_items: int, overlap: int, gold: int, repeats: int
) -> dict[str, Any]:
    """An open project whose members have read the guidelines and learned already."""
    boss = User.objects.create(username="mara", role=Role.ADMIN, password=make_password(PASSWORD))
    names = [f"annotator{number}" for number in range(people)]
    password = make_password(PASSWORD)
    User.objects.bulk_create(
        User(username=name, role=Role.ANNOTATOR, password=password) for name in names
    )
    users = list(User.objects.filter(username__in=names).order_by("pk"))
    project = projects.create_project(
        actor=boss,
        name="Benchmark",
        guidelines=GUIDELINES,
        settings={
            "base_overlap": overlap,
            "max_overlap": overlap + (overlap > 1),
            "gold_percent": gold,
            "gold_minimum": 1000,
            "repeat_percent": repeats,
            "onboarding_size": 0,
        },
    )
    projects.add_members(actor=boss, project=project, users=users)
    add_pairs(project, n_items)
    known = list(project.items.order_by("pk")[: 40 if gold else 0])
    for item in known:
        make_gold(actor=boss, item=item, verdicts={"quality": "first"})
    newest = Guideline.objects.get(project=project)
    Member.objects.update(guideline_read=newest, state=MemberState.WORKING)
    projects.move_project(actor=boss, project=project, to="open")
    tokens = [create_api_token(user=user, name="bench") for user in users]
    return {"project": project.pk, "people": names, "password": PASSWORD, "tokens": tokens}


def add_pairs(project: Project, count: int) -> None:
    """Pairs of some length with Markdown, for 20 personas."""
    versions = [
        create_persona(
            actor=None,
            pseudonym=f"person-{n}",
            summary=f"Person {n} wants it {'short' if n % 2 else 'step by step'}.",
            features={"expertise": "expert" if n % 2 else "novice", "language": "en"},
        ).versions.get()
        for n in range(20)
    ]
    for start in range(0, count, 500):
        numbers = range(start, min(start + 500, count))
        specs = {
            n: PromptSpec.of((("user", f"How do I do number {n}?"),), "", "en") for n in numbers
        }
        prompts = get_or_create_prompts(specs=list(specs.values()))
        drafts = [
            items.ItemDraft(
                prompt_id=prompts[spec.digest],
                prompt_digest=spec.digest,
                first=f"In short: number {n}.\n\n" + PARAGRAPH.format(n=n) * 3,
                second=f"1. Begin with {n}.\n2. Go on.\n\n" + PARAGRAPH.format(n=n) * 6,
                persona_version_id=versions[n % 20].pk,
                first_producer="Harbor",
                second_producer="Quarry",
            )
            for n, spec in specs.items()
        ]
        items.add_items(project=project, drafts=drafts)


def check(pk: int, told: list[str]) -> dict[str, Any]:
    """What became of what people were told is saved, and whether the books are right."""
    project = Project.objects.get(pk=pk)
    leases = list(Lease.objects.filter(member__project=project).select_related("head"))
    by_token = {lease.token: lease for lease in leases}
    submitted = [row for row in leases if row.state == LeaseState.SUBMITTED]
    revisions = Counter(
        Label.objects.filter(member__project=project).values_list("lease", flat=True)
    )
    seats = Counter((row.item_id, row.member_id, row.repeat) for row in leases)
    return {
        "labels": sum(revisions.values()),
        "told": len(told),
        "lost": sum(
            token not in by_token or by_token[token].state != LeaseState.SUBMITTED for token in told
        ),
        "double": sum(count > 1 for count in revisions.values()),
        "seat_twice": sum(count > 1 for count in seats.values()),
        "not_told": len({row.token for row in submitted} - set(told)),
        "gold": sum(row.item.state == ItemState.GOLD for row in _with_items(submitted)),
        "repeats": sum(row.repeat > 0 for row in submitted),
        "extras": sum(_is_extra(row) for row in _with_items(submitted)),
        **_books(project, leases),
    }


def _with_items(rows: list[Lease]) -> list[Lease]:
    found = Item.objects.in_bulk({row.item_id for row in rows})
    for row in rows:
        row.item = found[row.item_id]
    return rows


def _is_extra(row: Lease) -> bool:
    return not (row.counted or row.repeat or row.item.state == ItemState.GOLD)


def _books(project: Project, leases: list[Lease]) -> dict[str, int]:
    """Items with a wrong counter, too many places, or an outcome that their labels do not give."""
    counted: dict[int, list[Lease]] = {}
    for row in leases:
        if row.counted:
            counted.setdefault(row.item_id, []).append(row)
    found = Counter({"over": 0, "live_differs": 0, "outcome_differs": 0, "done": 0, "open": 0})
    for item in project.items.iterator():
        rows = counted.get(item.pk, [])
        labels = [row for row in rows if row.state == LeaseState.SUBMITTED]
        found["over"] += len(rows) > item.target or len({r.member_id for r in rows}) < len(rows)
        found["live_differs"] += (item.live, item.done) != (len(rows), len(labels))
        found["done"] += item.state == ItemState.DONE
        found["open"] += item.state == ItemState.OPEN
        if item.state in OUTCOME.values():
            verdicts = [{axis: getattr(r.head, axis) for axis in Axis.values} for r in labels]
            most = max(project.max_overlap, item.target)
            action = next_step(verdicts, project.axes, item.target, most).action
            found["outcome_differs"] += OUTCOME.get(action) != item.state
    return dict(found)


def listen(pk: int, url: str) -> dict[str, Any]:
    """A webhook that is told about every label."""
    hook = create_webhook(
        actor=User.objects.get(username="mara"),
        project=Project.objects.get(pk=pk),
        url=url,
        events=["label.submitted", "item.settled", "item.disputed"],
    )
    return {"webhook": hook.pk}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    one = commands.add_parser("make")
    one.add_argument("--people", type=int, required=True)
    one.add_argument("--items", type=int, required=True)
    one.add_argument("--overlap", type=int, default=2)
    one.add_argument("--gold", type=int, default=5)
    one.add_argument("--repeats", type=int, default=3)
    one = commands.add_parser("check")
    one.add_argument("project", type=int)
    one.add_argument("file", type=Path)
    one = commands.add_parser("listen")
    one.add_argument("project", type=int)
    one.add_argument("url")
    given = parser.parse_args()
    if given.command == "make":
        said = make_project(given.people, given.items, given.overlap, given.gold, given.repeats)
    elif given.command == "listen":
        said = listen(given.project, given.url)
    else:
        said = check(given.project, given.file.read_text().split())
    print(json.dumps(said))


if __name__ == "__main__":
    main()

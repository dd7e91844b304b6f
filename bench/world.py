"""What the benchmarks of the site need from inside: a round to vote in, and the truth afterwards.

    python -m bench.world round --raters 50 --votes 5000
    python -m bench.world check ROUND FILE      FILE: one acknowledged receipt a line
    python -m bench.world upload FILE | start RUN | run RUN

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

from arena.demo import loading  # noqa: E402
from arena.demo.topics import load_topics  # noqa: E402
from arena.models import Round, Vote  # noqa: E402
from arena.services import rounds  # noqa: E402
from webapp.accounts.enums import Role  # noqa: E402
from webapp.accounts.models import User  # noqa: E402
from webapp.catalog.models import Answer, ImportRun  # noqa: E402
from webapp.catalog.services import imports  # noqa: E402

PASSWORD = "only-for-the-benchmark"
VOTES_PER_BATTLE = 4


def make_round(raters: int, votes: int) -> dict[str, Any]:
    """The demo's answers, all in one open round, with as many raters as asked."""
    names = [f"rater{number}" for number in range(raters)]
    password = make_password(PASSWORD)
    everybody = [("ada", Role.ADMIN), *((name, Role.RATER) for name in names)]
    User.objects.bulk_create(
        User(username=name, role=role, password=password) for name, role in everybody
    )
    users = {user.username: user for user in User.objects.all()}
    loaded = loading.load_catalog(users, lambda _text: None)
    plan = rounds.RoundPlan(
        name="Benchmark",
        contestants=[row.pk for row in loaded.contestants.values()],
        personas=[row.pk for row in loaded.personas.values()],
        prompts=[loaded.prompts[topic.key].pk for topic in load_topics()],
        raters=[users[name].pk for name in names],
        stratum_features=loading.STRATA,
        planned_votes=votes,
        votes_per_battle=VOTES_PER_BATTLE,
    )
    round_ = loading.bring_to_open(loaded, plan)
    return {"round": round_.pk, "raters": names, "password": PASSWORD}


def check(pk: int, acknowledged: list[str]) -> dict[str, Any]:
    """What became of the votes that raters were told are recorded (first 16 signs of a receipt)."""
    round_ = Round.objects.get(pk=pk)
    rows = list(
        Vote.objects.filter(assignment__round=round_).values_list(
            "receipt", "revision", "rater", "assignment__slot"
        )
    )
    held = Counter(receipt[:16] for receipt, *_rest in rows)
    seats = Counter((rater, slot) for _receipt, revision, rater, slot in rows if revision == 1)
    told = set(acknowledged)
    return {
        "votes": len(rows),
        "told": len(acknowledged),
        "lost": sum(held[receipt] == 0 for receipt in told),
        "double": sum(revision > 1 for _receipt, revision, *_rest in rows),
        "told_twice": len(acknowledged) - len(told),
        "pair_twice": sum(count > 1 for count in seats.values()),
        "not_told": sum(receipt not in told for receipt in held),
        "live_differs": _live_differs(round_),
    }


def _live_differs(round_: Round) -> int:
    """Slots whose counter is not the number of leases and votes on them."""
    from django.db.models import Count, F, Q

    live = Q(assignments__state__in=["reserved", "shown", "voted"])
    slots = round_.slots.annotate(real=Count("assignments", filter=live))
    return slots.exclude(live=F("real")).count()


def upload(path: Path) -> dict[str, Any]:
    user, _made = User.objects.get_or_create(username="ada", defaults={"role": Role.ADMIN})
    with path.open("rb") as file:
        run = imports.receive_upload(
            actor=user,
            name=path.name,
            chunks=iter(lambda: file.read(1 << 20), b""),
            format="palate",
            key=f"bench-{path.name}-{ImportRun.objects.count()}",
        )
    return {"run": run.pk}


def start(pk: int) -> dict[str, Any]:
    run = ImportRun.objects.get(pk=pk)
    return {"run": imports.start_import(actor=run.created_by, check=run).pk}


def state(pk: int) -> dict[str, Any]:
    run = ImportRun.objects.get(pk=pk)
    names = ("state", "rows_done", "added", "known", "refused", "bytes_done", "size")
    return {**{name: getattr(run, name) for name in names}, "answers": Answer.objects.count()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    one = commands.add_parser("round")
    one.add_argument("--raters", type=int, required=True)
    one.add_argument("--votes", type=int, required=True)
    one = commands.add_parser("check")
    one.add_argument("round", type=int)
    one.add_argument("file", type=Path)
    commands.add_parser("upload").add_argument("file", type=Path)
    commands.add_parser("start").add_argument("run", type=int)
    commands.add_parser("run").add_argument("run", type=int)
    given = parser.parse_args()
    if given.command == "round":
        said = make_round(given.raters, given.votes)
    elif given.command == "check":
        said = check(given.round, given.file.read_text().split())
    elif given.command == "upload":
        said = upload(given.file)
    else:
        said = {"start": start, "run": state}[given.command](given.run)
    print(json.dumps(said))


if __name__ == "__main__":
    main()

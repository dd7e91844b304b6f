"""A project of 10,000 and one of 100,000 items: what a page asks and how long it takes.

    python -m bench.annotation_project [--only sqlite|postgres] [--items 100000] [--rounds 60]

Three projects: a small and a large one in the middle of their work (two labels per item; the
busiest annotator has labelled a fifth of the items once, and their second place is still open;
one item in twenty was raised on disagreement, after she labelled it), and one whose items all have
two labels, for the statistics job. Requests go through Django's test client in this process, so
that times are the site's own. Exit code 1 where a page needs more than 12 statements, where the
next item costs more than 1.3 times as much in the large project, or where the job takes more than
20 s (its first run, which writes a soft label for every item and axis, is reported apart).
"""

from __future__ import annotations

import argparse
import json
import re
import resource
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import Any

from bench.site import DATABASE_URL, ROOT, Site

MOST_QUERIES, MOST_RATIO, MOST_JOB_S = 12, 1.3, 20.0
PEOPLE = 12


def make_people(n: int) -> list[Any]:
    from webapp.accounts.models import User

    User.objects.bulk_create(
        [
            User(username="mara", role="admin"),
            *(User(username=f"ann-{k}", role="annotator") for k in range(n)),
        ]
    )
    return list(User.objects.filter(role="annotator").order_by("pk"))


def make_versions() -> list[Any]:
    from webapp.catalog.services.personas import create_persona

    return [
        create_persona(
            actor=None,
            pseudonym=f"p{k}",
            summary=f"Person number {k}: wants it short.",
            features={
                "expertise": ("novice", "expert")[k % 2],
                "language": ("en", "zh")[k // 2 % 2],
            },
        ).versions.first()
        for k in range(8)
    ]


def make_project(name: str, n: int, people: Sequence[Any], versions: Sequence[Any]) -> Any:
    """An open project with `n` items, without gold, and everybody a member at work."""
    from annotation.models import Item, ItemOrigin, ItemText, Member
    from annotation.services import projects
    from webapp.accounts.models import User
    from webapp.catalog.services.prompts import get_or_create_prompt
    from webapp.catalog.strata import stratum_of

    manager = User.objects.get(username="mara")
    settings = {
        "base_overlap": 2, "max_overlap": 3, "gold_percent": 0, "repeat_percent": 0,
        "onboarding_size": 0, "stratum_features": ["expertise", "language"], "price_cents": 10,
    }  # fmt: skip
    project = projects.create_project(
        actor=manager, name=name, guidelines="Read both.", settings=settings
    )
    projects.add_members(actor=manager, project=project, users=people)
    Member.objects.filter(project=project).update(
        state="working", guideline_read=project.guidelines.first()
    )
    prompts = [get_or_create_prompt(messages=f"Question {k}?").pk for k in range(500)]
    columns = {
        "project_id": str(project.pk), "target": "2",
        "public_id": random_text(1), "content_sha256": random_text(2),
        "first_sha256": random_text(2), "second_sha256": random_text(2),
        "prompt_id": f"{prompts[0]} + k.n % 500", "shuffle_key": RANDOM_KEY[vendor()],
        "persona_version_id": choose([version.pk for version in versions]),
        "stratum": choose(
            [f"'{stratum_of(v.persona.features, project.stratum_features)}'" for v in versions]
        ),
    }  # fmt: skip
    insert(Item, columns, "k", numbers=n)
    of_project = f"annotation_item i WHERE i.project_id = {project.pk}"
    insert(ItemText, {"item_id": "i.id", "first": SHORT, "second": LONG}, of_project)
    producers = {"item_id": "i.id", "first_producer": "'Harbor'", "second_producer": "'Quarry'"}
    insert(ItemOrigin, producers, of_project)
    return projects.move_project(actor=manager, project=project, to="open")


SHORT = "'Short answer number ' || i.id || '. It says what to do and no more than that.'"
LONG = (
    "'Long answer number ' || i.id || '. First it says why, then it goes through every step in "
    "turn, and at the end it repeats what was said, in case somebody was not listening.'"
)
RANDOM_KEY = {"postgresql": "(random() * 4e18)::bigint", "sqlite": "abs(random() / 4)"}


def vendor() -> str:
    from django.db import connection

    return str(connection.vendor)


def random_text(parts: int) -> str:
    """An expression for random hexadecimal digits, 32 a part, for every row anew."""
    one = {
        "postgresql": "md5(random()::text || k.n::text)",
        "sqlite": "lower(hex(randomblob(16)))",
    }[vendor()]
    return " || ".join([one] * parts)


def choose(values: Sequence[Any]) -> str:
    """One of eight values by the number of the row."""
    cases = " ".join(f"WHEN {k} THEN {value}" for k, value in enumerate(values))
    return f"CASE k.n % {len(values)} {cases} END"


def insert(model: Any, columns: dict[str, str], source: str, *, numbers: int = 0) -> None:
    """Insert rows by one statement: `columns` are expressions, the others get their defaults."""
    from django.db import connection
    from django.utils import timezone

    names, expressions, values = [], [], []
    for field in model._meta.concrete_fields:
        if field.primary_key and field.column not in columns:
            continue
        names.append(f'"{field.column}"')
        if field.column in columns:
            expressions.append(columns[field.column])
            continue
        dated = getattr(field, "auto_now_add", False) or getattr(field, "auto_now", False)
        default = timezone.now() if dated else field.get_default()
        expressions.append("%s" if default is not None else "NULL")
        if default is not None:
            values.append(field.get_db_prep_save(default, connection))
    rows = "WITH RECURSIVE k(n) AS (SELECT 0 UNION ALL SELECT n + 1 FROM k WHERE n + 1 < %s) "
    said = ", ".join(expressions)
    if not numbers:
        said, rows = said.replace("%", "%%").replace("%%s", "%s"), ""
    table = model._meta.db_table
    statement = f"{rows}INSERT INTO {table} ({', '.join(names)}) SELECT {said} FROM {source}"
    if numbers:
        statement = statement.replace(" % ", " %% ")
        values.insert(0, numbers)
    with connection.cursor() as cursor:
        cursor.execute(statement, values)


def rank_items(project: Any) -> list[tuple[int, int]]:
    """The places of the items in the queue, also as table `bench_rank` for the statements."""
    from django.db import connection

    with connection.cursor() as cursor:
        cursor.execute("DROP TABLE IF EXISTS bench_rank")
        cursor.execute(
            "CREATE TEMPORARY TABLE bench_rank AS SELECT id AS item, row_number() OVER "
            f"(ORDER BY shuffle_key) - 1 AS n FROM annotation_item WHERE project_id = {project.pk}"
        )
        cursor.execute("CREATE UNIQUE INDEX bench_rank_item ON bench_rank (item)")
    return list(project.items.order_by("shuffle_key").values_list("pk", "shuffle_key"))


def give_labels(project: Any, low: int, high: int, member: str) -> None:
    """Labels of a part of the queue by `member`, an expression, as if given over a week."""
    from django.db import connection
    from django.utils import timezone

    from annotation.models import Label, Lease

    now = timezone.now()
    rows = f"bench_rank k WHERE k.n >= {low} AND k.n < {high}"
    leases = {
        "item_id": "k.item", "member_id": member, "state": "'shown'", "counted": "(1 = 1)",
        "first_left": "(k.item % 2 = 0)", "token": random_text(1),
        "expires_at": f"'{now}'", "shown_at": f"'{now}'",
    }  # fmt: skip
    insert(Lease, leases, rows)
    noise = "(l.item_id * 7 + l.member_id * 13) % 10"
    verdict = f"CASE WHEN {noise} < 7 THEN 'first' WHEN {noise} < 9 THEN 'second' ELSE 'tie' END"
    labels = {
        "lease_id": "l.id", "item_id": "l.item_id", "member_id": "l.member_id", "revision": "1",
        "quality": verdict, "personalization": verdict, "active_ms": "25000",
        "first_left": "l.first_left",
    }  # fmt: skip
    insert(Label, labels, "annotation_lease l WHERE l.state = 'shown'")
    with connection.cursor() as cursor:
        cursor.execute(
            "UPDATE annotation_lease SET state = 'submitted', submitted_at = %s, head_id = "
            "(SELECT l.id FROM annotation_label l WHERE l.lease_id = annotation_lease.id) "
            "WHERE state = 'shown'",
            [now - timedelta(days=1 + low % 6)],
        )


def set_items(project: Any, low: int, high: int, columns: str) -> None:
    from django.db import connection

    where = f"SELECT item FROM bench_rank WHERE n >= {low} AND n < {high}"
    with connection.cursor() as cursor:
        cursor.execute(f"UPDATE annotation_item SET {columns} WHERE id IN ({where})")


def advance(project: Any) -> None:
    """Bring a project to the middle of its work, see the module's docstring."""
    from django.db.models import F

    from annotation.models import Member

    queue = rank_items(project)
    base = project.members.order_by("pk").values_list("pk", flat=True)[0]
    fifth, raised = len(queue) // 5, len(queue) // 20
    give_labels(project, 0, fifth, str(base))
    give_labels(project, fifth, 3 * fifth, f"{base + 1} + k.n % 10")
    give_labels(project, fifth, 3 * fifth, f"{base + 2} + k.n % 10")
    for member in (base, base + 1):
        give_labels(project, 3 * fifth, 3 * fifth + raised, str(member))
    set_items(project, 0, fifth, "live = 1, done = 1")
    set_items(project, fifth, 3 * fifth, "live = 2, done = 2, state = 'done'")
    set_items(
        project, 3 * fifth, 3 * fifth + raised, "live = 2, done = 2, target = 3, priority = 1"
    )
    Member.objects.filter(pk=base).update(cursor=queue[fifth - 1][1], served=F("served") + fifth)


def finish(project: Any) -> None:
    """Two labels for every item."""
    queue = rank_items(project)
    base = project.members.order_by("pk").values_list("pk", flat=True)[0]
    for step in (0, 5):
        give_labels(project, 0, len(queue), f"{base} + (k.n + {step}) % {PEOPLE}")
    set_items(project, 0, len(queue), "live = 2, done = 2, state = 'done'")


# Measuring


def nothing() -> None:
    """What stands before a request that needs nothing undone."""


Request = tuple[Callable[[], Any], Callable[[], Any]]  # what is timed, and what goes before it


def timed(pair: Sequence[Request], rounds: int) -> list[dict[str, Any]]:
    """p50, p95 in ms and the most statements of the same request in two projects.

    They take turns, so that whatever else the machine does slows both alike.
    """
    from django.db import connection
    from django.test.utils import CaptureQueriesContext

    times: list[list[float]] = [[], []]
    most = [0, 0]
    for number in range(rounds + 5):
        for side, (act, before) in enumerate(pair):
            before()
            started = time.perf_counter()
            if number >= 5:
                act()
                times[side].append((time.perf_counter() - started) * 1000)
                continue
            with CaptureQueriesContext(connection) as asked:
                act()
            statements = sum(not _is_frame(query["sql"]) for query in asked.captured_queries)
            most[side] = max(most[side], statements)
    return [
        {
            "p50_ms": round(sorted(values)[rounds // 2], 1),
            "p95_ms": round(sorted(values)[int(rounds * 0.95)], 1),
            "queries": queries,
        }
        for values, queries in zip(times, most, strict=True)
    ]


def _is_frame(sql: str) -> bool:
    return sql.split(" ", 1)[0] in ("BEGIN", "SAVEPOINT", "RELEASE", "COMMIT")


def requests_of(project: Any) -> dict[str, Request]:
    """What is asked of a project, by name."""
    from django.test import Client

    from annotation.models import Lease
    from annotation.services import labels, leases

    people = list(project.members.order_by("pk").select_related("user"))
    found: dict[str, Request] = {}

    def give_back(member: Any) -> Callable[[], Any]:
        def act() -> None:
            for token in Lease.objects.filter(member=member, state="shown").values_list("token"):
                leases.skip(user=member.user, token=token[0], reason="unsure")

        return act

    def claim(member: Any) -> Callable[[], Any]:
        return lambda: leases.serve(user=member.user, project=project).lease or sys.exit(1)

    for name, who in (("newcomer", people[11]), ("busiest annotator", people[0])):
        found[f"next item, {name}"] = claim(who), give_back(who)

    writer, held = people[11], dict[str, str]()

    def take() -> None:
        lease = leases.serve(user=writer.user, project=project).lease
        held["token"] = lease.token if lease else sys.exit(1)

    def submit() -> None:
        verdicts = {"quality": "left", "personalization": "tie"}
        answer = labels.Answer(verdicts, active_ms=9000)
        labels.submit_label(user=writer.user, token=held["token"], answer=answer)

    found["submit"] = submit, take
    worker, manager = (Client(headers={"host": "127.0.0.1"}) for _who in range(2))
    worker.force_login(people[10].user)
    manager.force_login(project.created_by)
    page = f"/annotation/{project.pk}/label/"

    def look() -> None:
        text = worker.get(page).content.decode()
        token = re.search(r'name="token" value="([0-9a-f]+)"', text)
        held["token"] = token[1] if token else sys.exit(1)

    def post() -> None:
        sent = {"quality": "left", "personalization": "right", "active_ms": 5000, **held}
        assert worker.post(page, sent).status_code == 302

    found["label page"] = look, give_back(people[10])
    found["submit, as a form"] = post, look
    for name in ("", "progress/", "agreement/", "annotators/"):
        address = f"/annotation/{project.pk}/{name}"

        def get(address: str = address) -> None:
            assert manager.get(address).status_code == 200

        found[f"project page {name}".strip()] = get, nothing
    return found


def run_job(project: Any) -> dict[str, Any]:
    """The statistics job, first with every soft label to write, then with none."""
    from annotation.services.statistics import compute_statistics

    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    times, cpu = [], []
    for _time in range(2):
        started, worked = time.perf_counter(), time.process_time()
        snapshot = compute_statistics(pk=project.pk)
        times.append(time.perf_counter() - started)
        cpu.append(time.process_time() - worked)
    assert snapshot is not None
    after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return {
        "labels": snapshot.report["labels"],
        "first_s": round(times[0], 1),
        "again_s": round(times[1], 1),
        "first_cpu_s": round(cpu[0], 1),
        "again_cpu_s": round(cpu[1], 1),
        "peak_mb": round(after / 1024),
        "peak_before_mb": round(before / 1024),
        "report_kb": round(len(json.dumps(snapshot.report)) / 1024),
    }


def inner(items: int, small: int, rounds: int) -> dict[str, Any]:
    """Build and measure in the database of the environment."""
    import django

    django.setup()
    from django.core.cache import cache
    from django.db import connection
    from django.urls import get_resolver

    assert get_resolver().url_patterns  # imports every page now

    people, versions = make_people(PEOPLE), make_versions()
    result: dict[str, Any] = {"database": connection.vendor}
    done = make_project("done", items, people, versions)
    finish(done)
    projects = {}
    for name, n in (("small", small), ("large", items)):
        projects[name] = make_project(name, n, people, versions)
        advance(projects[name])
    with connection.cursor() as cursor:
        cursor.execute("VACUUM ANALYZE" if vendor() == "postgresql" else "ANALYZE")
    cache.clear()
    result["job"] = run_job(done)
    print(connection.vendor, result["job"], file=sys.stderr, flush=True)
    for project in projects.values():
        run_job(project)
    asked = [requests_of(project) for project in projects.values()]
    result["small"], result["large"] = {}, {}
    for name in asked[0]:
        pair = [requests[name] for requests in asked]
        result["small"][name], result["large"][name] = timed(pair, rounds)
    return result


def show(result: dict[str, Any]) -> bool:
    """Print, and say whether every aim was met."""
    print(f"\n{result['database']}: statistics job {json.dumps(result['job'])}")
    good = bool(result["job"]["again_s"] <= MOST_JOB_S)
    heads = f"{'small p50':>10}{'p95':>8}{'large p50':>10}{'p95':>8}{'ratio':>7}"
    print(f"  {'milliseconds':<32}{'queries':>8}{heads}")
    for name, large in result["large"].items():
        small = result["small"][name]
        ratio = large["p50_ms"] / small["p50_ms"]
        limited = name.startswith("next item,")
        met = large["queries"] <= MOST_QUERIES and (not limited or ratio <= MOST_RATIO)
        good = good and met
        print(
            f"  {name:<32}{large['queries']:>8}{small['p50_ms']:>10}{small['p95_ms']:>8}"
            f"{large['p50_ms']:>10}{large['p95_ms']:>8}{ratio:>7.2f}{'' if met else '  MISSED'}"
        )
    return good


def outer(name: str, site: Site, given: argparse.Namespace) -> dict[str, Any]:
    command = [
        sys.executable, "-m", "bench.annotation_project", "--inner",
        "--items", str(given.items), "--small", str(given.small), "--rounds", str(given.rounds),
    ]  # fmt: skip
    done = subprocess.run(command, cwd=ROOT, env=site.env, check=True, stdout=subprocess.PIPE)
    found: dict[str, Any] = json.loads(done.stdout.decode().strip().splitlines()[-1])
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", choices=["sqlite", "postgres"])
    parser.add_argument("--postgres", default=DATABASE_URL, help="a server to make a database on")
    parser.add_argument("--items", type=int, default=100_000)
    parser.add_argument("--small", type=int, default=10_000)
    parser.add_argument("--rounds", type=int, default=60)
    parser.add_argument("--inner", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.inner:
        print(json.dumps(inner(given.items, given.small, given.rounds)))
        return 0
    good = True
    for name, server in (("postgres", given.postgres), ("sqlite", "")):
        if given.only in (None, name):
            with Site(postgres=server) as site:
                good = show(outer(name, site, given)) and good
    return int(not good)


if __name__ == "__main__":
    sys.exit(main())

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
from typing import Any

from bench.annotation_items import (
    PEOPLE,
    advance,
    finish,
    make_people,
    make_project,
    make_versions,
    vendor,
)
from bench.site import DATABASE_URL, ROOT, Site

MOST_QUERIES, MOST_RATIO, MOST_JOB_S = 12, 1.3, 20.0


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

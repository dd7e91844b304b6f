"""Projects of many thousand items for a benchmark, made by a few statements."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import Any

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

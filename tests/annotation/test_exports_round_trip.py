"""Export, import into an empty project, export again: the same bytes (T15, T17)."""

from __future__ import annotations

import csv
import io
import json
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.utils import timezone

from annotation.enums import ItemState
from annotation.models import ExportRun, Item, Lease, Project
from annotation.services import exports, labels, leases
from annotation.services.gold import make_gold
from annotation.services.imports import KIND
from annotation.services.items import ItemDraft, add_items, drop_items
from annotation.services.projects import add_members, create_project
from tests.annotation.factories import GUIDELINES, PLAIN, Desk, make_desk, submit
from tests.annotation.review import adjudicator, decide
from tests.annotation.test_counterfactuals import rate, rated
from tests.annotation.test_counterfactuals import run as make_counterfactuals
from tests.annotation.test_leases import expire_all
from tests.conftest import make_user
from webapp.accounts.enums import Role
from webapp.catalog.enums import ImportState
from webapp.catalog.models import ImportRun
from webapp.catalog.services.import_work import run_import
from webapp.catalog.services.imports import open_run
from webapp.catalog.services.prompts import get_or_create_prompt

pytestmark = pytest.mark.django_db
NASTY = [
    ("=1+1", "-2 and more of it, quite different"),
    ("+1 (555) 0100", "@everyone, read this please"),
    ("'quoted already", "''=twice with other words"),
    ("a, b; c\td", 'he said "no" to\nall, and left'),
    ("first\r\nsecond\r\n", "\tbegins with a tab, then words"),
    ("😀 emoji 👩‍👩‍👧 family", "中文，带逗号“引号”和换行\n第二行"),
    ("＝全角等号 1", '\\u0041 stays as it is, {"json": 1}'),
    ("\u202eright to left", "trailing space \u2028 line separator"),
]
ODD: list[tuple[Any, str]] = [  # prompts that look like something else, first answers
    ('\'=cmd|"x",\r\n\t+1 \u2028 <b>&amp; \\n end', "'=x"),
    ("[not, a, list]", ""),  # held back: an answer is empty
    ([{"role": "system", "content": "s"}, {"role": "user", "content": "[1]"}], "'"),
]


def a_full_project() -> Desk:
    """Labels of two people with strengths, tags and comments; ties; disputes; extras; a rewrite."""
    desk = make_desk(
        people=2,
        n_items=6,
        settings={
            "base_overlap": 2,
            "max_overlap": 2,
            "ask_strength": True,
            "tags": ["wordy", "wrong"],
        },
    )
    turns = [
        {"role": "system", "content": "=SUM(A1)"},
        {"role": "user", "content": "你好"},
        {"role": "assistant", "content": "在"},
        {"role": "user", "content": "再见"},
    ]
    prompt = get_or_create_prompt(messages=turns, category="chat", language="zh")
    drafts = [
        ItemDraft(
            prompt_id=prompt.pk,
            prompt_digest=prompt.text_hash,
            first=first,
            second=second,
            persona_version_id=desk.versions[n % 2].pk if n % 3 else None,
            first_producer="Harbor" if n % 2 else "",
            details={"z": 1, "a": [{"b": "ä", "a": None}], "n": 1.5} if n == 3 else {},
            source=f"=pairs.csv:{n}" if n == 4 else "",
        )
        for n, (first, second) in enumerate(NASTY)
    ]
    add_items(project=desk.project, drafts=[*drafts, *odd_drafts()])
    return desk


def odd_drafts() -> list[ItemDraft]:
    return [
        ItemDraft(
            prompt_id=(prompt := get_or_create_prompt(messages=messages)).pk,
            prompt_digest=prompt.text_hash,
            first=first,
            second="@the other one, in quite different words",
            first_producer='-=+"Harbor"',
            kind="counterfactual",
            synthetic=True,
            source=f"made:{n} =1+1",
        )
        for n, (messages, first) in enumerate(ODD)
    ]


@pytest.fixture
def desk() -> Desk:
    """Everything that the format has a place for, made as people make it."""
    found = a_full_project()
    late = lease_that_expires(found)
    words: dict[str, Any] = {"tags": ["wordy", "wrong"], "comment": "=cmd|'/c calc'!A1\r\n, \"好\""}
    for user in found.people:
        n = 0
        while (lease := leases.serve(user=user, project=found.project).lease) is not None:
            n += 1
            shown = ("left", "right", "tie", "both_bad")[(lease.item_id + user.pk * (n % 2)) % 4]
            answer = labels.Answer(
                verdicts=dict.fromkeys(found.project.axes, shown),
                strengths=dict.fromkeys(found.project.axes, 1 + n % 3),
                active_ms=1000 * n,
                **(words if n % 4 == 0 else {}),
            )
            labels.submit_label(user=user, token=lease.token, answer=answer)
    assert late.member.user is not None
    assert submit(late.member.user, late, "tie").extra
    items = [item for item in found.items() if item.pk != late.item_id]
    disputed = next(item for item in items if item.state == ItemState.DISPUTED)
    decide(adjudicator(found), disputed, "second", note="=see, the\nguidelines")
    items.remove(disputed)
    drop_items(actor=found.manager, project=found.project, items=[items[2].pk])
    make_gold(actor=found.manager, item=items[1], verdicts={"quality": "first"})
    add_repeat(items[0])
    return found


def lease_that_expires(desk: Desk) -> Lease:
    """Of a third annotator, who sends her label when the two others have done the item."""
    user = make_user("late", Role.ANNOTATOR)
    add_members(actor=desk.manager, project=desk.project, users=[user])
    lease = leases.serve(user=user, project=desk.project).lease
    assert lease is not None
    expire_all()
    return lease


def add_repeat(item: Item) -> None:
    """Repeats come by lot, so this one is written here."""
    member = item.leases.order_by("pk")[0].member
    lease = Lease.objects.create(
        item=item, member=member, repeat=1, first_left=False, expires_at=timezone.now()
    )
    at = timezone.now() - timedelta(hours=3)
    label = lease.labels.create(
        item=item, member=member, revision=1, quality="tie", first_left=False, at=at
    )
    Lease.objects.filter(pk=lease.pk).update(
        state="submitted", head=label, submitted_at=at, shown_at=at
    )


def export(desk: Desk, project: Project, format: str, **options: Any) -> Path:
    run = exports.start_export(
        actor=desk.manager,
        project=project,
        options={"format": format, **options},
        key="",
        send=False,
    )
    done = exports.run_export(pk=run.pk)
    assert done is not None
    assert done.state == "done", done.report
    return Path(done.path)


def empty_project(desk: Desk, name: str = "Copy") -> Project:
    return create_project(
        actor=desk.manager,
        name=name,
        guidelines=GUIDELINES,
        settings={
            **PLAIN,
            "base_overlap": 2,
            "max_overlap": 2,
            "ask_strength": True,
            "tags": ["wordy", "wrong"],
        },
    )


def bring_in(path: Path, project: Project) -> ImportRun:
    run = open_run(path=path, kind=KIND, subject=project.pk, options={"axis": "quality"})
    done = run_import(pk=run.pk, take_over=True)
    assert done is not None
    assert done.state == ImportState.DONE, (done.message, done.report)
    assert done.refused == 0, done.report
    return done


@pytest.mark.parametrize("format", ["palate_pairs", "palate_csv"])
def test_a_round_trip_gives_the_same_bytes(desk: Desk, format: str) -> None:
    once = export(desk, desk.project, format)
    copy = empty_project(desk)
    first = bring_in(once, copy)
    assert first.format == format
    assert first.added == desk.project.items.count() - 1  # the gold one stays
    counted = Lease.objects.filter(counted=True).exclude(item__state="gold")
    places = [counted.filter(item__project=p).count() for p in (copy, desk.project)]
    assert places[0] == places[1] > 0
    twice = export(desk, copy, format)
    assert twice.read_bytes() == once.read_bytes()


@pytest.mark.parametrize("format", ["palate_pairs", "palate_csv"])
def test_a_second_import_adds_nothing(desk: Desk, format: str) -> None:
    path = export(desk, desk.project, format)
    copy = empty_project(desk)
    bring_in(path, copy)
    counts = (copy.items.count(), Lease.objects.filter(item__project=copy).count())
    again = bring_in(path, copy)
    assert (again.added, again.report.get("labels_added", 0)) == (0, 0)
    assert counts == (copy.items.count(), Lease.objects.filter(item__project=copy).count())
    assert export(desk, copy, format).read_bytes() == path.read_bytes()


@pytest.mark.parametrize("format", ["palate_pairs", "palate_csv"])
def test_importing_into_the_project_it_came_from_adds_nothing(desk: Desk, format: str) -> None:
    path = export(desk, desk.project, format)
    run = bring_in(path, desk.project)
    assert (run.added, run.report.get("labels_added", 0)) == (0, 0)
    assert export(desk, desk.project, format).read_bytes() == path.read_bytes()


def test_late_work_repeats_and_adjudications_are_in_the_file(desk: Desk) -> None:
    path = export(desk, desk.project, "palate_pairs")
    rows = [json.loads(line) for line in path.read_bytes().splitlines()]
    labels = [label for row in rows for label in row.get("labels", [])]
    assert [label["late"] for label in labels if label.get("extra")] == [True]
    assert len([label for label in labels if label.get("repeat")]) == 1
    said = [decision for row in rows for decision in row.get("decisions", {}).values()]
    notes = {decision["note"] for decision in said if decision["source"] == "adjudicated"}
    assert notes == {"=see, the\nguidelines"}


def test_lines_and_table_hold_the_same(desk: Desk) -> None:
    by_lines, by_table = empty_project(desk, "Lines"), empty_project(desk, "Table")
    bring_in(export(desk, desk.project, "palate_pairs"), by_lines)
    bring_in(export(desk, desk.project, "palate_csv"), by_table)
    lines, table = (export(desk, p, "palate_pairs") for p in (by_lines, by_table))
    assert lines.read_bytes() == table.read_bytes()


def test_no_cell_of_the_table_is_a_formula(desk: Desk) -> None:
    text = export(desk, desk.project, "palate_csv").read_bytes().decode()
    rows = list(csv.reader(io.StringIO(text, newline="")))
    assert len(rows) == desk.project.items.count()  # a header, and one gold item less
    cells = [cell for row in rows for cell in row]
    assert not [cell for cell in cells if cell.startswith(("=", "+", "-", "@", "\t", "\r", "＝"))]
    assert "'=1+1" in cells


def test_counterfactual_pairs_travel_with_their_partner() -> None:
    found = rated(4)
    for item in found.items():
        rate(item, "tie", axis="quality")
    make_counterfactuals(found)
    path = export(found, found.project, "palate_pairs")
    copy = empty_project(found)
    bring_in(path, copy)
    assert export(found, copy, "palate_pairs").read_bytes() == path.read_bytes()
    asked = {"axis": "personalization", "synthetic": "yes"}
    export(found, copy, "openai_preference", **asked)
    report = ExportRun.objects.first()
    assert report is not None
    assert (report.rows_done, report.report["left_out"]) == (12, {})

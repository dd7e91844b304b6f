"""Imports of pairs: streamed, resumable, idempotent, each refused row with its reason."""

from __future__ import annotations

import json
from collections import Counter
from datetime import timedelta
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from annotation.enums import ItemState, LeaseState
from annotation.models import (
    Decision,
    GoldItem,
    Item,
    ItemText,
    Label,
    Lease,
    Member,
    Project,
)
from annotation.services import import_rows, projects
from annotation.services.imports import check_options
from annotation.services.items import release_items
from annotation.services.leases import serve
from tests.annotation.factories import label_once, make_desk
from tests.annotation.pairs import (
    as_list,
    error_rows,
    import_pairs,
    label,
    make_project,
    numbers,
    row,
    write,
)
from tests.catalog.factories import make_answer, make_persona, seal
from webapp.accounts.models import User
from webapp.catalog import uploads
from webapp.catalog.enums import ImportState, Where
from webapp.catalog.models import Exposure, ImportRun, Persona, Prompt
from webapp.catalog.services import import_work, imports, personas
from webapp.core.errors import InvalidInput
from webapp.core.models import Event

pytestmark = pytest.mark.django_db
PERSONA = {"pseudonym": "mei", "summary": "Wants it short.", "features": {"expertise": "novice"}}


@pytest.fixture(autouse=True)
def media(settings: Any, tmp_path: Path) -> Path:
    settings.MEDIA_ROOT = tmp_path / "media"
    return tmp_path / "media"


@pytest.fixture
def project(db: Any) -> Project:
    return make_project()


@pytest.fixture
def small_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(import_rows, "ROWS", 10)


def three_of(verdicts: str) -> list[dict[str, Any]]:
    words = {"1": "first", "2": "second", "0": "tie"}
    return [label(f"annotator{n}", words[said]) for n, said in enumerate(verdicts, 1)]


def everything(project: Project) -> list[Any]:
    """What an import writes into a project, without ids and times."""
    return [
        (
            item.content_sha256,
            item.state,
            (item.target, item.live, item.done),
            item.body.first,
            item.body.second,
            item.origin.first_producer,
            sorted(
                (lease.member.external_name, lease.repeat, lease.counted, lease.head.quality)
                for lease in item.leases.select_related("member", "head")
                if lease.head
            ),
        )
        for item in project.items.select_related("body", "origin").order_by("content_sha256")
    ]


# Once


def test_import_twice_adds_nothing(tmp_path: Path, project: Project, alice: User) -> None:
    rows = [
        row(1, persona=PERSONA, labels=three_of("112")),
        row(2, labels=three_of("111")),
        row(3, category="how-to", language="en", source="there.jsonl:9"),
    ]
    path = write(tmp_path / "rows.jsonl", rows)
    run = import_pairs(project, path, user=alice)
    assert (run.state, run.format) == (ImportState.DONE, "palate_pairs")
    assert numbers(run) == (3, 0, 0)
    assert (run.report["labels_added"], run.bytes_done) == (6, run.size)
    first = everything(project)
    assert [entry[2] for entry in first].count((3, 3, 3)) == 2
    states = project.items.values_list("state", flat=True)
    assert Counter(states) == {ItemState.DONE: 2, ItemState.OPEN: 1}
    sources = {item.source for item in project.items.all()}
    assert sources == {"rows.jsonl:1", "rows.jsonl:2", "there.jsonl:9"}
    again = import_pairs(project, path, user=alice)
    assert (numbers(again), again.report["labels_known"]) == ((0, 3, 0), 6)
    assert everything(project) == first
    assert Persona.objects.count() == 1
    assert Prompt.objects.get(category="how-to").language == "en"
    assert list(Event.objects.values_list("action", flat=True))[-2:] == ["import", "import_done"]


def test_a_pair_with_its_sides_changed_is_the_same_pair(tmp_path: Path, project: Project) -> None:
    one = row(1, labels=[label("a", "first")])
    changed = {"first": one["second"], "second": one["first"]}
    other = row(1, **changed, labels=[label("b", "second", first_left=False), label("a", "second")])
    run = import_pairs(project, write(tmp_path / "rows.jsonl", [one, other]))
    assert numbers(run) == (1, 1, 0)
    assert (run.report["labels_added"], run.report["labels_repeated"]) == (3, 1)
    found = Label.objects.order_by("pk").values_list("quality", "first_left", "lease__repeat")
    assert list(found) == [("first", True, 0), ("first", True, 0), ("first", False, 1)]
    assert project.items.get().state == ItemState.DONE


def test_a_row_that_stands_twice_is_a_repeat_by_the_same_annotator(
    tmp_path: Path, project: Project, small_batches: None
) -> None:
    rows = [row(n % 12, labels=[label("a"), label("b", "tie")]) for n in range(25)]
    path = write(tmp_path / "rows.jsonl", rows)
    checked = import_pairs(project, path, dry_run=True)
    run = import_pairs(project, path)
    assert numbers(checked) == numbers(run) == (12, 13, 0)
    for done in (checked, run):
        assert (done.report["labels_added"], done.report["labels_repeated"]) == (50, 26)
    assert Lease.objects.filter(repeat=0, counted=True).count() == 24
    assert Lease.objects.filter(repeat=2, counted=False).count() == 2
    again = import_pairs(project, path)
    assert (numbers(again), again.report["labels_known"]) == ((0, 25, 0), 50)
    assert Label.objects.count() == 50


def test_another_label_of_the_same_annotator_is_kept_beside_the_first(
    tmp_path: Path, project: Project
) -> None:
    for verdict in ("first", "second", "first"):
        path = write(tmp_path / f"{verdict}.jsonl", [row(1, labels=[label("a", verdict)])])
        import_pairs(project, path)
    leases = Lease.objects.order_by("repeat").values_list("repeat", "counted", "head__quality")
    assert list(leases) == [(0, True, "first"), (1, False, "second")]


# What labels come to


def test_labels_settle_their_pair_as_those_of_people_do(tmp_path: Path) -> None:
    project = make_project(base_overlap=2, max_overlap=3)
    rows = [row(n, labels=three_of(said)) for n, said in enumerate(("11", "12", "120", "1"))]
    import_pairs(project, write(tmp_path / "rows.jsonl", rows))
    found = [
        (item.state, item.target, item.done, item.priority) for item in project.items.order_by("pk")
    ]
    assert found == [
        (ItemState.DONE, 2, 2, 0),
        (ItemState.OPEN, 3, 2, 1),
        (ItemState.DISPUTED, 3, 3, 0),
        (ItemState.OPEN, 2, 1, 0),
    ]
    decisions = Decision.objects.order_by("item").values_list("verdict", "source", "labels")
    assert list(decisions) == [("first", "unanimous", 2), ("", "unresolved", 3)]
    item = project.items.order_by("pk")[0]
    assert item.quality_decision is not None
    assert item.quality_decision.posterior["first"] > 0.9


def test_external_annotators_are_members_without_an_account(
    tmp_path: Path, project: Project
) -> None:
    names = ["annotator1", "x" * 120, "标注员"]
    rows = [row(1, labels=[label(name) for name in names])]
    import_pairs(project, write(tmp_path / "rows.jsonl", rows))
    members = Member.objects.filter(user=None)
    assert {member.external_name for member in members} == set(names)
    assert members.get(external_name="标注员").pseudonym == "标注员"
    lease = Lease.objects.first()
    assert lease is not None
    assert (lease.state, lease.head and lease.head.source) == (LeaseState.SUBMITTED, "import")


def test_times_and_all_else_of_a_label_are_kept(tmp_path: Path, project: Project) -> None:
    said = label(
        "a", "second", strengths={"quality": 3}, tags=["wordy", "terse"], comment="好", active_ms=7,
        at="2026-05-01T12:00:00.000001+00:00", guideline=4, first_left=False, late=True, extra=True,
    )  # fmt: skip
    import_pairs(project, write(tmp_path / "rows.jsonl", [row(1, labels=[said])]))
    kept = Label.objects.select_related("lease").get()
    assert (kept.quality, kept.quality_strength, kept.tags) == ("second", 3, ["terse", "wordy"])
    assert (kept.comment, kept.active_ms, kept.imported) == ("好", 7, {"guideline": 4})
    assert kept.at.isoformat() == "2026-05-01T12:00:00.000001+00:00"
    assert (kept.first_left, kept.late, kept.lease.counted) == (False, True, False)
    assert kept.lease.submitted_at == kept.at
    assert project.items.get().done == 0


def test_labels_that_leave_an_axis_out_do_not_take_a_place(tmp_path: Path) -> None:
    project = make_project(axes=["quality", "personalization"])
    both = {"quality": "first", "personalization": "tie"}
    who = {"pseudonym": "p-1", "summary": "Likes it short."}
    labelled = [label("a")], [{"annotator": "a", "verdicts": both}]
    rows = [row(n, persona=who, labels=labels) for n, labels in enumerate(labelled, 1)]
    run = import_pairs(project, write(tmp_path / "rows.jsonl", rows))
    assert run.report["labels_beside"] == 1
    found = [(item.state, item.done) for item in project.items.order_by("pk")]
    assert found == [(ItemState.OPEN, 0), (ItemState.DONE, 1)]


def test_a_pair_without_a_persona_waits_where_somebody_would_be_asked_whom_it_suits(
    tmp_path: Path,
) -> None:
    both = make_project(axes=["quality", "personalization"])
    run = import_pairs(both, write(tmp_path / "rows.jsonl", [row(1)]))
    assert run.added == 1
    assert both.items.get().flags == ["no_persona"]
    assert both.items.get().state == ItemState.HELD


def test_decisions_of_our_own_files_stand(tmp_path: Path, project: Project) -> None:
    decision = {
        "verdict": "second", "source": "adjudicated", "labels": 2, "posterior": {"second": 0.7},
        "blind_verdict": "tie", "reason": "subjective", "note": "Close.",
    }  # fmt: skip
    rows = [
        row(1, state="done", labels=three_of("12"), decisions={"quality": decision}),
        row(2, state="disputed", labels=three_of("12"),
            decisions={"quality": {"verdict": "", "source": "unresolved", "labels": 2}}),
        row(3, state="held"),
        row(4, state="dropped", labels=three_of("11")),
        row(5, first="", state="open"),
    ]  # fmt: skip
    import_pairs(project, write(tmp_path / "rows.jsonl", rows))
    items = list(project.items.order_by("pk"))
    assert [item.state for item in items] == ["done", "disputed", "held", "dropped", "open"]
    kept = items[0].quality_decision
    assert kept is not None
    assert (kept.verdict, kept.source, kept.posterior) == ("second", "adjudicated", {"second": 0.7})
    assert (kept.blind_verdict, kept.reason, kept.note) == ("tie", "subjective", "Close.")
    more = write(tmp_path / "more.jsonl", [row(1, labels=[label("c", "first")])])
    import_pairs(project, more)
    items[0].refresh_from_db()
    assert (items[0].quality_decision_id, items[0].state) == (kept.pk, "done")


# What looks wrong, and gold


def test_pairs_that_look_wrong_are_held_and_settled_when_they_are_released(
    tmp_path: Path, project: Project
) -> None:
    rows = [
        row(1, first="", labels=three_of("222")),
        row(2, second=row(2)["first"]),
        row(3, first=" \u200b", second=""),
    ]
    run = import_pairs(project, write(tmp_path / "rows.jsonl", rows))
    assert numbers(run) == (3, 0, 0)
    assert run.report["flags"] == {"empty_side": 2, "near_identical": 1}
    assert set(project.items.values_list("state", flat=True)) == {ItemState.HELD}
    first = project.items.order_by("pk")[0]
    assert (first.done, first.quality_decision) == (3, None)
    release_items(actor=project.created_by, project=project, items=[first.pk])
    first.refresh_from_db()
    assert (first.state, first.quality_decision and first.quality_decision.verdict) == (
        ItemState.DONE,
        "second",
    )


def llmbar(path: Path, *labels: int) -> Path:
    rows = [
        {"input": f"q{n}", "output_1": f"one {n}", "output_2": f"two {n} else", "label": said}
        for n, said in enumerate(labels)
    ]
    path.write_bytes(as_list(*rows))
    return path


def test_labels_can_come_in_as_gold(tmp_path: Path, project: Project) -> None:
    run = import_pairs(project, llmbar(tmp_path / "gold.json", 1, 2, 2), gold=True)
    assert (numbers(run), run.report["gold"]) == ((3, 0, 0), 3)
    assert set(project.items.values_list("state", flat=True)) == {ItemState.GOLD}
    assert list(GoldItem.objects.order_by("item").values_list("quality", flat=True)) == [
        "first",
        "second",
        "second",
    ]
    assert not Label.objects.exists()
    again = import_pairs(project, llmbar(tmp_path / "again.json", 1, 2, 1), gold=True)
    assert numbers(again) == (0, 2, 1)
    assert error_rows(again)[0]["code"] == "gold_conflict"
    assert GoldItem.objects.count() == 3


def test_labels_on_gold_are_scored_and_take_no_place(tmp_path: Path, project: Project) -> None:
    import_pairs(project, llmbar(tmp_path / "gold.json", 1, 2), gold=True)
    import_pairs(project, llmbar(tmp_path / "labels.json", 1, 1), annotator="w")
    member = Member.objects.get(external_name="w")
    assert (member.gold_right, member.gold_seen) == (1, 2)
    assert not Lease.objects.filter(counted=True).exists()


def test_an_older_item_becomes_gold(tmp_path: Path, project: Project) -> None:
    path = llmbar(tmp_path / "rows.json", 1, 2)
    import_pairs(project, path, annotator="w")
    run = import_pairs(project, path, gold=True)
    assert numbers(run) == (0, 2, 0)
    assert set(project.items.values_list("state", flat=True)) == {ItemState.GOLD}
    assert GoldItem.objects.count() == 2


# Refused


def test_refused_rows_say_why_and_come_back_to_be_repaired(
    tmp_path: Path, project: Project
) -> None:
    """T16, T17: the file of refused rows, repaired, adds what was missing and nothing twice."""
    bad: list[Any] = [
        row(1),
        row(2, labels=[label(verdict="left")]),
        '{"prompt": "a", "first" "b"}',
        row(4, persona={"pseudonym": "p", "summary": "x" * 101}),
        row(5, first=True),
    ]
    run = import_pairs(project, write(tmp_path / "rows.jsonl", bad))
    assert numbers(run) == (1, 0, 4)
    lines = error_rows(run)
    assert [(line["line"], line["code"]) for line in lines] == [
        (2, "choice"),
        (3, "json"),
        (4, "long"),
        (5, "type"),
    ]
    assert lines[0]["row"] == bad[1]
    assert lines[0]["field"] == "labels[0].verdicts.quality"
    assert lines[1]["row"] == bad[2]
    assert lines[3]["reason"] == "Found: true."
    lines[0]["row"]["labels"][0]["verdicts"]["quality"] = "first"
    lines[1]["row"] = json.dumps(row(3))
    lines[2]["row"]["persona"]["summary"] = "x" * 100
    lines[3]["row"]["first"] = "true"
    repaired = import_pairs(project, write(tmp_path / "repaired.jsonl", lines))
    assert numbers(repaired) == (4, 0, 0)


@pytest.mark.parametrize(
    ("asked", "labels", "code"),
    [
        ({}, [{"annotator": "a", "verdicts": {"personalization": "first"}}], "axis_not_asked"),
        ({"allow_tie": False}, [label("a", "tie")], "verdict_not_allowed"),
        ({"allow_both_bad": False}, [label("a", "both_bad")], "verdict_not_allowed"),
    ],
)
def test_what_the_project_does_not_ask_is_refused(
    tmp_path: Path, db: Any, asked: Any, labels: Any, code: str
) -> None:
    project = make_project(**asked)
    run = import_pairs(project, write(tmp_path / "rows.jsonl", [row(1), row(2, labels=labels)]))
    assert (numbers(run), [line["code"] for line in error_rows(run)]) == ((1, 0, 1), [code])


def test_nobody_labels_in_the_name_of_a_member(tmp_path: Path, db: Any) -> None:
    desk = make_desk(people=1, n_items=1, settings={"axes": ["quality"]})
    label_once(desk, desk.people[0])
    item = desk.items()[0]
    name = desk.member(desk.people[0]).pseudonym
    known = {
        "prompt": item.prompt.messages[0]["content"],
        "first": item.body.first,
        "second": item.body.second,
        "persona": {
            "pseudonym": "expert-1",
            "summary": "Backend engineer, ten years. Wants the conclusion first.",
        },
    }
    rows = [
        {**known, "labels": [label(name, "first")]},
        {**known, "labels": [label(name, "second")]},
        row(7, labels=[label("somebody"), label(name)]),
    ]
    run = import_pairs(desk.project, write(tmp_path / "rows.jsonl", rows))
    assert numbers(run) == (0, 1, 2)
    assert {line["code"] for line in error_rows(run)} == {"annotator_is_member"}
    assert (Label.objects.count(), Item.objects.count(), ItemText.objects.count()) == (1, 1, 1)


def test_rows_of_withdrawn_personas_are_refused(
    tmp_path: Path, project: Project, alice: User
) -> None:
    personas.withdraw_consent(actor=alice, persona=make_persona("mei"))
    run = import_pairs(project, write(tmp_path / "a.jsonl", [row(1, persona=PERSONA), row(2)]))
    assert (numbers(run), error_rows(run)[0]["code"]) == ((1, 0, 1), "withdrawn")


# Dry run


def test_a_dry_run_says_what_the_import_will_do_and_changes_nothing(
    tmp_path: Path, project: Project, small_batches: None
) -> None:
    rows: list[Any] = [row(n % 17, labels=three_of("112")) for n in range(30)]
    rows[4] = "{"
    rows[21] = row(21, labels=[label(verdict="left")])
    rows[22] = row(50, first="")
    path = write(tmp_path / "rows.jsonl", rows)
    checked = import_pairs(project, path, dry_run=True)
    assert not Item.objects.exists()
    assert not Member.objects.exists()
    assert not Prompt.objects.exists()
    run = import_pairs(project, path)
    assert numbers(checked) == numbers(run)
    for name in ("labels_added", "labels_repeated", "flags", "codes", "annotators", "producers"):
        assert checked.report[name] == run.report[name], name
    assert error_rows(checked) == error_rows(run)
    assert not (uploads.folder(run.pk) / "scratch").exists()


# Who imports


def test_who_imports_has_met_the_answers_with_these_texts(
    tmp_path: Path, project: Project, alice: User
) -> None:
    met = make_answer("Run command 1.")
    make_answer("Something else.", draw=1)
    path = write(tmp_path / "rows.jsonl", [row(1)])
    import_pairs(project, path, user=alice, dry_run=True)
    assert not Exposure.objects.exists()
    import_pairs(project, path, user=alice)
    assert list(Exposure.objects.values_list("user", "answer", "where")) == [
        (alice.pk, met.pk, Where.IMPORTED)
    ]


# Work that goes on meanwhile


def test_labels_of_a_file_join_those_of_people_at_work(tmp_path: Path, db: Any) -> None:
    desk = make_desk(people=1, n_items=0, settings={"axes": ["quality"], "base_overlap": 1})
    path = write(tmp_path / "rows.jsonl", [row(1)])
    import_pairs(desk.project, path)
    desk.project = projects.move_project(actor=desk.manager, project=desk.project, to="open")
    lease = serve(user=desk.people[0], project=desk.project).lease
    assert lease is not None
    import_pairs(desk.project, write(path, [row(1, labels=three_of("11"))]))
    item = desk.items()[0]
    assert (item.target, item.live, item.done, item.state) == (3, 3, 2, ItemState.OPEN)
    label_once(desk, desk.people[0])
    item.refresh_from_db()
    assert (item.done, item.state) == (3, ItemState.DONE)


# Crashes


class Crash(BaseException):
    """What no handler catches, like a killed process."""


@pytest.mark.parametrize("at", [1, 2, 4])
def test_a_killed_import_goes_on(
    tmp_path: Path,
    project: Project,
    small_batches: None,
    monkeypatch: pytest.MonkeyPatch,
    at: int,
) -> None:
    """The same rows, labels and counts as an import that was never interrupted, repeats too."""
    rows: list[Any] = [row(n % 23, labels=three_of("112")) for n in range(42)]
    rows[14] = "{"
    path = write(tmp_path / "rows.jsonl", rows)
    other = make_project("Undisturbed")
    straight = import_pairs(other, path)
    real, count = import_work._fenced_update, iter(range(1000))

    def update(run: ImportRun, **values: Any) -> None:
        real(run, **values)
        if "rows_done" in values and next(count) == at - 1:
            raise Crash

    with monkeypatch.context() as patched:
        patched.setattr(import_work, "_fenced_update", update)
        with pytest.raises(Crash):
            import_pairs(project, path)
    run = ImportRun.objects.get(subject=project.pk)
    assert (run.state, run.rows_done) == (ImportState.RUNNING, (at - 1) * 10)
    done = import_pairs(project, path)
    assert done.pk == run.pk
    assert numbers(done) == numbers(straight)
    for name in ("labels_added", "labels_repeated", "labels_known"):
        assert done.report[name] == straight.report[name], name
    assert everything(project) == everything(other)
    assert len(error_rows(done)) == 1


def test_repairing_sends_an_import_of_pairs_again(
    tmp_path: Path, project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    sent: list[int] = []
    monkeypatch.setattr(imports, "enqueue", lambda name, pk: sent.append(pk))
    path = write(tmp_path / "rows.jsonl", [row(1)])
    run = imports.open_run(path=path, kind="pairs", subject=project.pk)
    old = timezone.now() - timedelta(hours=1)
    ImportRun.objects.filter(pk=run.pk).update(heartbeat_at=old)
    assert imports.repair_imports() == 1
    assert sent == [run.pk]


# Statements and memory


def statements(project: Project, path: Path) -> int:
    with CaptureQueriesContext(
        connection,
    ) as captured:
        import_pairs(project, path)
    return len(captured)


def test_a_batch_takes_as_many_statements_however_many_rows_there_are(
    tmp_path: Path, project: Project
) -> None:
    def rows(start: int, count: int) -> list[Any]:
        return [row(n, labels=three_of("112")) for n in range(start, start + count)]

    first = statements(project, write(tmp_path / "a.jsonl", rows(0, 300)))
    later = statements(project, write(tmp_path / "b.jsonl", rows(300, 300)))
    fewer = statements(project, write(tmp_path / "c.jsonl", rows(600, 100)))
    assert later <= first
    # SQLite splits an insertion of many rows; the reads and updates are the same.
    assert first - fewer < 60
    assert first < 130


def test_many_labels_of_a_row_do_not_run_into_limits_of_the_database(
    tmp_path: Path, project: Project
) -> None:
    """More parameters than a statement may have (SQLite: 32,766)."""
    rows = [row(n, labels=[label(f"a{k}") for k in range(900)]) for n in range(6)]
    run = import_pairs(project, write(tmp_path / "rows.jsonl", rows))
    assert run.report["labels_added"] == Label.objects.count() == 5400
    assert {item.done for item in project.items.all()} == {900}


# The command line


def command(*arguments: Any) -> str:
    out = StringIO()
    call_command("import_pairs", *map(str, arguments), stdout=out)
    return out.getvalue()


def test_the_command_says_what_came_of_it(tmp_path: Path, project: Project, alice: User) -> None:
    rows = [row(1, labels=three_of("12")), row(2, first=""), "{"]
    path = write(tmp_path / "rows.jsonl", rows)
    said = command("Pairs", path, "--dry-run")
    assert "palate_pairs: 2 would be added, 0 known already, 1 refused (3 rows)." in said
    assert not Item.objects.exists()
    said = command(project.pk, path, "--user", "alice")
    assert "2 added, 0 known already, 1 refused" in said
    assert "2 labels added" in said
    assert "1 held back: an answer is empty" in said
    assert "line 3, column 2: This is not valid JSON" in said
    with pytest.raises(SystemExit) as stop:
        command("Pairs", path, "--strict")
    assert stop.value.code == 1


def test_the_command_takes_a_mapping(tmp_path: Path, project: Project) -> None:
    path = tmp_path / "rows.csv"
    path.write_text("q,good,bad\nQuestion,one answer,another text\n")
    with pytest.raises(CommandError, match="Say which columns"):
        command("Pairs", path)
    mapping = ["prompt=q", "chosen=good", "rejected=bad"]
    said = command("Pairs", path, *(f"--mapping={pair}" for pair in mapping), "--annotator=me")
    assert "columns: 1 added" in said
    assert Member.objects.get(user=None).external_name == "me"


@pytest.mark.parametrize(
    ("body", "options", "message"),
    [
        (b"", [], "empty"),
        (b"a,b\n1,2\n", ["--mapping=prompt"], "WHAT=COLUMN"),
        (b"a,b\n1,2\n", ["--mapping=prompt=c"], "no column"),
        (b"a,b\n1,2\n", ["--mapping=answer=a"], "cannot be chosen"),
        (b"{}", ["--user", "nobody"], "no user"),
        (b"{}", ["--user", "bob"], "administrator"),
        (b"{}", ["--axis", "personalization"], "axis"),
        (b'{"chosen": "a", "rejected": "b"}', ["--format", "arena"], "needs the fields"),
        (b'{"utterance_id": 1, "conversation_id": 1, "user_id": 2, "turn": 1, "model_response": 1}',
         [], "survey"),
    ],
)  # fmt: skip
def test_the_command_refuses_a_whole_file(
    tmp_path: Path, project: Project, body: bytes, options: list[str], message: str, bob: User
) -> None:
    path = tmp_path / "file"
    path.write_bytes(body)
    with pytest.raises(CommandError, match=message):
        command("Pairs", path, *options)
    assert not Item.objects.exists()


def test_prism_at_the_command_line(tmp_path: Path, project: Project) -> None:
    survey = write(tmp_path / "survey.jsonl", [{"user_id": "u", "self_description": "Brief."}])
    common = {"conversation_id": "c", "user_id": "u", "turn": 0, "user_prompt": "Q"}
    rows = [
        {**common, "model_response": text, "score": score, "model_name": text}
        for text, score in (("one answer", 10), ("two", 90))
    ]
    path = write(tmp_path / "utterances.jsonl", rows)
    said = command("Pairs", path, "--survey", survey)
    assert "prism: 1 added" in said
    item = project.items.get()
    assert item.persona_version is not None
    assert (item.persona_version.text.summary, item.state) == ("Brief.", ItemState.DONE)


@pytest.mark.parametrize(
    ("options", "field"),
    [
        ({"axis": "personalization"}, "axis"),
        ({"axis": 7}, "axis"),
        ({"annotator": "x" * 121}, "annotator"),
        ({"annotator": "a\0b"}, "annotator"),
        ({"mapping": ["a"]}, "mapping"),
        ({"mapping": {"prompt": 1}}, "mapping"),
        ({"mapping": {"prompt": "a\0"}}, "mapping"),
    ],
)
def test_options_that_cannot_be_used(project: Project, options: Any, field: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        check_options(project, options)
    assert caught.value.field == field


def test_no_file_of_the_machine_is_read_for_whoever_asks(project: Project) -> None:
    assert check_options(project, {"survey": "/etc/passwd"}) == {"axis": "quality"}


def test_a_seal_is_no_reason_to_refuse_a_text(tmp_path: Path, project: Project) -> None:
    """A file is what the manager has; whether a text is sealed is never told by an import."""
    seal(make_answer("Run command 1."))
    run = import_pairs(project, write(tmp_path / "rows.jsonl", [row(1), row(2)]))
    assert numbers(run) == (2, 0, 0)


SETTLED = {"quality": {"verdict": "second", "source": "unanimous"}}


def test_the_labels_of_a_file_can_be_left_out(tmp_path: Path, project: Project) -> None:
    rows = [
        row(1, labels=three_of("112")),
        row(2, labels=three_of("222"), state="done", decisions=SETTLED),
        row(3, labels=three_of("111"), state="dropped"),
    ]
    path = write(tmp_path / "rows.jsonl", rows)
    run = import_pairs(project, path, no_labels=True)
    assert numbers(run) == (3, 0, 0)
    assert not Label.objects.exists()
    assert not Member.objects.exists()
    assert [item.state for item in project.items.order_by("pk")] == ["open", "open", "dropped"]
    again = import_pairs(project, write(tmp_path / "again.jsonl", rows))
    assert again.report["labels_added"] == 9
    with pytest.raises(InvalidInput) as caught:
        import_pairs(project, path, no_labels=True, gold=True)
    assert caught.value.field == "no_labels"


def test_known_answers_of_pairs_that_look_wrong_wait_until_they_are_released(
    tmp_path: Path, project: Project
) -> None:
    same = {"input": "q", "output_1": "the very same", "output_2": "the very same", "label": 2}
    path = tmp_path / "gold.json"
    path.write_bytes(as_list(same))
    run = import_pairs(project, path, gold=True)
    assert (run.report["gold"], run.report["flags"]) == (1, {"near_identical": 1})
    item = project.items.get()
    assert item.state == ItemState.HELD
    (tmp_path / "labels.json").write_bytes(as_list({**same, "label": 1}))
    import_pairs(project, tmp_path / "labels.json", annotator="w")
    assert not Lease.objects.filter(counted=True).exists()
    release_items(actor=project.created_by, project=project, items=[item.pk])
    item.refresh_from_db()
    assert item.state == ItemState.GOLD
    member = Member.objects.get(external_name="w")
    assert (member.gold_right, member.gold_seen) == (0, 1)


def test_the_command_knows_no_project_by_a_number_that_no_database_keeps(tmp_path: Path) -> None:
    with pytest.raises(CommandError, match="There is no project"):
        command("9" * 40, tmp_path / "file")

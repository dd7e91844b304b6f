"""Imports: streamed, resumable, idempotent, each refused row with its reason."""

from __future__ import annotations

import json
import re
import tracemalloc
from datetime import timedelta
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.db import OperationalError
from django.utils import timezone
from django.utils.translation import override

from tests.catalog.factories import (
    import_file,
    make_answer,
    make_contestant,
    make_persona,
    make_prompt,
    row,
    seal,
    write_jsonl,
)
from tests.catalog.factories import persona as persona_
from webapp.accounts.models import User
from webapp.catalog import refusals, selectors, uploads
from webapp.catalog.enums import ContestantKind, ImportState, Where
from webapp.catalog.models import (
    Answer,
    AnswerText,
    Contestant,
    Exposure,
    ImportRun,
    Persona,
    PersonaVersion,
    Prompt,
)
from webapp.catalog.services import batches, import_work, imports, personas
from webapp.core.errors import Refused
from webapp.core.models import Event

pytestmark = pytest.mark.django_db


def error_lines(run: ImportRun) -> list[dict[str, Any]]:
    path = uploads.errors_path(run.pk)
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def numbers(run: ImportRun) -> tuple[int, int, int]:
    return run.added, run.known, run.refused


def everything() -> list[Any]:
    """All of the catalog that an import writes, without ids and times."""
    rows = AnswerText.objects.order_by("answer__contestant__name", "answer__prompt", "answer__draw")
    return list(
        rows.values_list(
            "answer__contestant__name",
            "answer__contestant__version",
            "answer__prompt__text_hash",
            "answer__persona_version__persona__pseudonym",
            "answer__persona_version__text__summary",
            "answer__draw",
            "answer__text_sha256",
            "answer__finish_reason",
            "text",
        )
    )


def many(count: int) -> list[dict[str, Any]]:
    return [
        row(prompt=f"Question {n % 50}", contestant=f"m{n // 50}", answer=f"Answer {n} 说明")
        for n in range(count)
    ]


def test_import_twice_adds_nothing(tmp_path: Path, alice: User) -> None:
    """T17, and what comes of one file: contestants, prompts, personas, texts, exposures."""
    rows = [*many(120), row(persona=persona_(), draw=1), row(persona=persona_(summary="new"))]
    path = write_jsonl(tmp_path / "rows.jsonl", rows)
    run = import_file(path, user=alice)
    assert (run.state, run.format) == (ImportState.DONE, "palate")
    assert numbers(run) == (122, 0, 0)
    assert run.bytes_done == run.size == path.stat().st_size
    assert run.rows_done == 122
    first = everything()
    assert (Contestant.objects.count(), Prompt.objects.count()) == (4, 51)
    assert PersonaVersion.objects.count() == 2
    assert Exposure.objects.filter(user=alice, where=Where.IMPORTED).count() == 122
    again = import_file(path, user=alice)
    assert again.pk != run.pk
    assert numbers(again) == (0, 122, 0)
    assert everything() == first
    assert PersonaVersion.objects.count() == 2
    assert Exposure.objects.count() == 122
    assert list(Event.objects.values_list("action", flat=True)) == ["import", "import_done"] * 2


def test_an_older_summary_is_found_again(tmp_path: Path) -> None:
    old = write_jsonl(tmp_path / "old.jsonl", [row(persona=persona_(summary="old"))])
    new = write_jsonl(tmp_path / "new.jsonl", [row(persona=persona_(summary="new"))])
    for path, added in ((old, 1), (new, 1), (old, 0), (new, 0)):
        assert import_file(path).added == added
    assert list(PersonaVersion.objects.order_by("n").values_list("n", flat=True)) == [1, 2]


def test_refused_rows_say_why_and_the_others_stay(tmp_path: Path) -> None:
    """T13, T14, T16: file, line, column, field, reason and what would be right."""
    path = write_jsonl(
        tmp_path / "rows.jsonl",
        [
            row(),
            '{"prompt": "a", "answer" "b"}',
            row(prompt="b", answer="x\ud83d").__repr__().replace("'", '"').replace("\\\\", "\\"),
            json.dumps(row(prompt="c", answer="a\0b")),
            b'{"prompt": "\xff"}',
            row(prompt="d", answer=True),
            row(prompt="e"),
        ],
    )
    run = import_file(path)
    assert numbers(run) == (2, 0, 5)
    lines = error_lines(run)
    assert [line["line"] for line in lines] == [2, 3, 4, 5, 6]
    assert [line["code"] for line in lines] == ["json", "surrogate", "nul", "utf8", "type"]
    assert lines[0] == {
        "file": "rows.jsonl",
        "line": 2,
        "column": 26,
        "field": "",
        "code": "json",
        "params": {"detail": "Expecting ':' delimiter"},
        "reason": "This is not valid JSON: “:” is missing.",
        "right": "One complete JSON object on this line.",
    }
    assert lines[4]["reason"] == "Found: true."
    assert lines[4]["right"] == "Wanted: text."
    assert run.report["codes"] == {"json": 1, "surrogate": 1, "nul": 1, "utf8": 1, "type": 1}


def test_error_files_never_hold_a_text_with_its_maker(tmp_path: Path) -> None:
    secret, maker = "the very secret text", "aurora"
    bad: list[Any] = [
        row(answer=secret, draw=-1),
        row(answer=secret, draw=secret),
        row(answer=secret, extra=1),
        row(answer=secret + "\0"),
        json.dumps(row(answer=secret))[:-1],
        row(answer=[secret]),
        row(answer={"text": secret}),
        row(answer=secret, persona=persona_(summary="x" * 101)),
    ]
    run = import_file(write_jsonl(tmp_path / "rows.jsonl", bad))
    assert run.refused == len(bad)
    said = uploads.errors_path(run.pk).read_text() + json.dumps(run.report)
    assert secret not in said
    assert maker not in said


def test_conflicts_in_a_file_and_with_what_is_known(tmp_path: Path) -> None:
    rows = [
        row(answer="One."),
        row(answer="Two."),
        row(answer="One."),
        row(contestant={"name": "aurora", "sampling": {"temperature": 1}}, draw=1),
        row(persona=persona_(expertise="novice"), draw=2),
        row(persona=persona_(expertise="expert"), draw=3),
    ]
    path = write_jsonl(tmp_path / "rows.jsonl", rows)
    checked = import_file(path, dry_run=True)
    assert Answer.objects.count() == Persona.objects.count() == Contestant.objects.count() == 0
    run = import_file(path)
    assert numbers(run) == numbers(checked) == (2, 1, 3)
    codes = [line["code"] for line in error_lines(run)]
    assert codes == ["slot_conflict", "contestant_conflict", "feature_conflict"]
    assert [line["line"] for line in error_lines(run)] == [2, 4, 6]


def test_a_dry_run_sees_conflicts_across_batches(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(batches, "ROWS", 1)
    rows = [
        row(answer="One."),
        row(answer="Two."),
        row(answer="One."),
        row(contestant={"name": "aurora", "sampling": {"temperature": 1}}, draw=1),
        row(persona=persona_(expertise="novice"), draw=2),
        row(persona=persona_(expertise="expert"), draw=3),
    ]
    path = write_jsonl(tmp_path / "rows.jsonl", rows)
    checked, run = import_file(path, dry_run=True), import_file(path)
    assert numbers(run) == numbers(checked) == (2, 1, 3)
    assert error_lines(run) == error_lines(checked)
    assert not (uploads.folder(checked.pk) / "scratch").exists()


def test_rows_of_withdrawn_personas_are_refused(tmp_path: Path, alice: User) -> None:
    personas.withdraw_consent(actor=alice, persona=make_persona("mei"))
    path = write_jsonl(tmp_path / "rows.jsonl", [row(persona=persona_()), row()])
    run = import_file(path)
    assert numbers(run) == (1, 0, 1)
    assert error_lines(run)[0]["code"] == "withdrawn"


def test_answers_made_here_are_not_imported(tmp_path: Path) -> None:
    make_contestant("aurora", kind=ContestantKind.ENDPOINT)
    run = import_file(write_jsonl(tmp_path / "rows.jsonl", [row()]))
    assert error_lines(run)[0]["code"] == "contestant_kind"


# Crashes, resuming, repairing


class Crash(BaseException):
    """What no handler catches, like a killed process."""


def crash_at(monkeypatch: pytest.MonkeyPatch, n: int, error: BaseException) -> None:
    """The n-th batch is written, and then the process dies before it is committed."""
    real, count = import_work._fenced_update, iter(range(1000))

    def update(run: ImportRun, **values: Any) -> None:
        real(run, **values)
        if "rows_done" in values and next(count) == n - 1:
            raise error

    monkeypatch.setattr(import_work, "_fenced_update", update)


@pytest.mark.parametrize("at", [1, 2, 4])
def test_a_killed_import_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, at: int, alice: User
) -> None:
    """The same rows, counts and error file as an import that was never interrupted."""
    monkeypatch.setattr(batches, "ROWS", 10)
    rows: list[Any] = many(42)
    for n in (3, 14, 15, 30):
        rows[n] = {"prompt": n}
    rows[20] = "{"
    path = write_jsonl(tmp_path / "rows.jsonl", rows)
    run = imports.open_run(path=path, user=alice)
    with monkeypatch.context() as patched:
        crash_at(patched, at, Crash())
        with pytest.raises(Crash):
            imports.run_import(pk=run.pk, take_over=True)
    run.refresh_from_db()
    assert run.state == ImportState.RUNNING
    assert run.rows_done == (at - 1) * 10
    assert imports.open_run(path=path, user=alice) == run
    done = imports.run_import(pk=run.pk, take_over=True)
    assert done is not None
    assert (done.state, done.rows_done) == (ImportState.DONE, 42)
    assert numbers(done) == (37, 0, 5)
    assert [line["line"] for line in error_lines(done)] == [4, 15, 16, 21, 31]
    assert sorted(text for *_rest, text in everything()) == sorted(
        entry["answer"] for entry in rows if isinstance(entry, dict) and "answer" in entry
    )
    assert Exposure.objects.count() == 37


def lose_a_process(monkeypatch: pytest.MonkeyPatch, run: ImportRun, at: int) -> None:
    """As if it had been killed in its batch `at`, long enough ago."""
    with monkeypatch.context() as patched:
        crash_at(patched, at, Crash())
        with pytest.raises(Crash):
            imports.run_import(pk=run.pk)
    long_ago = timezone.now() - timedelta(minutes=1)
    ImportRun.objects.filter(pk=run.pk).update(heartbeat_at=long_ago)


@pytest.mark.parametrize("dry_run", [False, True])
def test_rows_that_end_their_process_are_given_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, alice: User, dry_run: bool
) -> None:
    monkeypatch.setattr(batches, "ROWS", 10)
    path = write_jsonl(tmp_path / "rows.jsonl", many(30))
    run = imports.open_run(path=path, user=alice, dry_run=dry_run)
    ImportRun.objects.filter(pk=run.pk).update(heartbeat_at=None)
    lose_a_process(monkeypatch, run, 1)
    for _time in range(import_work.LOST_LIMIT):  # each lost after row 10: that one is new
        lose_a_process(monkeypatch, run, 2 if dry_run or not _time else 1)
    assert imports.run_import(pk=run.pk) is None
    run.refresh_from_db()
    assert (run.state, run.rows_done) == (ImportState.FAILED, 10)
    assert "lost or failed 3 times after row 10" in run.message
    with override("zh-hans"):
        assert "3" in refusals.explain_failure(run.report["failure"])
    imports.resume_import(actor=alice, run=run)
    done = imports.run_import(pk=run.pk)
    assert done is not None
    assert (done.state, numbers(done)) == (ImportState.DONE, (30, 0, 0))


def test_processes_lost_at_other_rows_are_not_given_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, alice: User
) -> None:
    monkeypatch.setattr(batches, "ROWS", 5)
    run = imports.open_run(path=write_jsonl(tmp_path / "rows.jsonl", many(30)), user=alice)
    ImportRun.objects.filter(pk=run.pk).update(heartbeat_at=None)
    for _time in range(5):
        lose_a_process(monkeypatch, run, 2)
    done = imports.run_import(pk=run.pk)
    assert done is not None
    assert (done.state, done.lost, numbers(done)) == (ImportState.DONE, 1, (30, 0, 0))


def test_a_deadlock_is_tried_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batches, "ROWS", 10)
    crash_at(monkeypatch, 2, OperationalError("deadlock detected"))
    rows: list[Any] = many(25)
    rows[12] = "{"
    run = import_file(write_jsonl(tmp_path / "rows.jsonl", rows))
    assert (numbers(run), len(error_lines(run))) == ((24, 0, 1), 1)


def test_a_lost_run_is_sent_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sent: list[int] = []
    monkeypatch.setattr(imports, "enqueue", lambda name, pk: sent.append(pk))
    path = write_jsonl(tmp_path / "rows.jsonl", many(5))
    lost, live, never = (imports.open_run(path=path) for _n in range(3))
    for run, age in ((lost, 600), (live, 5)):
        at = timezone.now() - timedelta(seconds=age)
        ImportRun.objects.filter(pk=run.pk).update(heartbeat_at=at, state=ImportState.RUNNING)
    assert lost == live == never  # one file, one interrupted run
    ImportRun.objects.filter(pk=lost.pk).update(heartbeat_at=timezone.now() - timedelta(hours=1))
    assert imports.repair_imports() == 1
    assert sent == [lost.pk]
    assert imports.run_import(pk=lost.pk) is not None
    assert imports.run_import(pk=lost.pk) is None
    assert imports.repair_imports() == 0


def test_a_redelivered_job_leaves_a_live_run_alone(tmp_path: Path) -> None:
    run = imports.open_run(path=write_jsonl(tmp_path / "rows.jsonl", many(5)))
    assert imports.run_import(pk=run.pk) is None
    with uploads.alive(run.pk):
        assert imports.run_import(pk=run.pk, take_over=True) is None


def test_who_was_taken_over_stops_and_writes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(batches, "ROWS", 10)
    run = imports.open_run(path=write_jsonl(tmp_path / "rows.jsonl", many(30)))

    def take_over(now: ImportRun) -> None:
        ImportRun.objects.filter(pk=now.pk).update(heartbeat_at=timezone.now())

    left = imports.run_import(pk=run.pk, take_over=True, progress=take_over)
    assert left is not None
    assert left.state == ImportState.RUNNING
    assert left.rows_done == Answer.objects.count() == 10


def test_cancelling_stops_and_resuming_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, alice: User
) -> None:
    monkeypatch.setattr(batches, "ROWS", 10)
    run = imports.open_run(path=write_jsonl(tmp_path / "rows.jsonl", many(30)), user=alice)
    stopped = imports.run_import(
        pk=run.pk,
        take_over=True,
        progress=lambda now: imports.cancel_import(actor=alice, run=now),
    )
    assert stopped is not None
    assert (stopped.state, Answer.objects.count()) == (ImportState.CANCELLED, 10)
    imports.resume_import(actor=alice, run=stopped)
    done = imports.run_import(pk=run.pk)
    assert done is not None
    assert (done.state, numbers(done)) == (ImportState.DONE, (30, 0, 0))


def test_a_changed_or_missing_file_fails_with_the_reason(tmp_path: Path) -> None:
    path = write_jsonl(tmp_path / "rows.jsonl", many(5))
    run = imports.open_run(path=path)
    path.write_text("{}")
    failed = imports.run_import(pk=run.pk, take_over=True)
    assert failed is not None
    assert (failed.state, "changed" in failed.message) == (ImportState.FAILED, True)
    again = imports.open_run(path=write_jsonl(path, many(6)))
    path.unlink()
    failed = imports.run_import(pk=again.pk, take_over=True)
    assert failed is not None
    assert "no longer there" in failed.message


def test_a_resumed_import_forgets_its_failure(tmp_path: Path, alice: User) -> None:
    path = write_jsonl(tmp_path / "rows.jsonl", many(5))
    away = tmp_path / "away.jsonl"
    run = imports.open_run(path=path, user=alice)
    path.rename(away)
    failed = imports.run_import(pk=run.pk, take_over=True)
    assert failed is not None
    assert "no longer there" in selectors.view_import(failed).message
    away.rename(path)
    imports.resume_import(actor=alice, run=failed)
    done = imports.run_import(pk=run.pk)
    assert done is not None
    assert done.state == ImportState.DONE
    assert "failure" not in done.report
    assert selectors.view_import(done).message == ""


def checked(alice: User) -> ImportRun:
    """An upload whose check is done."""
    body = json.dumps(row()).encode()
    run = imports.receive_upload(actor=alice, name="a.jsonl", chunks=[body], key="upload")
    imports.run_import(pk=run.pk)
    run.refresh_from_db()
    assert run.state == ImportState.DONE
    return run


def test_a_check_is_kept_while_an_import_needs_its_upload(alice: User) -> None:
    check = checked(alice)
    run = imports.start_import(actor=alice, check=check)
    for state in (ImportState.RUNNING, ImportState.FAILED):
        ImportRun.objects.filter(pk=run.pk).update(state=state)
        with pytest.raises(Refused) as caught:
            imports.cancel_import(actor=alice, run=check)
        assert caught.value.code == "in_use"
        old = timezone.now() - timedelta(days=30)
        ImportRun.objects.filter(pk=check.pk).update(created_at=old)
        imports.repair_imports()
        assert uploads.source_path(check.pk).exists()
    imports.resume_import(actor=alice, run=run)
    done = imports.run_import(pk=run.pk)
    assert done is not None
    assert (done.state, done.added) == (ImportState.DONE, 1)


def test_an_unused_check_can_be_dropped_and_then_not_started(alice: User) -> None:
    check = checked(alice)
    imports.cancel_import(actor=alice, run=check)
    assert not uploads.source_path(check.pk).exists()
    with pytest.raises(Refused):
        imports.start_import(actor=alice, check=check)


# Memory


def test_memory_is_flat(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """T11 in small (see bench/imports.py): five times the rows, the same peak."""
    monkeypatch.setattr(batches, "ROWS", 50)
    peaks = []
    for count in (300, 1500):
        path = tmp_path / f"{count}.jsonl"
        with path.open("w") as out:
            for n in range(count):
                out.write(json.dumps(row(prompt=f"{count} {n}", answer=f"{n} " * 300)) + "\n")
        run = imports.open_run(path=path)
        tracemalloc.start()
        imports.run_import(pk=run.pk, take_over=True)
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert peaks[1] < peaks[0] + 500_000, peaks
    assert Answer.objects.count() == 1800


# The command line


def command(path: Path, *options: str) -> str:
    out = StringIO()
    call_command("import_answers", str(path), *options, stdout=out)
    return out.getvalue()


def test_the_command_says_what_came_of_it(tmp_path: Path, alice: User) -> None:
    path = write_jsonl(tmp_path / "rows.jsonl", [row(), "{"])
    said = command(path, "--format", "palate", "--dry-run")
    assert "1 would be added, 0 known already, 1 refused (2 rows)" in said
    assert not Answer.objects.exists()
    said = command(path, "--user", "alice")
    assert "1 added, 0 known already, 1 refused" in said
    assert "line 2, column 2: This is not valid JSON" in said
    assert "errors.jsonl" in said
    assert Exposure.objects.get().user == alice
    with pytest.raises(SystemExit) as stop:
        command(path, "--strict")
    assert stop.value.code == 1


def test_the_command_goes_on_after_an_interruption(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(batches, "ROWS", 10)
    path = write_jsonl(tmp_path / "rows.jsonl", many(30))
    with monkeypatch.context() as patched:
        crash_at(patched, 2, Crash())
        with pytest.raises(Crash):
            command(path)
    said = command(path)
    assert "Going on after row 10" in said
    assert "30 added, 0 known already, 0 refused (30 rows)" in said
    assert ImportRun.objects.count() == 1


@pytest.mark.parametrize(
    ("content", "options", "message"),
    [
        (b"", [], "empty"),
        (b"[{}]", ["--format", "palate"], "JSON list"),
        (b'[{"instruction": "", "output": ""}]', ["--format", "palate"], "looks like alpaca_eval"),
        (b"{}", ["--user", "nobody"], "no user"),
        (b"{}", ["--user", "bob"], "administrators"),
        (b"a,b", [], "Choose one of"),
    ],
)
def test_the_command_refuses_a_whole_file(
    tmp_path: Path, content: bytes, options: list[str], message: str, bob: User
) -> None:
    path = tmp_path / "file"
    path.write_bytes(content)
    with pytest.raises(CommandError, match=message):
        command(path, *options)
    assert not ImportRun.objects.exists()


def test_the_command_names_a_missing_file(tmp_path: Path) -> None:
    with pytest.raises(CommandError, match="No such file"):
        command(tmp_path / "nothing.jsonl")


# Blindness


def test_probing_a_sealed_slot_teaches_nothing(tmp_path: Path, alice: User, media: Path) -> None:
    """Equal or different text: byte-identical reports, messages and error files."""
    answer = make_answer("The sealed text.", prompt=make_prompt("How do I begin?"))
    seal(answer)
    make_answer("Free.", contestant=make_contestant("other"))
    seen = []
    for text in ("The sealed text.", "Another text then"):
        rows = [row(answer=text), row(answer="x"), row(contestant="other", answer="Free.")]
        path = write_jsonl(tmp_path / "rows.jsonl", [*rows, row(draw=-1, answer=text)])
        outputs = [command(path, "--user", "alice", *options) for options in (["--dry-run"], [])]
        runs = list(ImportRun.objects.order_by("pk"))[-2:]
        reports = [(numbers(run), run.report) for run in runs]
        errors = [error_lines(run) for run in runs]
        met = Exposure.objects.filter(answer=answer, user=alice).count()
        marks = [o.replace(f"/{run.pk}/", "/n/") for o, run in zip(outputs, runs, strict=True)]
        samples = uploads.read_samples(runs[0].pk)
        seen.append((marks, reports, errors, met, samples))
    assert seen[0] == seen[1]
    assert "0 would be added, 1 known already, 2 sealed, left alone, 1 refused" in seen[0][0][0]
    assert [sample["answer"] for sample in seen[0][4]] == ["Free."]
    assert seen[0][3] == 1
    assert AnswerText.objects.get(answer=answer).text == "The sealed text."


def test_the_preview_keeps_texts_and_contestants_apart(tmp_path: Path) -> None:
    several = [
        row(contestant=f"maker-{n % 3}", prompt=f"q{n}", answer=f"text {n}") for n in range(9)
    ]
    run = import_file(write_jsonl(tmp_path / "rows.jsonl", several), dry_run=True)
    samples = uploads.read_samples(run.pk)
    assert len(samples) == import_work.SAMPLES
    assert "maker" not in json.dumps(samples)
    assert [s["answer"] for s in samples] != sorted(s["answer"] for s in samples)
    assert run.report["contestants"] == {"maker-0": 3, "maker-1": 3, "maker-2": 3}


def test_a_file_of_one_contestant_is_previewed_without_answers(tmp_path: Path) -> None:
    path = write_jsonl(tmp_path / "rows.jsonl", many(40))
    run = import_file(path, dry_run=True)
    assert {sample["answer"] for sample in uploads.read_samples(run.pk)} == {""}


@pytest.mark.parametrize(
    ("code", "params"),
    [
        ("type", {"found": "object", "wanted": "text"}),
        ("type", {"found": "list", "wanted": "whole number"}),
        ("type", {"found": "number 12", "wanted": "true or false"}),
        ("type", {"found": "list", "wanted": "text or list of turns"}),
        ("json", {"detail": "Expecting value"}),
        ("json", {"detail": "Expecting property name enclosed in double quotes"}),
        ("rest", {"detail": "Expecting ','"}),
    ],
)
def test_refusals_are_wholly_said_in_the_readers_language(
    code: str, params: dict[str, str]
) -> None:
    with override("zh-hans"):
        said = "".join(refusals.explain(code, params))
    assert not re.search("[a-z]{3,}", said.replace("true 或 false", "")), said


def test_words_of_the_file_are_not_translated() -> None:
    with override("zh-hans"):
        assert "“text”" in refusals.explain("choice", {"found": "text", "allowed": "a"}).reason

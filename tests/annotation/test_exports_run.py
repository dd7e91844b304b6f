"""Exports as runs: what is in the file, what is not, and why."""

from __future__ import annotations

import json
import zipfile
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.db import connection
from django.utils import timezone

from annotation.enums import DecisionSource, JobState
from annotation.models import Decision, ExportRun, Item, Lease, SoftLabel
from annotation.services import export_files, export_proof, exports
from annotation.services.export_plan import make_plan
from annotation.services.export_writing import write_rows
from annotation.services.gold import make_gold, retire_gold
from annotation.services.items import ItemDraft, add_items, drop_items
from tests.annotation.factories import Desk, add_pairs, label_all, label_once, make_desk
from webapp.catalog.enums import Split
from webapp.catalog.models import Answer, Persona, Prompt, Seal
from webapp.catalog.services.answers import Draft, write_answers
from webapp.catalog.services.contestants import get_or_create_contestant
from webapp.catalog.services.personas import create_persona, withdraw_consent
from webapp.catalog.services.prompts import get_or_create_prompt
from webapp.catalog.texts import sha256
from webapp.core.errors import Forbidden, InvalidInput, Refused
from webapp.core.models import Event

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """The check by another process takes seconds; tests/annotation/test_trl.py has it."""

    def fine(work: Path, request: Any, beat: Any) -> dict[str, Any]:
        return {"ok": True, "steps": []}

    monkeypatch.setattr(export_proof, "prove", fine)


def make(desk: Desk, **options: Any) -> ExportRun:
    run = exports.start_export(
        actor=desk.manager, project=desk.project, options=options, key="", send=False
    )
    done = exports.run_export(pk=run.pk)
    assert done is not None
    return done


def lines(run: ExportRun) -> list[dict[str, Any]]:
    return [json.loads(line) for line in Path(run.path).read_text().splitlines()]


def packed(run: ExportRun) -> Iterator[tuple[str, dict[str, Any]]]:
    with zipfile.ZipFile(run.path) as archive:
        for name in archive.namelist():
            for line in archive.read(name).decode().splitlines():
                yield name, json.loads(line)


def accounted(run: ExportRun) -> None:
    """Every item and every submitted label is in the file or has a reason."""
    report = run.report
    assert report["kept"] + sum(report["left_out"].values()) == run.project.items.count()
    labels = dict(report["labels"])
    submitted = labels.pop("submitted")
    assert submitted == sum(labels.values())
    assert submitted == Lease.objects.filter(item__project=run.project, state="submitted").count()


def by_number(lease: Lease) -> str:
    return ("first", "second", "tie", "both_bad")[lease.item_id % 4]


# Records


def test_a_preference_has_its_better_answer_first_and_says_where_it_comes_from() -> None:
    desk = make_desk(people=1, n_items=1)
    label_all(desk, lambda lease: "second")
    (row,) = lines(make(desk, format="trl_preference"))
    assert row["prompt"] == [
        {"role": "system", "content": "Persona: " + desk.versions[0].text.summary},
        {"role": "user", "content": "How do I do thing number 0?"},
    ]
    assert row["chosen"][0]["content"].startswith("Step by step")
    assert row["rejected"] == [{"role": "assistant", "content": "Short: run command 0."}]
    item, lease = desk.items()[0], Lease.objects.get()
    assert (row["item"], row["outcome"], row["posterior"]) == (item.public_id, "unanimous", 0.8)
    assert row["label_smoothing"] == round(0.0667 / (0.8 + 0.0667), 4)
    (label,) = row["labelled_by"]
    assert label["annotator"] == desk.member(desk.people[0]).pseudonym
    assert label["verdict"] == "chosen"
    assert label["left"] is not lease.first_left
    assert label["guideline"] == 1
    assert (row["persona"], row["persona_version"]) == ("expert-1", 1)


@pytest.mark.parametrize("style", ["standard", "conversational"])
def test_prompt_apart_and_prompt_inside_say_the_same(style: str) -> None:
    desk = make_desk(people=1, n_items=2)
    label_all(desk)
    apart = lines(make(desk, format="trl_preference", style=style))
    inside = lines(make(desk, format="trl_implicit", style=style))
    for a, b in zip(apart, inside, strict=True):
        assert b["chosen"] == a["prompt"] + a["chosen"]
        assert b["rejected"] == a["prompt"] + a["rejected"]
        assert "prompt" not in b


def test_ties_are_left_out_or_become_two_single_answers() -> None:
    desk = make_desk(people=1, n_items=8)
    label_all(desk, by_number)
    pairs = make(desk, format="trl_preference")
    assert (pairs.rows_done, pairs.report["left_out"]) == (4, {"tie": 2, "both_bad": 2})
    accounted(pairs)
    single = make(desk, format="trl_unpaired", ties="both", both_bad="both")
    rows = lines(single)
    assert len(rows) == 16
    found = {(row["item"], row["label"]) for row in rows}
    for item in desk.items():
        verdict = ("first", "second", "tie", "both_bad")[item.pk % 4]
        wanted = {"tie": {True}, "both_bad": {False}}.get(verdict, {True, False})
        assert {label for pk, label in found if pk == item.public_id} == wanted
    accounted(single)


def test_pairs_have_no_place_for_ties() -> None:
    with pytest.raises(InvalidInput) as error:
        exports.read_options({"format": "trl_preference", "ties": "both"})
    assert error.value.field == "ties"


@pytest.mark.parametrize(
    ("values", "field"),
    [
        ({"format": "word"}, "format"),
        ({"format": "openai_preference", "file_type": "parquet"}, "file_type"),
        ({"train": 90}, "train"),
        ({"train": 90, "test": -10, "validation": 20}, "test"),
        ({"minimum": 101}, "minimum"),
        ({"minimum": True}, "minimum"),
        ({"sources": []}, "sources"),
        ({"sources": ["gut"]}, "sources"),
        ({"seed": "1"}, "seed"),
        ({"seed": 2**31}, "seed"),
        ({"external": "yes"}, "external"),
        ({"colour": 1}, "colour"),
    ],
)
def test_options_that_cannot_be_used_are_named(values: dict[str, Any], field: str) -> None:
    with pytest.raises(InvalidInput) as error:
        exports.read_options(values)
    assert error.value.field == field


def test_openai_lines_have_the_documented_keys_and_their_provenance_beside() -> None:
    desk = make_desk(people=1, n_items=2)
    label_all(desk)
    run = make(desk, format="openai_preference", persona_in_prompt=False)
    assert run.state == JobState.DONE
    assert [step["name"] for step in run.report["proof"]["steps"]] == ["openai"]
    rows = list(packed(run))
    told = [row for name, row in rows if name == "train.jsonl"]
    beside = [row for name, row in rows if name == "train.provenance.jsonl"]
    assert told[0] == {
        "input": {
            "messages": [{"role": "user", "content": "How do I do thing number 0?"}],
            "tools": [],
            "parallel_tool_calls": True,
        },
        "preferred_output": [{"role": "assistant", "content": "Short: run command 0."}],
        "non_preferred_output": [
            {
                "role": "assistant",
                "content": "Step by step. First open a window, then think of 0 and go on.",
            }
        ],
    }
    assert [row["item"] for row in beside] == [item.public_id for item in desk.items()]


def test_a_multi_turn_prompt_as_plain_text_keeps_who_said_what() -> None:
    desk = make_desk(people=1, n_items=0, open=False)
    turns = [
        {"role": "system", "content": "Answer in one line."},
        {"role": "user", "content": "Hi"},
        {"role": "assistant", "content": "Hello."},
        {"role": "user", "content": "And now?"},
    ]
    prompt = get_or_create_prompt(messages=turns)
    draft = ItemDraft(
        prompt_id=prompt.pk,
        prompt_digest=prompt.text_hash,
        first="A short one here.",
        second="Something much longer, quite different.",
        persona_version_id=desk.versions[0].pk,
    )
    add_items(project=desk.project, drafts=[draft])
    desk.project.state = "open"
    desk.project.save()
    label_all(desk)
    (row,) = lines(make(desk, style="standard"))
    assert row["prompt"] == (
        f"System:\nPersona: {desk.versions[0].text.summary}\n\nAnswer in one line.\n\n"
        "User:\nHi\n\nAssistant:\nHello.\n\nUser:\nAnd now?\n\nAssistant:\n"
    )
    assert row["chosen"] == "A short one here."


# What stays


def test_gold_never_leaves_nor_what_ever_was_gold() -> None:
    desk = make_desk(people=1, n_items=4)
    label_all(desk)
    one, two = desk.items()[:2]
    for item in (one, two):
        make_gold(actor=desk.manager, item=item, verdicts={"quality": "first"})
    retire_gold(actor=desk.manager, item=two, reason="bad gold")
    Item.objects.filter(pk=two.pk).update(state="done")
    for options in ({"format": "trl_preference"}, {"format": "palate_pairs"}):
        run = make(desk, **options)
        assert run.report["left_out"] == {"gold": 2}
        assert one.public_id not in Path(run.path).read_text()
        assert run.rows_done == 2
        accounted(run)


def test_withdrawn_personas_are_left_out_and_their_old_files_deleted(
    django_capture_on_commit_callbacks: Any,
) -> None:
    desk = make_desk(people=1, n_items=4)
    label_all(desk)
    old = make(desk)
    assert Path(old.path).exists()
    persona = Persona.objects.get(pseudonym="expert-1")
    with django_capture_on_commit_callbacks(execute=True):
        withdraw_consent(actor=desk.manager, persona=persona)
    assert not export_files.folder(old.pk).exists()
    old.refresh_from_db()
    with pytest.raises(Refused):
        exports.download_path(old)
    run = make(desk)
    assert run.report["left_out"] == {"withdrawn": 2}
    assert "expert-1" not in Path(run.path).read_text()
    accounted(run)


def test_what_is_held_out_never_leaves() -> None:
    desk = make_desk(people=1, n_items=4)
    label_all(desk)
    Prompt.objects.filter(pk=desk.items()[0].prompt_id).update(split=Split.HOLDOUT)
    Persona.objects.filter(pseudonym="novice-1").update(split=Split.HOLDOUT)
    for format in ("trl_preference", "palate_pairs"):
        run = make(desk, format=format)
        assert (run.rows_done, run.report["left_out"]) == (1, {"holdout": 3})


def test_producers_of_sealed_texts_are_not_named() -> None:
    desk = make_desk(people=1, n_items=2)
    label_all(desk)
    item = desk.items()[0]
    contestant = get_or_create_contestant(name="Harbor")
    answer = Answer.objects.create(
        contestant=contestant, prompt=item.prompt, text_sha256=sha256(item.body.first)
    )
    seal = Seal.objects.create(answer=answer, holder="round:1")
    rows = lines(make(desk, format="palate_pairs"))
    assert rows[0]["first"] == {"text": item.body.first}
    assert "producer" not in rows[0]["second"]
    assert rows[1]["first"]["producer"] == "Harbor"
    assert "pairs.jsonl" not in rows[0]["source"]
    assert rows[1]["source"] == "pairs.jsonl:2"
    Seal.objects.filter(pk=seal.pk).update(released_at=timezone.now())
    assert lines(make(desk, format="palate_pairs"))[0]["first"]["producer"] == "Harbor"


def test_no_training_row_names_a_producer() -> None:
    desk = make_desk(people=1, n_items=2)
    label_all(desk)
    for format in ("trl_preference", "trl_implicit", "trl_unpaired", "openai_preference"):
        content = Path(make(desk, format=format).path).read_bytes()
        assert b"Harbor" not in content
        assert b"Quarry" not in content


def decide(item: Item, verdict: str, source: str, posterior: dict[str, float]) -> None:
    n = item.decisions.filter(axis="quality").count() + 1
    made = Decision.objects.create(
        item=item, axis="quality", n=n, verdict=verdict, source=source, posterior=posterior
    )
    Item.objects.filter(pk=item.pk).update(quality_decision=made, state="done")


def test_outcomes_are_filtered_by_source_and_posterior() -> None:
    desk = make_desk(people=1, n_items=5)
    unanimous, majority, adjudicated, likely, open_ = desk.items()
    decide(unanimous, "first", DecisionSource.UNANIMOUS, {"first": 0.99, "second": 0.01})
    decide(majority, "first", DecisionSource.MAJORITY, {"first": 0.7, "second": 0.3})
    decide(adjudicated, "second", DecisionSource.ADJUDICATED, {"first": 0.8, "second": 0.2})
    decide(likely, "", DecisionSource.UNRESOLVED, {"first": 0.1, "second": 0.9})
    decide(open_, "", DecisionSource.UNRESOLVED, {"first": 0.5, "second": 0.5})
    run = make(desk, minimum=80)
    assert run.report["left_out"] == {"posterior": 1, "unresolved": 2}
    rows = lines(run)
    assert [row["outcome"] for row in rows] == ["unanimous", "adjudicated"]
    # The labels say otherwise: the pair is never turned round, the row counts as undecided.
    assert rows[1]["label_smoothing"] == 0.5
    some = make(desk, sources=["majority", "unresolved"], unresolved=90)
    assert [row["outcome"] for row in lines(some)] == ["majority", "unresolved"]
    assert lines(some)[1]["chosen"][0]["content"].startswith("Step by step")
    assert some.report["left_out"] == {"source": 2, "unresolved": 1}


def test_a_newer_soft_label_of_the_project_wins() -> None:
    desk = make_desk(people=1, n_items=1)
    label_all(desk)
    item = desk.items()[0]
    SoftLabel.objects.create(item=item, axis="quality", posterior={"first": 0.97, "second": 0.03})
    (row,) = lines(make(desk))
    assert (row["posterior"], row["label_smoothing"]) == (0.97, 0.03)
    SoftLabel.objects.update(updated_at=timezone.now() - timedelta(days=1))
    assert lines(make(desk))[0]["posterior"] == 0.8


def test_late_and_repeated_labels_are_counted_apart_and_marked() -> None:
    desk = make_desk(people=2, n_items=2)
    label_all(desk)
    item = desk.items()[0]
    lease = item.leases.get()
    other = desk.member(next(u for u in desk.people if u.pk != lease.member.user_id))
    for repeat, member in ((0, other), (1, lease.member)):
        late = Lease.objects.create(
            item=item,
            member=member,
            repeat=repeat,
            first_left=True,
            expires_at=timezone.now(),
        )
        label = late.labels.create(
            item=item, member=member, revision=1, quality="second", first_left=True, late=True
        )
        Lease.objects.filter(pk=late.pk).update(
            state="submitted", head=label, submitted_at=timezone.now(), shown_at=timezone.now()
        )
    run = make(desk)
    assert run.report["labels"] == {"submitted": 4, "in_rows": 2, "extra": 1, "repeat": 1}
    accounted(run)
    own = make(desk, format="palate_pairs")
    labels = lines(own)[0]["labels"]
    assert [(label.get("extra"), label.get("repeat")) for label in labels] == [
        (None, None),
        (True, None),
        (None, 1),
    ]
    assert own.report["labels"] == {"submitted": 4, "in_rows": 4}


def test_items_held_dropped_or_undecided_leave_only_in_our_own_format() -> None:
    desk = make_desk(people=1, n_items=4)
    label_once(desk, desk.people[0])
    undecided = [item for item in desk.items() if item.state == "open"]
    drop_items(actor=desk.manager, project=desk.project, items=[undecided[0].pk])
    Item.objects.filter(pk=undecided[1].pk).update(state="held")
    run = make(desk)
    assert run.report["left_out"] == {"dropped": 1, "held": 1, "undecided": 1}
    assert make(desk, format="palate_pairs").rows_done == 4
    assert make(desk, format="palate_pairs", undecided=False).rows_done == 1


def test_lone_surrogates_never_stop_an_export() -> None:
    """They cannot come in by an import (T13); what got in some other way is replaced."""
    if connection.vendor != "sqlite":
        pytest.skip("PostgreSQL keeps no half surrogates at all")
    desk = make_desk(people=1, n_items=0, open=False)
    broken = [{"role": "user", "content": "broken \ud83d here"}]
    prompt = Prompt.objects.create(messages=broken, text_hash="0" * 64)
    draft = ItemDraft(
        prompt_id=prompt.pk, prompt_digest="0" * 64, first="One.", second="Another text."
    )
    add_items(project=desk.project, drafts=[draft])
    decide(desk.items()[0], "first", DecisionSource.UNANIMOUS, {"first": 0.9, "second": 0.1})
    for options in (
        {"format": "trl_preference"},
        {"format": "trl_preference", "file_type": "parquet"},
        {"format": "openai_preference"},
        {"format": "palate_pairs"},
        {"format": "palate_csv"},
    ):
        assert make(desk, **options).state == JobState.DONE
    row = lines(make(desk, persona_in_prompt=False))[0]
    assert row["prompt"][0]["content"] == "broken � here"


# Splits


def a_crowd(n: int) -> Desk:
    """`n` groups that share nothing: a persona with two prompts of its own each."""
    desk = make_desk(people=1, n_items=0, open=False)
    drafts = []
    for number in range(n):
        persona = create_persona(actor=None, pseudonym=f"p{number}", summary="Wants facts.")
        version = persona.versions.get()
        for part in range(2):
            prompt = get_or_create_prompt(messages=f"Question {number}.{part}?")
            drafts.append(
                ItemDraft(
                    prompt_id=prompt.pk,
                    prompt_digest=prompt.text_hash,
                    first=f"Short {number}.{part}",
                    second=f"A longer text about the matter, number {number} in the row {part}.",
                    persona_version_id=version.pk,
                )
            )
    add_items(project=desk.project, drafts=drafts)
    for item in desk.items():
        decide(item, "first", DecisionSource.UNANIMOUS, {"first": 0.99, "second": 0.01})
    return desk


def test_splits_share_no_prompt_and_no_persona() -> None:
    desk = a_crowd(20)
    asked = {"train": 80, "validation": 10, "test": 10, "seed": 7}
    run = make(desk, **asked)
    rows = [(row["split"], row["prompt_sha256"], row["persona"]) for _name, row in packed(run)]
    assert len(rows) == 40
    for column in (1, 2):
        seen: dict[str, set[str]] = {}
        for row in rows:
            seen.setdefault(row[column], set()).add(row[0])
        assert all(len(splits) == 1 for splits in seen.values())
    assert run.report["by_split"] == {"train": 32, "validation": 4, "test": 4}
    assert run.report["missed"] == []
    assert make(desk, **asked).sha256 == run.sha256
    assert make(desk, **{**asked, "seed": 8}).sha256 != run.sha256


def test_shares_that_cannot_be_met_are_said() -> None:
    desk = make_desk(people=1, n_items=6)  # two personas: at most two groups
    label_all(desk)
    run = make(desk, train=80, test=20)
    assert run.report["components"] == 2
    assert run.report["missed"] == ["train", "test"]
    assert run.report["by_split"] == {"train": 3, "test": 3}


# The run


def test_the_same_key_is_one_run() -> None:
    desk = make_desk(people=1, n_items=1)
    runs = [
        exports.start_export(
            actor=desk.manager, project=desk.project, options={}, key="k", send=False
        )
        for _time in range(2)
    ]
    assert runs[0] == runs[1]
    assert Event.objects.filter(action="start_export").count() == 1


def test_a_key_of_another_project_is_refused() -> None:
    first = make_desk(people=1, n_items=1, name="First")
    other = make_desk(people=0, n_items=1, name="Other")
    asked: dict[str, Any] = {"actor": first.manager, "options": {}, "key": "k", "send": False}
    exports.start_export(project=first.project, **asked)
    with pytest.raises(InvalidInput) as refused:
        exports.start_export(project=other.project, **asked)
    assert refused.value.field == "key"


def test_only_managers_export() -> None:
    desk = make_desk(people=1, n_items=1)
    with pytest.raises(Forbidden):
        exports.start_export(actor=desk.people[0], project=desk.project, options={}, key="")
    with pytest.raises(Forbidden):
        exports.preview(
            actor=desk.people[0], project=desk.project, options=exports.read_options({})
        )


def test_an_axis_that_is_not_asked_cannot_be_exported() -> None:
    desk = make_desk(people=1, n_items=1, settings={"axes": ["quality"]})
    with pytest.raises(InvalidInput) as error:
        make(desk, axis="personalization")
    assert error.value.field == "axis"


def test_counting_beforehand_says_what_the_export_then_writes() -> None:
    desk = make_desk(people=1, n_items=8)
    label_all(desk, by_number)
    for options in ({}, {"format": "trl_unpaired", "ties": "both"}, {"format": "palate_pairs"}):
        checked = exports.read_options(options)
        counted = exports.preview(actor=desk.manager, project=desk.project, options=checked)
        run = make(desk, **options)
        assert (counted["rows"], counted["left_out"]) == (run.rows_done, run.report["left_out"])


def test_an_interrupted_run_begins_anew_and_leaves_no_half_file() -> None:
    desk = make_desk(people=1, n_items=2)
    label_all(desk)
    run = exports.start_export(
        actor=desk.manager, project=desk.project, options={}, key="", send=False
    )
    work = export_files.fresh_work_folder(run.pk)  # what a killed process leaves behind
    (work / "train.jsonl").write_text('{"half": ')
    ExportRun.objects.filter(pk=run.pk).update(heartbeat_at=timezone.now(), rows_done=1)
    assert exports.run_export(pk=run.pk) is None  # its process may be alive
    ExportRun.objects.filter(pk=run.pk).update(heartbeat_at=timezone.now() - timedelta(minutes=1))
    done = exports.run_export(pk=run.pk)
    assert done is not None
    assert done.state == JobState.DONE
    assert len(lines(done)) == 2
    assert [path.name for path in export_files.folder(run.pk).iterdir()] == [Path(done.path).name]


def test_a_process_that_was_taken_over_publishes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    desk = make_desk(people=1, n_items=2)
    label_all(desk)
    run = exports.start_export(
        actor=desk.manager, project=desk.project, options={}, key="", send=False
    )

    def taken(work: Path, request: Any, beat: Any) -> dict[str, Any]:
        ExportRun.objects.filter(pk=run.pk).update(heartbeat_at=timezone.now())
        return {"ok": True, "steps": []}

    monkeypatch.setattr(export_proof, "prove", taken)
    done = exports.run_export(pk=run.pk)
    assert done is not None
    assert (done.state, done.path) == (JobState.RUNNING, "")
    assert not export_files.folder(run.pk).exists()


def test_a_cancelled_run_stops(monkeypatch: pytest.MonkeyPatch) -> None:
    desk = make_desk(people=1, n_items=2)
    label_all(desk)
    run = exports.start_export(
        actor=desk.manager, project=desk.project, options={}, key="", send=False
    )

    def cancelled(work: Path, request: Any, beat: Any) -> dict[str, Any]:
        exports.cancel_export(actor=desk.manager, run=run)
        exports.cancel_export(actor=desk.manager, run=run)
        return {"ok": True, "steps": []}

    monkeypatch.setattr(export_proof, "prove", cancelled)
    done = exports.run_export(pk=run.pk)
    assert done is not None
    assert done.state == JobState.CANCELLED
    assert not export_files.folder(run.pk).exists()
    assert Event.objects.filter(action="cancel_export").count() == 1


def test_a_file_that_fails_its_check_is_not_handed_out(monkeypatch: pytest.MonkeyPatch) -> None:
    desk = make_desk(people=1, n_items=1)
    label_all(desk)
    problem = {"what": "wrong", "split": "train", "row": 1}
    found = {"ok": False, "steps": [], "problem": problem}
    monkeypatch.setattr(export_proof, "prove", lambda *args: found)
    run = make(desk)
    assert (run.state, run.path, run.report["failure"]) == (JobState.FAILED, "", "proof")
    assert run.report["proof"]["problem"] == problem


def test_what_breaks_is_said_and_nothing_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    desk = make_desk(people=1, n_items=1)
    label_all(desk)

    def broken(*args: Any) -> None:
        raise OSError("disk full")

    monkeypatch.setattr(exports, "write_rows", broken)
    with pytest.raises(OSError, match="disk full"):
        make(desk)
    run = ExportRun.objects.get()
    assert (run.state, run.report) == (JobState.FAILED, {"failure": "unexpected"})
    assert not export_files.folder(run.pk).exists()


def test_repair_sends_silent_runs_again_and_deletes_old_files(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    desk = make_desk(people=1, n_items=1)
    label_all(desk)
    fresh, old = make(desk), make(desk)
    ExportRun.objects.filter(pk=old.pk).update(finished_at=timezone.now() - timedelta(days=8))
    silent = exports.start_export(
        actor=desk.manager, project=desk.project, options={}, key="", send=False
    )
    ExportRun.objects.filter(pk=silent.pk).update(created_at=timezone.now() - timedelta(minutes=5))
    sent: list[int] = []
    monkeypatch.setattr(exports, "enqueue", lambda name, pk: sent.append(pk))
    assert exports.repair_exports() == 1
    assert sent == [silent.pk]
    assert Path(fresh.path).exists()
    assert not Path(old.path).exists()


def test_labels_that_came_meanwhile_change_the_row_not_the_split() -> None:
    """An item that was decided otherwise between the two passes is looked at again."""
    desk = make_desk(people=1, n_items=3)
    label_all(desk)
    options = exports.read_options({})
    plan = make_plan(desk.project, options)
    one, two, _three = desk.items()
    decide(one, "tie", DecisionSource.ADJUDICATED, {})
    make_gold(actor=desk.manager, item=two, verdicts={"quality": "first"})
    add_pairs(desk, 1, start=50)
    work = export_files.fresh_work_folder(999)
    done = write_rows(desk.project, plan, work, lambda rows: None)
    export_files.discard(999)
    assert done.rows == {"train": 1}
    assert done.left_out == {"tie": 1, "gold": 1}


def test_a_file_from_before_a_round_was_sealed_is_not_handed_out() -> None:
    """It may name the makers of texts that are secret now (V1)."""
    desk = make_desk(people=1, n_items=2)
    label_all(desk)
    run = make(desk, format="palate_pairs")
    assert exports.download_path(run).exists()
    contestant = get_or_create_contestant(name="Harbor")
    item = desk.items()[0]
    draft = Draft(
        contestant_id=contestant.pk,
        prompt_id=item.prompt_id,
        persona_version_id=item.persona_version_id,
        text=item.body.first,
    )
    write_answers(drafts=[draft])
    seal = Seal.objects.create(answer=Answer.objects.get(), holder="round:1")
    with pytest.raises(Refused) as caught:
        exports.download_path(run)
    assert caught.value.code == "sealed"
    later = make(desk, format="palate_pairs")
    with pytest.raises(Refused):
        exports.download_path(run)
    assert exports.download_path(later).exists()
    Seal.objects.filter(pk=seal.pk).update(released_at=timezone.now())
    assert exports.download_path(run).exists()

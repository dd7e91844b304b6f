"""The pages of exports, and the command."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.test import Client
from django.urls import reverse

from annotation.enums import JobState
from annotation.models import ExportRun
from annotation.services import export_proof, exports
from tests.annotation.factories import Desk, label_all, make_desk
from webapp.accounts.models import User

pytestmark = pytest.mark.django_db
FORM = {
    "format": "trl_preference",
    "file_type": "jsonl",
    "style": "conversational",
    "axis": "quality",
    "persona_in_prompt": "on",
    "sources": ["unanimous", "majority", "adjudicated"],
    "minimum": "0",
    "unresolved": "95",
    "ties": "drop",
    "both_bad": "drop",
    "synthetic": "no",
    "external": "on",
    "undecided": "on",
    "train": "100",
    "validation": "0",
    "test": "0",
    "seed": "0",
    "key": "6f1e7f0a-5d0f-4a52-9e1f-0b6f3c7f5a11",
}
STEPS = [
    {"name": "datasets", "version": "5.2.0", "ok": True, "rows": 4},
    {"name": "trl", "ok": None, "missing": "torch"},
]


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(export_proof, "prove", lambda *args: {"ok": True, "steps": STEPS})


@pytest.fixture
def desk(db: Any) -> Desk:
    found = make_desk(people=1, n_items=4)
    label_all(found)
    return found


@pytest.fixture
def manager(client: Client, desk: Desk) -> Client:
    client.force_login(desk.manager)
    return client


def address(desk: Desk, name: str = "exports", *more: int) -> str:
    return reverse(f"annotation:{name}", args=[desk.project.pk, *more])


def finished(desk: Desk, **options: Any) -> ExportRun:
    run = exports.start_export(
        actor=desk.manager, project=desk.project, options=options, key="", send=False
    )
    done = exports.run_export(pk=run.pk)
    assert done is not None
    return done


def test_the_page_shows_what_there_is(
    manager: Client, desk: Desk, django_assert_max_num_queries: Any
) -> None:
    finished(desk)
    with django_assert_max_num_queries(12):
        page = manager.get(address(desk))
    text = page.content.decode()
    assert page.status_code == 200
    assert "unanimous" in text
    assert "TRL preference" in text


def test_counting_first_starts_nothing(manager: Client, desk: Desk) -> None:
    page = manager.post(address(desk), {**FORM, "do": "count"})
    assert page.status_code == 200
    assert "4 rows of 4 items" in page.content.decode()
    assert not ExportRun.objects.exists()


def test_starting_leads_to_the_run_and_a_double_click_starts_one(
    manager: Client, desk: Desk, django_capture_on_commit_callbacks: Any
) -> None:
    with django_capture_on_commit_callbacks(execute=True):
        first = manager.post(address(desk), FORM)
    run = ExportRun.objects.get()
    assert first.headers["Location"] == address(desk, "export", run.pk)
    assert manager.post(address(desk), FORM).headers["Location"] == first.headers["Location"]
    run.refresh_from_db()
    assert run.state == JobState.DONE


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"ties": "both"}, "This format has only pairs"),
        ({"train": "80"}, "100 % together"),
        ({"minimum": "300"}, "percentage"),
        ({"sources": []}, "required"),
        ({"seed": "-1"}, "whole number"),
    ],
)
def test_what_cannot_be_used_is_said_at_its_field(
    manager: Client, desk: Desk, change: dict[str, Any], said: str
) -> None:
    page = manager.post(address(desk), {**FORM, **change})
    assert page.status_code == 422
    assert said in page.content.decode()
    assert not ExportRun.objects.exists()


def test_a_format_with_one_kind_of_file_takes_it(manager: Client, desk: Desk) -> None:
    manager.post(address(desk), {**FORM, "format": "palate_csv"})
    assert ExportRun.objects.get().options["file_type"] == "csv"


def test_the_run_says_everything_about_its_file(
    manager: Client, desk: Desk, django_assert_max_num_queries: Any
) -> None:
    run = finished(desk, train=50, test=50)
    with django_assert_max_num_queries(8):
        page = manager.get(address(desk, "export", run.pk))
    text = page.content.decode()
    assert run.sha256 in text
    assert "4 labels were submitted" in text
    assert "loaded by datasets" in text
    assert "torch is not installed here" in text
    assert "label_smoothing" in text
    assert address(desk, "export_download", run.pk) in text


def test_progress_polls_while_it_runs_and_then_leads_to_the_result(
    manager: Client, desk: Desk
) -> None:
    run = exports.start_export(
        actor=desk.manager, project=desk.project, options={}, key="", send=False
    )
    url = address(desk, "export_progress", run.pk)
    assert url in manager.get(url).content.decode()
    assert "http-equiv" in manager.get(address(desk, "export", run.pk)).content.decode()
    ExportRun.objects.filter(pk=run.pk).update(state=JobState.CANCELLED)
    ended = manager.get(url)
    assert (ended.status_code, ended.headers["HX-Redirect"]) == (
        204,
        address(desk, "export", run.pk),
    )


def test_cancelling(manager: Client, desk: Desk) -> None:
    run = exports.start_export(
        actor=desk.manager, project=desk.project, options={}, key="", send=False
    )
    url = address(desk, "export_cancel", run.pk)
    assert manager.get(url).status_code == 405
    assert manager.post(url).status_code == 302
    run.refresh_from_db()
    assert run.state == JobState.CANCELLED


def test_downloading(manager: Client, desk: Desk) -> None:
    run = finished(desk)
    answer = manager.get(address(desk, "export_download", run.pk))
    assert b"".join(answer) == Path(run.path).read_bytes()
    assert "attachment" in answer.headers["Content-Disposition"]
    Path(run.path).unlink()
    assert manager.get(address(desk, "export_download", run.pk)).status_code == 409
    assert "not kept any more" in manager.get(address(desk, "export", run.pk)).content.decode()


@pytest.mark.parametrize("who", ["bob", "chen", "vera", "annotator", ""])
def test_only_managers_see_them(
    client: Client, desk: Desk, request: pytest.FixtureRequest, who: str
) -> None:
    row = finished(desk)
    if who:
        user = desk.people[0] if who == "annotator" else request.getfixturevalue(who)
        client.force_login(user)
    pages = ("exports", "export", "export_progress", "export_download")
    for name in pages:
        url = address(desk, name, *([] if name == pages[0] else [row.pk]))
        assert client.get(url).status_code == (403 if who else 302), name


def test_a_run_of_another_project_is_not_found(manager: Client, desk: Desk) -> None:
    run = finished(desk)
    other = make_desk(people=0, n_items=0, open=False, name="Other")
    assert manager.get(address(other, "export", run.pk)).status_code == 404


def test_the_command_writes_the_file_and_says_what_is_in_it(
    desk: Desk, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "pairs.csv"
    call_command("export_pairs", desk.project.name, "--format", "palate_csv", "--out", str(out))
    said = capsys.readouterr().out
    assert "4 rows, 4 of 4 items" in said
    assert "read back by the import" in said
    assert out.read_bytes().count(b"\r\n") == 5
    call_command("export_pairs", str(desk.project.pk), "--out", str(out), "--user", "mara")
    assert ExportRun.objects.first().created_by == User.objects.get(username="mara")  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["nothing"], "There is no project"),
        (["Pairs", "--user", "nobody"], "There is no user"),
        (["Pairs", "--user", "ann-1"], "Only for"),
        (["Pairs", "--train", "10"], "train: Training"),
    ],
)
def test_the_command_refuses_in_words(desk: Desk, arguments: list[str], said: str) -> None:
    with pytest.raises(CommandError, match=said):
        call_command("export_pairs", *arguments)

"""Pages of imports of pairs: who may, the way of a file through them, and what they never show."""

from __future__ import annotations

import json
import uuid
from pathlib import Path
from typing import Any

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client
from django.urls import reverse
from django.utils.html import escape

from annotation.models import GoldItem, Item, Label, Project
from annotation.services import import_rows
from annotation.services.projects import move_project
from tests.annotation.factories import make_desk
from tests.annotation.pairs import import_pairs, label, lines, make_project, row, write
from tests.catalog.factories import make_answer, seal
from tests.conftest import asks_for_login
from webapp.accounts.models import User
from webapp.catalog import uploads
from webapp.catalog.enums import ImportState
from webapp.catalog.models import ImportRun, Seal
from webapp.catalog.services import imports

pytestmark = pytest.mark.django_db
XSS = '"><img src=x onerror=alert(1)>'


@pytest.fixture(autouse=True)
def media(settings: Any, tmp_path: Path) -> Path:
    settings.MEDIA_ROOT = tmp_path / "media"
    return tmp_path / "media"


@pytest.fixture
def project(db: Any) -> Project:
    return make_project()


@pytest.fixture
def admin(client: Client, alice: User) -> Client:
    client.force_login(alice)
    return client


def html(response: Any) -> str:
    return str(response.content.decode())


def page(project: Project, name: str = "import", run: ImportRun | None = None) -> str:
    args = [project.pk] if run is None else [project.pk, run.pk]
    return reverse(f"annotation:{name}", args=args)


def upload(
    client: Client, project: Project, body: bytes, *, name: str = "rows.jsonl", **more: Any
) -> Any:
    data = {"file": SimpleUploadedFile(name, body), "format": "", "key": str(uuid.uuid4()), **more}
    return client.post(page(project), data)


def checked(client: Client, project: Project, body: bytes, **more: Any) -> ImportRun:
    """Upload and do the job that the upload asked for."""
    response = upload(client, project, body, **more)
    assert response.status_code == 302, html(response)
    run = ImportRun.objects.latest("pk")
    return worked(run)


def worked(run: ImportRun) -> ImportRun:
    imports.run_import(pk=run.pk, take_over=True)
    run.refresh_from_db()
    return run


def started(client: Client, project: Project, check: ImportRun) -> ImportRun:
    response = client.post(page(project, "import_start", check))
    assert response.status_code == 302
    return worked(ImportRun.objects.latest("pk"))


# Who may

PAGES = ["import", "import_run", "import_progress", "import_errors"]
POSTS = ["import_check", "import_start", "import_cancel", "import_resume"]


@pytest.mark.parametrize("name", PAGES + POSTS)
def test_pages_are_for_managers(
    client: Client, project: Project, name: str, bob: User, chen: User, vera: User, alice: User
) -> None:
    run = ImportRun.objects.create(kind="pairs", subject=project.pk, file_name="a", path="a")
    address = page(project, name, None if name == "import" else run)
    methods: list[Any] = [client.get, client.post]
    for method in methods:
        assert asks_for_login(method(address))
    for user in (bob, chen, vera):
        client.force_login(user)
        for method in methods:
            assert method(address).status_code == 403
    client.force_login(alice)
    if name in POSTS:
        assert client.get(address).status_code == 405
    elif name != "import":
        assert client.post(address).status_code == 405


@pytest.mark.parametrize("name", ["import_run", "import_progress", "import_errors", *POSTS])
def test_runs_belong_to_their_project(admin: Client, project: Project, name: str) -> None:
    other = make_project("Other")
    for run in (
        ImportRun.objects.create(kind="pairs", subject=other.pk, file_name="a", path="a"),
        ImportRun.objects.create(kind="answers", file_name="a", path="a"),
    ):
        address = page(project, name, run)
        response = admin.post(address) if name in POSTS else admin.get(address)
        assert response.status_code == 404


def test_pages_of_the_catalog_show_no_imports_of_pairs(admin: Client, project: Project) -> None:
    run = checked(admin, project, lines(row(1)), name="of-pairs.jsonl")
    assert "of-pairs.jsonl" not in html(admin.get(reverse("catalog:imports")))
    for name in ("import_run", "import_progress", "import_errors"):
        assert admin.get(reverse(f"catalog:{name}", args=[run.pk])).status_code == 404
    for name in ("import_start", "import_cancel", "import_resume"):
        assert admin.post(reverse(f"catalog:{name}", args=[run.pk])).status_code == 404


# The way of a file


def test_a_file_is_checked_previewed_started_and_done(admin: Client, project: Project) -> None:
    body = lines(row(1, labels=[label("ann")]), row(2, first=""), "{")
    check = checked(admin, project, body)
    shown = html(admin.get(page(project, "import_run", check)))
    assert not Item.objects.exists()
    for said in ("Checked; nothing is imported yet", "line 3, column 2", "ours, JSON Lines"):
        assert said in shown
    assert "How do I do thing 1?" in shown
    assert "Run command 1." in shown
    assert "New labels" in shown
    assert "an answer is empty" in shown
    done = started(admin, project, check)
    shown = html(admin.get(page(project, "import_run", done)))
    assert (done.added, done.refused, Label.objects.count()) == (2, 1, 1)
    assert "Pairs added" in shown
    assert "ann" in shown
    again = admin.post(page(project, "import_start", check))
    assert again["Location"] == page(project, "import_run", done)
    listed = html(admin.get(page(project)))
    assert listed.count("rows.jsonl") == 2
    assert not uploads.source_path(check.pk).exists()


def test_a_double_click_uploads_once(admin: Client, project: Project) -> None:
    key = str(uuid.uuid4())
    one = upload(admin, project, lines(row(1)), key=key)
    two = upload(admin, project, lines(row(1)), key=key)
    assert one["Location"] == two["Location"]
    assert ImportRun.objects.count() == 1


def test_progress_stops_by_itself(admin: Client, project: Project) -> None:
    upload(admin, project, lines(row(1)))
    run = ImportRun.objects.get()
    address = page(project, "import_progress", run)
    assert f'hx-get="{address}"' in html(admin.get(address))
    assert f'hx-get="{address}"' in html(admin.get(page(project, "import_run", run)))
    worked(run)
    response = admin.get(address)
    assert (response.status_code, response["HX-Redirect"]) == (
        204,
        page(project, "import_run", run),
    )


@pytest.mark.parametrize(
    ("body", "message"),
    [(b"", "empty"), ("{}".encode("utf-16"), "UTF-16"), (b"\xd0\xcf\x11\xe0x", "spreadsheet")],
)
def test_a_file_that_cannot_be_read_is_refused_at_once(
    admin: Client, project: Project, body: bytes, message: str
) -> None:
    response = upload(admin, project, body)
    assert response.status_code == 422
    assert message in html(response)
    assert not ImportRun.objects.exists()


def test_a_run_can_be_cancelled_and_goes_on(
    admin: Client, project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    check = checked(admin, project, lines(*(row(n) for n in range(5))))
    admin.post(page(project, "import_start", check))
    run = ImportRun.objects.latest("pk")
    admin.post(page(project, "import_cancel", run))
    run.refresh_from_db()
    assert run.state == ImportState.CANCELLED
    assert "Go on" in html(admin.get(page(project, "import_run", run)))
    admin.post(page(project, "import_resume", run))
    assert worked(run).added == 5


def test_a_checked_file_can_be_dropped(admin: Client, project: Project) -> None:
    check = checked(admin, project, lines(row(1)))
    admin.post(page(project, "import_cancel", check))
    assert not uploads.source_path(check.pk).exists()
    shown = html(admin.get(page(project, "import_run", check)))
    assert "Import this file" not in shown
    assert "Check again" not in shown


# Columns


TABLE = b"question,good,poor,who\nQ1,one answer,another text,w1\nQ2,=cmd,b,w2\n"


def test_columns_are_chosen_in_the_preview(admin: Client, project: Project) -> None:
    check = checked(admin, project, TABLE, name="rows.csv")
    assert check.state == ImportState.FAILED
    shown = html(admin.get(page(project, "import_run", check)))
    assert "Nobody knows these columns" in shown
    assert 'role="alert"' not in shown
    assert '<option value="prompt" selected>' in shown  # guessed from the name of the column
    again = {
        "format": "columns",
        "column_0": "prompt",
        "column_1": "chosen",
        "column_2": "rejected",
        "column_3": "annotator",
    }
    response = admin.post(page(project, "import_check", check), again)
    assert response.status_code == 302
    check = worked(check)
    assert (check.state, check.added) == (ImportState.DONE, 2)
    shown = html(admin.get(page(project, "import_run", check)))
    assert "=cmd" in shown
    done = started(admin, project, check)
    assert (done.added, Label.objects.count()) == (2, 2)
    response = admin.post(page(project, "import_check", check), again)
    assert response.status_code == 409


def test_one_meaning_for_one_column(admin: Client, project: Project) -> None:
    check = checked(admin, project, TABLE, name="rows.csv")
    twice = {"format": "columns", "column_0": "prompt", "column_1": "prompt"}
    response = admin.post(page(project, "import_check", check), twice)
    assert response.status_code == 422
    assert "Another column has this meaning already." in html(response)


def test_the_same_file_can_be_read_as_gold_instead(admin: Client, project: Project) -> None:
    body = json.dumps([{"input": "q", "output_1": "a b c", "output_2": "d", "label": 1}]).encode()
    check = checked(admin, project, body, name="llmbar.json")
    assert check.report["labels_added"] == 1
    admin.post(page(project, "import_check", check), {"format": "", "gold": "on"})
    check = worked(check)
    assert "known answers (gold)" in html(admin.get(page(project, "import_run", check)))
    started(admin, project, check)
    assert GoldItem.objects.get().quality == "first"


# What stands in a file is shown literally


def test_nothing_in_a_file_becomes_markup(admin: Client, project: Project) -> None:
    """T18: a payload in every field, the name of the file and the texts of errors."""
    good = row(
        1,
        prompt=XSS,
        first={"text": f"a {XSS}", "producer": XSS},
        second={"text": f"other {XSS}", "producer": XSS},
        persona={"pseudonym": XSS, "summary": XSS},
        source=XSS,
        labels=[label(XSS, comment=XSS)],
    )
    bad = [
        row(2, **{XSS: 1}),
        row(3, labels=[label(verdict=XSS)]),
        row(4, labels=[label(at=XSS)]),
        row(5, persona={"pseudonym": "p", "summary": "s", "features": {XSS: "x"}}),
        row(6, state=XSS),
        {"row": row(7), XSS: 1},
    ]
    check = checked(admin, project, lines(good, *bad), name=f"{XSS}.jsonl")
    assert (check.added, check.refused) == (1, len(bad))
    done = started(admin, project, check)
    for address in (page(project), *(page(project, "import_run", run) for run in (check, done))):
        shown = html(admin.get(address))
        assert "<img" not in shown
        assert escape(XSS) in shown
    table = f'"{XSS.replace(chr(34), chr(34) * 2)}",b\n"<script>",2\n'.encode()
    columns = checked(admin, project, table, name="t.csv")
    shown = html(admin.get(page(project, "import_run", columns)))
    assert "<img" not in shown
    assert "<script>" not in shown
    assert escape(XSS) in shown
    response = admin.get(page(project, "import_errors", done))
    assert response["Content-Type"].startswith("application/x-ndjson")
    assert response["X-Content-Type-Options"] == "nosniff"


# Blindness


def streamed(response: Any) -> str:
    return b"".join(response.streaming_content).decode()


def test_the_preview_names_no_producer_beside_a_text(admin: Client, project: Project) -> None:
    check = checked(admin, project, lines(*(row(n) for n in range(9))))
    samples = uploads.read_samples(check.pk)
    assert "Harbor" not in json.dumps(samples)
    assert len(samples) > 3


def test_what_a_seal_covers_is_left_out_of_preview_and_refused_rows(
    admin: Client, project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    """V1: until the round is unsealed no page, column or file links its text with a producer."""
    monkeypatch.setattr(import_rows, "ROWS", 2)
    secret = "The sealed text."
    sealed = row(1, first={"text": secret, "producer": "Harbor"})
    bad = [
        row(2, first={"text": secret, "producer": "Harbor"}, labels=[label(verdict="x")]),
        row(3, labels=[label(verdict="x")]),
    ]
    check = checked(admin, project, lines(sealed, row(4), *bad))
    table = f"text,model,q\n{secret},Harbor,q\n".encode()
    columns = checked(admin, project, table, name="t.csv")

    def responses() -> str:
        pages = [html(admin.get(page(project, "import_run", run))) for run in (check, columns)]
        return "".join([*pages, streamed(admin.get(page(project, "import_errors", check)))])

    assert secret in responses()
    seal(make_answer(secret))
    said = responses()
    assert secret not in said
    assert "Harbor" in said
    admin.post(page(project, "import_check", columns), {"format": ""})
    worked(columns)
    said = responses()
    assert secret not in said
    assert "How do I do thing 3?" in said
    assert "thing 4" in said
    Seal.objects.update(released_at="2026-01-01T00:00:00Z")
    assert secret in responses()


def test_annotators_meet_nothing_of_an_import_but_the_pair(
    client: Client, tmp_path: Path, db: Any
) -> None:
    """T20: no producer, source, file, external annotator or label of hers."""
    desk = make_desk(
        people=1, n_items=0, settings={"axes": ["quality"], "base_overlap": 4, "max_overlap": 4}
    )
    secret = row(
        1,
        first={"text": "One text.", "producer": "Harborside"},
        second={"text": "Quite another.", "producer": "Quarrystone"},
        source="secret-source:7",
        details={"secret-key": "secret-detail"},
        labels=[label("secret-person", "second", comment="secret-comment", tags=["secret-tag"])],
    )
    import_pairs(desk.project, write(tmp_path / "secret-file.jsonl", [secret]))
    desk.project = move_project(actor=desk.manager, project=desk.project, to="open")
    client.force_login(desk.people[0])
    read = reverse("annotation:guidelines", args=[desk.project.pk])
    client.post(read, {"guideline": client.get(read).context["guideline"].pk})
    pages = [
        reverse("annotation:work"),
        reverse("annotation:label", args=[desk.project.pk]),
        reverse("annotation:history", args=[desk.project.pk]),
    ]
    shown = "".join(html(client.get(address, follow=True)) for address in pages)
    assert "Quite another." in shown
    for word in ("secret", "Harborside", "Quarrystone", "import"):
        assert word not in shown.replace("!important", ""), word


def test_pages_ask_few_questions(
    admin: Client, project: Project, django_assert_max_num_queries: Any
) -> None:
    check = checked(admin, project, lines(*(row(n, labels=[label()]) for n in range(30))))
    for address in (page(project), page(project, "import_run", check)):
        with django_assert_max_num_queries(12):
            admin.get(address)

"""Pages of the catalog: who may, what they show, and what they never show."""

from __future__ import annotations

import json
import re
import uuid
from pathlib import Path
from typing import Any

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client
from django.urls import reverse
from django.utils.html import escape

from tests.catalog.factories import (
    make_answer,
    make_contestant,
    make_persona,
    make_prompt,
    persona,
    row,
    seal,
)
from tests.conftest import asks_for_login
from webapp.accounts.enums import Role
from webapp.accounts.models import User
from webapp.catalog import uploads
from webapp.catalog.enums import ImportState, Where
from webapp.catalog.models import Answer, AnswerText, Exposure, ImportRun, Persona
from webapp.catalog.services import imports
from webapp.core.models import Event

pytestmark = pytest.mark.django_db

XSS = '"><img src=x onerror=alert(1)>'


@pytest.fixture
def admin(client: Client, alice: User) -> Client:
    client.force_login(alice)
    return client


def html(response: Any) -> str:
    return str(response.content.decode())


def upload(
    client: Client, rows: list[Any], *, name: str = "rows.jsonl", key: str = "", format: str = ""
) -> Any:
    lines = [entry if isinstance(entry, str) else json.dumps(entry) for entry in rows]
    sent = SimpleUploadedFile(name, "\n".join(lines).encode())
    data = {"file": sent, "format": format, "key": key or str(uuid.uuid4())}
    return client.post(reverse("catalog:import"), data)


def checked(client: Client, rows: list[Any], **more: Any) -> ImportRun:
    """Upload and do the job that the upload asked for."""
    assert upload(client, rows, **more).status_code == 302
    run = ImportRun.objects.latest("pk")
    imports.run_import(pk=run.pk)
    run.refresh_from_db()
    return run


# Who may

GET_PAGES = [
    ("index", []),
    ("personas", []),
    ("persona_add", []),
    ("persona", [1]),
    ("prompts", []),
    ("prompt_add", []),
    ("contestants", []),
    ("contestant", [1]),
    ("contestant_answers", [1]),
    ("imports", []),
    ("import", []),
    ("import_run", [1]),
    ("import_progress", [1]),
    ("import_errors", [1]),
]
POST_PAGES = [
    ("record_consent", [1]),
    ("import_start", [1]),
    ("import_cancel", [1]),
    ("import_resume", [1]),
]


@pytest.mark.parametrize(("name", "args"), GET_PAGES + POST_PAGES)
def test_pages_are_for_administrators(
    client: Client, name: str, args: list[int], bob: User, chen: User, vera: User
) -> None:
    address = reverse(f"catalog:{name}", args=args)
    methods: list[Any] = [client.get, client.post]
    for method in methods:
        assert asks_for_login(method(address))
    for user in (bob, chen, vera):
        client.force_login(user)
        assert {method(address).status_code for method in methods} == {403}


@pytest.mark.parametrize(("name", "args"), POST_PAGES)
def test_changes_are_posts(admin: Client, name: str, args: list[int]) -> None:
    assert admin.get(reverse(f"catalog:{name}", args=args)).status_code == 405


@pytest.mark.parametrize("name", ["personas", "prompts", "contestants", "imports", "index"])
def test_lists_are_gets(admin: Client, name: str) -> None:
    assert admin.get(reverse(f"catalog:{name}")).status_code == 200
    assert admin.post(reverse(f"catalog:{name}")).status_code == 405


@pytest.mark.parametrize(("name", "args"), [page for page in GET_PAGES if page[1]])
def test_what_is_not_there(admin: Client, name: str, args: list[int]) -> None:
    assert admin.get(reverse(f"catalog:{name}", args=[999_999])).status_code == 404


@pytest.mark.parametrize("name", ["personas", "prompts", "contestants", "imports", "index"])
def test_lists_take_few_queries(
    admin: Client, name: str, django_assert_max_num_queries: Any, tmp_path: Path
) -> None:
    for n in range(12):
        answer = make_answer(
            contestant=make_contestant(f"m{n}"),
            prompt=make_prompt(f"q{n}", category="c", language="en"),
            persona=make_persona(f"p{n}"),
        )
        assert answer.pk
        ImportRun.objects.create(format="palate", file_name=f"f{n}")
    with django_assert_max_num_queries(9):
        assert admin.get(reverse(f"catalog:{name}")).status_code == 200


# Personas


def test_a_persona_is_added_and_gets_a_version(admin: Client, bob: User) -> None:
    data = {
        "pseudonym": "mei",
        "summary": "我刚开始学，喜欢例子。",
        "owner": bob.pk,
        "consent_scope": "study",
        "feature_expertise": "novice",
    }
    response = admin.post(reverse("catalog:persona_add"), data, follow=True)
    made = Persona.objects.get()
    assert (made.owner, made.features) == (bob, {"expertise": "novice"})
    assert "我刚开始学，喜欢例子。" in html(response)
    address = reverse("catalog:persona", args=[made.pk])
    assert admin.post(address, {"summary": "新的", "reason": "moved on"}).status_code == 302
    assert made.versions.count() == 2
    refused = admin.post(address, {"summary": "x" * 101})
    assert refused.status_code == 422
    assert "101 characters" in html(refused)


def test_a_persona_that_cannot_be_added_says_why(admin: Client) -> None:
    data = {"pseudonym": "mei", "summary": "x" * 101, "feature_goal": "two words"}
    response = admin.post(reverse("catalog:persona_add"), data)
    assert response.status_code == 422
    assert "101 characters; at most 100" in html(response)
    response = admin.post(reverse("catalog:persona_add"), {**data, "summary": "x"})
    assert "is not a short word" in html(response)
    assert not Persona.objects.exists()


def test_consent_is_noted(admin: Client) -> None:
    made = make_persona()
    admin.post(reverse("catalog:record_consent", args=[made.pk]), {"scope": "study"})
    made.refresh_from_db()
    assert made.consent_scope == "study"


def test_an_owner_sees_and_withdraws_his_own(client: Client, bob: User, chen: User) -> None:
    mine, other = make_persona("mine", owner=bob), make_persona("other", owner=chen)
    make_answer(persona=mine)
    client.force_login(bob)
    page = html(client.get(reverse("catalog:my_personas")))
    assert "mine" in page
    assert "other" not in page
    assert client.get(reverse("catalog:withdraw_consent", args=[other.pk])).status_code == 404
    assert client.post(reverse("catalog:withdraw_consent", args=[other.pk])).status_code == 404
    address = reverse("catalog:withdraw_consent", args=[mine.pk])
    assert client.get(address).status_code == 200
    mine.refresh_from_db()
    assert mine.withdrawn_at is None
    response = client.post(address, follow=True)
    assert "2 texts were erased" in html(response)
    assert not AnswerText.objects.exists()


# Prompts and contestants


def test_prompts_are_filtered(admin: Client) -> None:
    make_prompt("Why is the sky blue?", category="science", language="en")
    make_prompt("怎么开始？", category="how-to", language="zh")
    page = html(admin.get(reverse("catalog:prompts"), {"language": "zh"}))
    assert "怎么开始？" in page
    assert "sky" not in page
    page = html(admin.get(reverse("catalog:prompts"), {"category": "nothing"}))
    assert page


def test_prompts_are_added_once(admin: Client) -> None:
    for _n in range(2):
        admin.post(reverse("catalog:prompt_add"), {"text": "Why?", "category": "c"})
    page = html(admin.get(reverse("catalog:prompts")))
    assert page.count("Why?") == 1


def test_reading_answers_is_confirmed_and_noted(admin: Client, alice: User) -> None:
    free = make_answer("A free text.")
    held = make_answer("A sealed text.", draw=1)
    seal(held)
    address = reverse("catalog:contestant_answers", args=[free.contestant_id])
    before = html(admin.get(address))
    assert "never votes" in before
    assert "A free text." not in before
    assert not Exposure.objects.exists()
    page = html(admin.post(address))
    assert "A free text." in page
    assert "A sealed text." not in page
    met = Exposure.objects.get()
    assert (met.user, met.answer, met.where) == (alice, free, Where.AUDITED)
    event = Event.objects.get(action="read_answers")
    assert event.details == {"n": 1}


# Imports


def test_upload_check_import(admin: Client, alice: User) -> None:
    """The whole way: nothing is imported before it was seen, and the upload is deleted after."""
    rows = [row(), row(contestant="boreal"), row(draw=1, answer=""), row(persona=persona())]
    run = checked(admin, rows)
    assert (run.state, run.dry_run, Answer.objects.count()) == (ImportState.DONE, True, 0)
    page = html(admin.get(reverse("catalog:import_run", args=[run.pk])))
    assert "Would be added" in page
    assert "The field is empty." in page
    for _n in range(2):  # pressed twice
        response = admin.post(reverse("catalog:import_start", args=[run.pk]))
    started = ImportRun.objects.get(dry_run=False)
    assert response["Location"] == reverse("catalog:import_run", args=[started.pk])
    progress = admin.get(reverse("catalog:import_progress", args=[started.pk]))
    assert "<progress" in html(progress)
    assert "hx-get" in html(progress)
    imports.run_import(pk=started.pk)
    progress = admin.get(reverse("catalog:import_progress", args=[started.pk]))
    assert progress.status_code == 204
    assert progress["HX-Redirect"] == response["Location"]
    assert Answer.objects.count() == 3
    assert Exposure.objects.filter(user=alice, where=Where.IMPORTED).count() == 3
    page = html(admin.get(response["Location"]))
    assert "hx-trigger" not in page
    assert "Refused rows" in page
    errors = admin.get(reverse("catalog:import_errors", args=[started.pk]))
    assert errors["Content-Disposition"].startswith("attachment")
    assert json.loads(b"".join(errors.streaming_content))["line"] == 3  # type: ignore[attr-defined]
    assert not uploads.source_path(run.pk).exists()
    assert not uploads.samples_path(run.pk).exists()


def test_the_job_is_sent_on_commit(
    admin: Client, monkeypatch: pytest.MonkeyPatch, django_capture_on_commit_callbacks: Any
) -> None:
    sent: list[tuple[str, int]] = []
    monkeypatch.setattr(imports, "enqueue", lambda name, pk: sent.append((name, pk)))
    upload(admin, [row()])
    run = ImportRun.objects.get()
    assert sent == [("run_import", run.pk)]
    assert (run.state, run.heartbeat_at) == (ImportState.RUNNING, None)


def test_a_double_click_makes_one_run(admin: Client) -> None:
    key = str(uuid.uuid4())
    first, second = (upload(admin, [row()], key=key) for _n in range(2))
    assert first["Location"] == second["Location"]
    assert ImportRun.objects.count() == 1


@pytest.mark.parametrize(
    ("rows", "format", "message"),
    [
        ([row()], "alpaca_eval", "looks like palate"),
        (["a,b", "1,2"], "", "cannot be told"),
        (["   "], "", "empty"),
    ],
)
def test_a_wrong_file_is_refused_at_once(
    admin: Client, rows: list[Any], format: str, message: str, media: Path
) -> None:
    response = upload(admin, rows, format=format)
    assert response.status_code == 422
    assert message in html(response)
    assert not ImportRun.objects.exists()
    assert not list((media / "imports").glob("*/source"))


def test_too_large_a_file_is_refused(admin: Client, settings: Any) -> None:
    settings.UPLOAD_LIMIT = 10
    response = upload(admin, [row()])
    assert response.status_code == 422
    assert "at most" in html(response)
    assert not ImportRun.objects.exists()


def test_cancelling_drops_the_upload(admin: Client) -> None:
    run = checked(admin, [row()])
    admin.post(reverse("catalog:import_cancel", args=[run.pk]))
    run.refresh_from_db()
    assert run.state == ImportState.CANCELLED
    assert not uploads.source_path(run.pk).exists()
    response = admin.post(reverse("catalog:import_start", args=[run.pk]))
    assert response.status_code == 409


def test_payloads_are_shown_literally(admin: Client) -> None:
    """T18: in the file name, in every field, in error texts."""
    rows = [
        row(prompt=XSS, contestant=XSS, answer=XSS, category=XSS),
        row(contestant="other", answer=XSS, prompt=f"{XSS} 2", persona=persona(summary=XSS)),
        row(persona=persona(pseudonym=XSS), draw=1),
        row(finish_reason=XSS),
        row(**{XSS: 1}),
    ]
    run = checked(admin, rows, name=f"{XSS}.jsonl")
    admin.post(reverse("catalog:import_start", args=[run.pk]))
    started = ImportRun.objects.latest("pk")
    preview = html(admin.get(reverse("catalog:import_run", args=[run.pk])))
    imports.run_import(pk=started.pk)
    pages = [preview]
    contestant = Answer.objects.get(contestant__name=XSS).contestant
    known = Persona.objects.get(pseudonym=XSS)
    for name, args in (
        ("import_run", [started.pk]),
        ("imports", []),
        ("personas", []),
        ("persona", [known.pk]),
        ("withdraw_consent", [known.pk]),
        ("prompts", []),
        ("contestants", []),
        ("contestant", [contestant.pk]),
    ):
        pages.append(html(admin.get(reverse(f"catalog:{name}", args=args))))
    answers = admin.post(reverse("catalog:contestant_answers", args=[contestant.pk]))
    pages.append(html(answers))
    for page in pages:
        assert "<img" not in page
        assert escape("<img src=x onerror=") in page
        assert not re.search(r"<[^>]+\sstyle=", page)
        assert not re.search(r"<script(?![^>]*\ssrc=)", page)
    assert "Content-Security-Policy" in answers.headers
    errors = admin.get(reverse("catalog:import_errors", args=[started.pk]))
    assert errors["Content-Type"].startswith("application/x-ndjson")


def test_preview_pages_of_a_sealed_probe_are_the_same(admin: Client) -> None:
    """Equal or different text in a sealed slot: byte-identical pages and error files."""
    answer = make_answer("The sealed text.", prompt=make_prompt("How do I begin?"))
    seal(answer)
    seen = []
    for text in ("The sealed text.", "Some other text."):
        run = checked(admin, [row(answer=text), row(draw=-1)])
        admin.post(reverse("catalog:import_start", args=[run.pk]))
        started = ImportRun.objects.latest("pk")
        preview = admin.get(reverse("catalog:import_run", args=[run.pk]))
        imports.run_import(pk=started.pk)
        result = admin.get(reverse("catalog:import_run", args=[started.pk]))
        errors = admin.get(reverse("catalog:import_errors", args=[started.pk]))
        pages = [html(preview), html(result)]
        raw = b"".join(errors.streaming_content).decode()  # type: ignore[attr-defined]
        seen.append([_without_ids(page, run.pk, started.pk) for page in [*pages, raw]])
    assert seen[0] == seen[1]
    assert "Sealed, left alone" in seen[0][1]


def _without_ids(page: str, *ids: int) -> str:
    for pk in ids:
        page = page.replace(f"/imports/{pk}/", "/imports/n/")
    return re.sub(r'csrfmiddlewaretoken" value="\w+"|X-CSRFToken": "\w+"', "", page)


def test_every_view_says_who_may() -> None:
    from webapp.catalog.urls import urlpatterns

    for pattern in urlpatterns:
        allowed = pattern.callback.allowed_roles  # type: ignore[attr-defined]
        owner_page = pattern.name in ("my_personas", "withdraw_consent")
        assert allowed == (tuple(Role) if owner_page else (Role.ADMIN,))

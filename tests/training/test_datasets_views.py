"""Pages of datasets and imported records: what they show, to whom, in how many queries."""

from __future__ import annotations

import json
import re
import uuid
from typing import Any

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client
from django.urls import reverse

from tests.arena.factories import make_world, unsealed_round
from tests.conftest import asks_for_login
from tests.training.factories import admin, draft, freeze, frozen, make_pairs, make_people
from tests.training.test_datasets_records import bring_in, trace, upload
from tests.training.test_datasets_sources import make_counterfactuals
from training.enums import Kind
from training.models import Dataset, Record
from training.services.freezing import run_freeze
from webapp.accounts.models import User
from webapp.catalog.models import ImportRun
from webapp.catalog.services.imports import run_import
from webapp.catalog.services.personas import withdraw_consent
from webapp.core.models import Event

pytestmark = pytest.mark.django_db
MOST = 12


@pytest.fixture
def boss(client: Client) -> Client:
    client.force_login(admin())
    return client


def get(client: Client, name: str, *args: Any, **query: Any) -> Any:
    return client.get(reverse(f"training:{name}", args=args), query)


def text(response: Any) -> str:
    return str(response.content.decode())


def form_data(**changes: Any) -> dict[str, Any]:
    values = {
        "kind": "preferences", "name": "By form", "sources": ["annotation", "arena"],
        "axis": "quality", "decided": ["unanimous", "majority"], "minimum": "0", "votes": "1",
        "stratum_features": ["expertise"], "train": "100", "reward_model_gate": "0", "gate": "0",
        "edge": "0", "arena": "0", "cut": "on", "seed": "1", "key": uuid.uuid4().hex,
        "do": "save",
    }  # fmt: skip
    return {**values, **changes}


# Who may


PAGES: list[tuple[str, tuple[Any, ...]]] = [
    ("datasets", ()), ("dataset_new", ()), ("dataset", (1,)), ("dataset_progress", (1,)),
    ("dataset_manifest", (1,)), ("dataset_download", (1, "train")), ("records", ()),
    ("record_import", (1,)), ("record_progress", (1,)), ("record_errors", (1,)),
]  # fmt: skip
POSTS: list[tuple[str, tuple[Any, ...]]] = [
    ("dataset_freeze", (1,)), ("dataset_discard", (1,)), ("record_start", (1,)),
    ("record_cancel", (1,)), ("record_resume", (1,)),
]  # fmt: skip


@pytest.mark.parametrize(("name", "args"), PAGES + POSTS)
def test_only_administrators_see_datasets(
    client: Client, name: str, args: tuple[Any, ...], bob: User, chen: User, vera: User
) -> None:
    url = reverse(f"training:{name}", args=args)
    ask = client.post if (name, args) in POSTS else client.get
    assert asks_for_login(ask(url))
    for user in (bob, chen, vera):
        client.force_login(user)
        assert ask(url).status_code == 403


@pytest.mark.parametrize(("name", "args"), PAGES + POSTS)
def test_wrong_methods_and_unknown_ids(boss: Client, name: str, args: tuple[Any, ...]) -> None:
    url = reverse(f"training:{name}", args=args)
    if (name, args) in POSTS:
        assert boss.get(url).status_code == 405
        assert boss.post(url).status_code == 404
    else:
        assert boss.put(url).status_code == 405
        assert boss.get(url).status_code == (404 if args else 200)


# The list and a new dataset


def test_the_list_shows_state_rows_and_what_is_gone(
    boss: Client, django_assert_max_num_queries: Any
) -> None:
    assert "No dataset yet" in text(get(boss, "datasets"))
    make_pairs(people=2, prompts=2)
    dataset = frozen()
    draft(name="A draft")
    withdraw_consent(actor=admin(), persona=make_people(2)[0].persona)
    with django_assert_max_num_queries(MOST):
        page = text(get(boss, "datasets"))
    assert dataset.content_sha256[:12] in page
    assert "2 rows gone" in page
    assert "A draft" in page
    assert 'aria-current="true">Datasets' in page or 'aria-current="page">Datasets' in page


def test_counting_shows_strata_and_reasons_and_saves_nothing(
    boss: Client, django_assert_max_num_queries: Any
) -> None:
    make_pairs(people=4, prompts=2)
    make_pairs(people=2, prompts=1, topic="other", choose=lambda _lease: "tie")
    unsealed_round(make_world(contestants=2, personas=2, prompts=1), planned_votes=2)
    with django_assert_max_num_queries(40):  # two and a few statements per two thousand rows
        response = boss.post(reverse("training:dataset_new"), form_data(do="count"))
    page = text(response)
    assert response.status_code == 200
    assert "10 rows, from 3 prompts and 6 personas" in page
    assert "expertise: novice" in page
    assert "a tie" in page
    assert not Dataset.objects.exists()
    saved = boss.post(reverse("training:dataset_new"), form_data())
    dataset = Dataset.objects.get()
    assert saved["Location"] == reverse("training:dataset", args=[dataset.pk]) + "?count=1"
    page = text(boss.get(saved["Location"]))
    assert "10 rows, from 3 prompts and 6 personas" in page
    assert freeze(dataset).rows == 10


def test_a_double_click_saves_once_and_mistakes_are_named(boss: Client) -> None:
    make_pairs(people=2, prompts=1)
    values = form_data()
    for _again in range(2):
        assert boss.post(reverse("training:dataset_new"), values).status_code == 302
    assert Dataset.objects.count() == 1
    wrong = boss.post(reverse("training:dataset_new"), form_data(name="B", train="90"))
    assert wrong.status_code == 422
    assert "add up to 90 %" in text(wrong)
    assert boss.post(reverse("training:dataset_new"), form_data()).status_code == 422  # the name
    assert Dataset.objects.count() == 1


def test_every_kind_has_a_form_with_its_own_fields(
    boss: Client, django_assert_max_num_queries: Any
) -> None:
    make_pairs(people=2, prompts=1)
    bring_in("instructions", {"prompt": "Tea?", "completion": "Yes.", "language": "zh"})
    wanted = {
        Kind.INSTRUCTIONS: ({"imports", "languages"}, {"axis", "projects", "votes"}),
        Kind.TOOL_TRACES: ({"train"}, {"axis", "projects", "decided"}),
        Kind.PREFERENCES: ({"axis", "projects", "decided", "votes"}, {"imports"}),
        Kind.COUNTERFACTUALS: ({"projects", "minimum"}, {"axis", "train", "rounds"}),
        Kind.COUNTEREXAMPLES: ({"axis", "sources"}, {"votes", "minimum"}),
    }
    for kind, (there, gone) in wanted.items():
        with django_assert_max_num_queries(MOST):
            page = text(get(boss, "dataset_new", kind=kind.value))
        names = set(re.findall(r'name="([a-z_]+)"', page))
        assert there <= names, kind
        assert not gone & names, kind


def test_a_dataset_of_each_form_can_be_saved(boss: Client) -> None:
    make_counterfactuals(2)
    for kind in Kind.values:
        values = form_data(kind=kind, name=f"set {kind}")
        if kind == Kind.COUNTEREXAMPLES:
            values["sources"] = ["annotation"]
        assert boss.post(reverse("training:dataset_new"), values).status_code == 302, kind
    assert Dataset.objects.count() == 5


# One dataset


def test_a_frozen_dataset_shows_counts_pictures_samples_and_lineage(
    boss: Client, django_assert_max_num_queries: Any
) -> None:
    desk = make_pairs(people=6, prompts=6)
    dataset = frozen(train=70, reward_model_gate=15, gate=15, projects=[desk.project.pk])
    with django_assert_max_num_queries(MOST):
        page = text(get(boss, "dataset", dataset.pk))
    assert dataset.content_sha256 in page
    assert "expertise: novice" in page
    assert page.count("<svg") >= 4
    assert "First open a window" in page
    assert desk.project.name in page
    assert "guidelines 1" in page
    assert "prompt and persona are in different splits" in page
    assert "the reference recipe has" in page
    only_gate = text(get(boss, "dataset", dataset.pk, split="gate"))
    gates = dataset.items.filter(split="gate").count()
    assert len(re.findall('<article class="card">', only_gate)) == gates > 0


def test_pages_of_all_kinds_open(boss: Client, django_assert_max_num_queries: Any) -> None:
    make_counterfactuals(3)
    make_pairs(people=2, prompts=1, topic="bad", choose=lambda _lease: "both_bad")
    bring_in("instructions", {"prompt": "怎么泡茶？", "completion": "先烧水。"})
    bring_in("tool_traces", trace())
    for kind in Kind.values:
        dataset = frozen(kind)
        with django_assert_max_num_queries(MOST):
            page = text(get(boss, "dataset", dataset.pk))
        assert dataset.content_sha256 in page
    assert "search({&quot;query&quot;:&quot;tea&quot;})" in text(
        get(boss, "dataset", Dataset.objects.get(kind="tool_traces").pk)
    )


def test_a_refused_freeze_says_why_with_numbers(boss: Client) -> None:
    always_short = lambda p, u: (f"Short {p}-{u}.", f"A much longer answer for {p}-{u}.")  # noqa: E731
    make_pairs(people=6, prompts=6, texts=always_short)
    dataset = freeze(draft(axis="personalization"))
    page = text(get(boss, "dataset", dataset.pk))
    assert "In 0 of 36 training pairs the better answer has more of “length” (0.0 %)" in page
    assert "one-sided" in page
    assert "Freeze the dataset" in page


def test_freezing_from_the_page_shows_progress_then_the_set(boss: Client) -> None:
    make_pairs(people=2, prompts=1)
    dataset = draft()
    for _twice in range(2):
        assert boss.post(reverse("training:dataset_freeze", args=[dataset.pk])).status_code == 302
    assert "waiting for a worker" in text(get(boss, "dataset", dataset.pk))
    part = get(boss, "dataset_progress", dataset.pk)
    assert part.status_code == 200
    assert "hx-get" in text(part)
    run_freeze(pk=dataset.pk)
    done = get(boss, "dataset_progress", dataset.pk)
    assert (done.status_code, done["HX-Redirect"]) == (
        204, reverse("training:dataset", args=[dataset.pk]),
    )  # fmt: skip


def test_a_draft_is_put_away_and_a_frozen_set_is_not(boss: Client) -> None:
    make_pairs(people=2, prompts=1)
    dataset = draft()
    assert boss.post(reverse("training:dataset_discard", args=[dataset.pk])).status_code == 302
    dataset.refresh_from_db()
    assert dataset.state == "discarded"
    kept = frozen()
    assert boss.post(reverse("training:dataset_discard", args=[kept.pk])).status_code == 409
    assert get(boss, "dataset_download", dataset.pk, "train").status_code == 409


def test_downloads_are_the_same_bytes_and_are_noted(boss: Client) -> None:
    make_pairs(people=2, prompts=2)
    dataset = frozen()
    one, two = (
        b"".join(get(boss, "dataset_download", dataset.pk, "train").streaming_content)
        for _ in range(2)
    )
    assert one == two
    assert len(one.splitlines()) == 4
    assert Event.objects.filter(action="download_dataset").count() == 2
    assert get(boss, "dataset_download", dataset.pk, "gate").status_code == 404
    withdraw_consent(actor=admin(), persona=make_people(2)[0].persona)
    response = get(boss, "dataset_manifest", dataset.pk)
    found = json.loads(b"".join(response.streaming_content))
    assert len(found["gone"]) == 2
    assert "2 of 4 rows are gone" in text(get(boss, "dataset", dataset.pk))


def test_no_page_or_file_names_a_contestant(boss: Client) -> None:
    world = make_world(contestants=2, personas=4, prompts=2)
    unsealed_round(world, planned_votes=8)
    dataset = frozen(sources=["arena"])
    page = text(get(boss, "dataset", dataset.pk))
    body = b"".join(get(boss, "dataset_download", dataset.pk, "train").streaming_content)
    for contestant in world.contestants:
        assert contestant.name not in page
        assert contestant.name.encode() not in body


def test_hostile_texts_are_shown_as_they_are(boss: Client) -> None:
    evil = '<script>alert("x")</script>'
    bring_in("instructions", {"prompt": evil, "completion": evil, "category": "<b>"})
    page = text(get(boss, "dataset", frozen("instructions").pk))
    assert "<script>alert" not in page
    assert "&lt;script&gt;" in page
    assert "<dt><b></dt>" not in page


# Imported records


def test_a_file_is_checked_started_and_watched(
    boss: Client, django_assert_max_num_queries: Any
) -> None:
    rows = [{"prompt": "Tea?", "completion": "Yes."}, {"prompt": "Tea?"}]
    body = "\n".join(json.dumps(row) for row in rows).encode()
    values = {
        "kind": "instructions", "key": uuid.uuid4().hex,
        "file": SimpleUploadedFile("rows.jsonl", body),
    }  # fmt: skip
    sent = boss.post(reverse("training:records"), values)
    check = ImportRun.objects.get()
    assert sent["Location"] == reverse("training:record_import", args=[check.pk])
    assert "Checking the file" in text(get(boss, "record_import", check.pk))
    run_import(pk=check.pk)
    with django_assert_max_num_queries(MOST):
        page = text(get(boss, "record_import", check.pk))
    assert "Checked; nothing is imported yet." in page
    assert "line 2, column 1" in page
    assert b'"completion"' in b"".join(get(boss, "record_errors", check.pk).streaming_content)
    for _twice in range(2):
        started = boss.post(reverse("training:record_start", args=[check.pk]))
    run = ImportRun.objects.get(dry_run=False)
    assert started["Location"] == reverse("training:record_import", args=[run.pk])
    run_import(pk=run.pk)
    assert Record.objects.count() == 1
    assert get(boss, "record_progress", run.pk).status_code == 204
    with django_assert_max_num_queries(MOST):
        assert "rows.jsonl" in text(get(boss, "records"))


def test_a_file_that_is_no_json_lines_is_refused_in_the_form(boss: Client) -> None:
    values = {
        "kind": "instructions", "key": uuid.uuid4().hex,
        "file": SimpleUploadedFile("rows.json", b'[{"prompt": 1}]'),
    }  # fmt: skip
    response = boss.post(reverse("training:records"), values)
    assert response.status_code == 422
    assert "is a JSON list" in text(response)
    assert not ImportRun.objects.exists()


def test_a_check_can_be_dropped_and_answers_are_not_shown_here(boss: Client) -> None:
    check = upload("instructions", {"prompt": "Tea?", "completion": "Yes."})
    assert boss.post(reverse("training:record_cancel", args=[check.pk])).status_code == 302
    check.refresh_from_db()
    assert check.state == "cancelled"
    answers = ImportRun.objects.create(kind="answers", format="palate", file_name="a", path="/x")
    assert get(boss, "record_import", answers.pk).status_code == 404

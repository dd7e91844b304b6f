"""Two imports at once, people at work meanwhile, and kill -9: nothing is lost or doubled."""

from __future__ import annotations

import json
import shutil
import signal
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from django.db import connection
from django.db.models import F

from annotation.models import Item, ItemText, Label, Lease, Member, Project
from annotation.services import import_rows
from annotation.services.imports import KIND
from tests.annotation.factories import label_once, make_desk
from tests.annotation.pairs import label, make_project, row, write
from tests.catalog.test_races import manage, query, said
from webapp.catalog.models import ImportRun
from webapp.catalog.services import imports

SETUP = """
from annotation.services.projects import create_project
from webapp.accounts.services import create_user
user = create_user(username="mara", password="a-long-enough-passphrase", role="admin")
create_project(actor=user, name="Pairs", guidelines="x", settings={"axes": ["quality"]})
"""


def many(count: int) -> list[Any]:
    """Every seventh pair stands twice, with the same labels."""
    return [
        row(
            n - 1 if n % 7 == 6 else n,
            labels=[label("a", "first"), label("b", "second" if n % 3 else "first")],
            persona={"pseudonym": f"p{(n - 1 if n % 7 == 6 else n) % 5}", "summary": "Short."},
        )
        for n in range(count)
    ]


# On SQLite, in processes of their own


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory, empty_database: Path) -> Path:
    folder = tmp_path_factory.mktemp("home")
    shutil.copy(empty_database, folder / "palate.sqlite3")
    assert manage(folder, "shell", "-v0", "-c", SETUP).wait() == 0
    return folder


def test_a_killed_import_is_followed_by_one_that_goes_on(home: Path, tmp_path: Path) -> None:
    rows = many(3500)
    for n in (10, 1500, 2900):
        rows[n] = "{"
    expected = {json.dumps(entry["prompt"]) for entry in rows if entry != "{"}
    path = write(tmp_path / "killed.jsonl", rows)
    statement = "SELECT rows_done, id FROM catalog_importrun WHERE file_name = 'killed.jsonl'"
    process, deadline = manage(home, "import_pairs", "Pairs", str(path)), time.monotonic() + 400
    while not (found := query(home, statement)) or found[0][0] < 1000:
        assert time.monotonic() < deadline
        assert process.poll() is None
        time.sleep(0.01)
    process.send_signal(signal.SIGKILL)
    process.communicate()
    done = query(home, statement)[0][0]
    assert 1000 <= done < 3500
    output = said(manage(home, "import_pairs", "Pairs", str(path)))
    assert f"Going on after row {done}" in output
    assert "3 refused (3500 rows)" in output
    items = len(expected)
    assert f"{items} added" in output
    assert query(home, "SELECT count(*) FROM annotation_item") == [(items,)]
    assert query(home, "SELECT count(*) FROM annotation_itemtext") == [(items,)]
    labels = 2 * (3500 - 3)
    assert f"{labels} labels added" in output
    assert query(home, "SELECT count(*) FROM annotation_label") == [(labels,)]
    assert query(home, "SELECT count(*) FROM annotation_lease WHERE state = 'submitted'") == [
        (labels,)
    ]
    off = "SELECT count(*) FROM annotation_item WHERE done <> live OR done <> 2"
    assert query(home, off) == [(0,)]
    again = said(manage(home, "import_pairs", "Pairs", str(path)))
    assert "palate_pairs: 0 added" in again
    assert f"{labels} labels known already" in again


# On PostgreSQL, in threads


def together(*jobs: Callable[[], Any]) -> None:
    failures: list[BaseException] = []

    def work(job: Callable[[], Any]) -> None:
        try:
            job()
        except BaseException as error:
            failures.append(error)
        finally:
            connection.close()

    threads = [threading.Thread(target=work, args=[job]) for job in jobs]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures


def opened(project: Project, path: Path) -> Callable[[], Any]:
    options = {"axis": "quality"}
    run = imports.open_run(path=path, kind=KIND, subject=project.pk, options=options)
    return lambda: imports.run_import(pk=run.pk, take_over=True)


@pytest.mark.postgres
@pytest.mark.django_db(transaction=True)
def test_two_imports_into_one_project_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, settings: Any
) -> None:
    settings.MEDIA_ROOT = tmp_path / "media"
    monkeypatch.setattr(import_rows, "ROWS", 25)
    project, other = make_project(), make_project("Other")
    rows = many(700)
    one = write(tmp_path / "one.jsonl", rows)
    two = write(tmp_path / "two.jsonl", list(reversed(rows)))
    three = write(tmp_path / "three.jsonl", rows)
    together(opened(project, one), opened(project, two), opened(other, three))
    assert {run.state for run in ImportRun.objects.all()} == {"done"}
    for each in (project, other):
        assert each.items.count() == 600
        assert Label.objects.filter(item__project=each).count() == 1400
        assert not each.items.exclude(done=2, live=2).exists()
        assert each.members.filter(user=None).count() == 2
    assert ItemText.objects.count() == 1200
    assert not Lease.objects.exclude(state="submitted").exists()


@pytest.mark.postgres
@pytest.mark.django_db(transaction=True)
def test_people_label_while_labels_of_a_file_come_in(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, settings: Any
) -> None:
    settings.MEDIA_ROOT = tmp_path / "media"
    monkeypatch.setattr(import_rows, "ROWS", 10)
    asked = {"axes": ["quality"], "base_overlap": 2, "max_overlap": 3}
    desk = make_desk(people=3, n_items=60, settings=asked)
    rows = [
        {
            "prompt": item.prompt.messages[0]["content"],
            "first": item.body.second,
            "second": item.body.first,
            "persona": {
                "pseudonym": item.persona_version.persona.pseudonym,
                "summary": item.persona_version.text.summary,
            },
            "labels": [label("w", "second")],
        }
        for item in desk.project.items.select_related(
            "prompt", "body", "persona_version__persona", "persona_version__text"
        )
        if item.persona_version
    ]
    path = write(tmp_path / "rows.jsonl", rows)

    def work(user: Any) -> Callable[[], Any]:
        def job() -> None:
            while label_once(desk, user) is not None:
                pass

        return job

    together(opened(desk.project, path), *(work(user) for user in desk.people))
    assert Item.objects.count() == 60
    external = Member.objects.get(user=None)
    assert Lease.objects.filter(member=external, counted=True, state="submitted").count() == 60
    for item in Item.objects.all():
        counted = item.leases.filter(counted=True, state="submitted").count()
        assert item.done == item.live == counted
        assert item.done >= 2
    assert not Item.objects.filter(live__gt=F("target")).exists()
    heads = Label.objects.filter(member=external).values_list("quality", flat=True)
    assert set(heads) == {"first"}

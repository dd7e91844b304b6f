"""Two imports at once, and kill -9: the same rows as one import that nobody disturbed."""

from __future__ import annotations

import json
import os
import shutil
import signal
import sqlite3
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest
from django.db import connection

from tests.catalog.factories import persona, row, write_jsonl
from webapp.catalog.models import Answer, AnswerText, ImportRun, PersonaVersion
from webapp.catalog.services import batches, imports

ROOT = Path(__file__).resolve().parents[2]


def many(count: int) -> list[dict[str, Any]]:
    return [
        row(
            prompt=f"Question {n % 40}",
            contestant=f"m{n // 40}",
            answer=f"Answer {n} " + "说明 " * 20,
            persona=persona(pseudonym=f"p{n % 7}"),
        )
        for n in range(count)
    ]


# On SQLite, in processes of their own


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory, empty_database: Path) -> Path:
    folder = tmp_path_factory.mktemp("home")
    shutil.copy(empty_database, folder / "palate.sqlite3")
    return folder


def manage(home: Path, *command: str) -> subprocess.Popen[str]:
    environment = {
        **os.environ,
        "PALATE_HOME": str(home),
        "SECRET_KEY": "only-for-tests",
        "DJANGO_SETTINGS_MODULE": "webapp.settings",
    }
    environment.pop("DATABASE_URL", None)
    return subprocess.Popen(
        [sys.executable, "manage.py", *command],
        cwd=ROOT,
        env=environment,
        stdout=subprocess.PIPE,
        text=True,
    )


def query(home: Path, statement: str) -> list[Any]:
    with sqlite3.connect(home / "palate.sqlite3", timeout=30) as database:
        return database.execute(statement).fetchall()


def said(process: subprocess.Popen[str]) -> str:
    output = process.communicate(timeout=400)[0]
    assert process.returncode == 0, output
    return output


def test_two_processes_import_one_file(home: Path, tmp_path: Path) -> None:
    path = write_jsonl(tmp_path / "rows.jsonl", many(2500))
    both = [manage(home, "import_answers", str(path)) for _n in range(2)]
    outputs = [said(process) for process in both]
    assert all("0 refused (2500 rows)" in output for output in outputs)
    assert query(home, "SELECT count(*) FROM catalog_answer") == [(2500,)]
    assert query(home, "SELECT count(*) FROM catalog_answertext") == [(2500,)]
    assert query(home, "SELECT sum(added) FROM catalog_importrun") == [(2500,)]
    assert query(home, "SELECT count(*) FROM catalog_personaversion") == [(7,)]


def test_a_killed_process_is_followed_by_one_that_goes_on(home: Path, tmp_path: Path) -> None:
    rows: list[Any] = [{**entry, "draw": 1} for entry in many(4000)]
    for n in (10, 1500, 2900):
        rows[n] = "{"
    path = write_jsonl(tmp_path / "killed.jsonl", rows)
    statement = "SELECT rows_done, id FROM catalog_importrun WHERE file_name = 'killed.jsonl'"
    process, deadline = manage(home, "import_answers", str(path)), time.monotonic() + 300
    while not (found := query(home, statement)) or found[0][0] < 1000:
        assert time.monotonic() < deadline
        assert process.poll() is None
        time.sleep(0.01)
    process.send_signal(signal.SIGKILL)
    process.communicate()
    done = query(home, statement)[0][0]
    assert 1000 <= done < 4000
    output = said(manage(home, "import_answers", str(path)))
    assert f"Going on after row {done}" in output
    assert "3997 added, 0 known already, 3 refused (4000 rows)" in output
    ((rows_done, pk),) = query(home, statement)
    assert rows_done == 4000
    lines = (home / "files" / "imports" / str(pk) / "errors.jsonl").read_text().splitlines()
    assert [json.loads(line)["line"] for line in lines] == [11, 1501, 2901]
    in_file = "SELECT count(*) FROM catalog_answer WHERE draw = 1"
    assert query(home, in_file) == [(3997,)]


# On PostgreSQL, in threads


@pytest.mark.postgres
@pytest.mark.django_db(transaction=True)
def test_two_imports_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batches, "ROWS", 25)
    path = write_jsonl(tmp_path / "rows.jsonl", many(1000))
    runs = [imports.open_run(path=path) for _n in range(1)]
    copy = write_jsonl(tmp_path / "copy.jsonl", list(reversed(many(1000))))
    runs.append(imports.open_run(path=copy))
    failures: list[BaseException] = []

    def work(pk: int) -> None:
        try:
            imports.run_import(pk=pk, take_over=True)
        except BaseException as error:
            failures.append(error)
        finally:
            connection.close()

    threads = [threading.Thread(target=work, args=[run.pk]) for run in runs]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures
    done = list(ImportRun.objects.all())
    assert {run.state for run in done} == {"done"}
    assert sum(run.added for run in done) == Answer.objects.count() == 1000
    assert sum(run.known for run in done) == 1000
    assert AnswerText.objects.count() == 1000
    assert PersonaVersion.objects.count() == 7

"""From a file of pairs to a training step, as people do it: clicks and keys only."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import BrowserContext, Page

from annotation.models import Item, Project
from tests.annotation.test_trl import TRAIN
from tests.browser.conftest import log_in_by_form
from tests.conftest import make_user
from webapp.accounts.enums import Role

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]
ContextMaker = Callable[..., BrowserContext]
ROOT = Path(__file__).resolve().parent.parent.parent
N = 5
CONTESTED = 3  # the question on which the two annotators see it differently


def judged_pairs(folder: Path) -> Path:
    """Pairs judged by three people on quality, in the format of PandaLM, with texts of our own."""
    rows = [
        {
            "instruction": f"How do I fix fault number {n}?",
            "input": "",
            "response1": f"Careful advice: look at part {n} first, then tighten it.",
            "response2": f"Just buy a new one, number {n}.",
            "annotator1": 1,
            "annotator2": 1,
            "annotator3": 0,
            "cmp_key": "harbor_quarry",
        }
        for n in range(N)
    ]
    path = folder / "judged.json"
    path.write_text(json.dumps(rows))
    return path


def make_project(page: Page, path: Path) -> Project:
    page.goto("/annotation/new/")
    page.fill("[name=name]", "Repairs")
    page.fill("[name=guidelines]", "Careful advice is better. Read both answers to the end.")
    for name, value in (("base_overlap", 2), ("max_overlap", 2), ("onboarding_size", 0)):
        page.fill(f"[name={name}]", str(value))
    for name in ("gold_percent", "repeat_percent"):
        page.fill(f"[name={name}]", "0")
    page.click("text=Make the draft")
    page.wait_for_selector("text=draft")
    project = Project.objects.get()
    page.goto(f"/annotation/{project.pk}/import/")
    page.set_input_files("input[type=file]", path)
    page.click("text=Upload and check")
    page.click("text=Import this file")
    page.wait_for_selector("text=Pairs added")
    page.goto(f"/annotation/{project.pk}/items/?state=held")  # nobody stands behind such a file
    assert "there is no persona whom it could suit" in page.content()
    page.click("text=Give all of these out")
    page.wait_for_url(f"**/annotation/{project.pk}/items/**")
    page.goto(f"/annotation/{project.pk}/members/")
    for name in ("ann-1", "ann-2"):
        page.get_by_label(name).check()
    page.click("text=Add them")
    page.wait_for_selector("table >> text=ann-2")
    page.get_by_label("ann-3").check()
    page.get_by_label("They may decide disputed items").check()
    page.click("text=Add them")
    page.wait_for_selector("table >> text=ann-3")
    page.goto(f"/annotation/{project.pk}/settings/")
    page.click("text=Open the project")
    page.wait_for_selector("text=its members get items")
    return project


def label_with_keys(page: Page, project: Project, *, contrary: bool) -> int:
    """Label until nothing is left, touching nothing but the keyboard once the page is there."""
    page.goto("/annotation/work/")
    page.goto(f"/annotation/{project.pk}/label/")
    if page.query_selector("text=I have read this, begin"):
        page.click("text=I have read this, begin")
    given = 0
    while page.query_selector("[data-vote-form]"):
        token = page.get_attribute("[data-vote]", "data-token")
        careful_left = "Careful" in page.inner_text("[data-side=left]")
        contested = f"number {CONTESTED}?" in page.inner_text(".question")
        left = careful_left != (contrary and contested)
        page.keyboard.press("v")
        for _row in range(2):
            page.keyboard.press("ArrowLeft" if left else "ArrowRight")
            page.keyboard.press("Enter")
        if page.get_attribute("[data-vote]", "data-token") == token:
            page.keyboard.press("Enter")
        page.wait_for_function(
            "t => (document.querySelector('#vote').dataset.token || '') !== t", arg=token
        )
        given += 1
    return given


def adjudicate(page: Page, project: Project) -> None:
    """Decide the one disputed item, first blind, then with the labels in sight."""
    page.goto(f"/annotation/{project.pk}/disputes/")
    page.click("text=Decide the next one")
    page.wait_for_selector("[data-vote-form]")
    assert "ann-1" not in page.content()
    side = "left" if "Careful" in page.inner_text("[data-side=left]") else "right"
    for axis in ("quality", "personalization"):
        page.check(f"input[name={axis}][value={side}]", force=True)
    page.click("text=Store my choice and show the labels")
    page.wait_for_selector("text=What the annotators said")
    for axis in ("quality", "personalization"):
        page.check(f"input[name={axis}][value={side}]", force=True)
    page.check("input[name=reason][value=annotator_error]", force=True)
    page.click("[data-submit]")
    page.wait_for_selector("text=Nothing is disputed")


def export(page: Page, project: Project, folder: Path) -> Path:
    page.goto(f"/annotation/{project.pk}/exports/")
    page.select_option("[name=format]", "trl_preference")
    page.select_option("[name=axis]", "personalization")
    page.click("text=Start the export")
    page.wait_for_selector("text=Download", timeout=60_000)
    with page.expect_download() as started:
        page.click("text=Download")
    path = folder / "pairs.jsonl"
    started.value.save_as(path)
    return path


def train_one_step(path: Path, folder: Path) -> dict[str, Any]:
    env = {**os.environ, "OMP_NUM_THREADS": "1", "HF_HOME": str(folder), "HF_HUB_OFFLINE": "1"}
    done = subprocess.run(
        [sys.executable, "-c", TRAIN, str(path), str(folder)],
        cwd=ROOT,
        env=env,
        capture_output=True,
        text=True,
        timeout=180,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    said: dict[str, Any] = json.loads(done.stdout.strip().splitlines()[-1])
    return said


def test_from_a_file_of_pairs_to_a_training_step(
    new_context: ContextMaker, live_server: Any, tmp_path: Path
) -> None:
    make_user("mara", Role.ADMIN)
    for n in (1, 2, 3):
        make_user(f"ann-{n}", Role.ANNOTATOR)
    manager = log_in_by_form(new_context(), "mara")
    manager.set_default_timeout(90_000)  # jobs run within the request here, TRL's check among them
    project = make_project(manager, judged_pairs(tmp_path))
    for name, contrary in (("ann-1", False), ("ann-2", True)):
        page = log_in_by_form(new_context(), name)
        assert label_with_keys(page, project, contrary=contrary) == N
    disputed = Item.objects.filter(project=project, state="disputed")
    assert disputed.count() == 1
    adjudicate(log_in_by_form(new_context(), "ann-3"), project)
    assert Item.objects.filter(project=project, state="done").count() == N
    path = export(manager, project, tmp_path)
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    assert len(rows) == N
    assert all("Careful" in str(row["chosen"]) for row in rows)
    if importlib.util.find_spec("trl") is not None:
        said = train_one_step(path, tmp_path)
        assert (said["steps"], said["rows"]) == (1, N)

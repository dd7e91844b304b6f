"""From two files of answers to a verified leaderboard, as people do it: clicks and keys only."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import BrowserContext, Page

from arena.models import Round, Vote
from tests.browser.conftest import log_in_by_form
from tests.conftest import make_user
from webapp.accounts.enums import Role
from webapp.catalog.models import Answer

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]
ContextMaker = Callable[..., BrowserContext]
QUESTIONS = [f"How do I learn skill number {n}?" for n in range(4)]


def report(model: str, folder: Path) -> Path:
    """A sampling report in the format of Open-Assistant, with answers of our own."""
    results = [
        {
            "sampling_config": config,
            "sampling_params": {"top_k": k},
            "outputs": [f"{verb} skill {n} every day. That is {model}-{config} advice, draw {d}."
                        for d in range(2)],
        }
        for n in range(1)
        for config, k, verb in (("k50", 50, "Practise"), ("greedy", 1, "Read about"))
    ]  # fmt: skip
    body = {
        "model_name": f"house/{model}",
        "date": "2026-01-01",
        "args": {"mode": "v2"},
        "prompts": [{"prompt": question, "results": results} for question in QUESTIONS],
    }
    path = folder / f"{model}.json"
    path.write_text(json.dumps(body))
    return path


def upload(page: Page, path: Path) -> None:
    page.goto("/catalog/imports/new/")
    page.set_input_files("input[type=file]", path)
    page.click("text=Upload and check")
    page.click("text=Import this file")
    page.wait_for_selector("text=Added")


def add_persona(page: Page, name: str, summary: str, expertise: str) -> None:
    page.goto("/catalog/personas/add/")
    page.fill("[name=pseudonym]", name)
    page.fill("[name=summary]", summary)
    page.fill("[name=feature_expertise]", expertise)
    page.click("text=Add the persona")
    page.wait_for_selector(f"text={name}")


def compose(page: Page) -> None:
    page.goto("/rounds/compose/")
    page.fill("[name=name]", "First tasting")
    for box in page.query_selector_all("[name=contestants], [name=raters]"):
        box.check()
    page.fill("[name=planned_votes]", "12")
    page.fill("[name=minimum_strata]", "2")
    page.click("text=Save the draft")
    page.wait_for_selector("text=Screen the answers")


def vote_with_keys(page: Page) -> int:
    """Vote until nothing is left, touching nothing but the keyboard."""
    given = 0
    page.goto("/vote/")
    while page.query_selector("[data-vote]"):
        token = page.get_attribute("[data-vote]", "data-token")
        page.keyboard.press("v")
        page.keyboard.press("ArrowLeft")
        page.keyboard.press("ArrowDown")
        page.keyboard.press("Enter")
        page.wait_for_function(
            "t => (document.querySelector('#vote').dataset.token || '') !== t", arg=token
        )
        given += 1
    return given


def test_from_two_files_to_a_verified_leaderboard(
    new_context: ContextMaker, tmp_path: Path, live_server: Any
) -> None:
    for name, role in (("ada", Role.ADMIN), ("ben", Role.ADMIN), ("rita", Role.RATER)):
        make_user(name, role)
    ada = log_in_by_form(new_context(), "ada")
    for model in ("birch", "maple"):
        upload(ada, report(model, tmp_path))
    assert Answer.objects.count() == 2 * 2 * 4 * 2
    add_persona(ada, "novice-1", "Beginner, wants steps and an example.", "novice")
    add_persona(ada, "expert-1", "Expert, wants the conclusion and the pitfalls.", "expert")
    compose(ada)
    ada.click("text=Screen the answers")
    ada.click("text=Seal and open the round")
    ada.wait_for_selector("text=Commitment")
    commitment = Round.objects.get().commitment
    assert commitment in ada.content()

    rita = log_in_by_form(new_context(), "rita")
    assert vote_with_keys(rita) == 12
    # Which axis is asked first is fixed per rater by the secret seed.
    given = {tuple(sorted(pair)) for pair in Vote.objects.values_list("quality", "personalization")}
    assert given == {("left", "tie")}
    rita.goto("/vote/receipts/")
    with rita.expect_download() as download:
        rita.click("text=Download all as a file")
    receipts = tmp_path / "receipts.json"
    download.value.save_as(receipts)

    page = f"/rounds/{Round.objects.get().pk}/"
    ada.goto(page)
    ada.fill("#close-reason", "All planned votes are in.")
    ada.click("button:has-text('Close the round now')")
    ben = log_in_by_form(new_context(), "ben")
    for person in (ada, ben):
        person.goto(page)
        person.fill("#approve-reason", "Closed and rated.")
        person.click("button:has-text('Agree to unseal')")
        person.wait_for_load_state()
    ben.click("text=See the leaderboard")
    board = ben.inner_text("main")
    for name in ("birch", "maple"):
        assert name in board
    verify(ben, tmp_path, commitment, receipts)


def verify(page: Page, folder: Path, commitment: str, receipts: Path) -> None:
    """Download bundle and script, and run the script as a stranger would."""
    page.goto(f"/leaderboard/{Round.objects.get().pk}/verify/")
    for link, name in (("bundle.zip", "bundle.zip"), ("verify_bundle.py", "verify_bundle.py")):
        with page.expect_download() as download:
            page.click(f"a[href$='{link}']")
        download.value.save_as(folder / name)
    command = [
        sys.executable, "-I", str(folder / "verify_bundle.py"), str(folder / "bundle.zip"),
        "--commitment", commitment, "--receipt-file", str(receipts),
    ]  # fmt: skip
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stdout + result.stderr
    assert "FAIL" not in result.stdout

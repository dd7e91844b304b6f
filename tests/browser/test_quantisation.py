"""What a quantisation left, what an adapter gained, before, middle and after, on both widths."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import BrowserContext, Page

from annotation.services import review_appeals
from tests.annotation.test_review import ordinary_appeal
from tests.browser.conftest import log_in
from tests.browser.test_datasets import check
from tests.training.factories import admin
from tests.training.gate_factories import gate, made, policy
from tests.training.test_edge_sources import answered
from tests.training.test_gates import better, plain, worse
from tests.training.test_gates_along import decided, trained
from tests.training.test_quantize import quantisation
from training.enums import Role
from training.services.edges import add_case
from training.services.gates import start_gate

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]


@pytest.fixture(autouse=True)
def storage(settings: Any, tmp_path: Path) -> None:
    settings.MEDIA_ROOT = tmp_path / "media"
    settings.PALATE_RUNS = tmp_path / "runs"


def look(page: Page, name: str) -> None:
    """Checked at both widths; pictures for whoever asks for them: PALATE_PICTURES=folder."""
    check(page)
    if folder := os.environ.get("PALATE_PICTURES"):
        page.emulate_media(color_scheme="light")
        for width in (1280, 390):
            page.set_viewport_size({"width": width, "height": 900})
            page.screenshot(path=f"{folder}/{name}-{width}.png", full_page=True)


def test_the_pages_of_quantisation_and_of_gates_along_a_run(
    new_context: Callable[..., BrowserContext], tmp_path: Path
) -> None:
    spec = gate(tmp_path)
    for n in range(6):
        add_case(actor=admin(), prompt=f"What failed {n}?")
    run = trained(spec, config={"grpo": {"steps": 140}})
    page = log_in(new_context(), admin().username)
    page.goto(f"/training/runs/{run.pk}/")
    page.get_by_label("Send base, middle and end through").select_option(label=spec.name)
    page.get_by_role("button", name="Start measuring").click()
    page.get_by_text("Base, middle and end are being measured.").wait_for()
    decided(list(reversed(run.gates.all())), worse, better)
    decided([g for g in spec.runs.all() if g.candidate_id == spec.baseline_id], plain)
    page.goto(f"/training/runs/{run.pk}/")
    page.get_by_text("(the baseline itself)").wait_for()
    look(page, "course")
    page.goto(f"/training/gates/{spec.pk}/")
    look(page, "gate-courses")

    few = quantisation("two bits", policy("grpo-7", spec.baseline, {}), 2, 0.15)
    page.goto(f"/training/runs/{few.pk}/")
    page.get_by_text("it lost the persona").wait_for()
    look(page, "quantised")
    told = {"before": 0.14, "after": 0.06, "difference": -0.08, "low": -0.09, "high": -0.07, "n": 9}
    facts = {"adaptation": {"gain": False, "sensitivity": told, "reward": told,
                            "base": {"unchanged": True}}}  # fmt: skip
    adapted = made("adapted", "grpo", {Role.BASE: few}, manifest={"facts": facts, "files": {}})
    page.goto(f"/training/runs/{adapted.pk}/")
    page.get_by_text("No gain is shown").wait_for()
    look(page, "adapted")
    sent = start_gate(actor=admin(), spec=spec, candidate=few)
    page.goto(f"/training/gates/runs/{sent.pk}/")
    page.get_by_text("15 % of the sensitivity").wait_for()


def test_complaints_and_answers_become_edge_cases(
    new_context: Callable[..., BrowserContext], tmp_path: Path
) -> None:
    run, _row, _offset = answered(tmp_path)
    desk, row = ordinary_appeal()
    review_appeals.uphold_appeal(actor=desk.manager, appeal=row, answer="You are right.")
    page = log_in(new_context(), admin().username)
    page.goto(f"/training/runs/{run.pk}/samples/")
    look(page, "answers")
    page.get_by_role("button", name="Keep as an edge case").first.click()
    page.get_by_text("Every gate asks about it from now on.").wait_for()
    page.goto("/training/edges/")
    look(page, "edges")
    page.get_by_role("button", name="Keep as an edge case").click()
    page.get_by_text("Every gate asks about it from now on.").wait_for()
    assert page.get_by_text("Complaints of annotators").count() == 0

"""An administrator sends a model through a gate, reads its successes and promotes it."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import BrowserContext, Page

from tests.browser.conftest import log_in
from tests.browser.test_datasets import check
from tests.training.factories import admin
from tests.training.gate_factories import gate, measured, plant, policy
from tests.training.test_gates import better, plain, worse
from training.models import GateRun, Promotion
from training.services.verdicts import decide_ready

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]


@pytest.fixture(autouse=True)
def storage(settings: Any, tmp_path: Path) -> None:
    settings.MEDIA_ROOT = tmp_path / "media"
    settings.PALATE_RUNS = tmp_path / "runs"


def show(page: Page, name: str) -> None:
    """A picture for whoever asks for one: PALATE_PICTURES=folder."""
    folder = os.environ.get("PALATE_PICTURES")
    if folder:
        page.set_viewport_size({"width": 1280, "height": 900})
        page.emulate_media(color_scheme="light")
        page.screenshot(path=f"{folder}/{name}.png", full_page=True)


def test_from_gate_to_contestant(
    new_context: Callable[..., BrowserContext], tmp_path: Path
) -> None:
    spec = gate(tmp_path, to_audit=2)
    measured(spec, policy("hasty", spec.baseline, {}), worse, plain)
    policy("grpo-7", spec.baseline, {})
    page = log_in(new_context(), admin().username)
    page.goto("/training/gates/")
    check(page)
    show(page, "gates")
    page.get_by_role("link", name="New gate").click()
    check(page)
    show(page, "gate-new")
    page.get_by_role("link", name="Cancel").click()
    page.get_by_role("link", name="Gate", exact=True).first.click()
    check(page)
    show(page, "gate")
    page.get_by_label("Candidate").select_option("grpo-7")
    page.get_by_role("button", name="Start measuring").dblclick()
    page.get_by_role("heading", name="Measuring", exact=True).wait_for()
    run = GateRun.objects.get(candidate__name="grpo-7")
    plant(run.candidate_evaluation, spec, better)
    plant(run.baseline_evaluation, spec, plain)
    decide_ready()
    page.get_by_text("As numbers").first.wait_for()
    check(page)
    show(page, "gate-run")
    page.get_by_role("link", name="Read them").click()
    check(page)
    show(page, "gate-audit")
    for _answer in range(2):
        page.locator("section.card", has_not=page.locator(".badge")).get_by_role(
            "button", name="Genuine"
        ).first.click()
    page.get_by_text("2 of 2 read").wait_for()
    page.get_by_role("link", name="grpo-7").click()
    page.get_by_label("Version").first.fill("week 48")
    page.get_by_role("button", name="Promote", exact=True).click()
    page.get_by_role("heading", name="Promoted", exact=True).wait_for()
    assert Promotion.objects.get().version == "week 48"
    page.get_by_role("link", name="Edge cases").click()
    check(page)
    show(page, "edges")

"""An administrator reads the evidence about a trained contestant, on a wide and a narrow screen."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import BrowserContext, Page

from tests.browser.conftest import axe_violations, log_in, overflows
from tests.training.evidence_factories import evidence_round, predicted, trained_world, winner
from training.services import watching

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]


@pytest.fixture(autouse=True)
def storage(settings: Any, tmp_path: Path) -> None:
    settings.MEDIA_ROOT = tmp_path / "media"
    settings.PALATE_RUNS = tmp_path / "runs"


def look(page: Page, name: str) -> None:
    """Both widths; a picture for whoever asks for one: PALATE_PICTURES=folder."""
    folder = os.environ.get("PALATE_PICTURES")
    for width in (390, 1280):
        page.set_viewport_size({"width": width, "height": 900})
        page.emulate_media(color_scheme="light")
        assert not overflows(page), width
        assert axe_violations(page) == []
        if folder:
            page.screenshot(path=f"{folder}/{name}-{width}.png", full_page=True)


def test_evidence_is_read_and_asked_for(
    new_context: Callable[..., BrowserContext], monkeypatch: pytest.MonkeyPatch
) -> None:
    facts = {"packages": ["torch", "transformers", "trl", "accelerate", "datasets"], "gpus": 0}
    monkeypatch.setattr(watching, "machine_facts", lambda: dict(facts))
    world = trained_world(personas=8, prompts=5, raters=8)
    policy = world.contestants[1]
    prefer = [winner(policy), winner(policy), winner(world.contestants[0])]
    round_ = evidence_round(world, choose=lambda row: prefer[row.slot.context_id % 3](row))
    page = log_in(new_context(), world.admin.username)
    page.goto(f"/training/evidence/{policy.pk}/")
    page.get_by_role("button", name="Ask the reward models").click()
    page.get_by_text("The predictions are being made").wait_for()

    def say(text: str) -> float:
        return 0.5 + 0.4 * ((sum(map(ord, text)) % 17) / 17 - (0.1 if text[0] != "P" else -0.3))

    predicted(world, round_, say)
    page.goto(f"/training/evidence/{policy.pk}/")
    page.get_by_text("What the reward models predicted for these battles").first.wait_for()
    look(page, "evidence")
    page.goto("/training/evidence/")
    look(page, "evidences")
    page.goto("/leaderboard/")
    page.get_by_text("Trained here").wait_for()
    for summary in page.locator("details.card summary").all():
        summary.click()
    look(page, "lineage")

"""An administrator makes a dataset in a real browser: filter, count, draft, freeze, files."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from django.urls import reverse
from playwright.sync_api import BrowserContext, Page

from tests.browser.conftest import axe_violations, log_in, overflows
from tests.training.factories import admin, draft, freeze, make_pairs
from tests.training.test_datasets_records import bring_in, trace
from training.models import Dataset

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]


@pytest.fixture(autouse=True)
def media(settings: Any, tmp_path: Path) -> None:
    settings.MEDIA_ROOT = tmp_path / "media"


def check(page: Page) -> None:
    """The page fits a phone and passes axe in both themes."""
    for theme in ("light", "dark"):
        page.emulate_media(color_scheme=theme)
        for width in (360, 1440):
            page.set_viewport_size({"width": width, "height": 900})
            assert not overflows(page)
        assert axe_violations(page) == []


def test_from_filter_to_files(new_context: Callable[..., BrowserContext]) -> None:
    make_pairs(people=6, prompts=6)
    bring_in("tool_traces", trace())
    page = log_in(new_context(accept_downloads=True), admin().username)
    page.goto("/")
    page.get_by_role("link", name="Datasets").click()
    check(page)
    page.get_by_role("link", name="New dataset").first.click()
    page.get_by_label("Name").fill("Pairs of week 48")
    page.get_by_label("Training, %").fill("70")
    page.get_by_label("Gate of policies, %").fill("30")
    page.get_by_role("button", name="Count first").click()
    page.get_by_text("rows, from 6 prompts and 6 personas").wait_for()
    check(page)
    page.get_by_role("button", name="Save the draft").click()
    page.get_by_role("button", name="Freeze the dataset").click()
    page.get_by_text("Rows by stratum and split").wait_for()
    dataset = Dataset.objects.get()
    assert dataset.state == "frozen"
    assert page.get_by_text(dataset.content_sha256).is_visible()
    check(page)
    with page.expect_download() as caught:
        page.get_by_role("link", name="train.jsonl").click()
    lines = caught.value.path().read_text().splitlines()
    assert len(lines) == dataset.items.filter(split="train").count()
    refused = freeze(draft(minimum=100))
    page.goto(reverse("training:dataset", args=[refused.pk]))
    assert page.get_by_role("alert").get_by_text("No row fits the filter.").is_visible()
    page.goto(reverse("training:records"))
    check(page)

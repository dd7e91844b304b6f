"""An administrator follows a chain, lets it go on, and makes one."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import BrowserContext

from tests.browser.conftest import log_in
from tests.browser.test_datasets import check
from tests.browser.test_gates import show
from tests.training import chain_factories as made
from tests.training.chain_factories import chain, to_the_end
from tests.training.factories import admin
from training.models import ChainRun
from training.services.chains import advance_chain, start_chain

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]


@pytest.fixture(autouse=True)
def storage(settings: Any, tmp_path: Path) -> None:
    settings.MEDIA_ROOT = tmp_path / "media"
    settings.PALATE_RUNS = tmp_path / "runs"


def test_a_chain_is_followed_and_let_go_on(
    new_context: Callable[..., BrowserContext], tmp_path: Path
) -> None:
    found = chain(tmp_path, {**made.ON, "gate": "ask"}, hour=3)
    run = start_chain(actor=admin(), chain=found)
    page = log_in(new_context(), admin().username)
    page.goto("/training/chains/")
    check(page)
    show(page, "chains")
    for _turn in range(6):
        made.freeze_waiting()
        made.end_queued()
        advance_chain(pk=run.pk)
    page.get_by_role("link", name="Nightly", exact=True).click()
    page.get_by_text("waits for an administrator").first.wait_for()
    check(page)
    page.get_by_role("button", name="Go on: gate").click()
    page.get_by_text("mara let it go on").wait_for()
    for _turn in range(3):
        advance_chain(pk=run.pk)
        made.end_queued()
    page.reload()
    page.get_by_role("link", name="Read the successes").wait_for()
    check(page)
    show(page, "chain")
    to_the_end(ChainRun.objects.get())
    page.reload()
    page.get_by_text("All stages are done").first.wait_for()
    page.get_by_label("Contestant → draft of a round").select_option("off")
    page.get_by_role("button", name="Save the arrows").click()
    page.wait_for_load_state()
    found.refresh_from_db()
    assert found.arrows["round"] == "off"
    page.get_by_role("link", name="Change").click()
    check(page)
    show(page, "chain-form")

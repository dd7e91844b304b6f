"""The manager's pages in a browser: access, phone, and counts that move by themselves."""

from __future__ import annotations

import os
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.db.models import F
from playwright.sync_api import BrowserContext

from annotation.models import Lease
from annotation.services import leases, statistics
from tests.annotation.factories import Desk, label_all, make_desk
from tests.browser.conftest import axe_violations, log_in, overflows

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]
ContextMaker = Callable[..., BrowserContext]
PAGES = ("", "?overlap=3", "agreement/", "annotators/")
SETTINGS = {
    "base_overlap": 2,
    "max_overlap": 3,
    "stratum_features": ["expertise", "language"],
    "targets": {"expertise=expert, language=en": 15},
    "price_cents": 12,
}


def choose(lease: Lease) -> str:
    assert lease.member.user is not None
    if lease.member.user.username == "ann-1":
        return "first" if lease.first_left else "second"
    return ("first", "first", "second", "tie", "both_bad")[lease.item_id % 5]


@pytest.fixture
def desk(live_server: Any) -> Desk:
    """Forty items, most of them labelled over the last days; one annotator looks left only."""
    desk = make_desk(people=4, n_items=40, settings=SETTINGS)
    label_all(desk, choose, limit=75)
    for number, lease in enumerate(Lease.objects.filter(state="submitted").order_by("pk")):
        back = timedelta(days=7 - number // 11, hours=1)
        Lease.objects.filter(pk=lease.pk).update(submitted_at=F("submitted_at") - back)
    statistics.compute_statistics(pk=desk.project.pk)
    return desk


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [360, 1440])
def test_pages_are_accessible_and_fit_the_screen(
    scheme: Any, width: int, desk: Desk, new_context: ContextMaker
) -> None:
    context = new_context(color_scheme=scheme, viewport={"width": width, "height": 900})
    page = log_in(context, "mara")
    for path in PAGES:
        page.goto(f"/annotation/{desk.project.pk}/{path}")
        if folder := os.environ.get("PALATE_SHOTS"):
            name = f"{scheme}-{width}-{path.strip('/?') or 'project'}.png"
            page.screenshot(path=str(Path(folder) / name), full_page=True)
        assert not axe_violations(page)
        assert not overflows(page)


def test_counts_move_by_themselves(desk: Desk, new_context: ContextMaker) -> None:
    page = log_in(new_context(), "mara")
    page.clock.install()
    page.goto(f"/annotation/{desk.project.pk}/")
    assert "nobody" in page.inner_text("#counts")
    assert leases.serve(user=desk.people[1], project=desk.project).lease is not None
    page.clock.run_for(11_000)
    page.wait_for_function("() => document.querySelector('#counts').innerText.includes('ann-2')")

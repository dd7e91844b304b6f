"""Managers' and adjudicators' pages in a real browser: accessible, narrow, and by keyboard."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from django.urls import reverse
from playwright.sync_api import BrowserContext

from annotation.enums import ItemState
from annotation.models import Lease
from annotation.services.gold import make_gold
from tests.annotation.review import adjudicator, appeal, disputed_desk, report
from tests.browser.conftest import axe_violations, log_in, overflows

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]


def test_pages_are_accessible_and_fit_a_phone(
    new_context: Callable[..., BrowserContext], live_server: Any
) -> None:
    desk = disputed_desk(n_items=4, settings={"stratum_features": ["expertise"]})
    item = desk.items()[0]
    make_gold(actor=desk.manager, item=desk.items()[3], verdicts={"quality": "tie"})
    contested = appeal(Lease.objects.filter(item=item)[0])
    report(desk, item, desk.people[0])
    pk = desk.project.pk
    names = ["settings", "guideline_versions", "members", "items", "add_pairs", "gold"]
    names += ["disputes", "appeals", "problems"]
    addresses = [reverse("annotation:projects"), reverse("annotation:create")]
    addresses += [reverse(f"annotation:{name}", args=[pk]) for name in names]
    addresses += [
        reverse("annotation:item", args=[pk, item.pk]),
        reverse("annotation:appeal", args=[pk, contested.pk]),
    ]
    page = log_in(new_context(), "mara")
    phone = log_in(new_context(viewport={"width": 360, "height": 740}), "mara")
    for address in addresses:
        page.goto(address)
        assert not axe_violations(page)
        phone.goto(address)
        assert not overflows(phone), address


def test_a_dispute_is_decided_by_keyboard(
    new_context: Callable[..., BrowserContext], live_server: Any
) -> None:
    desk = disputed_desk(n_items=1)
    adjudicator(desk)
    page = log_in(new_context(viewport={"width": 1440, "height": 900}), "judith")
    page.goto(reverse("annotation:disputes", args=[desk.project.pk]))
    page.get_by_role("button", name="Decide the next one").click()
    page.wait_for_selector("#vote")
    assert not axe_violations(page)
    page.keyboard.press("v")
    for key in ("ArrowLeft", "ArrowDown", "Enter"):
        page.keyboard.press(key)
    page.wait_for_selector(".revealed")
    assert page.locator("input[name=quality]:checked").get_attribute("value") == "left"
    assert not axe_violations(page)
    page.keyboard.press("Enter")
    page.wait_for_selector("text=Say why the labels differ.")
    page.check("input[name=reason][value=ambiguous]", force=True)
    page.locator("[data-submit]").click()
    page.wait_for_url(lambda url: "/disputes/" in url)
    item = desk.items()[0]
    assert item.state == ItemState.DONE
    assert item.quality_decision is not None
    assert item.quality_decision.source == "adjudicated"

"""The webhook pages in a real browser: wide and narrow, light and dark, readable by machines."""

from __future__ import annotations

import os
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.urls import reverse
from django.utils import timezone
from playwright.sync_api import BrowserContext

from annotation.models import Delivery, Webhook
from annotation.services import webhooks
from tests.annotation.factories import label_once, make_desk
from tests.browser.conftest import axe_violations, log_in, overflows
from tests.conftest import PASSWORD
from webapp.core import outbound_addresses

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]
SHOTS = os.environ.get("PALATE_SHOTS")  # a folder for screenshots


@pytest.mark.parametrize("width", [1440, 360])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_webhooks_in_a_browser(
    new_context: Callable[..., BrowserContext], width: int, scheme: Any, monkeypatch: Any
) -> None:
    monkeypatch.setattr(outbound_addresses, "resolve", lambda _host: [])
    desk = make_desk(people=2, n_items=4)
    long = "https://hooks.example.org/services/annotation/" + "a1b2c3d4" * 6
    hook = webhooks.create_webhook(
        actor=desk.manager, project=desk.project, url=long, events=["label.submitted"]
    )
    for _n in range(2):
        label_once(desk, desk.people[0])
    states = ({"state": "delivered", "last_status": 204, "attempts": 1},
              {"state": "failed", "last_error": "address_refused", "attempts": 1})  # fmt: skip
    for row, values in zip(Delivery.objects.order_by("pk"), states, strict=True):
        Delivery.objects.filter(pk=row.pk).update(**values)
    Webhook.objects.update(failures=3, failing_since=timezone.now() - timedelta(hours=2))

    page = log_in(
        new_context(viewport={"width": width, "height": 900}, color_scheme=scheme), "mara"
    )
    here = reverse("annotation:webhooks", args=[desk.project.pk])
    for address, name in ((here, "list"), (f"{here}{hook.public_id}/", "one")):
        page.goto(address)
        shoot(page, f"{name}-{width}-{scheme}")
        assert axe_violations(page) == []
        assert not overflows(page)
    page.fill("input[name=password]", PASSWORD)
    page.click("button[value=show]")
    assert webhooks.secret_of(hook) in page.inner_text("main")
    shoot(page, f"secret-{width}-{scheme}")
    assert not overflows(page)
    page.goto(here)
    page.fill("input[name=url]", "http://127.0.0.1/")
    page.check("input[value='item.settled']")
    page.click("main form button.primary")
    assert "private, local or reserved" in page.inner_text("main")
    shoot(page, f"refused-{width}-{scheme}")


def shoot(page: Any, name: str) -> None:
    if SHOTS:
        page.screenshot(path=str(Path(SHOTS) / f"{name}.png"), full_page=True)

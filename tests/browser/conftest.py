"""A real Chromium for the tests marked `browser`."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from django.conf import settings
from django.test import Client
from playwright.sync_api import Browser, BrowserContext, Page, sync_playwright

from tests.conftest import PASSWORD
from webapp.accounts.models import User

HOST = "localhost"  # of pytest-django's live server
BACKEND = "django.contrib.auth.backends.ModelBackend"
CANDIDATES = ("chromium", "chromium-browser", "google-chrome")
ARGUMENTS = [
    "--no-sandbox",
    "--disable-gpu",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]


def find_chromium() -> str | None:
    named = os.environ.get("PALATE_CHROMIUM")
    return named or next((path for name in CANDIDATES if (path := shutil.which(name))), None)


@pytest.fixture(scope="session")
def chromium() -> Iterator[Browser]:
    path = find_chromium()
    if path is None:
        pytest.skip("no Chromium found; set PALATE_CHROMIUM")
    # Playwright's synchronous interface runs an event loop in this thread; the ORM is safe in it.
    os.environ["DJANGO_ALLOW_ASYNC_UNSAFE"] = "true"
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=ARGUMENTS)
        yield browser
        browser.close()


@pytest.fixture
def new_context(chromium: Browser, live_server: Any) -> Iterator[Callable[..., BrowserContext]]:
    """A fresh browser session on the live server; fails on page errors and console errors."""
    contexts: list[BrowserContext] = []
    problems: list[str] = []

    def make(**options: Any) -> BrowserContext:
        # Without transitions: what is looked at in the middle of one has colours of neither theme.
        options = {"reduced_motion": "reduce", **options}
        context = chromium.new_context(base_url=live_server.url, **options)
        context.set_default_timeout(60_000)
        context.on("weberror", lambda error: problems.append(str(error.error)))
        contexts.append(context)
        return context

    yield make
    for context in contexts:
        context.close()
    assert not problems


def log_in(context: BrowserContext, name: str) -> Page:
    """An empty page of somebody who has logged in, without the form."""
    client = Client()
    client.force_login(User.objects.get(username=name), backend=BACKEND)
    session = client.cookies[settings.SESSION_COOKIE_NAME].value
    context.add_cookies(
        [{"name": settings.SESSION_COOKIE_NAME, "value": session, "domain": HOST, "path": "/"}]
    )
    return context.new_page()


def log_in_by_form(context: BrowserContext, name: str) -> Page:
    page = context.new_page()
    page.goto("/accounts/login/")
    page.fill("input[name=username]", name)
    page.fill("input[name=password]", PASSWORD)
    page.click("main button")
    page.wait_for_url(lambda url: "login" not in url)
    return page


def axe_violations(page: Page) -> list[str]:
    """Violations of WCAG 2.2 AA that axe finds on the page as it is."""
    from axe_playwright_python.sync_playwright import Axe

    page.wait_for_load_state()
    results = Axe().run(page, options={"runOnly": ["wcag2a", "wcag2aa", "wcag21aa", "wcag22aa"]})
    return [
        f"{page.url} {violation['id']}: {violation['nodes'][0]['html'][:120]}"
        for violation in results.response["violations"]
    ]


def overflows(page: Page) -> bool:
    """Whether the page scrolls sideways."""
    page.wait_for_load_state()
    width = "document.documentElement.scrollWidth > document.documentElement.clientWidth + 1"
    return bool(page.evaluate(width))

"""Imports of pairs in a real browser: hostile texts, phones, both themes, no script needed.

The jobs run in the request here, so that every page is the finished one.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal

import pytest
from playwright.sync_api import BrowserContext, Page

from annotation.models import Item, Label
from tests.annotation.pairs import label, lines, make_project, row
from tests.browser.conftest import axe_violations, log_in, overflows
from webapp.accounts.models import User

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]
XSS = '"><img src=x onerror="document.title=1"><script>document.title=2</script>'
THEMES: tuple[Literal["light"], Literal["dark"]] = ("light", "dark")
SHOTS = os.environ.get("PALATE_SHOTS", "")


@pytest.fixture(autouse=True)
def media(settings: Any, tmp_path: Path) -> None:
    settings.MEDIA_ROOT = tmp_path / "media"


def looked_at(page: Page, name: str) -> None:
    """The page fits a phone, passes axe in both themes, and no text of a file became code."""
    title = page.title()
    for width in (1440, 360):
        page.set_viewport_size({"width": width, "height": 900})
        for theme in THEMES:
            page.emulate_media(color_scheme=theme)
            assert not overflows(page), (name, width)
            if SHOTS:
                page.screenshot(path=f"{SHOTS}/{name}-{width}-{theme}.png", full_page=True)
            if width == 1440:
                assert axe_violations(page) == []
    page.set_viewport_size({"width": 1440, "height": 900})
    assert page.locator("main img").count() == 0
    assert title not in ("1", "2")


def send(page: Page, address: str, name: str, body: bytes) -> None:
    page.goto(address)
    sent: Any = {"name": name, "mimeType": "text/plain", "buffer": body}
    page.set_input_files("input[type=file]", files=sent)
    page.get_by_role("button", name="Upload and check").click()
    page.wait_for_url("**/import/*/")


def test_a_manager_imports_a_file_and_a_table(
    new_context: Callable[..., BrowserContext], alice: User
) -> None:
    project = make_project()
    page = log_in(new_context(), "alice")
    address = f"/annotation/{project.pk}/import/"
    page.goto(address)
    looked_at(page, "upload")
    rows = [
        row(
            n, first={"text": f"{XSS} {n}", "producer": XSS}, labels=[label(XSS), label("b", "tie")]
        )
        for n in range(12)
    ]
    bad = [row(20, **{XSS: 1}), row(21, labels=[label(verdict=XSS)]), "{"]
    send(page, address, f"{XSS.replace('/', '_')}.jsonl", lines(*rows, row(30, first=""), *bad))
    page.get_by_text("Checked; nothing is imported yet.").wait_for()
    looked_at(page, "check")
    page.get_by_role("button", name="Import this file").click()
    page.get_by_text("Pairs added").wait_for()
    looked_at(page, "result")
    assert (Item.objects.count(), Label.objects.count()) == (13, 24)

    table = f"question,one,two,{XSS.replace(',', '').replace(chr(34), '')}\nQ1,a,b,c\n".encode()
    send(page, address, "table.csv", table)
    page.get_by_text("Nobody knows these columns.").wait_for()
    looked_at(page, "columns")
    page.get_by_label("Format").select_option("columns")
    page.get_by_label("one", exact=True).select_option("first")
    page.get_by_label("two", exact=True).select_option("second")
    page.get_by_role("button", name="Check again").click()
    page.get_by_role("button", name="Import this file").wait_for()


def test_the_way_of_a_file_needs_no_script(
    new_context: Callable[..., BrowserContext], alice: User
) -> None:
    project = make_project()
    page = log_in(new_context(java_script_enabled=False), "alice")
    send(page, f"/annotation/{project.pk}/import/", "rows.jsonl", lines(row(1)))
    page.get_by_role("button", name="Import this file").click()
    page.get_by_text("Pairs added").wait_for()
    assert Item.objects.count() == 1

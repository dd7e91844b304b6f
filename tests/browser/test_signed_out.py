"""A login ends while a form is filled in: nothing typed is lost, and the page says what to do."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from knox.models import AuthToken
from playwright.sync_api import BrowserContext, Page

from tests.browser.conftest import axe_violations, log_in, overflows
from tests.conftest import PASSWORD
from tests.training.factories import admin

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]
NAME = "令牌 of the nightly job"


def sign_in(page: Page) -> None:
    page.get_by_label("Username").fill(admin().username)
    page.get_by_label("Password").fill(PASSWORD)
    page.get_by_role("button", name="Sign in").click()


def fits(page: Page) -> None:
    for width in (360, 1440):
        page.set_viewport_size({"width": width, "height": 900})
        assert not overflows(page)
    assert axe_violations(page) == []


@pytest.mark.parametrize("scripts", [True, False])
def test_a_form_is_sent_after_the_login(
    new_context: Callable[..., BrowserContext], scripts: bool
) -> None:
    context = new_context(java_script_enabled=scripts)
    page = log_in(context, admin().username)
    page.goto("/accounts/tokens/")
    page.get_by_label("What is it for?").fill(NAME)
    context.clear_cookies(name="sessionid")
    page.get_by_role("button", name="Make the token").click()
    page.get_by_text("It is kept in this page").wait_for()
    if scripts:
        fits(page)
    sign_in(page)
    page.get_by_role("heading", name="Send it now?").wait_for()
    page.get_by_text("What will be sent").click()
    assert page.get_by_text(NAME).is_visible()
    if scripts:
        fits(page)
    page.get_by_role("button", name="Send it").click()
    page.get_by_text("Copy it now").first.wait_for()
    assert AuthToken.objects.count() == 1


def test_a_login_in_another_tab_makes_this_one_older_but_not_useless(
    new_context: Callable[..., BrowserContext],
) -> None:
    context = new_context()
    page = log_in(context, admin().username)
    page.goto("/accounts/tokens/")
    page.get_by_label("What is it for?").fill(NAME)
    context.clear_cookies(name="sessionid")
    other = context.new_page()
    other.goto("/accounts/login/")
    sign_in(other)
    other.wait_for_url(lambda url: "login" not in url)
    page.get_by_role("button", name="Make the token").click()
    page.get_by_role("button", name="Send it").click()
    page.get_by_text("Copy it now").first.wait_for()
    assert AuthToken.objects.count() == 1


def test_a_page_that_asks_the_server_says_that_the_login_has_ended(
    new_context: Callable[..., BrowserContext],
) -> None:
    context = new_context()
    page = log_in(context, admin().username)
    page.goto("/rounds/compose/")
    page.wait_for_load_state("networkidle")
    context.clear_cookies(name="sessionid")
    page.locator("main form input[type=text]").first.fill("Week 48")
    page.keyboard.press("Tab")
    page.get_by_text("You have been signed out.").wait_for()
    assert page.locator("main input[type=password]").count() == 0
    with context.expect_page() as opened:
        page.get_by_role("link", name="Sign in in a new tab").click()
    sign_in(opened.value)
    opened.value.wait_for_url("**/rounds/compose/")
    assert page.locator("main form input[type=text]").first.input_value() == "Week 48"
    page.locator("main form input[type=text]").first.fill("Week 49")
    page.keyboard.press("Tab")
    page.get_by_text("You have been signed out.").wait_for(state="detached")


def test_a_script_takes_the_token_of_the_login_in_another_tab(
    new_context: Callable[..., BrowserContext],
) -> None:
    context = new_context()
    page = log_in(context, admin().username)
    page.goto("/training/runs/new/?kind=sft&preset=tiny")
    page.wait_for_load_state("networkidle")
    context.clear_cookies(name="sessionid")
    other = context.new_page()
    other.goto("/accounts/login/")
    sign_in(other)
    other.wait_for_url(lambda url: "login" not in url)
    with page.expect_response(lambda sent: sent.request.method == "POST") as answer:
        page.get_by_label("Name").fill("Week 48")
        page.keyboard.press("Tab")
    assert answer.value.status == 200

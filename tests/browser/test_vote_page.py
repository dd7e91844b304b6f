"""The voting page in a browser: weight, access, phone, keys, drafts, lost connections."""

from __future__ import annotations

import gzip
import time
from collections.abc import Callable
from typing import Any

import pytest
from playwright.sync_api import BrowserContext, Page, Route

from arena.models import Vote
from tests.arena.factories import (
    World,
    make_answer,
    make_prompt,
    make_world,
    open_round,
    unsealed_round,
)
from tests.browser.conftest import axe_violations, log_in, overflows

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]
ContextMaker = Callable[..., BrowserContext]


@pytest.fixture
def world(live_server: Any) -> World:
    world = make_world()
    open_round(world)
    return world


def at_vote(context: BrowserContext) -> Page:
    page = log_in(context, "rater0")
    page.goto("/vote/")
    return page


def token(page: Page) -> str:
    return page.get_attribute("[data-vote]", "data-token") or ""


def choose(page: Page) -> None:
    page.keyboard.press("v")
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowUp")


def wait_for_next(page: Page, before: str) -> None:
    page.wait_for_function(
        "t => (document.querySelector('#vote').dataset.token || '') !== t", arg=before
    )


def test_the_page_weighs_at_most_100_kilobytes(world: World, new_context: ContextMaker) -> None:
    sizes: list[int] = []
    context = new_context()
    page = log_in(context, "rater0")
    page.on("response", lambda response: sizes.append(len(gzip.compress(response.body()))))
    page.goto("/vote/")
    page.wait_for_load_state("networkidle")
    assert 5_000 < sum(sizes) <= 100_000


@pytest.mark.parametrize("width", [360, 1024, 1440])
@pytest.mark.parametrize("theme", ["light", "dark"])
def test_the_page_is_accessible_and_fits(
    world: World, new_context: ContextMaker, width: int, theme: str
) -> None:
    page = at_vote(new_context(viewport={"width": width, "height": 800}, color_scheme=theme))
    assert axe_violations(page) == []
    assert not overflows(page)


DOCUMENT_HEIGHT = "document.documentElement.scrollHeight"


def test_two_open_rounds_leave_submit_in_view(world: World, new_context: ContextMaker) -> None:
    for n in range(3):
        prompt = make_prompt(f"A later question {n}?")
        for model in world.contestants:
            for person in world.personas:
                text = f"{model} answers {person} on {n}."
                make_answer(model, prompt, person.versions.get(), text)
    open_round(world, name="Round two")
    page = at_vote(new_context(viewport={"width": 1280, "height": 800}))
    assert page.locator("nav.tabs a").count() == 2
    assert page.evaluate(DOCUMENT_HEIGHT) <= 800
    page.keyboard.press("Enter")
    assert page.locator(".verdict[data-invalid]").count() == 2
    assert page.evaluate(DOCUMENT_HEIGHT) <= 800
    box = page.locator("[data-submit]").bounding_box()
    assert box is not None
    assert box["y"] + box["height"] <= 800


def test_a_narrow_window_starts_at_the_top(world: World, new_context: ContextMaker) -> None:
    page = at_vote(new_context(viewport={"width": 600, "height": 500}))
    here = token(page)
    assert page.evaluate("scrollY") == 0
    assert page.locator(".verdict input:focus").count() == 0
    choose(page)
    page.keyboard.press("Enter")
    wait_for_next(page, here)
    assert page.evaluate("scrollY") == 0
    assert page.locator(".verdict input:focus").count() == 0


def test_the_reasons_to_skip_come_into_view(world: World, new_context: ContextMaker) -> None:
    page = at_vote(new_context(viewport={"width": 360, "height": 640}, has_touch=True))
    page.click("[data-skip] summary")
    button = page.locator("[data-skip-form] button")
    page.wait_for_function(
        "b => b.getBoundingClientRect().bottom <= innerHeight", arg=button.element_handle()
    )


def test_skip_by_keyboard_alone(world: World, new_context: ContextMaker) -> None:
    page = at_vote(new_context())
    here = token(page)
    page.keyboard.press("ArrowLeft")  # a verdict that must not be sent by what follows
    page.keyboard.press("s")
    assert page.evaluate("document.activeElement.closest('[data-skip-form]') !== null")
    page.keyboard.press("Space")
    page.keyboard.press("Enter")
    wait_for_next(page, here)
    assert page.inner_text("[data-status]") == "Skipped."
    assert not Vote.objects.exists()


def test_skip_says_that_it_was_done(world: World, new_context: ContextMaker) -> None:
    page = at_vote(new_context())
    here = token(page)
    page.keyboard.press("s")
    page.locator("[data-skip-form] input[type=radio]").first.check()
    page.click("[data-skip-form] button")
    wait_for_next(page, here)
    assert page.inner_text("[data-status]") == "Skipped."


def test_keys_do_nothing_while_typing(world: World, new_context: ContextMaker) -> None:
    page = at_vote(new_context())
    here = token(page)
    page.click("summary:has-text('Reasons')")
    page.click("[name=comment]")
    page.keyboard.type("usd? Sure, undo this v")
    page.keyboard.press("Enter")
    assert token(page) == here
    assert not Vote.objects.exists()
    assert page.input_value("[name=comment]").startswith("usd? Sure")


def test_a_missing_row_gets_the_focus_and_a_message(
    world: World, new_context: ContextMaker
) -> None:
    page = at_vote(new_context())
    page.keyboard.press("v")
    page.keyboard.press("ArrowLeft")
    page.keyboard.press("Enter")
    row = page.locator(".verdict[data-invalid]")
    assert row.count() == 1
    assert row.locator("input:focus").count() == 1
    assert not Vote.objects.exists()


def test_undo_brings_the_battle_back(world: World, new_context: ContextMaker) -> None:
    page = at_vote(new_context())
    first = token(page)
    choose(page)
    page.keyboard.press("Enter")
    wait_for_next(page, first)
    second = token(page)
    page.keyboard.press("u")
    wait_for_next(page, second)
    assert token(page) == first
    assert "taken back" in page.inner_text("[data-status]")


def test_a_lost_connection_loses_nothing(world: World, new_context: ContextMaker) -> None:
    page = at_vote(new_context())
    here = token(page)
    failures = 0

    def cut(route: Route) -> None:
        nonlocal failures
        if route.request.method == "POST" and failures < 2:
            failures += 1
            route.abort()
        else:
            route.continue_()

    page.route("**/vote/", cut)
    choose(page)
    page.keyboard.press("Enter")
    wait_for_next(page, here)
    assert failures == 2
    assert Vote.objects.count() == 1


def test_a_server_error_keeps_the_choice_and_advances_nothing(
    world: World, new_context: ContextMaker
) -> None:
    page = at_vote(new_context())
    here = token(page)
    page.route("**/vote/", lambda route: route.fulfill(status=500, body="oops"))
    choose(page)
    page.keyboard.press("Enter")
    page.wait_for_function("() => document.querySelector('[data-status]').textContent !== ''")
    assert token(page) == here
    page.unroute("**/vote/")
    page.reload()
    assert page.locator(".verdict input:checked").count() == 2


def test_an_expired_login_keeps_the_vote_for_after(world: World, new_context: ContextMaker) -> None:
    context = new_context()
    page = at_vote(context)
    choose(page)
    context.clear_cookies(name="sessionid")
    page.keyboard.press("Enter")
    page.wait_for_selector("[data-status] a")
    assert not Vote.objects.exists()
    page.click("[data-status] a")
    page.fill("input[name=username]", "rater0")
    page.fill("input[name=password]", "a-long-enough-passphrase")
    page.click("main button")
    page.wait_for_selector("[data-vote]")
    here = token(page)
    assert page.locator(".verdict input:checked").count() == 2
    page.keyboard.press("v")
    page.keyboard.press("Enter")
    wait_for_next(page, here)
    assert Vote.objects.count() == 1


def test_an_unsent_vote_waits_in_another_browser(world: World, new_context: ContextMaker) -> None:
    page = at_vote(new_context())
    with page.expect_response("**/vote/draft/") as kept:
        choose(page)
    assert kept.value.status == 204
    other = at_vote(new_context())
    assert token(other) == token(page)
    assert other.locator(".verdict input:checked").count() == 2


def test_a_double_click_is_one_vote(world: World, new_context: ContextMaker) -> None:
    page = at_vote(new_context())
    here = token(page)
    choose(page)
    page.dblclick("[data-submit]")
    wait_for_next(page, here)
    page.wait_for_load_state("networkidle")
    assert Vote.objects.count() == 1


def test_two_tabs_show_the_same_battle_and_both_may_send(
    world: World, new_context: ContextMaker
) -> None:
    context = new_context()
    one = at_vote(context)
    two = context.new_page()
    two.goto("/vote/")
    assert token(one) == token(two)
    here = token(one)
    for page in (one, two):
        page.bring_to_front()
        choose(page)
        page.keyboard.press("Enter")
        wait_for_next(page, here)
    assert Vote.objects.count() == 1
    assert token(one) == token(two)


def test_voting_works_without_javascript(world: World, new_context: ContextMaker) -> None:
    page = at_vote(new_context(java_script_enabled=False))
    page.check("#quality-left", force=True)
    page.check("#personalization-tie", force=True)
    page.click("[data-submit]")
    page.wait_for_selector("text=Receipt")
    assert Vote.objects.count() == 1


def test_the_difference_is_shown_on_demand(world: World, new_context: ContextMaker) -> None:
    page = at_vote(new_context())
    page.keyboard.press("d")
    page.wait_for_selector(".diff mark")
    page.keyboard.press("d")
    assert page.locator(".diff:visible").count() == 0


def test_hidden_time_is_not_active_time(world: World, new_context: ContextMaker) -> None:
    started = time.monotonic()
    page = at_vote(new_context())
    here = token(page)
    hide = """hidden => {
        Object.defineProperty(document, 'hidden', {get: () => hidden, configurable: true});
        document.dispatchEvent(new Event('visibilitychange'));
    }"""
    page.evaluate(hide, True)
    page.wait_for_timeout(3500)
    page.evaluate(hide, False)
    choose(page)
    page.keyboard.press("Enter")
    wait_for_next(page, here)
    took = (time.monotonic() - started) * 1000
    assert 0 < Vote.objects.get().active_ms < took - 3400


ADMIN_PAGES = [
    "/rounds/", "/rounds/compose/", "/rounds/1/", "/rounds/1/screening/", "/audit/", "/catalog/",
    "/catalog/personas/", "/catalog/personas/add/", "/catalog/prompts/", "/catalog/contestants/",
    "/catalog/imports/", "/catalog/imports/new/", "/accounts/invitations/", "/accounts/tokens/",
    "/leaderboard/", "/leaderboard/history/", "/leaderboard/methodology/",
    "/leaderboard/1/heatmap/", "/leaderboard/1/verify/",
]  # fmt: skip


@pytest.mark.parametrize("language", ["en", "zh-hans"])
@pytest.mark.parametrize("width", [360, 1440])
def test_every_page_is_accessible_and_fits(
    new_context: ContextMaker, live_server: Any, language: str, width: int
) -> None:
    world = make_world()
    round_ = unsealed_round(world)
    context = new_context(viewport={"width": width, "height": 900})
    context.add_cookies([{"name": "django_language", "value": language, "url": live_server.url}])
    page = log_in(context, "ada")
    problems = []
    for path in ADMIN_PAGES:
        page.goto(path.replace("/1/", f"/{round_.pk}/"))
        problems += axe_violations(page)
        if overflows(page):
            problems.append(f"{path} scrolls sideways")
    assert problems == []

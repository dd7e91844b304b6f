"""The labelling page in a browser: keys, drafts, lost connections, phones, and no JavaScript."""

from __future__ import annotations

import gzip
import time
from collections.abc import Callable
from typing import Any

import pytest
from playwright.sync_api import BrowserContext, Page, Route

from annotation.models import Label, Lease, Problem
from annotation.services.gold import make_gold
from annotation.services.projects import publish_guidelines
from annotation.services.reading import confirm_guidelines
from tests.annotation.factories import Desk, make_desk, working
from tests.browser.conftest import axe_violations, log_in, overflows
from tests.conftest import PASSWORD
from webapp.accounts.services import save_preferences
from webapp.catalog.models import Exposure

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]
ContextMaker = Callable[..., BrowserContext]
ONE = {"axes": ["quality"]}


def ready(**options: Any) -> Desk:
    """A desk whose annotators have read the guidelines and learnt what is to learn."""
    desk = make_desk(**options)
    working(desk)
    read(desk)
    return desk


def read(desk: Desk) -> None:
    newest = desk.project.guidelines.first()
    assert newest is not None
    for user in desk.people:
        confirm_guidelines(user=user, project=desk.project, guideline=newest.pk)


@pytest.fixture
def desk(live_server: Any) -> Desk:
    return ready(n_items=6)


def address(desk: Desk, name: str = "label") -> str:
    return f"/annotation/{desk.project.pk}/{name}/"


def at_label(desk: Desk, context: BrowserContext, n: int = 0) -> Page:
    page = log_in(context, desk.people[n].username)
    page.goto(address(desk))
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


def status(page: Page) -> str:
    return page.inner_text("[data-status]")


def checked(page: Page) -> list[str]:
    boxes = "document.querySelectorAll('[data-vote-form] input:checked')"
    found: list[str] = page.evaluate(f"[...{boxes}].map(e => e.name + '=' + e.value)")
    return found


# ---------------------------------------------------------------- keys


def test_two_annotators_label_twenty_pairs_each_with_the_keyboard_only(
    new_context: ContextMaker, live_server: Any
) -> None:
    desk = ready(n_items=20, settings={"base_overlap": 2, "max_overlap": 2})
    pages = [at_label(desk, new_context(), n) for n in range(2)]
    for _ in range(20):
        for page in pages:
            here = token(page)
            page.keyboard.press("v")
            page.keyboard.press("ArrowLeft")
            page.keyboard.press("ArrowDown")
            page.keyboard.press("Enter")
            wait_for_next(page, here)
    for page in pages:
        assert page.locator("[data-vote-done]").count() == 1
    for user in desk.people:
        met = list(Label.objects.filter(member__user=user).values_list("item", flat=True))
        assert len(met) == len(set(met)) == 20
    assert {item.done for item in desk.items()} == {2}


def test_strength_is_chosen_with_digits_or_by_pressing_the_arrow_again(
    new_context: ContextMaker, live_server: Any
) -> None:
    desk = ready(n_items=3, settings={"ask_strength": True})
    page = at_label(desk, new_context())
    rows = "[...document.querySelectorAll('.verdict')]"
    axes = page.evaluate(f"{rows}.map(row => row.dataset.axis)")
    here = token(page)
    page.keyboard.press("v")
    page.keyboard.press("ArrowLeft")
    assert checked(page) == [f"{axes[0]}=left", f"{axes[0]}_strength=1"]
    page.keyboard.press("ArrowLeft")
    page.keyboard.press("ArrowLeft")
    page.keyboard.press("ArrowLeft")
    assert checked(page)[-1] == f"{axes[0]}_strength=3"
    page.keyboard.press("ArrowRight")
    assert checked(page) == [f"{axes[0]}=left", f"{axes[0]}_strength=2"]
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowRight")
    assert checked(page) == [f"{axes[0]}=right", f"{axes[0]}_strength=1"]
    page.keyboard.press("2")  # goes on to the next row
    page.keyboard.press("ArrowRight")
    page.keyboard.press("3")
    page.keyboard.press("Enter")
    wait_for_next(page, here)
    label = Label.objects.get()
    assert (getattr(label, f"{axes[0]}_strength"), getattr(label, f"{axes[1]}_strength")) == (2, 3)
    here = token(page)
    for _ in range(2):
        page.keyboard.press("ArrowDown")  # equal needs no strength
    page.keyboard.press("Enter")
    wait_for_next(page, here)
    newest = Label.objects.latest("pk")
    assert (newest.quality, newest.quality_strength) == ("tie", None)


def test_a_missing_strength_gets_the_focus_and_a_message(
    new_context: ContextMaker, live_server: Any
) -> None:
    page = at_label(ready(settings={"ask_strength": True, **ONE}), new_context())
    page.check("#quality-left", force=True)
    assert not page.is_disabled("[data-submit]")
    page.click("[data-submit]")
    row = page.locator(".verdict[data-invalid]")
    assert "how much better" in row.inner_text()
    assert row.locator("input:focus").count() == 1
    assert not Label.objects.exists()
    page.keyboard.press("2")
    assert page.locator(".verdict[data-invalid]").count() == 0


def test_a_missing_row_gets_the_focus_and_a_message(desk: Desk, new_context: ContextMaker) -> None:
    page = at_label(desk, new_context())
    page.keyboard.press("v")
    page.keyboard.press("ArrowLeft")
    page.keyboard.press("Enter")
    row = page.locator(".verdict[data-invalid]")
    assert row.count() == 1
    assert "before you submit" in row.inner_text()
    assert row.locator("input:focus").count() == 1
    assert not Label.objects.exists()


def test_a_verdict_that_is_not_allowed_has_no_key(
    new_context: ContextMaker, live_server: Any
) -> None:
    page = at_label(ready(settings={"allow_tie": False, **ONE}), new_context())
    page.keyboard.press("v")
    page.keyboard.press("ArrowDown")
    assert checked(page) == []
    page.keyboard.press("ArrowUp")
    assert checked(page) == ["quality=both_bad"]


@pytest.mark.parametrize("field", ["comment", "problem_note"])
def test_keys_do_nothing_while_typing(desk: Desk, new_context: ContextMaker, field: str) -> None:
    page = at_label(desk, new_context())
    here = token(page)
    page.keyboard.press("r" if field == "comment" else "f")
    page.click(f"[name={field}]")
    page.keyboard.type("usdgfr? 123 v")
    for key in ("Enter", "Backspace", "ArrowLeft", "Escape", "Home", "PageDown", "Delete"):
        page.keyboard.press(key)
    assert token(page) == here
    assert page.input_value(f"[name={field}]").startswith("usdgfr? 123 ")
    assert page.locator("dialog[open]").count() == 0
    assert not Label.objects.exists()
    assert not Lease.objects.filter(state="skipped").exists()


def test_composing_with_an_input_method_triggers_no_key(
    desk: Desk, new_context: ContextMaker
) -> None:
    page = at_label(desk, new_context())
    compose = """options => document.activeElement.dispatchEvent(
        new KeyboardEvent('keydown', {bubbles: true, cancelable: true, ...options}))"""
    page.keyboard.press("v")
    for options in (
        {"key": "s", "isComposing": True},
        {"key": "Enter", "isComposing": True},
        {"key": "Process", "keyCode": 229},
        {"key": "ArrowLeft", "isComposing": True},
    ):
        page.evaluate(compose, options)
    assert checked(page) == []
    assert page.locator("[data-skip][open]").count() == 0
    page.evaluate(compose, {"key": "ArrowLeft"})
    assert len(checked(page)) == 1


def test_keys_with_a_modifier_belong_to_the_browser(desk: Desk, new_context: ContextMaker) -> None:
    page = at_label(desk, new_context())
    for key in ("Control+s", "Alt+s", "Meta+u", "Control+Enter"):
        page.keyboard.press(key)
    assert page.locator("[data-skip][open]").count() == 0
    assert page.locator(".verdict[data-invalid]").count() == 0


def test_keys_are_by_letter_remapped_and_never_double(
    desk: Desk, new_context: ContextMaker
) -> None:
    # As on a French or Russian keyboard; two actions on one key: the first one has it.
    save_preferences(
        user=desk.people[0], keys={"verdicts": "é", "skip": "ы", "flag": "ы", "undo": ""}
    )
    page = at_label(desk, new_context())
    page.keyboard.press("s")
    assert page.locator("[data-skip][open]").count() == 0
    press = """key => document.body.dispatchEvent(
        new KeyboardEvent('keydown', {key, bubbles: true, cancelable: true}))"""
    page.evaluate(press, "é")
    assert page.locator(".verdict input:focus").count() == 1
    page.evaluate(press, "ы")
    assert page.locator("[data-skip][open]").count() == 1
    assert page.locator("[data-flag][open]").count() == 0
    assert page.locator("[data-flag] summary [data-key-for]").is_hidden()
    assert page.inner_text("[data-skip] summary [data-key-for]") == "Ы"


def test_all_letters_can_be_switched_off(desk: Desk, new_context: ContextMaker) -> None:
    save_preferences(user=desk.people[0], keys={})
    page = at_label(desk, new_context())
    for key in "vrusdgf?":
        page.keyboard.press(key)
    assert page.locator("details[open], dialog[open]").count() == 0


def test_the_keys_are_listed_on_demand(desk: Desk, new_context: ContextMaker) -> None:
    page = at_label(desk, new_context())
    page.keyboard.press("?")
    assert "Report a problem" in page.inner_text("dialog[open]")
    page.keyboard.press("Escape")
    assert page.locator("dialog[open]").count() == 0


# ---------------------------------------------------------------- nothing is lost


def test_undo_brings_the_item_back_with_what_was_chosen(
    desk: Desk, new_context: ContextMaker
) -> None:
    page = at_label(desk, new_context())
    first = token(page)
    choose(page)
    given = checked(page)
    page.keyboard.press("Enter")
    wait_for_next(page, first)
    second = token(page)
    page.keyboard.press("u")
    wait_for_next(page, second)
    assert token(page) == first
    assert checked(page) == given
    assert "taken back" in status(page)
    assert Lease.objects.get(token=first).item.done == 0
    page.keyboard.press("Enter")
    wait_for_next(page, first)
    assert token(page) == second
    assert Label.objects.filter(lease__token=first).count() == 3


@pytest.mark.parametrize("fault", ["aborted", "500", "502 page", "429"])
def test_a_server_that_fails_loses_nothing(
    desk: Desk, new_context: ContextMaker, fault: str
) -> None:
    page = at_label(desk, new_context())
    here = token(page)
    failures = 0

    def fail(route: Route) -> None:
        nonlocal failures
        if route.request.method != "POST" or failures >= 2:
            return route.continue_()
        failures += 1
        if fault == "aborted":
            return route.abort()
        return route.fulfill(status=int(fault[:3]), body="<h1>Bad gateway</h1>")

    page.route(f"**{address(desk)}", fail)
    choose(page)
    page.keyboard.press("Enter")
    page.wait_for_function(  # it stands there for a second, before it is sent again
        "() => document.querySelector('[data-status]').textContent.includes('kept in this browser')"
    )
    assert token(page) == here
    wait_for_next(page, here)
    assert failures == 2
    assert Label.objects.count() == 1


def test_an_answer_that_got_lost_on_the_way_back_counts_once(
    desk: Desk, new_context: ContextMaker
) -> None:
    page = at_label(desk, new_context())
    here = token(page)
    sent = 0

    def lose(route: Route) -> None:
        nonlocal sent
        if route.request.method != "POST":
            return route.continue_()
        sent += 1
        if sent > 1:
            return route.continue_()
        route.fetch()  # the server has it, the page never hears of it
        return route.abort()

    page.route(f"**{address(desk)}", lose)
    choose(page)
    page.keyboard.press("Enter")
    wait_for_next(page, here)
    assert sent == 2
    assert Label.objects.count() == 1
    assert Lease.objects.filter(state="submitted").count() == 1


@pytest.mark.parametrize("cookie", ["sessionid", "csrftoken"])
def test_an_expired_login_or_page_keeps_the_answer_for_after(
    desk: Desk, new_context: ContextMaker, cookie: str
) -> None:
    context = new_context()
    page = at_label(desk, context)
    choose(page)
    given = checked(page)
    context.clear_cookies(name=cookie)
    page.keyboard.press("Enter")
    page.wait_for_selector("[data-status] a")
    assert not Label.objects.exists()
    page.click("[data-status] a")
    if cookie == "sessionid":
        page.fill("input[name=username]", desk.people[0].username)
        page.fill("input[name=password]", PASSWORD)
        page.click("main button")
    page.wait_for_selector("[data-vote]")
    page.wait_for_function(
        "() => document.querySelectorAll('[data-vote-form] input:checked').length === 2"
    )
    here = token(page)
    assert checked(page) == given
    page.keyboard.press("Enter")
    wait_for_next(page, here)
    assert Label.objects.count() == 1


def test_a_double_click_is_one_label(desk: Desk, new_context: ContextMaker) -> None:
    page = at_label(desk, new_context())
    here = token(page)
    choose(page)
    page.dblclick("[data-submit]")
    wait_for_next(page, here)
    page.wait_for_load_state("networkidle")
    assert Label.objects.count() == 1


def test_a_draft_waits_in_another_browser(desk: Desk, new_context: ContextMaker) -> None:
    page = at_label(desk, new_context())
    choose(page)
    page.keyboard.press("r")
    page.fill("[name=comment]", "half written 写了一半")
    with page.expect_response("**/draft/") as kept:
        page.wait_for_timeout(100)
    assert kept.value.status == 204
    other = at_label(desk, new_context())
    assert token(other) == token(page)
    assert checked(other) == checked(page)
    assert other.input_value("[name=comment]") == "half written 写了一半"
    # What is changed there holds here after a reload, too: the server has the newest.
    with other.expect_response("**/draft/"):
        other.fill("[name=comment]", "finished 写完了")
    page.reload()
    assert page.input_value("[name=comment]") == "finished 写完了"


def test_what_did_not_reach_the_server_holds_against_an_older_draft(
    desk: Desk, new_context: ContextMaker
) -> None:
    page = at_label(desk, new_context())
    with page.expect_response("**/draft/"):
        choose(page)
    page.route("**/draft/", lambda route: route.abort())
    page.keyboard.press("v")
    page.keyboard.press("ArrowLeft")
    given = checked(page)
    page.reload()
    assert checked(page) == given


def test_reporting_a_problem_keeps_what_was_chosen(desk: Desk, new_context: ContextMaker) -> None:
    page = at_label(desk, new_context())
    here = token(page)
    choose(page)
    given = checked(page)
    page.keyboard.press("f")
    page.click("[data-flag-send]")
    assert page.inner_text("[data-flag-error]") == "Say what is wrong."
    page.locator("[name=problem_kind][value=broken]").check()
    page.fill("[name=problem_note]", "cut off 断了")
    page.click("[data-flag-send]")
    page.wait_for_function(
        "() => document.querySelector('[data-status]').textContent.includes('Reported')"
    )
    assert token(page) == here
    assert checked(page) == given
    problem = Problem.objects.get()
    assert (problem.kind, problem.note) == ("broken", "cut off 断了")
    page.keyboard.press("s")
    page.locator("[data-skip-form] input").nth(2).check()
    page.click("[data-skip-form] button")
    wait_for_next(page, here)


HIDE = """hidden => {
    Object.defineProperty(document, 'hidden', {get: () => hidden, configurable: true});
    document.dispatchEvent(new Event('visibilitychange'));
}"""


def test_hidden_time_is_not_active_and_drafts_add_nothing(
    desk: Desk, new_context: ContextMaker
) -> None:
    started = time.monotonic()
    page = at_label(desk, new_context())
    here = token(page)
    with page.expect_response("**/draft/"):
        choose(page)
    page.evaluate(HIDE, True)
    page.wait_for_timeout(3000)
    page.evaluate(HIDE, False)
    page.reload()
    page.keyboard.press("Enter")
    wait_for_next(page, here)
    took = (time.monotonic() - started) * 1000
    assert 0 < Label.objects.get().active_ms < took - 2900  # not the 3 s, and nothing twice


def test_a_reserved_item_is_not_seen_and_submitting_is_one_request(
    desk: Desk, new_context: ContextMaker
) -> None:
    page = log_in(new_context(), desk.people[0].username)
    with page.expect_response("**/prefetch/") as reserved:
        page.goto(address(desk))
    assert reserved.value.status == 204
    assert Lease.objects.get(state="reserved").shown_at is None
    assert not Exposure.objects.exists()
    here, asked = token(page), []
    page.on("request", lambda request: asked.append(f"{request.method} {request.url}"))
    choose(page)
    page.keyboard.press("Enter")
    wait_for_next(page, here)
    assert [line for line in asked if "/draft/" not in line and "/prefetch/" not in line] == [
        f"POST {page.url}"
    ]


# ---------------------------------------------------------------- guidelines and learning


def test_the_guidelines_open_beside_the_item(desk: Desk, new_context: ContextMaker) -> None:
    page = at_label(desk, new_context())
    choose(page)
    given = checked(page)
    page.keyboard.press("g")
    page.wait_for_selector("dialog[open]")
    assert "Accuracy first" in page.inner_text("dialog[open]")
    assert axe_violations(page) == []
    page.keyboard.press("Escape")
    assert checked(page) == given


def test_learning_goes_on_with_enter_alone(new_context: ContextMaker, live_server: Any) -> None:
    desk = make_desk(people=1, n_items=3, settings={"onboarding_size": 1})
    make_gold(
        actor=desk.manager,
        item=desk.items()[0],
        verdicts={"quality": "first"},
        explanation="Shorter and right.",
        onboarding=True,
    )
    page = log_in(new_context(), "ann-1")
    page.goto("/annotation/work/")
    page.click("text=Begin")
    page.click("text=I have read this, begin")
    page.wait_for_load_state()
    choose(page)
    page.keyboard.press("Enter")
    page.wait_for_selector("text=Shorter and right.")
    assert axe_violations(page) == []
    page.keyboard.press("Enter")
    page.wait_for_selector("[data-vote]")
    assert Lease.objects.get(token=token(page)).item.state == "open"


def test_everything_works_without_javascript(new_context: ContextMaker, live_server: Any) -> None:
    desk = make_desk(people=1, n_items=4, settings={"onboarding_size": 1, "ask_strength": True})
    make_gold(
        actor=desk.manager, item=desk.items()[0], verdicts={"quality": "first"}, onboarding=True
    )
    page = log_in(new_context(java_script_enabled=False), "ann-1")
    page.goto("/annotation/work/")
    page.click("text=Begin")
    page.click("text=I have read this, begin")
    page.check("#quality-left", force=True)
    page.check("#quality_strength-2", force=True)
    page.check("#personalization-tie", force=True)
    page.click("[data-submit]")
    page.wait_for_selector("text=Right is")
    page.click("text=Go on to the next pair")
    page.check("#quality-right", force=True)
    page.click("[data-submit]")
    page.wait_for_selector(".verdict[data-invalid]")
    assert page.is_checked("#quality-right")
    page.click("[data-flag] summary")
    page.check("[name=problem_kind][value=other]")
    page.click("[data-flag-send]")
    page.wait_for_selector("text=Reported")
    assert page.is_checked("#quality-right")
    page.check("#quality_strength-1", force=True)
    page.check("#personalization-both_bad", force=True)
    page.click("[data-submit]")
    page.wait_for_selector("text=Saved.")
    page.click("text=Take back the last one")
    page.wait_for_selector("text=taken back")
    assert page.is_checked("#quality-right")
    assert page.is_checked("#quality_strength-1")
    page.click("[data-skip] summary")
    page.locator("[data-skip-form] input[type=radio]").first.check()
    page.click("[data-skip-form] button")
    page.wait_for_selector("[data-vote]")
    page.goto(address(desk, "mine"))
    page.click("tbody a")
    page.click("summary:has-text('Contest')")
    page.fill("[name=text]", "Look again")
    page.click("main button:has-text('Send')")
    page.wait_for_selector("text=waiting for an answer")


# ---------------------------------------------------------------- access


def test_the_page_weighs_at_most_100_kilobytes(desk: Desk, new_context: ContextMaker) -> None:
    sizes: list[int] = []
    page = log_in(new_context(), desk.people[0].username)
    page.on("response", lambda response: sizes.append(len(gzip.compress(response.body()))))
    page.goto(address(desk))
    page.wait_for_load_state("networkidle")
    assert 5_000 < sum(sizes) <= 100_000


SMALL = """() => [...document.querySelectorAll(
    'main a.btn, main button, main summary, main .choice, main .tag, main fieldset.plain label'
)].filter(e => e.offsetParent && e.getBoundingClientRect().height < 43.5).map(e => e.outerHTML)"""


@pytest.mark.parametrize("language", ["en", "zh-hans"])
@pytest.mark.parametrize(
    ("width", "theme"), [(360, "light"), (360, "dark"), (1024, "light"), (1440, "dark")]
)
def test_her_pages_are_accessible_and_fit(
    new_context: ContextMaker, live_server: Any, language: str, width: int, theme: str
) -> None:
    desk = ready(n_items=4, settings={"ask_strength": True, "tags": ["wordy", "离题"]})
    publish_guidelines(actor=desk.manager, project=desk.project, text="# New\n\n1. Read 两个答案")
    context = new_context(
        viewport={"width": width, "height": 800},
        color_scheme=theme,
        has_touch=width < 400,
        reduced_motion="reduce",  # colours on their way would be measured
    )
    context.add_cookies([{"name": "django_language", "value": language, "url": live_server.url}])
    page = at_label(desk, context)
    here, problems = token(page), []

    def look() -> None:
        problems.extend(axe_violations(page))
        if overflows(page):
            problems.append(f"{page.url} scrolls sideways")
        if width < 400:
            problems.extend(page.evaluate(SMALL))

    look()
    for summary in page.locator("#vote details > summary").all():
        summary.click()
        look()
        summary.click()
    for row in page.locator(".verdict").all():
        row.locator("input[value=left]").check(force=True)
        row.locator("input[value='2']").check(force=True)
    look()
    page.click("[data-submit]")
    wait_for_next(page, here)
    for name in ("guidelines", "mine"):
        page.goto(address(desk, name))
        look()
    page.click("tbody a")
    look()
    page.goto("/annotation/work/")
    look()
    assert problems == []


def test_submit_is_in_view_on_a_small_laptop(new_context: ContextMaker, live_server: Any) -> None:
    desk = ready(settings={"ask_strength": True})
    page = at_label(desk, new_context(viewport={"width": 1280, "height": 800}))
    page.keyboard.press("Enter")
    box = page.locator("[data-submit]").bounding_box()
    assert box is not None
    assert box["y"] + box["height"] <= 800
    assert page.evaluate("document.documentElement.scrollHeight") <= 800

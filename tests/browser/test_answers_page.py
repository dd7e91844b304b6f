"""Adding an endpoint, trying it out, having answers made: in a real browser, without script too."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from django.conf import settings as site
from playwright.sync_api import BrowserContext, Page

from arena.models import AnswerJob, Round
from arena.services import answering
from tests.arena.factories import draft_round
from tests.arena.makers import finished, makers_world
from tests.browser.conftest import axe_violations, log_in, overflows
from tests.endpoints import Endpoint
from webapp.catalog.models import Contestant

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]
NewContext = Callable[..., BrowserContext]


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Endpoint]:
    monkeypatch.setattr(site, "OUTBOUND_ALLOW", ["127.0.0.1"])
    monkeypatch.setattr(answering, "enqueue", lambda name, pk: None)
    with Endpoint() as made:
        yield made


def looked_at(page: Page) -> None:
    assert not axe_violations(page)
    assert not overflows(page)


@pytest.mark.parametrize(("width", "script"), [(1280, True), (390, False)])
def test_from_an_endpoint_to_answers(
    new_context: NewContext, server: Endpoint, width: int, script: bool
) -> None:
    server.plan = lambda n, asked: "blank" if n == 3 else "good"
    world = makers_world(server.url, personas=3, prompts=2)
    size = {"width": width, "height": 900}
    page = log_in(new_context(viewport=size, java_script_enabled=script), "ada")
    page.goto("/catalog/contestants/add/endpoint/")
    for name, value in (("name", "Maple"), ("url", server.url), ("model", "maple")):
        page.fill(f"input[name={name}]", value)
    page.click("button[name=try]")
    page.get_by_text("It answers:").wait_for()
    if script:
        looked_at(page)
    page.click("button[name=save]")
    page.get_by_role("button", name="Try it").wait_for()
    world.contestants.append(Contestant.objects.get(name="Maple"))
    round_ = draft_round(world)
    making(page, round_, script)
    page.get_by_role("button", name="Screen the answers").wait_for()


def making(page: Page, round_: Round, script: bool) -> None:
    page.goto(f"/rounds/{round_.pk}/")
    page.fill("input[name=failure_limit]", "20")
    page.click("text=Make the answers")
    page.get_by_text("0 of 12, 0 failed").wait_for()
    if script:
        looked_at(page)
    page.get_by_role("button", name="Stop", exact=True).click()
    page.get_by_role("button", name="Go on").click()
    page.get_by_text("0 of 12, 0 failed").wait_for()
    finished(AnswerJob.objects.get())
    if not script:  # else the page asks by itself
        page.reload()
    page.get_by_text("11 answers made, 1 failed, 0 not asked.").wait_for()
    page.get_by_text("The reply is empty.").wait_for()
    if script:
        looked_at(page)

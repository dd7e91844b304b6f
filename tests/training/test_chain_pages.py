"""Pages of chains: who may, in how many queries, what people do there."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse

from tests.conftest import asks_for_login
from tests.training import chain_factories as made
from tests.training.chain_factories import chain, recipe, to_the_end, work_once
from tests.training.factories import admin
from training.models import Chain, ChainRun, ChainStep
from training.services.chains import advance_chain, start_chain
from webapp.accounts.models import User

pytestmark = pytest.mark.django_db
MOST = 16
PAGES: list[tuple[str, tuple[Any, ...]]] = [
    ("chains", ()), ("chain_new", ()), ("chain", (1,)), ("chain_edit", (1,)),
]  # fmt: skip
POSTS: list[tuple[str, tuple[Any, ...]]] = [
    ("chain_arrows", (1,)), ("chain_start", (1,)), ("chain_cancel", (1,)), ("chain_go_on", (1,)),
    ("chain_retry", (1,)),
]  # fmt: skip


@pytest.fixture
def boss(client: Client) -> Client:
    client.force_login(admin())
    return client


def url(name: str, *args: Any) -> str:
    return reverse(f"training:{name}", args=args)


def text(response: Any) -> str:
    return str(response.content.decode())


@pytest.mark.parametrize(("name", "args"), PAGES + POSTS)
def test_only_administrators_see_chains(
    client: Client, name: str, args: tuple[Any, ...], bob: User, chen: User, vera: User
) -> None:
    ask = client.post if (name, args) in POSTS else client.get
    assert asks_for_login(ask(url(name, *args)))
    for user in (bob, chen, vera):
        client.force_login(user)
        assert ask(url(name, *args)).status_code == 403


def test_bounded_queries_and_what_the_page_says(
    boss: Client, tmp_path: Path, django_assert_max_num_queries: Any
) -> None:
    found = chain(tmp_path, hour=3)
    to_the_end(start_chain(actor=admin(), chain=found))
    start_chain(actor=admin(), chain=found)
    for name in ("chains", "chain_new"):
        with django_assert_max_num_queries(MOST):
            assert boss.get(url(name)).status_code == 200
    with django_assert_max_num_queries(MOST):
        page = text(boss.get(url("chain", found.pk) + "?run=1"))
    for said in ("All stages are done", "s on a device", "every night at 03:00", "Nightly 1"):
        assert said in page
    assert "Start now" not in page  # the second time is under way
    assert boss.get(url("chain", found.pk) + "?run=77").status_code == 404


def test_waiting_says_for_whom_and_a_press_lets_it_go(boss: Client, tmp_path: Path) -> None:
    found = chain(tmp_path, {**made.ON, "rewards": "ask"})
    boss.post(url("chain_start", found.pk), {"key": "one"})
    boss.post(url("chain_start", found.pk), {"key": "one"})  # a double click
    run = made.until_frozen(ChainRun.objects.get())
    page = text(boss.get(url("chain", found.pk)))
    assert "waits for an administrator who lets it go on to: reward models" in page
    step = run.steps.get(stage="rewards")
    boss.post(url("chain_go_on", step.pk))
    assert "mara let it go on" in text(boss.get(url("chain", found.pk)))
    for _turn in range(4):
        run = advance_chain(pk=run.pk)
        made.end_queued()
    gate = run.steps.get(stage="gate").links.get().gate
    assert gate is not None
    page = text(boss.get(url("chain", found.pk)))
    assert "whatever the arrow says" in page
    assert url("gate_audit", gate.pk) in page
    boss.post(url("chain_cancel", run.pk))
    assert "It was cancelled" in text(boss.get(url("chain", found.pk)))


def test_a_failed_stage_offers_to_be_tried_again(boss: Client, tmp_path: Path) -> None:
    found = chain(tmp_path)
    run = work_once(advance_chain(pk=start_chain(actor=admin(), chain=found).pk))
    ChainStep.objects.filter(chain_run=run, state="running").update(
        state="failed", message="the disk is full"
    )
    run = advance_chain(pk=run.pk)
    page = text(boss.get(url("chain", found.pk)))
    assert "the disk is full" in page
    assert url("chain_retry", run.steps.get(stage=run.stage).pk) in page
    boss.post(url("chain_retry", run.steps.get(stage=run.stage).pk))
    assert ChainRun.objects.get().state == "running"


def test_arrows_are_switched_on_the_page(boss: Client, tmp_path: Path) -> None:
    found = chain(tmp_path, {})
    arrows = {**made.ON, "round": "ask"}
    boss.post(url("chain_arrows", found.pk), arrows)
    assert Chain.objects.get().arrows == arrows
    answer = boss.post(url("chain_arrows", found.pk), {**arrows, "gate": "perhaps"}, follow=True)
    assert "Choose off, ask or on" in text(answer)
    assert Chain.objects.get().arrows == arrows


def form_of(asked: dict[str, Any], **changes: Any) -> dict[str, Any]:
    """What a browser sends."""
    plan = asked["round"]
    sent = {
        "key": "click", "name": "Every night", "hour": "2", "preset": "tiny",
        "quality": asked["datasets"]["quality"]["like"],
        "personalization": asked["datasets"]["personalization"]["like"],
        "prompts": asked["fixed"]["prompts"], "base": asked["base"], "gate": asked["gate"],
        "contestant": "Nightly {n}", "round_name": plan["name"],
        "contestants": plan["contestants"], "raters": plan["raters"], "axes": plan["axes"],
        "personas_n": 0, "prompts_n": 0, "planned_votes": 5, "holdout_percent": 0,
        **{f"arrow_{stage}": "off" for stage in made.ON},
    }  # fmt: skip
    return {**sent, **changes}


def test_a_chain_is_made_and_changed_by_its_form(boss: Client, tmp_path: Path) -> None:
    sent = form_of(recipe(tmp_path), grpo_config=json.dumps({"grpo": {"steps": 7}}))
    for _click in range(2):
        answer = boss.post(url("chain_new"), sent)
        assert answer.status_code == 302, text(answer)
    found = Chain.objects.get()
    assert (found.hour, found.recipe["grpo"]["config"]) == (2, {"grpo": {"steps": 7}})
    page = text(boss.get(url("chain_edit", found.pk)))
    assert "&quot;steps&quot;: 7" in page
    answer = boss.post(url("chain_edit", found.pk), {**sent, "hour": "", "arrow_grpo": "ask"})
    assert answer.status_code == 302, text(answer)
    found = Chain.objects.get()
    assert (found.hour, found.arrows["grpo"]) == (None, "ask")


def test_what_the_form_does_not_show_stays(boss: Client, tmp_path: Path) -> None:
    asked = recipe(tmp_path)
    asked["datasets"]["quality"]["filter"]["sources"] = ["annotation"]
    asked["contestant"] |= {"version": "v{n}", "sampling": {"temperature": 0.3}}
    asked["round"] |= {"with_personas": False}
    asked["rewards"]["quality"]["seed"] = 9
    found = chain(tmp_path, {}, recipe=asked)
    before = found.recipe
    answer = boss.post(url("chain_edit", found.pk), form_of(asked, hour="5"))
    assert answer.status_code == 302, text(answer)
    found.refresh_from_db()
    assert (found.hour, found.recipe) == (5, {**before, "round": found.recipe["round"]})
    assert found.recipe["round"].items() >= before["round"].items()


def test_a_wrong_form_says_what_would_be_right(boss: Client, tmp_path: Path) -> None:
    asked = recipe(tmp_path)
    wrong = {
        "grpo_config": ("{steps", "No JSON"),
        "quality_config": ('{"reward_model": 5}', "is an object, for example"),
        "contestant": ("Always", "every time needs its own name"),
        "raters": ([], "Choose at least one rater"),
        "quality": ("", "required"),
    }
    for field, (value, said) in wrong.items():
        answer = boss.post(url("chain_new"), form_of(asked, **{field: value}))
        assert answer.status_code == 422
        assert said in text(answer), field
    assert not Chain.objects.exists()

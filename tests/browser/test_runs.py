"""An administrator trains in a real browser: from a dataset over a run to the comparison."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from django.urls import reverse
from playwright.sync_api import BrowserContext, Locator, Page, expect

from tests.browser.conftest import axe_violations, log_in, overflows
from tests.training.factories import admin
from tests.training.factories_runs import (
    GATE,
    checkpoint,
    grpo_curves,
    log,
    make_run,
    say,
    tell,
    write_answers,
)
from tests.training.test_datasets_records import bring_in
from training import processes
from training.models import Device, TrainingRun
from training.services import watching
from training.storage import directory

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]
SLOW = Path(__file__).with_name("slow_trainer.py")


@pytest.fixture(autouse=True)
def trainer(settings: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Runs are executed by a process that trains nothing; none outlives its test."""
    settings.MEDIA_ROOT = tmp_path / "media"
    settings.PALATE_RUNS = tmp_path / "runs"
    settings.PALATE_TRAINER = [sys.executable, str(SLOW)]
    packages = ["torch", "transformers", "trl", "accelerate", "datasets"]
    monkeypatch.setattr(watching, "machine_facts", lambda: {"packages": packages, "gpus": 0})
    yield
    for run in TrainingRun.objects.exclude(pid=None):
        processes.end(run.pid, directory(run.directory), kill=True)


def check(page: Page, widths: tuple[int, ...] = (360, 1440)) -> None:
    """The page fits a phone and passes axe in both themes."""
    for theme in ("light", "dark"):
        page.emulate_media(color_scheme=theme)
        for width in widths:
            page.set_viewport_size({"width": width, "height": 900})
            assert not overflows(page), (page.url, width)
        assert axe_violations(page) == []


def watch(page: Page, holds: Callable[[], bool], seconds: float = 120.0) -> None:
    """What beat does every five seconds, more often."""
    end = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < end, page.locator("#content").inner_text()[:2000]
        watching.watch_runs()
        page.wait_for_timeout(250)


def steps_drawn(plot: Locator) -> int:
    drawn = plot.locator("path[data-steps]").first
    return len((drawn.get_attribute("data-steps") or "").split()) if drawn.count() else 0


def freeze_a_dataset(page: Page) -> None:
    rows = [{"prompt": f"How do I brew tea {n}?", "completion": f"Like so {n}."} for n in range(12)]
    bring_in("instructions", *rows)
    page.goto("/")
    page.get_by_role("link", name="Datasets").click()
    page.get_by_role("link", name="New dataset").first.click()
    page.get_by_role("link", name="instructions").click()
    page.get_by_label("Name").fill("Tea")
    page.get_by_label("Training, %").fill("75")
    page.get_by_label("Gate of policies, %").fill("25")
    page.get_by_role("button", name="Save the draft").click()
    page.get_by_role("button", name="Freeze the dataset").click()
    page.get_by_role("link", name="Training runs with this dataset").wait_for()


def launch(page: Page) -> TrainingRun:
    """Through the form, with a mistake on the way that one click repairs."""
    page.get_by_role("navigation", name="Main").get_by_role("link", name="Runs").click()
    page.get_by_role("link", name="New run").first.click()
    check(page)
    named = page.get_by_role("heading", name="tiny", exact=True)
    tiny = page.locator("section.card").filter(has=named)
    tiny.get_by_role("link", name="supervised fine-tuning").click()
    page.get_by_label("Name").fill("First try")
    page.get_by_label("Rows per device and pass").fill("0")
    page.get_by_role("button", name="Check first").click()
    alert = page.get_by_role("alert")
    alert.get_by_text("Choose the split of a frozen dataset.").wait_for()
    check(page)
    page.get_by_label("Rows per device and pass").fill("4")
    page.get_by_label("Training rows").select_option(label="Tea · training · 9 rows")
    page.locator("#arithmetic").get_by_text("5 steps over 9 rows").wait_for()
    page.get_by_role("button", name="Check first").click()
    page.get_by_text("The check found no problem.").wait_for()
    page.get_by_role("button", name="Launch").click()
    page.get_by_role("heading", name="First try").wait_for()
    return TrainingRun.objects.get()


def test_a_run_from_the_dataset_to_the_comparison(
    new_context: Callable[..., BrowserContext],
) -> None:
    page = log_in(new_context(), admin().username)
    freeze_a_dataset(page)
    run = launch(page)
    plot = page.locator("#curve-loss")
    watch(page, lambda: steps_drawn(plot) >= 3)  # without loading the page again
    seen = steps_drawn(plot)
    watch(page, lambda: steps_drawn(plot) > seen)
    page.get_by_role("link", name="1 alert").wait_for()
    page.get_by_role("button", name="Cancel the run").click()
    watch(page, lambda: TrainingRun.objects.get(pk=run.pk).state == "cancelled")
    page.get_by_role("button", name="Resume").wait_for()  # the page noticed by itself
    step = TrainingRun.objects.get(pk=run.pk).step
    assert 0 < step < 600
    page.get_by_role("button", name="Resume").click()
    watch(page, lambda: TrainingRun.objects.get(pk=run.pk).step > step)
    page.reload()
    card = page.locator(".alert-card").first
    card.get_by_role("button", name="Start a clone with this change").click()
    page.get_by_text("on its alert at step 2").wait_for()
    clone = TrainingRun.objects.get(parent=run)
    assert clone.config["grpo"] == {"beta": 0.06}
    page.get_by_text("place 1 in the queue").wait_for()
    page.goto(reverse("training:runs"))
    check(page)
    page.get_by_label("Compare First try", exact=True).check()
    page.get_by_label("Compare First try (2)").check()
    page.get_by_role("button", name="Compare the chosen runs").click()
    page.get_by_text("grpo.beta").wait_for()
    check(page)
    page.goto(reverse("training:run", args=[run.pk]))
    page.get_by_role("button", name="Cancel the run").click()
    watch(page, lambda: TrainingRun.objects.get(pk=run.pk).state == "cancelled")


def finished_run() -> TrainingRun:
    run = make_run("grpo", "running", name="A long one", step=100)
    grpo_curves(run)
    log(run, [0, 50, 100], "eval", eval__parts__quality=lambda s: 0.5 + s / 1000)
    say(run, 40, rule="hacking", severity="critical")
    say(run, 60)
    checkpoint(run, 50)
    part = {"quality": 0.5, "personalization": 0.25, "redundancy": 0.0}
    row = {"persona": "Busy.", "prompt": "How?", "parts": part, "reward": 0.5, "advantage": 1.0}
    write_answers(run, [{**row, "step": n, "completion": f"answer {n}"} for n in range(1, 40)])
    tell(run, "phrases", found=[{"text": "just for you", "early": 0.1, "late": 0.9, "lift": 0.2}])
    tell(run, "gate", **GATE)
    return run


def test_values_are_read_by_pointer_and_by_keys(
    new_context: Callable[..., BrowserContext],
) -> None:
    run = finished_run()
    page = log_in(new_context(), admin().username)
    page.goto(reverse("training:run", args=[run.pk]))
    plot = page.locator("#curve-reward")
    figure = page.locator("figure").filter(has=plot)
    before = figure.locator(".value").first.inner_text()
    box = plot.bounding_box()
    assert box is not None
    page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    expect(figure.locator(".at")).to_contain_text("step 4")
    assert figure.locator(".value").first.inner_text() != before
    page.mouse.move(0, 0)
    expect(figure.locator(".value").first).to_have_text(before)
    plot.focus()
    page.keyboard.press("Home")
    expect(figure.locator(".at")).to_have_text("step 1")
    page.keyboard.press("ArrowRight")
    expect(page.locator("#curve-status")).to_contain_text("step 2")
    with page.expect_response(lambda response: "/live/" in response.url):
        pass  # a swap keeps the focus and the place
    page.wait_for_timeout(300)
    expect(page.locator("#curve-reward")).to_be_focused()
    expect(figure.locator(".at")).to_have_text("step 2")


def test_every_page_of_runs_fits_and_passes_axe(
    new_context: Callable[..., BrowserContext],
) -> None:
    run = finished_run()
    Device.objects.create(name="gpu-1", run=run, taken_at=run.created_at)
    failed = make_run(
        state="failed", reason="nonfinite", message="loss is not a number", log_tail="one\ntwo",
        changes={"grpo.learning_rate": 1e-4}, parent=run,
    )  # fmt: skip
    checkpoint(make_run("sft", "succeeded", name="Base"), 5)
    page = log_in(new_context(), admin().username)
    for url in (
        reverse("training:run", args=[run.pk]),
        reverse("training:run", args=[failed.pk]),
        reverse("training:run_samples", args=[run.pk]),
        reverse("training:run_values", args=[run.pk]),
        reverse("training:run_new") + f"?from={failed.pk}&changes=1",
        reverse("training:run_storage"),
        reverse("training:run_rules"),
    ):
        page.goto(url)
        check(page)
    page.goto(reverse("training:run", args=[run.pk]))
    page.get_by_role("link", name="Earlier step").click()
    page.get_by_text("Answers at step 38").wait_for()
    assert page.url.endswith(f"/runs/{run.pk}/")  # only the part was loaded
    page.goto(reverse("training:run_storage"))
    page.get_by_role("checkbox").first.check()
    page.get_by_role("button", name="Delete the chosen").click()
    check(page)
    page.get_by_role("button", name="Delete for ever").click()
    page.get_by_text("are free again").wait_for()


def test_without_scripts_everything_can_be_done(
    new_context: Callable[..., BrowserContext],
) -> None:
    run = finished_run()
    page = log_in(new_context(java_script_enabled=False), admin().username)
    page.goto(reverse("training:run", args=[run.pk]))
    page.get_by_role("link", name="Values as a table").click()
    page.get_by_role("table").wait_for()
    page.goto(reverse("training:run", args=[run.pk]))
    page.get_by_label("Step", exact=True).fill("7")
    page.get_by_role("button", name="Show").click()
    page.get_by_text("Answers at step 7").wait_for()
    page.goto(reverse("training:run_new") + f"?from={run.pk}")
    page.get_by_label("Answers per device and pass").fill("60")
    page.get_by_role("button", name="Check first").click()
    page.get_by_role("button", name="Use 56").click()
    expect(page.get_by_label("Answers per device and pass")).to_have_value("56")

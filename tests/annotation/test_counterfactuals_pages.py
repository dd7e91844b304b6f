"""The pages of counterfactual jobs."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import Client
from django.urls import reverse

from annotation.enums import JobState, ReviewState
from annotation.models import CounterfactualJob, Rewrite
from annotation.services import counterfactuals
from tests.annotation.factories import Desk, make_desk
from tests.annotation.test_counterfactuals import rated, run

pytestmark = pytest.mark.django_db
FORM = {
    "rewriter": "rules",
    "axis": "personalization",
    "minimum": "80",
    "limit": "200",
    "seed": "0",
    "key": "6f1e7f0a-5d0f-4a52-9e1f-0b6f3c7f5a12",
}


@pytest.fixture
def desk(db: Any) -> Desk:
    return rated(4)


@pytest.fixture
def manager(client: Client, desk: Desk) -> Client:
    client.force_login(desk.manager)
    return client


def address(desk: Desk, name: str = "counterfactuals", *more: int) -> str:
    return reverse(f"annotation:{name}", args=[desk.project.pk, *more])


def test_the_page_lists_jobs(
    manager: Client, desk: Desk, django_assert_max_num_queries: Any
) -> None:
    run(desk)
    with django_assert_max_num_queries(12):
        page = manager.get(address(desk))
    assert "rules, without a model" in page.content.decode()


def test_starting_leads_to_the_job_and_a_double_click_starts_one(
    manager: Client, desk: Desk, django_capture_on_commit_callbacks: Any
) -> None:
    with django_capture_on_commit_callbacks(execute=True):
        first = manager.post(address(desk), FORM)
    job = CounterfactualJob.objects.get()
    assert first.headers["Location"] == address(desk, "counterfactual", job.pk)
    assert manager.post(address(desk), FORM).headers["Location"] == first.headers["Location"]
    job.refresh_from_db()
    assert job.state == JobState.DONE


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"minimum": "101"}, "whole number from 0 to 100"),
        ({"rewriter": "endpoint"}, "not an address that can be called"),
        (
            {
                "rewriter": "endpoint",
                "url": "https://example.org/v1",
                "model": "m",
                "key_name": "X",
            },
            "begins with PALATE_KEY_",
        ),
    ],
)
def test_what_cannot_be_used_is_said(
    manager: Client, desk: Desk, change: dict[str, str], said: str
) -> None:
    page = manager.post(address(desk), {**FORM, **change})
    assert page.status_code == 422
    assert said in page.content.decode()
    assert not CounterfactualJob.objects.exists()


def test_the_job_shows_balance_and_refusals(
    manager: Client, desk: Desk, django_assert_max_num_queries: Any
) -> None:
    job = run(desk)
    again = run(desk)
    with django_assert_max_num_queries(10):
        page = manager.get(address(desk, "counterfactual", job.pk)).content.decode()
    assert "step by step" in page
    assert "0 of 4 pairs reviewed" in page
    assert "made before" in manager.get(address(desk, "counterfactual", again.pk)).content.decode()


def test_progress_and_cancelling(manager: Client, desk: Desk) -> None:
    job = counterfactuals.start_job(actor=desk.manager, project=desk.project, key="", send=False)
    url = address(desk, "counterfactual_progress", job.pk)
    assert "0 of 4 answers" in manager.get(url).content.decode()
    assert manager.get(address(desk, "counterfactual_cancel", job.pk)).status_code == 405
    manager.post(address(desk, "counterfactual_cancel", job.pk))
    job.refresh_from_db()
    assert job.state == JobState.CANCELLED
    assert manager.get(url).status_code == 204


def test_reviewing_pair_by_pair(
    manager: Client, desk: Desk, django_assert_max_num_queries: Any
) -> None:
    job = run(desk)
    url = address(desk, "counterfactual_review", job.pk)
    with django_assert_max_num_queries(10):
        page = manager.get(url).content.decode()
    pair = Rewrite.objects.order_by("pair").values_list("pair", flat=True)[0]
    assert pair in page
    assert "Backend engineer" in page
    assert "First week with SQL" in page
    assert "<mark>" in manager.get(f"{url}?pair={pair}&diff=1").content.decode()
    manager.post(url, {"pair": pair, "verdict": "reject", "note": "no"})
    assert set(Rewrite.objects.filter(pair=pair).values_list("state", "note")) == {
        (ReviewState.REJECTED, "no")
    }
    assert pair not in manager.get(url).content.decode()
    for _pair in range(3):
        left = Rewrite.objects.filter(state="proposed").order_by("pair").first()
        assert left is not None
        manager.post(url, {"pair": left.pair, "verdict": "accept"})
    assert "nothing to review" in manager.get(url).content.decode()


@pytest.mark.parametrize(
    "sent", [{}, {"verdict": "maybe"}, {"verdict": "reject", "note": "x" * 301}]
)
def test_a_review_without_a_clear_word_changes_nothing(
    manager: Client, desk: Desk, sent: dict[str, str]
) -> None:
    job = run(desk)
    pair = Rewrite.objects.values_list("pair", flat=True)[0]
    manager.post(address(desk, "counterfactual_review", job.pk), {"pair": pair, **sent})
    assert set(Rewrite.objects.values_list("state", flat=True)) == {ReviewState.PROPOSED}


@pytest.mark.parametrize("who", ["bob", "chen", "vera", "annotator", ""])
def test_only_managers_see_them(
    client: Client, desk: Desk, request: pytest.FixtureRequest, who: str
) -> None:
    row = run(desk, limit=1)
    if who:
        user = desk.people[0] if who == "annotator" else request.getfixturevalue(who)
        client.force_login(user)
    pages = (
        "counterfactuals",
        "counterfactual",
        "counterfactual_progress",
        "counterfactual_review",
    )
    for name in pages:
        url = address(desk, name, *([] if name == pages[0] else [row.pk]))
        assert client.get(url).status_code == (403 if who else 302), name


def test_a_job_of_another_project_is_not_found(manager: Client, desk: Desk) -> None:
    job = run(desk, limit=1)
    other = make_desk(people=0, n_items=0, open=False, name="Other")
    assert manager.get(address(other, "counterfactual", job.pk)).status_code == 404

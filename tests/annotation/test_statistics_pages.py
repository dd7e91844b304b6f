"""The manager's pages: progress, agreement, annotators."""

from __future__ import annotations

import re
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse

from annotation.enums import ProjectState
from annotation.models import Lease, StatisticsSnapshot
from annotation.services import leases, projects, statistics
from tests.annotation.factories import Desk, label_all, label_once, make_desk
from webapp.accounts.models import User

pytestmark = pytest.mark.django_db
PAGES = ("project", "progress", "agreement", "annotators")
STRATA = {"base_overlap": 2, "max_overlap": 3, "stratum_features": ["expertise"]}


def odd_one_out(lease: Lease) -> str:
    assert lease.member.user is not None
    if lease.member.user.username == "ann-1":
        return ("first", "tie", "second", "both_bad")[lease.item_id % 4]
    return "first" if lease.item_id % 3 else "second"


@pytest.fixture
def desk(db: Any) -> Desk:
    desk = make_desk(people=3, n_items=14, settings={**STRATA, "price_cents": 12})
    label_all(desk, odd_one_out)
    statistics.compute_statistics(pk=desk.project.pk)
    return desk


@pytest.fixture
def manager(client: Client, desk: Desk) -> Client:
    client.force_login(desk.manager)
    return client


def url(name: str, desk: Desk) -> str:
    return reverse(f"annotation:{name}", args=[desk.project.pk])


def page(client: Client, name: str, desk: Desk, query: str = "") -> str:
    response = client.get(url(name, desk) + query)
    assert response.status_code == 200
    return response.content.decode()


@pytest.mark.parametrize("name", PAGES)
def test_only_managers_see_them(name: str, client: Client, desk: Desk, vera: User) -> None:
    assert client.get(url(name, desk)).status_code == 302
    for user in (vera, desk.people[0]):
        client.force_login(user)
        assert client.get(url(name, desk)).status_code == 403
    client.force_login(desk.manager)
    assert client.get(url(name, desk)).status_code == 200
    assert client.post(url(name, desk)).status_code == 405
    assert client.get(reverse(f"annotation:{name}", args=[999_999])).status_code == 404


@pytest.mark.parametrize("name", PAGES)
def test_pages_ask_few_questions(
    name: str, manager: Client, desk: Desk, django_assert_max_num_queries: Any
) -> None:
    with django_assert_max_num_queries(12):
        page(manager, name, desk)


@pytest.mark.parametrize("name", PAGES)
@pytest.mark.parametrize("items", [0, 2])
def test_a_project_without_statistics_has_its_pages(name: str, items: int, client: Client) -> None:
    desk = make_desk(n_items=items)
    client.force_login(desk.manager)
    page(client, name, desk)
    statistics.compute_statistics(pk=desk.project.pk)
    page(client, name, desk)


def test_counts_are_those_of_the_moment(manager: Client, desk: Desk) -> None:
    more = make_desk(people=0, n_items=0, name="Other")
    assert "of 14" in page(manager, "progress", desk)
    desk.project.items.filter(pk=desk.items()[0].pk).update(state="held")
    text = page(manager, "progress", desk)
    assert re.search(r"held back</dt><dd>1<", text)
    assert "ann-1" not in text
    assert "nobody" in page(manager, "progress", more)


def test_who_holds_an_item_is_at_work(client: Client) -> None:
    desk = make_desk(people=2, n_items=3)
    leases.serve(user=desk.people[0], project=desk.project)
    client.force_login(desk.manager)
    text = page(client, "progress", desk)
    assert "ann-1" in text
    assert "ann-2" not in text
    assert re.search(r"in work now</dt><dd>1<", text)


def test_strata_stand_against_their_targets(client: Client) -> None:
    targets = {"expertise=expert": 4, "expertise=novice": 2}
    desk = make_desk(
        people=1, n_items=12, settings={"stratum_features": ["expertise"], "targets": targets}
    )
    label_once(desk, desk.people[0])
    client.force_login(desk.manager)
    text = page(client, "progress", desk)
    assert 'max="4"' in text
    assert 'max="2"' in text


def test_polling_stops_when_the_project_is_closed(manager: Client, desk: Desk) -> None:
    assert "every 10s" in page(manager, "progress", desk)
    projects.move_project(actor=desk.manager, project=desk.project, to=ProjectState.CLOSED)
    assert "hx-get" not in page(manager, "progress", desk)


def test_the_what_if_is_a_plain_form(manager: Client, desk: Desk) -> None:
    assert 'role="status">With' not in page(manager, "project", desk)
    assert "With 4 labels per item" in page(manager, "project", desk, "?overlap=4")
    for strange in ("?overlap=x", "?overlap=99", "?overlap=-1"):
        page(manager, "project", desk, strange)


def test_cost_and_end_are_told_or_said_to_be_unknown(manager: Client, desk: Desk) -> None:
    text = page(manager, "project", desk)
    given = Lease.objects.filter(state="submitted").count()
    assert f"{given * 0.12:,.2f} EUR" in text
    assert "nothing is left to do" in text


@pytest.mark.parametrize("axis", ["both", "quality", "personalization", "strange"])
def test_agreement_has_intervals_counts_and_sentences(
    axis: str, manager: Client, desk: Desk
) -> None:
    text = page(manager, "agreement", desk, f"?axis={axis}")
    assert "Krippendorff’s alpha, nominal" in text
    assert "14 items with two labels or more" in text
    assert "expertise: expert" in text
    if axis in ("quality", "personalization"):
        assert "Cohen’s kappa, two by two" in text
        assert text.count("<svg") > 10


def test_undefined_values_explain_themselves(client: Client) -> None:
    desk = make_desk(people=2, n_items=12, settings={"base_overlap": 2, "max_overlap": 2})
    label_all(desk)
    statistics.compute_statistics(pk=desk.project.pk)
    client.force_login(desk.manager)
    text = page(client, "agreement", desk)
    assert "all labels are the same" in text
    assert "no disagreement was seen" in text


def test_annotators_stand_with_their_signals_and_flags(client: Client) -> None:
    desk = make_desk(people=3, n_items=30, settings={"base_overlap": 3, "max_overlap": 3})

    def choose(lease: Lease) -> str:
        assert lease.member.user is not None
        if lease.member.user.username == "ann-1":
            return "first" if lease.first_left else "second"
        return "first" if lease.item_id % 3 else "second"

    label_all(desk, choose)
    statistics.compute_statistics(pk=desk.project.pk)
    client.force_login(desk.manager)
    text = page(client, "annotators", desk, "?axis=personalization")
    assert "Chooses the left side too often to be chance (100 % of 30" in text
    assert text.count("<strong>ann-1</strong>") >= 1
    assert "<strong>ann-2</strong>" not in text
    assert text.index("ann-1<br>") < text.index("ann-2<br>")


def test_statistics_are_made_anew_on_demand(
    manager: Client, desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    sent: list[tuple[str, int]] = []
    monkeypatch.setattr(statistics, "enqueue", lambda name, pk: sent.append((name, pk)))
    where = url("refresh_statistics", desk)
    assert manager.get(where).status_code == 405
    response = manager.post(where, {"next": url("agreement", desk)})
    assert response.headers["Location"] == url("agreement", desk)
    assert sent == [("annotation_statistics", desk.project.pk)]
    manager.force_login(desk.people[0])
    assert manager.post(where).status_code == 403


def test_names_are_shown_as_they_are_and_the_report_holds_none(manager: Client, desk: Desk) -> None:
    member = desk.member(desk.people[0])
    member.user, member.external_name = None, "<b>卢西亚</b>"
    member.save(update_fields=["user", "external_name"])
    for name in ("annotators", "agreement"):
        text = page(manager, name, desk)
        assert "&lt;b&gt;卢西亚&lt;/b&gt;" in text
        assert "<b>卢" not in text
    report = str(StatisticsSnapshot.objects.latest("pk").report)
    assert "ann-" not in report
    assert "Short: run" not in report

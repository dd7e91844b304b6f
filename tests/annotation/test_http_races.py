"""Many annotators at once over HTTP, on PostgreSQL: the server answers in threads of its own."""

from __future__ import annotations

import re
from collections import Counter
from functools import partial
from http.cookies import SimpleCookie
from typing import Any

import httpx
import pytest
from django.db import connection
from django.test import Client
from django.urls import reverse

from annotation.enums import LeaseState
from annotation.models import Guideline, Label, Lease
from tests.annotation.books import mistakes
from tests.annotation.factories import Desk, make_desk
from tests.threads import at_once
from webapp.accounts.models import User
from webapp.accounts.services import create_api_token

pytestmark = [pytest.mark.postgres, pytest.mark.django_db(transaction=True)]
API = "/api/v1/annotation/"
TOKEN = re.compile(r'name="token" value="([0-9a-f]{32})"')


def ready(desk: Desk) -> Desk:
    newest = Guideline.objects.get(project=desk.project)
    desk.project.members.update(guideline_read=newest)
    return desk


def work(server: str, token: str, project: int, choices: tuple[str, ...]) -> Counter[int]:
    """Label by program until nothing is left, every third answer sent twice. Statuses."""
    seen: Counter[int] = Counter()
    headers = {"Authorization": f"Token {token}"}
    with httpx.Client(base_url=server + API, headers=headers, timeout=60) as http:
        empty = 0
        while empty < 3:
            found = http.post(f"work/{project}/next/")
            seen[found.status_code] += 1
            if found.status_code == 204:
                empty += 1
                continue
            task, empty = found.json(), 0
            choice = choices[seen[200] % len(choices)]
            body = {"token": task["token"], "verdicts": dict.fromkeys(task["axes"], choice)}
            for _n in range(1 + (seen[200] % 3 == 0)):
                seen[http.post("work/labels/", json=body).status_code] += 1
    return seen


def everybody(desk: Desk, server: str, *choices: str) -> Counter[int]:
    calls = [
        partial(work, server, create_api_token(user=user, name="t"), desk.project.pk, choices)
        for user in desk.people
    ]
    return sum(at_once(calls), Counter())


def per_item(desk: Desk) -> Counter[int]:
    rows = Lease.objects.filter(counted=True, state=LeaseState.SUBMITTED)
    people = Counter(rows.values_list("item", flat=True))
    return Counter(people[item.pk] for item in desk.items())


def test_twenty_annotators_and_two_hundred_items_over_http(live_server: Any) -> None:
    desk = ready(make_desk(people=20, n_items=200))
    seen = everybody(desk, live_server.url, "left")
    assert set(seen) == {200, 204}
    assert per_item(desk) == {1: 200}
    assert Label.objects.count() == 200
    assert mistakes(desk.project) == []


def test_two_labels_by_three_people_over_http(live_server: Any) -> None:
    desk = ready(make_desk(people=3, n_items=40, settings={"base_overlap": 2, "max_overlap": 2}))
    assert set(everybody(desk, live_server.url, "left")) == {200, 204}
    assert per_item(desk) == {2: 40}
    assert mistakes(desk.project) == []


def test_disagreement_over_http_never_gives_too_many(live_server: Any) -> None:
    desk = ready(make_desk(people=8, n_items=40, settings={"base_overlap": 2, "max_overlap": 4}))
    assert set(everybody(desk, live_server.url, "left", "right", "left", "tie")) == {200, 204}
    everybody(desk, live_server.url, "left")
    assert set(per_item(desk)) <= {2, 3, 4}
    assert mistakes(desk.project) == []


def tab_of(client: Client) -> Client:
    """Another tab of the same browser."""
    tab = Client()
    tab.cookies = SimpleCookie(client.cookies.output(header="", sep=";"))
    return tab


@pytest.mark.parametrize("script", [True, False])
def test_a_double_click_on_the_page_is_one_label(script: bool) -> None:
    assert connection.vendor == "postgresql"
    desk = ready(make_desk(people=1, n_items=3))
    client, page = Client(), reverse("annotation:label", args=[desk.project.pk])
    client.force_login(desk.people[0])
    found = TOKEN.search(client.get(page).content.decode())
    assert found is not None
    body = {"token": found[1], "quality": "left", "personalization": "tie"}
    headers = {"HX-Request": "true"} if script else {}

    def click() -> int:
        return int(tab_of(client).post(page, body, headers=headers).status_code)

    assert set(at_once([click] * 6)) == {200 if script else 302}
    assert Label.objects.count() == 1
    assert mistakes(desk.project) == []


def test_everything_that_a_page_does_at_once_leaves_right_books() -> None:
    """Two people with several tabs that submit, take back, skip, prefetch and renew."""
    desk = ready(make_desk(people=2, n_items=12, settings={"base_overlap": 2, "max_overlap": 3}))
    at_once([partial(restless, desk, user, n) for user in desk.people for n in range(4)])
    assert mistakes(desk.project) == []


def restless(desk: Desk, user: User, seed: int) -> None:
    client, pk = Client(), desk.project.pk
    client.force_login(user)
    for n in range(6):
        found = TOKEN.search(client.get(reverse("annotation:label", args=[pk])).content.decode())
        if found is None:
            return
        body = {
            "token": found[1],
            "last": found[1],
            "quality": "left" if (n + seed) % 2 else "right",
            "personalization": "tie",
            "reason": "unsure",
        }
        names = ["prefetch", "label", "heartbeat", "label", "undo", "label", "skip"]
        for name in names[: 2 + (n + seed) % 6]:
            status = client.post(reverse(f"annotation:{name}", args=[pk]), body).status_code
            assert status in (200, 204, 302, 409), (name, status)

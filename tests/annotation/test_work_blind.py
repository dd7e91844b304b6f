"""Gold cannot be told from other items, and nothing of others, of gold or of makers is shown."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest
from django.db import connection, transaction
from django.test.utils import CaptureQueriesContext

from annotation.enums import LeaseState, MemberState
from annotation.models import Item, Label, Lease
from annotation.services import leases
from annotation.services.gold import make_gold
from annotation.services.items import ItemDraft, add_items
from tests.annotation.desks import HTMX, at_desk, at_gold, send, send_next, token_of, url
from tests.annotation.factories import Desk, add_pairs, make_desk, working
from webapp.catalog.services.prompts import get_or_create_prompt

pytestmark = pytest.mark.django_db
GOLD = {"gold_percent": 50, "gold_minimum": 99}
SECRET = re.compile(
    r"Harbor|Quarry|pairs\.jsonl|gold|repeat|decision|dispute|posterior|pseudonym", re.I
)


class Undo(Exception):
    pass


def undone(run: Callable[[], Any]) -> Any:
    """What a function returns, with everything it wrote taken back."""
    found = None
    try:
        with transaction.atomic():
            found = run()
            raise Undo
    except Undo:
        return found


def neutral(page: str, token: str) -> str:
    """A page without what is random or tells the time."""
    page = page.replace(token, "TOKEN")
    page = re.sub(r'name="csrfmiddlewaretoken" value="\w+"', "CSRF", page)
    page = re.sub(r"X-CSRFToken&quot;: &quot;\w+|X-CSRFToken\": \"\w+", "CSRF", page)
    return re.sub(r'data-expires-in="\d+"', "LEFT", page)


def walk(desk: Desk) -> tuple[list[str], list[int]]:
    """All that an annotator gets to see of one item: pages, and the queries of each."""
    client = at_desk(desk)
    pages, counts, token = [], [], ""

    def note(ask: Callable[[], Any]) -> Any:
        with CaptureQueriesContext(connection) as queries:
            response = ask()
        where = response.headers.get("Location")
        page = f"{response.status_code} {where} {response.content.decode()}"
        pages.append(neutral(page, token))
        counts.append(len(queries))
        return response

    first = client.get(url(desk))
    token = first.context["pair"].token
    note(lambda: client.get(url(desk)))
    note(lambda: client.get(url(desk), headers=HTMX))
    note(lambda: client.get(url(desk, "diff"), {"token": token}))
    note(lambda: client.post(url(desk, "heartbeat"), {"token": token}))
    note(lambda: client.post(url(desk, "draft"), {"token": token, "quality": "left"}))
    note(lambda: send(desk, client, token, quality="left"))
    note(lambda: client.post(url(desk, "problem"), {"token": token, "problem_kind": "other"}))
    note(lambda: send(desk, client, token))
    note(lambda: client.get(url(desk, "history")))
    note(lambda: client.get(url(desk, "submission"), {"token": token}))
    note(lambda: client.post(url(desk, "contest"), {"token": token, "text": "Look again."}))
    note(lambda: client.get(url(desk, "submission"), {"token": token}))
    note(lambda: client.get(url(desk, "feedback"), {"token": token}))
    note(lambda: client.post(url(desk, "undo"), {"last": token}, headers=HTMX))
    note(lambda: client.post(url(desk, "skip"), {"token": token, "reason": "unsure"}))
    return pages, counts


def test_no_page_of_a_gold_item_differs_by_a_byte_from_that_of_an_ordinary_item(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(leases, "is_work_left", lambda member: True)  # there is this item alone
    desk = make_desk(people=1, n_items=1, settings={**GOLD, "base_overlap": 2, "max_overlap": 2})
    working(desk)
    at_gold(desk, odd=True)  # then the sides are the same as well
    item = desk.items()[0]

    def as_gold() -> tuple[list[str], list[int]]:
        make_gold(actor=desk.manager, item=item, verdicts={"quality": "second"})
        found = walk(desk)
        assert not Lease.objects.filter(counted=True).exists()
        return found

    plain, counts = undone(lambda: walk(desk))
    gold, gold_counts = undone(as_gold)
    assert len(plain) == 15
    for one, other in zip(plain, gold, strict=True):
        assert one == other
    # Only what is written about places and outcomes may differ, see the next test.
    writes = {7, 13, 14}  # submit, take back, skip
    assert [n for i, n in enumerate(counts) if i not in writes] == [
        n for i, n in enumerate(gold_counts) if i not in writes
    ]


def test_a_gold_submission_takes_no_more_queries_than_an_ordinary_one_may() -> None:
    desk = make_desk(people=2, n_items=12, settings={**GOLD, "base_overlap": 2, "max_overlap": 2})
    working(desk)
    for item in desk.items()[:4]:
        make_gold(actor=desk.manager, item=item, verdicts={"quality": "first"})
    ordinary: set[int] = set()
    hidden: set[int] = set()
    clients = [at_desk(desk, n) for n in range(2)]
    for round_ in range(14):
        client = clients[round_ % 2]
        response = client.get(url(desk))
        if "pair" not in response.context:
            continue
        token = response.context["pair"].token
        client.post(url(desk, "prefetch"), {"token": token})
        with CaptureQueriesContext(connection) as queries:
            send(desk, client, token)
        lease = Lease.objects.select_related("item").get(token=token)
        (hidden if lease.item.state == "gold" else ordinary).add(len(queries))
    assert hidden
    assert min(ordinary) <= min(hidden)
    assert max(hidden) <= max(ordinary)


def test_no_page_holds_makers_sources_gold_or_other_peoples_labels() -> None:
    desk = make_desk(people=2, n_items=8, settings={**GOLD, "base_overlap": 2, "max_overlap": 3})
    working(desk)
    for item in desk.items()[:2]:
        make_gold(actor=desk.manager, item=item, verdicts={"quality": "first"})
    first, second = at_desk(desk), at_desk(desk, 1)
    for _ in range(4):
        send_next(desk, first, quality="left", personalization="left", comment="SECRET-ONE")
    pages = []
    for _ in range(4):
        shown = second.get(url(desk))
        pages.append(shown.content.decode())
        token = shown.context["pair"].token
        pages.append(second.get(url(desk, "diff"), {"token": token}).content.decode())
        pages.append(
            send(desk, second, token, quality="right", personalization="tie").content.decode()
        )
        pages.append(second.get(url(desk, "submission"), {"token": token}).content.decode())
    pages += [second.get(url(desk, name)).content.decode() for name in ("history", "guidelines")]
    pages.append(second.get("/annotation/work/").content.decode())
    for page in pages:
        assert "SECRET-ONE" not in page
        assert not SECRET.search(page), SECRET.search(page)
        assert desk.member(desk.people[0]).pseudonym not in page
        assert desk.people[0].username not in page


def test_the_context_of_the_page_holds_no_item() -> None:
    desk = make_desk()
    working(desk)
    context = at_desk(desk).get(url(desk)).context
    names = {name for layer in context for part in layer for name in part}
    assert not names & {"item", "lease", "gold", "member", "seat", "labels", "decision"}
    assert set(vars(context["pair"])) == {
        "token", "persona_summary", "persona_lang", "messages", "left_html", "right_html",
        "near_identical", "lang",
    }  # fmt: skip


def test_a_repeat_looks_like_any_other_item_in_the_history() -> None:
    desk = make_desk(people=1, n_items=40, settings={"repeat_percent": 50})
    working(desk)
    client = at_desk(desk)
    while not Lease.objects.filter(repeat=1, state=LeaseState.SUBMITTED).exists():
        send_next(desk, client)
    repeat = Lease.objects.get(repeat=1, state=LeaseState.SUBMITTED)
    earlier = Lease.objects.get(item=repeat.item, repeat=0)
    assert repeat.first_left != earlier.first_left
    rows = {row.token: row for row in client.get(url(desk, "history")).context["rows"]}
    one, other = rows[repeat.token], rows[earlier.token]
    assert (one.question, one.given, one.revisions, one.late) == (
        other.question, other.given, other.revisions, other.late,
    )  # fmt: skip
    assert not SECRET.search(client.get(url(desk, "history")).content.decode())


PAYLOAD = (
    '</textarea><script>alert(1)</script><img src=x onerror="alert(2)"> {{ 7|add:7 }} {% now "Y" %}'
)


TAG = "<script>alert(1)</script><img src=x onerror=alert(2)> {{ 7 }}"


def test_payloads_in_every_field_are_shown_as_text() -> None:
    desk = make_desk(people=1, n_items=0, name=f"Odd {PAYLOAD[:90]}", settings={"tags": [TAG]})
    prompt = get_or_create_prompt(messages=f"Why {PAYLOAD}?")
    draft = ItemDraft(prompt.pk, prompt.text_hash, f"One {PAYLOAD}", f"Two. {PAYLOAD} More words.",
                      desk.versions[0].pk)  # fmt: skip
    add_items(project=desk.project, drafts=[draft])
    item = desk.items()[0]
    make_gold(actor=desk.manager, item=item, verdicts={"quality": "first"}, explanation=PAYLOAD,
              onboarding=True)  # fmt: skip
    from annotation.services.projects import change_project, move_project, publish_guidelines

    publish_guidelines(actor=desk.manager, project=desk.project, text=PAYLOAD)
    change_project(actor=desk.manager, project=desk.project, settings={"onboarding_size": 1})
    desk.project = move_project(actor=desk.manager, project=desk.project, to="open")
    client = at_desk(desk)
    token = token_of(desk, client)
    pages = [client.get(url(desk)), client.get(url(desk, "guidelines"))]
    pages.append(client.get(url(desk, "diff"), {"token": token}))
    pages.append(send(desk, client, token, quality="left", comment=PAYLOAD, tags=TAG))
    pages.append(send(desk, client, token, quality="left", personalization="tie", comment=PAYLOAD))
    pages.append(client.post(url(desk, "contest"), {"token": token, "text": PAYLOAD * 30}))
    client.post(url(desk, "contest"), {"token": token, "text": PAYLOAD})
    pages += [
        client.get(url(desk, "submission"), {"token": token}),
        client.get(url(desk, "history")),
    ]
    pages.append(client.get("/annotation/work/"))
    assert Label.objects.exists()
    for response in pages:
        page = response.content.decode()
        assert "<script>alert" not in page
        assert "<img src=x" not in page
        assert "{{ 7|add:7 }}" in page
        assert "script-src 'self'" in response["Content-Security-Policy"]


def test_prefetching_tells_nothing_about_what_comes() -> None:
    desk = make_desk(people=1, n_items=3, settings=GOLD)
    working(desk)
    add_pairs(desk, 1, start=10)
    for item in Item.objects.filter(project=desk.project).order_by("pk")[:1]:
        make_gold(actor=desk.manager, item=item, verdicts={"quality": "first"})
    client = at_desk(desk)
    token = token_of(desk, client)
    answers = []
    for _ in range(3):
        at_gold(desk)
        response = client.post(url(desk, "prefetch"), {"token": token})
        answers.append((response.status_code, response.content, sorted(response.headers.items())))
    assert answers[0][:2] == (204, b"")
    assert answers[0] == answers[1] == answers[2]
    assert desk.member(desk.people[0]).state == MemberState.WORKING

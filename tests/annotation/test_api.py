"""The API of annotation: work by token, blind and once; projects and data for managers."""

from __future__ import annotations

import io
import json
from datetime import timedelta
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from annotation.enums import ItemState, LeaseState
from annotation.models import Guideline, Item, Label, Lease, Member, Project
from annotation.services.gold import make_gold
from annotation.services.statistics import compute_statistics
from tests.annotation.factories import Desk, label_all, make_desk, submit, working
from tests.catalog.factories import make_answer, seal
from webapp.accounts.models import User
from webapp.accounts.services import create_api_token
from webapp.catalog.models import Exposure

pytestmark = pytest.mark.django_db
API = "/api/v1/annotation/"
JSON = "application/json"
SECRETS = ("Harbor", "Quarry", "pairs.jsonl", "gold", "repeat", "producer", "first_left", "mara")


class Caller:
    """A person with a token."""

    def __init__(self, user: User | None) -> None:
        self.client, self.user = Client(), user
        token = create_api_token(user=user, name="test") if user else ""
        self.headers = {"Authorization": f"Token {token}"} if user else {}

    def __call__(self, method: str, path: str, data: Any = None, **options: Any) -> Any:
        body = None if data is None else json.dumps(data)
        kind: dict[str, Any] = {} if data is None else {"content_type": JSON}
        options.setdefault("headers", self.headers)
        return self.client.generic(method, API + path, body or "", **kind, **options)

    def get(self, path: str, **options: Any) -> Any:
        return self("GET", path, **options)

    def post(self, path: str, data: Any = None, **options: Any) -> Any:
        return self("POST", path, {} if data is None else data, **options)


def read_guidelines(desk: Desk) -> None:
    newest = Guideline.objects.get(project=desk.project)
    desk.project.members.update(guideline_read=newest)


@pytest.fixture
def desk() -> Desk:
    made = make_desk(people=2, n_items=6)
    read_guidelines(made)
    return made


def answer_to(task: dict[str, Any], verdict: str = "left") -> dict[str, Any]:
    return {"token": task["token"], "verdicts": dict.fromkeys(task["axes"], verdict)}


# --- work ---------------------------------------------------------------------------------------


def test_an_annotator_labels_from_the_first_request_to_the_last(desk: Desk) -> None:
    ann = Caller(desk.people[0])
    [seat] = ann.get("work/").json()
    assert (seat["id"], seat["your_state"], seat["done"]) == (desk.project.pk, "onboarding", 0)
    given = 0
    while (found := ann.post(f"work/{seat['id']}/next/")).status_code == 200:
        task = found.json()
        assert sorted([task["left"][:5], task["right"][:5]]) == ["Short", "Step "]
        assert task["messages"][0]["content"].startswith("How do I do thing")
        assert task["expires_in"] > 800
        assert task["verdicts"] == ["left", "tie", "right", "both_bad"]
        said = ann.post("work/labels/", answer_to(task)).json()
        assert (said["revision"], said["again"], said["late"], said["extra"]) == (1, 0, 0, 0)
        given += 1
    assert (found.status_code, given) == (204, 6)
    assert set(Label.objects.values_list("source", flat=True)) == {"api"}
    assert {item.state for item in desk.items()} == {ItemState.DONE}


def test_asking_again_gives_the_same_item_and_answering_again_the_same_label(desk: Desk) -> None:
    ann = Caller(desk.people[0])
    task = ann.post(f"work/{desk.project.pk}/next/").json()
    assert ann.post(f"work/{desk.project.pk}/next/").json()["token"] == task["token"]
    one, two = (ann.post("work/labels/", answer_to(task)) for _n in range(2))
    assert (one.status_code, two.status_code) == (200, 200)
    assert (one.json()["again"], two.json()["again"]) == (False, True)
    changed = ann.post("work/labels/", answer_to(task, "tie")).json()
    assert (changed["revision"], changed["again"]) == (2, False)
    assert Label.objects.count() == 2


def test_the_guidelines_come_first(desk: Desk) -> None:
    desk.project.members.update(guideline_read=None)
    ann, pk = Caller(desk.people[0]), desk.project.pk
    refused = ann.post(f"work/{pk}/next/")
    assert (refused.status_code, refused.json()["code"]) == (409, "guidelines_unread")
    text = ann.get(f"work/{pk}/guidelines/").json()
    assert text["text"].startswith("Read both answers")
    assert ann.post(f"work/{pk}/guidelines/", {"n": 99}).status_code == 422
    assert ann.post(f"work/{pk}/guidelines/", {"n": text["n"]}).status_code == 204
    assert ann.post(f"work/{pk}/next/").status_code == 200


def test_late_work_is_kept_and_said(desk: Desk) -> None:
    ann, other = Caller(desk.people[0]), Caller(desk.people[1])
    pk = desk.project.pk
    tasks = [caller.post(f"work/{pk}/next/").json() for caller in (ann, other)]
    Lease.objects.update(expires_at=timezone.now() - timedelta(seconds=1))
    late = ann.post("work/labels/", answer_to(tasks[0])).json()
    assert (late["late"], late["extra"]) == (True, False)
    Item.objects.filter(leases__token=tasks[1]["token"]).update(live=0)
    Lease.objects.filter(token=tasks[1]["token"]).update(state=LeaseState.EXPIRED, counted=False)
    Item.objects.filter(leases__token=tasks[1]["token"]).update(state=ItemState.DROPPED)
    extra = other.post("work/labels/", answer_to(tasks[1])).json()
    assert (extra["late"], extra["extra"]) == (True, True)


def test_what_is_left_is_told_in_tens() -> None:
    """An exact number would stand still before hidden gold and repeats, and count down else."""
    desk = make_desk(people=1, n_items=19)
    read_guidelines(desk)
    ann = Caller(desk.people[0])
    assert [seat["left"] for seat in ann.get("work/").json()] == [10]
    ann.post(f"work/{desk.project.pk}/next/")
    assert [seat["left"] for seat in ann.get("work/").json()] == [10]


def test_taking_back_skipping_drafts_and_the_heartbeat(desk: Desk) -> None:
    ann, pk = Caller(desk.people[0]), desk.project.pk
    task = ann.post(f"work/{pk}/next/").json()
    token = {"token": task["token"]}
    assert ann.post("work/heartbeats/", token).json()["expires_in"] > 800
    draft = {**token, "verdicts": {"quality": "tie"}, "comment": "half", "tags": ["wrong"]}
    assert ann("PUT", "work/drafts/", draft).status_code == 204
    kept = ann.post(f"work/{pk}/next/").json()["draft"]
    assert (kept["quality"], kept["comment"], kept["tags"]) == ("tie", "half", ["wrong"])
    ann.post("work/labels/", answer_to(task))
    gone = ann.post("work/heartbeats/", token)
    assert (gone.status_code, gone.json()["code"]) == (409, "lease_gone")
    again = ann.post("work/undo/", token).json()
    assert (again["token"], again["draft"]["quality"]) == (task["token"], "left")
    assert ann.post("work/undo/", token).json()["token"] == task["token"]
    assert ann.post("work/skips/", {**token, "reason": "language"}).status_code == 204
    assert ann.post("work/skips/", {**token, "reason": "language"}).status_code == 204
    assert ann.post(f"work/{pk}/next/").json()["token"] != task["token"]
    assert ann.post("work/undo/", token).status_code == 204
    assert ann.post("work/skips/", {**token, "reason": "bored"}).status_code == 400


def test_what_is_missing_is_named(desk: Desk) -> None:
    ann = Caller(desk.people[0])
    task = ann.post(f"work/{desk.project.pk}/next/").json()
    sent = {"token": task["token"], "verdicts": {"quality": "left"}}
    missing = ann.post("work/labels/", sent)
    assert (missing.status_code, missing.json()["code"]) == (422, "missing_verdict")
    assert list(missing.json()["fields"]) == ["personalization"]
    for verdicts in (
        {"quality": "best"},
        {"style": "left"},
        {"\ud83d": "left"},
        {"quality": "\ud83d"},
    ):
        bad = ann.post("work/labels/", {**sent, "verdicts": verdicts})
        assert (bad.status_code, list(bad.json()["fields"])) == (400, ["verdicts"])
    for comment in ("a\x00b", "a\ud83db", "x" * 2001):
        bad = ann.post("work/labels/", {**answer_to(task), "comment": comment})
        assert (bad.status_code, list(bad.json()["fields"])) == (400, ["comment"])
    assert not Label.objects.exists()


def test_somebody_elses_item_and_project_are_refused(desk: Desk, chen: User) -> None:
    ann, stranger = Caller(desk.people[0]), Caller(chen)
    task = ann.post(f"work/{desk.project.pk}/next/").json()
    token = {"token": task["token"]}
    assert stranger.get("work/").json() == []
    for refused in (
        stranger.post(f"work/{desk.project.pk}/next/"),
        stranger.post("work/99999/next/"),
        stranger.get(f"work/{desk.project.pk}/guidelines/"),
        stranger.post("work/labels/", answer_to(task)),
        stranger.post("work/undo/", token),
        Caller(desk.people[1]).post("work/labels/", answer_to(task)),
    ):
        assert refused.status_code == 403, refused.json()
    assert stranger.post("work/skips/", {**token, "reason": "unsure"}).status_code == 204
    assert stranger("PUT", "work/drafts/", {**token, "comment": "mine"}).status_code == 204
    lease = Lease.objects.get()
    assert (lease.state, lease.draft) == (LeaseState.SHOWN, {})


def test_a_closed_project_hands_out_nothing_but_takes_what_is_out(desk: Desk) -> None:
    ann = Caller(desk.people[0])
    task = ann.post(f"work/{desk.project.pk}/next/").json()
    Caller(desk.manager).post(f"projects/{desk.project.pk}/move/", {"to": "closed"})
    refused = ann.post(f"work/{desk.project.pk}/next/")
    assert (refused.status_code, refused.json()["code"]) == (409, "project_not_open")
    assert ann.post("work/labels/", answer_to(task)).status_code == 200


def test_somebody_who_learns_is_told_what_was_right() -> None:
    desk = make_desk(people=1, n_items=4, settings={"onboarding_size": 1})
    read_guidelines(desk)
    make_gold(
        actor=desk.manager,
        item=desk.items()[0],
        verdicts={"quality": "first"},
        explanation="Shorter.",
        onboarding=True,
    )
    ann = Caller(desk.people[0])
    for expected in ("Shorter.", None):
        task = ann.post(f"work/{desk.project.pk}/next/").json()
        feedback = ann.post("work/labels/", answer_to(task)).json()["feedback"]
        assert (feedback and feedback["explanation"]) == expected


def keys_of(found: Any) -> set[str]:
    if isinstance(found, dict):
        return set(found) | {key for value in found.values() for key in keys_of(value)}
    if isinstance(found, list):
        return {key for value in found for key in keys_of(value)}
    return set()


def test_nothing_that_an_annotator_gets_tells_a_producer_gold_or_others_labels() -> None:
    """T20: every answer of every address, while items are gold, repeated, disputed, labelled."""
    desk = make_desk(
        people=3,
        n_items=40,
        settings={"base_overlap": 2, "max_overlap": 3, "gold_percent": 25, "repeat_percent": 25,
                  "gold_minimum": 99},
    )  # fmt: skip
    read_guidelines(desk)
    for item in desk.items()[:10]:
        make_gold(
            actor=desk.manager, item=item, verdicts={"quality": "second"}, explanation="Because."
        )
    working(desk)
    ann, pk, said = Caller(desk.people[0]), desk.project.pk, []
    shapes = set()
    for n in range(60):
        lease_of_other(desk, n)
        found = ann.post(f"work/{pk}/next/")
        said.append(found)
        if found.status_code == 204:
            break
        task = found.json()
        token = {"token": task["token"]}
        said += [
            ann.post("work/heartbeats/", token),
            ann("PUT", "work/drafts/", {**token, "verdicts": {"quality": "tie"}}),
            ann.post("work/labels/", {**answer_to(task), "verdicts": {}}),
            ann.post("work/labels/", answer_to(task)),
        ]
        shapes.add(tuple(sorted(keys_of(said[-1].json()) | keys_of(task))))
        if n % 7 == 0:
            said += [ann.post("work/undo/", token), ann.post("work/labels/", answer_to(task))]
    said += [ann.get("work/"), ann.get(f"work/{pk}/guidelines/")]
    member = desk.member(desk.people[0])
    assert member.leases.filter(repeat=1).exists()
    assert member.leases.filter(item__state=ItemState.GOLD).exists()
    assert len(shapes) == 1
    everything = "".join(found.content.decode() for found in said)
    for secret in (*SECRETS, "Because", "ann-2", "ann-3", desk.member(desk.people[1]).pseudonym):
        assert secret not in everything, secret
    for item in desk.items():
        assert item.public_id not in everything
        assert item.content_sha256 not in everything
    for path in manager_paths(desk):
        refused = ann.get(path)
        assert refused.status_code == 403, path
        assert set(refused.json()) == {"code", "message", "fields"}


def lease_of_other(desk: Desk, n: int) -> None:
    from annotation.services import leases

    user = desk.people[1 + n % 2]
    lease = leases.serve(user=user, project=desk.project).lease
    if lease is not None:
        submit(user, lease, "second" if n % 3 else "tie")


def manager_paths(desk: Desk) -> list[str]:
    base = f"projects/{desk.project.pk}/"
    item = desk.items()[0].public_id
    names = ["", "members/", "agreement/", "items/", f"items/{item}/", "imports/", "exports/"]
    return ["projects/", *(base + name for name in names)]


@pytest.mark.parametrize("extra", [{}, {"gold_percent": 30, "repeat_percent": 20}])
def test_asking_and_answering_take_few_queries(
    extra: dict[str, Any], django_assert_max_num_queries: Any
) -> None:
    """With the two statements that know who asks; what begins and ends a transaction counts."""
    desk = make_desk(people=2, n_items=40, settings={**extra, "gold_minimum": 99})
    read_guidelines(desk)
    working(desk)
    for item in desk.items()[:8] if extra else []:
        make_gold(actor=desk.manager, item=item, verdicts={"quality": "first"})
    ann = Caller(desk.people[0])
    for _n in range(20):
        with django_assert_max_num_queries(16):
            task = ann.post(f"work/{desk.project.pk}/next/").json()
        with django_assert_max_num_queries(15):
            assert ann.post("work/labels/", answer_to(task)).status_code == 200


# --- managers -----------------------------------------------------------------------------------


def test_a_manager_makes_changes_and_opens_a_project(alice: User, chen: User) -> None:
    boss = Caller(alice)
    made = boss.post("projects/", {"name": "Pairs", "guidelines": "Be fair.", "axes": ["quality"]})
    assert made.status_code == 201
    pk = made.json()["id"]
    assert (made.json()["state"], made.json()["guideline"]) == ("draft", 1)
    taken = boss.post("projects/", {"name": "Pairs", "guidelines": "Be fair."})
    assert (taken.status_code, taken.json()["code"]) == (422, "taken")
    changed = boss("PATCH", f"projects/{pk}/", {"base_overlap": 1, "guidelines": "Be fairer."})
    assert (changed.json()["base_overlap"], changed.json()["guideline"]) == (1, 2)
    refused = boss("PATCH", f"projects/{pk}/", {"gold_percent": 40, "repeat_percent": 40})
    assert (refused.status_code, list(refused.json()["fields"])) == (422, ["gold_percent"])
    empty = boss.post(f"projects/{pk}/move/", {"to": "open"})
    assert (empty.status_code, empty.json()["code"]) == (409, "no_items")
    assert boss.post(f"projects/{pk}/members/", {"usernames": ["nobody"]}).status_code == 422
    people = boss.post(f"projects/{pk}/members/", {"usernames": ["chen"]}).json()
    assert [(row["username"], row["submitted"]) for row in people] == [("chen", 0)]
    boss.post(f"projects/{pk}/items/", {"items": [pair(1)]})
    opened = boss.post(f"projects/{pk}/move/", {"to": "open"})
    assert (opened.status_code, opened.json()["state"]) == (200, "open")
    [row] = boss.get("projects/").json()["results"]
    assert (row["id"], row["total"], row["people"]) == (pk, 1, 1)


def pair(n: int, **more: Any) -> dict[str, Any]:
    return {
        "prompt": f"How do I do number {n}?",
        "first": {"text": f"Short: run {n}.", "producer": "Harbor"},
        "second": {"text": f"Step by step. First think of {n}.", "producer": "Quarry"},
        **more,
    }


def test_items_are_added_once_and_bad_rows_are_named_one_by_one(desk: Desk) -> None:
    boss = Caller(desk.manager)
    persona = {"pseudonym": "p-1", "summary": "Likes it short.", "features": {}}
    sent = [
        pair(100, persona=persona),
        {"prompt": "No answers"},
        pair(101, first=""),
        pair(102, second={"text": "a\ud83d"}),
        pair(103, first={"text": "a\x00"}),
        pair(100, persona=persona),
        {**pair(104), "colour": "red"},
        pair(105),
    ]
    said = boss.post(f"projects/{desk.project.pk}/items/", {"items": sent}).json()
    found = [(row["status"], row["field"]) for row in said["rows"]]
    assert found[0] == ("added", "")
    assert [status for status, _field in found] == [
        "added", "refused", "added", "refused", "refused", "known", "refused", "added",
    ]  # fmt: skip
    assert said["rows"][2]["flags"] == ["empty_side", "no_persona"]
    assert said["rows"][0]["item"] == said["rows"][5]["item"]
    assert all(row["message"] and row["code"] for row in said["rows"] if row["code"])
    assert (said["added"], said["known"], said["refused"]) == (3, 1, 4)
    again = boss.post(f"projects/{desk.project.pk}/items/", {"items": sent}).json()
    assert (again["added"], again["known"], again["refused"]) == (0, 4, 4)
    assert desk.project.items.count() == 9


def test_too_many_or_too_large_items_are_refused(desk: Desk) -> None:
    boss, path = Caller(desk.manager), f"projects/{desk.project.pk}/items/"
    many = boss.post(path, {"items": [pair(n) for n in range(1001)]})
    assert (many.status_code, list(many.json()["fields"])) == (400, ["items"])
    assert boss.post(path, {"items": []}).status_code == 400
    large = boss.post(path, {"items": [pair(1)]}, CONTENT_LENGTH=str(9 * 1024 * 1024))
    assert (large.status_code, large.json()["code"]) == (413, "too_large")


def test_items_are_listed_by_filters_and_pages(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    from annotation.api.common import InOrder

    monkeypatch.setattr(InOrder, "page_size", 4)
    boss, path = Caller(desk.manager), f"projects/{desk.project.pk}/items/"
    submit_one(desk)
    page = boss.get(path).json()
    assert len(page["results"]) == 4
    rest = boss.get(path + "?" + page["next"].partition("?")[2]).json()
    ids = [row["id"] for row in page["results"] + rest["results"]]
    assert ids == [item.public_id for item in desk.items()]
    [done] = boss.get(f"{path}?state=done").json()["results"]
    assert done["decisions"]["quality"]["verdict"] == "first"
    assert boss.get(f"{path}?state=odd").status_code == 400
    assert boss.get(f"{path}?cursor=odd").status_code == 404
    assert boss.get("projects/99999/items/").status_code == 404
    everything = boss.get(path).content.decode()
    assert not [secret for secret in ("Harbor", "Short:", "pairs.jsonl") if secret in everything]


def submit_one(desk: Desk, verdict: str = "first") -> Lease:
    from annotation.services import leases

    lease = leases.serve(user=desk.people[0], project=desk.project).lease
    assert lease is not None
    submit(desk.people[0], lease, verdict, comment="so it is")
    return lease


def test_an_item_shows_labels_and_producers_and_reading_is_noted(desk: Desk) -> None:
    boss, lease = Caller(desk.manager), submit_one(desk)
    answer = make_answer(lease.item.body.first)
    path = f"projects/{desk.project.pk}/items/{lease.item.public_id}/"
    found = boss.get(path).json()
    assert (found["first"][:5], found["producers"]["first"]) == ("Short", "Harbor")
    [label] = found["labels"]
    assert label["annotator"] == desk.member(desk.people[0]).pseudonym
    assert (label["verdicts"]["quality"], label["comment"]) == ("first", "so it is")
    assert Exposure.objects.filter(user=desk.manager, answer=answer, where="audited").exists()
    assert boss.get(f"projects/{desk.project.pk}/items/{'0' * 32}/").status_code == 404
    assert boss.get(f"projects/{desk.project.pk}/items/{lease.item_id}/").status_code == 404


def test_no_producer_is_named_while_a_sealed_round_shows_a_text(desk: Desk) -> None:
    boss, item = Caller(desk.manager), desk.items()[0]
    seal(make_answer(item.body.second))
    found = boss.get(f"projects/{desk.project.pk}/items/{item.public_id}/")
    assert found.json()["producers"] is None
    for secret in ("Harbor", "Quarry", "pairs.jsonl"):
        assert secret not in found.content.decode()


def test_labels_of_a_disputed_item_are_shown_only_if_asked_for() -> None:
    desk = make_desk(people=2, n_items=1, settings={"base_overlap": 2, "max_overlap": 2})
    label_all(desk, lambda lease: "first" if lease.member.user == desk.people[0] else "second")
    boss, item = Caller(desk.manager), desk.items()[0]
    path = f"projects/{desk.project.pk}/items/{item.public_id}/"
    found = boss.get(path).json()
    assert (found["state"], found["labels"]) == ("disputed", [])
    assert len(boss.get(f"{path}?labels=1").json()["labels"]) == 2


def test_agreement_is_what_the_job_computed(desk: Desk) -> None:
    boss, path = Caller(desk.manager), f"projects/{desk.project.pk}/agreement/"
    assert boss.get(path).json() == {"created_at": None, "labels_seen": 0, "report": None}
    label_all(desk)
    compute_statistics(pk=desk.project.pk)
    found = boss.get(path).json()
    assert found["created_at"]
    assert found["report"]["everybody"]


def lines(*rows: dict[str, Any]) -> bytes:
    return "".join(json.dumps(row) + "\n" for row in rows).encode()


@pytest.mark.parametrize("form", [True, False])
def test_a_file_is_checked_then_imported(
    form: bool, desk: Desk, django_capture_on_commit_callbacks: Any
) -> None:
    boss, path = Caller(desk.manager), f"projects/{desk.project.pk}/imports/"
    content = lines(pair(200), {"prompt": "bad"}, pair(201))
    with django_capture_on_commit_callbacks(execute=True):
        if form:
            file = io.BytesIO(content)
            file.name = "more.jsonl"
            checked = boss.client.post(API + path, {"file": file}, headers=boss.headers)
        else:
            checked = boss.client.generic(
                "POST",
                f"{API}{path}?name=more.jsonl&key=one",
                content,
                content_type="application/octet-stream",
                headers=boss.headers,
            )
    assert checked.status_code == 202, checked.content
    run = boss.get(f"{path}{checked.json()['id']}/").json()
    assert (run["dry_run"], run["state"], run["added"], run["refused"]) == (True, "done", 2, 1)
    assert desk.project.items.count() == 6
    with django_capture_on_commit_callbacks(execute=True):
        started = boss.post(f"{path}{run['id']}/start/")
    assert started.status_code == 202
    again = boss.post(f"{path}{run['id']}/start/").json()
    assert (again["id"], again["added"], again["state"]) == (started.json()["id"], 2, "done")
    assert desk.project.items.count() == 8

    def refused() -> Any:
        sent = boss.get(f"{path}{again['id']}/errors/")
        [line] = b"".join(sent.streaming_content).decode().splitlines()
        return json.loads(line)

    assert refused()["line"] == 2
    assert refused()["row"]
    seal(make_answer("bad"))  # a round holds the text of that row now (V1)
    assert (refused()["line"], refused()["row"]) == (2, None)
    assert boss.get(f"{path}{run['id']}/").json()["import_run"] == again["id"]
    assert len(boss.get(path).json()["results"]) == 2
    assert boss.post(f"{path}{again['id']}/start/").status_code == 409


def test_an_upload_without_a_file_or_too_large_is_refused(desk: Desk, settings: Any) -> None:
    boss, path = Caller(desk.manager), f"{API}projects/{desk.project.pk}/imports/"
    assert boss.client.post(path, {}, headers=boss.headers).status_code == 422
    settings.UPLOAD_LIMIT = 10
    kind = "application/octet-stream"
    large = boss.client.generic("POST", path, b"x" * 11, content_type=kind, headers=boss.headers)
    assert (large.status_code, large.json()["code"]) == (422, "too_large")
    assert boss.client.post(path, b"{}", content_type=JSON, headers=boss.headers).status_code == 415


def test_an_export_is_made_watched_and_fetched(
    desk: Desk, django_capture_on_commit_callbacks: Any
) -> None:
    label_all(desk)
    boss, path = Caller(desk.manager), f"projects/{desk.project.pk}/exports/"
    asked = {"options": {"format": "palate_pairs"}, "key": "one"}
    with django_capture_on_commit_callbacks(execute=True):
        made = boss.post(path, asked)
    assert made.status_code == 202
    assert boss.post(path, asked).json()["id"] == made.json()["id"]
    run = boss.get(f"{path}{made.json()['id']}/").json()
    assert (run["state"], run["rows_done"]) == ("done", 6)
    file = boss.get(f"{path}{run['id']}/file/")
    content = b"".join(file.streaming_content)
    assert (file.status_code, len(content), content.count(b"\n")) == (200, run["size"], 6)
    assert len(boss.get(path).json()["results"]) == 1
    odd = boss.post(path, {"options": {"format": "odd"}})
    assert (odd.status_code, list(odd.json()["fields"])) == (422, ["format"])
    other = Project.objects.exclude(pk=desk.project.pk).count()
    assert other == 0
    assert boss.get(f"{path}99999/file/").status_code == 404


# --- who may ------------------------------------------------------------------------------------


def test_roles_and_methods(desk: Desk, bob: User, vera: User, anna: User) -> None:
    member = Member.objects.filter(user=bob)
    assert not member.exists()
    for path in manager_paths(desk):
        assert Caller(None).get(path).status_code == 401
        for user in (bob, vera, desk.people[0]):
            assert Caller(user).get(path).status_code == 403, path
        assert Caller(anna).get(path).status_code == 200, path
        assert Caller(anna)("DELETE", path).status_code == 405
    for path in ("work/", f"work/{desk.project.pk}/guidelines/"):
        assert Caller(None).get(path).status_code == 401
        for user in (vera, anna):
            assert Caller(user).get(path).status_code == 403
    for name in ("labels", "undo", "skips", "heartbeats"):
        assert Caller(vera).post(f"work/{name}/").status_code == 403
        assert Caller(desk.people[0]).get(f"work/{name}/").status_code == 405

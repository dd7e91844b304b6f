"""Webhooks: told in the transaction, sent signed and again, never with what must stay hidden."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator
from datetime import timedelta
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any

import pytest
from django.conf import settings as settings_module
from django.db import transaction
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from annotation import signing
from annotation.enums import DeliveryState, WebhookEvent
from annotation.models import Delivery, Webhook
from annotation.services import appeals, deliveries, exports, labels, projects, webhooks
from annotation.services.gold import make_gold
from annotation.services.sent_pairs import add_sent_pairs
from tests.annotation.factories import (
    Desk,
    label_all,
    label_once,
    make_desk,
    submit,
    working,
)
from tests.conftest import PASSWORD
from webapp.accounts.models import User
from webapp.core.errors import InvalidInput, Refused, TooMany
from webapp.core.models import Event

pytestmark = pytest.mark.django_db
EVERYTHING = [event.value for event in webhooks.CHOICES]


class Receiver:
    """An HTTP server on this machine that keeps what it gets; `answers` are its next statuses."""

    def __init__(self) -> None:
        receiver = self
        self.got: list[tuple[dict[str, str], bytes]] = []
        self.answers: list[tuple[int, dict[str, str]]] = []

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                receiver.got.append((dict(self.headers), body))
                status, headers = receiver.answers.pop(0) if receiver.answers else (204, {})
                self.send_response(status)
                for name, value in headers.items():
                    self.send_header(name, value)
                self.end_headers()

            def log_message(self, *args: Any) -> None:
                """Silent."""

        self.server = HTTPServer(("127.0.0.1", 0), Handler)
        self.thread = threading.Thread(target=self.server.serve_forever, daemon=True)
        self.thread.start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server.server_port}/hook"

    @property
    def events(self) -> list[str]:
        return [json.loads(body)["event"] for _headers, body in self.got]


@pytest.fixture
def receiver(settings: Any) -> Iterator[Receiver]:
    settings.OUTBOUND_ALLOW = ["127.0.0.1"]
    made = Receiver()
    yield made
    made.server.shutdown()
    made.server.server_close()
    made.thread.join(5)


@pytest.fixture
def desk() -> Desk:
    return make_desk(people=2, n_items=4)


def hook_for(desk: Desk, url: str, *events: str) -> Webhook:
    return webhooks.create_webhook(
        actor=desk.manager, project=desk.project, url=url, events=events or EVERYTHING
    )


def due_now(hook: Webhook) -> None:
    past = timezone.now() - timedelta(seconds=1)
    Delivery.objects.filter(webhook=hook, state="waiting").update(next_at=past)
    Webhook.objects.filter(pk=hook.pk).update(wait_until=None)


# --- what is told -------------------------------------------------------------------------------


def test_what_happens_is_told_with_ids_counts_and_pseudonyms_only(receiver: Receiver) -> None:
    """Every event, and in no payload a text, a producer, a name, a verdict, or a word of gold."""
    desk = make_desk(people=3, n_items=6, settings={"base_overlap": 2, "max_overlap": 2})
    hook = hook_for(desk, receiver.url)
    working(desk)
    add_sent_pairs(
        actor=desk.manager,
        project=desk.project,
        rows=[
            {
                "prompt": "Why?",
                "persona": {"pseudonym": "p-9", "summary": "Asks twice."},
                "first": {"text": "Because.", "producer": "Marsh"},
                "second": "X",
            }
        ],
    )
    gold = desk.items()[0]
    make_gold(actor=desk.manager, item=gold, verdicts={"quality": "first"}, explanation="Shorter.")
    done = label_once(desk, desk.people[0], comment="my own words")
    labels.undo_label(user=desk.people[0], token=done.lease.token)
    label_all(desk, lambda lease: "first" if lease.member.user == desk.people[0] else "second")
    label_all(desk)
    appeals.raise_appeal(user=desk.people[0], token=done.lease.token, text="I was right.")
    run = exports.start_export(
        actor=desk.manager,
        project=desk.project,
        options={"format": "palate_pairs"},
        key="k",
        send=False,
    )
    exports.run_export(pk=run.pk)
    projects.move_project(actor=desk.manager, project=desk.project, to="closed", reason="enough")

    rows = list(Delivery.objects.filter(webhook=hook).order_by("pk"))
    assert {row.event for row in rows} == set(EVERYTHING)
    for row in rows:
        assert set(row.payload) <= {"project", *webhooks.FIELDS[row.event]}
        assert set(row.payload) == {"project", *webhooks.FIELDS[row.event]}
    everything = json.dumps([row.payload for row in rows])
    items = [item.public_id for item in desk.items()]
    assert all(pid in everything for pid in items if pid != gold.public_id)
    for secret in (
        "Short", "Step", "Harbor", "Quarry", "Marsh", "Because", "Why", "pairs.jsonl", "my own",
        "I was right", "enough", "ann-", "mara", "Pairs", "gold", "first", "second",
        "tie", "both_bad", "repeat", "novice", "expert",
    ):  # fmt: skip
        assert secret not in everything, secret


def test_labels_on_gold_repeats_and_ordinary_items_are_told_alike(receiver: Receiver) -> None:
    desk = make_desk(
        people=1,
        n_items=40,
        settings={"gold_percent": 30, "repeat_percent": 20, "gold_minimum": 99},
    )
    hook_for(desk, receiver.url, WebhookEvent.LABEL_SUBMITTED)
    working(desk)
    for item in desk.items()[:10]:
        make_gold(actor=desk.manager, item=item, verdicts={"quality": "second"})
    label_all(desk)
    shapes = {
        (tuple(sorted(row.payload)), row.payload["late"], row.payload["revision"])
        for row in Delivery.objects.all()
    }
    assert len(shapes) == 1
    assert Delivery.objects.count() > 30


def test_a_field_that_nobody_listed_is_a_mistake(desk: Desk) -> None:
    with pytest.raises(ValueError, match="verdict"):
        webhooks.announce(desk.project, WebhookEvent.ITEM_DISPUTED, {"verdict": "first"})


def test_nothing_is_told_of_what_fails_and_nothing_that_was_not_chosen(
    desk: Desk, receiver: Receiver
) -> None:
    hook_for(desk, receiver.url, WebhookEvent.PROJECT_STATE)
    other = make_desk(people=0, n_items=0, name="Other")
    hook_for(other, receiver.url)

    def move_in_vain() -> None:
        with transaction.atomic():
            projects.move_project(actor=desk.manager, project=desk.project, to="paused")
            raise RuntimeError

    with pytest.raises(RuntimeError):
        move_in_vain()
    label_once(desk, desk.people[0])
    assert not Delivery.objects.exists()
    projects.move_project(actor=desk.manager, project=desk.project, to="paused")
    assert Delivery.objects.get().payload == {
        "project": desk.project.pk,
        "before": "open",
        "after": "paused",
    }


def test_the_same_label_sent_twice_is_told_once(desk: Desk, receiver: Receiver) -> None:
    hook_for(desk, receiver.url, WebhookEvent.LABEL_SUBMITTED, WebhookEvent.ITEM_SETTLED)
    done = label_once(desk, desk.people[0])
    submit(desk.people[0], done.lease, "first")
    assert sorted(Delivery.objects.values_list("event", flat=True)) == [
        "item.settled",
        "label.submitted",
    ]


def test_without_a_webhook_submitting_asks_nothing_more(
    desk: Desk, django_assert_num_queries: Any
) -> None:
    for _n in range(2):  # the listing is read along with the lease
        lease = desk_lease(desk)
        with django_assert_num_queries(11):
            submit(desk.people[0], lease, "first")


def desk_lease(desk: Desk) -> Any:
    from annotation.services import leases

    return leases.serve(user=desk.people[0], project=desk.project).lease


# --- sending ------------------------------------------------------------------------------------


def test_a_delivery_is_signed_and_can_be_verified(desk: Desk, receiver: Receiver) -> None:
    hook = hook_for(desk, receiver.url)
    label_once(desk, desk.people[0])
    assert deliveries.deliver_due(pk=hook.pk) == 2
    headers, body = receiver.got[0]
    secret, now = webhooks.secret_of(hook), int(time.time())
    signature = headers["Palate-Signature"]
    assert signing.verify(secret, signature, body, now)
    assert not signing.verify(secret, signature, body + b" ", now)
    assert not signing.verify(secret, signature, body, now + 600)
    assert not signing.verify("whsec_other", signature, body, now)
    said = json.loads(body)
    assert set(said) == {"id", "event", "at", "data"}
    assert headers["Palate-Delivery"] == said["id"]
    assert headers["Palate-Event"] == said["event"] == "label.submitted"
    assert set(Delivery.objects.values_list("state", "attempts")) == {("delivered", 1)}


def test_the_snippet_in_the_documentation_verifies() -> None:
    text = (settings_module.BASE_DIR / "docs" / "annotation-api.md").read_text()
    names: dict[str, Any] = {}
    exec(text.partition("```python\n")[2].partition("```")[0], names)
    is_genuine, now = names["is_genuine"], int(time.time())
    header = signing.sign("s", now, b"{}")
    assert is_genuine("s", header, b"{}")
    assert not is_genuine("s", header, b"{} ")
    assert not is_genuine("t", header, b"{}")
    assert not is_genuine("s", signing.sign("s", now - 301, b"{}"), b"{}")
    assert not is_genuine("s", "", b"{}")


@pytest.mark.parametrize("header", ["", "t=,v1=", "t=x,v1=y", "v1=ab", "t=12", "t=١,v1=é", ",,=,"])
def test_a_header_that_is_none_is_refused(header: str) -> None:
    assert not signing.verify("s", header, b"{}", 12)


def test_what_failed_is_sent_again_later_with_the_same_id_and_body(
    desk: Desk, receiver: Receiver
) -> None:
    hook = hook_for(desk, receiver.url, WebhookEvent.LABEL_SUBMITTED)
    receiver.answers = [(500, {})]
    label_once(desk, desk.people[0])
    assert deliveries.deliver_due(pk=hook.pk) == 0
    row, hook = Delivery.objects.get(), Webhook.objects.get()
    assert (row.state, row.attempts, row.last_status) == (DeliveryState.WAITING, 1, 500)
    assert row.next_at is not None
    assert hook.wait_until is not None
    assert hook.failing_since is not None
    assert timedelta(seconds=7) < row.next_at - timezone.now() < timedelta(seconds=13)
    assert deliveries.deliver_due(pk=hook.pk) == 0
    due_now(hook)
    assert deliveries.deliver_due(pk=hook.pk) == 1
    (one, first), (two, second) = receiver.got
    assert first == second
    assert one["Palate-Delivery"] == two["Palate-Delivery"]
    hook.refresh_from_db()
    assert hook.failures == 0
    assert [hook.failing_since, hook.wait_until] == [None, None]


def test_waits_grow_are_spread_and_honour_retry_after(desk: Desk, receiver: Receiver) -> None:
    waits = [signing.pause_s(n, 0.5) for n in range(1, 12)]
    assert waits[:4] == [10, 30, 90, 270]
    assert waits == sorted(waits)
    assert waits[-1] == signing.LONGEST_S
    assert signing.pause_s(1, 0) == 8
    assert signing.pause_s(1, 1) == pytest.approx(12)
    hook = hook_for(desk, receiver.url, WebhookEvent.LABEL_SUBMITTED)
    receiver.answers = [(429, {"Retry-After": "1800"})]
    label_once(desk, desk.people[0])
    deliveries.deliver_due(pk=hook.pk)
    wait = Delivery.objects.get().next_at - timezone.now()  # type: ignore[operator]
    assert timedelta(seconds=1700) < wait < timedelta(seconds=1801)


@pytest.mark.parametrize(
    ("answer", "error"),
    [
        ((404, {}), "refused_by_server"),
        ((302, {"Location": "http://127.0.0.1/"}), "redirect"),
    ],
)
def test_what_will_not_get_better_is_given_up_at_once(
    desk: Desk, receiver: Receiver, answer: Any, error: str
) -> None:
    hook = hook_for(desk, receiver.url, WebhookEvent.LABEL_SUBMITTED)
    receiver.answers = [answer]
    label_once(desk, desk.people[0])
    deliveries.deliver_due(pk=hook.pk)
    row = Delivery.objects.get()
    assert (row.state, row.last_error, row.next_at) == (DeliveryState.FAILED, error, None)
    assert len(receiver.got) == 1


def test_a_private_address_is_not_called(desk: Desk, receiver: Receiver, settings: Any) -> None:
    hook = hook_for(desk, receiver.url, WebhookEvent.LABEL_SUBMITTED)
    settings.OUTBOUND_ALLOW = []
    label_once(desk, desk.people[0])
    deliveries.deliver_due(pk=hook.pk)
    assert Delivery.objects.get().last_error == "address_refused"
    assert not receiver.got
    for url in (receiver.url, "http://169.254.169.254/", "ftp://a/", "https://u:p@a.example/"):
        with pytest.raises(InvalidInput) as caught:
            hook_for(desk, url)
        assert caught.value.field == "url"


def test_after_a_day_a_delivery_is_given_up_and_the_webhook_switched_off_with_a_reason(
    desk: Desk, receiver: Receiver
) -> None:
    hook = hook_for(desk, receiver.url, WebhookEvent.LABEL_SUBMITTED)
    label_once(desk, desk.people[0])
    receiver.answers = [(503, {})] * 20
    for _attempt in range(4):
        due_now(hook)
        deliveries.deliver_due(pk=hook.pk)
    long_ago = timezone.now() - timedelta(hours=25)
    Webhook.objects.update(failing_since=long_ago)
    Delivery.objects.update(queued_at=long_ago)
    due_now(hook)
    deliveries.deliver_due(pk=hook.pk)
    row, hook = Delivery.objects.get(), Webhook.objects.get()
    assert (row.state, row.attempts) == (DeliveryState.FAILED, 5)
    assert (hook.active, hook.off_reason) == (False, "server_error")
    assert Event.objects.filter(action="webhook_switched_off").exists()
    label_once(desk, desk.people[0])
    assert Delivery.objects.count() == 1
    page = manager(desk).get(url(desk, "webhook", hook.public_id))
    assert "reports an error of its own" in page.content.decode()
    webhooks.set_active(actor=desk.manager, hook=hook, active=True)
    hook.refresh_from_db()
    assert (hook.active, hook.off_reason, hook.failures) == (True, "", 0)


def test_a_server_that_is_away_is_left_alone_after_three_attempts(
    desk: Desk, receiver: Receiver
) -> None:
    hook = hook_for(desk, receiver.url, WebhookEvent.LABEL_SUBMITTED)
    for _n in range(4):
        label_once(desk, desk.people[0])
    receiver.answers = [(500, {})] * 9
    deliveries.deliver_due(pk=hook.pk)
    assert len(receiver.got) == 3
    assert deliveries.repair_deliveries() == 0
    receiver.answers = []
    due_now(hook)
    assert deliveries.deliver_due(pk=hook.pk) == 4


def test_one_job_at_a_time_sends_and_the_repair_finds_what_was_left(
    desk: Desk, receiver: Receiver
) -> None:
    hook = hook_for(desk, receiver.url, WebhookEvent.LABEL_SUBMITTED)
    label_once(desk, desk.people[0])
    Webhook.objects.update(wait_until=timezone.now() + timedelta(minutes=1))  # a job is at it
    assert deliveries.deliver_due(pk=hook.pk) == 0
    assert deliveries.repair_deliveries() == 0
    Webhook.objects.update(wait_until=timezone.now() - timedelta(seconds=1))  # and died
    assert deliveries.repair_deliveries() == 1
    assert deliveries.deliver_due(pk=hook.pk) == 1
    assert deliveries.repair_deliveries() == 0


def test_a_committed_event_is_sent_at_once(
    desk: Desk, receiver: Receiver, django_capture_on_commit_callbacks: Callable[..., Any]
) -> None:
    hook_for(desk, receiver.url)
    with django_capture_on_commit_callbacks(execute=True):
        label_once(desk, desk.people[0])
    assert receiver.events == ["label.submitted", "item.settled"]


def test_old_deliveries_are_dropped(desk: Desk, receiver: Receiver) -> None:
    hook = hook_for(desk, receiver.url, WebhookEvent.LABEL_SUBMITTED)
    for _n in range(2):
        label_once(desk, desk.people[0])
    deliveries.deliver_due(pk=hook.pk)
    label_once(desk, desk.people[0])
    newest = Delivery.objects.latest("pk")
    Delivery.objects.filter(pk__gt=Delivery.objects.earliest("pk").pk).exclude(pk=newest.pk).update(
        created_at=timezone.now() - timedelta(days=31)
    )
    deliveries.repair_deliveries()
    assert Delivery.objects.count() == 2


# --- looking after them -------------------------------------------------------------------------


def manager(desk: Desk) -> Client:
    client = Client()
    client.force_login(desk.manager)
    return client


def url(desk: Desk, name: str, *args: Any) -> str:
    return reverse(f"annotation:{name}", args=[desk.project.pk, *args])


def test_a_manager_adds_one_and_sees_its_secret_once(desk: Desk, receiver: Receiver) -> None:
    client = manager(desk)
    sent = {"url": receiver.url, "events": ["item.settled", "label.submitted"]}
    page = client.post(url(desk, "webhooks"), sent)
    hook = Webhook.objects.get()
    secret = webhooks.secret_of(hook)
    assert hook.events == ["label.submitted", "item.settled"]
    assert secret in page.content.decode()
    assert page.headers["Cache-Control"].startswith("max-age=0, no-cache, no-store")
    for name, args in (("webhooks", ()), ("webhook", (hook.public_id,))):
        shown = client.get(url(desk, name, *args)).content.decode()
        assert receiver.url in shown
        assert secret not in shown
    again = client.post(url(desk, "webhooks"), sent)
    assert again.status_code == 422
    assert Webhook.objects.count() == 1
    stored = json.dumps(list(Webhook.objects.values()), default=str)
    audited = json.dumps(list(Event.objects.values_list("details", flat=True)))
    assert secret not in stored + audited
    assert "/hook" not in audited


def test_the_secret_is_shown_for_the_password_and_can_be_replaced(
    desk: Desk, receiver: Receiver
) -> None:
    client, hook = manager(desk), hook_for(desk, receiver.url)
    here, secret = url(desk, "webhook_secret", hook.public_id), webhooks.secret_of(hook)
    wrong = client.post(here, {"password": "guess", "do": "show"})
    assert wrong.status_code == 422
    assert secret not in wrong.content.decode()
    shown = client.post(here, {"password": PASSWORD, "do": "show"})
    assert secret in shown.content.decode()
    replaced = client.post(here, {"password": PASSWORD, "do": "rotate"}).content.decode()
    hook.refresh_from_db()
    assert webhooks.secret_of(hook) in replaced
    assert secret not in replaced
    assert client.post(here, {}).status_code == 422
    for _attempt in range(webhooks.GUESSES):
        client.post(here, {"password": "guess", "do": "show"})
    assert client.post(here, {"password": PASSWORD, "do": "show"}).status_code == 429
    with pytest.raises(TooMany):
        webhooks.show_secret(actor=desk.manager, hook=hook, password=PASSWORD)


def test_changing_pausing_testing_and_deleting(desk: Desk, receiver: Receiver) -> None:
    client, hook = manager(desk), hook_for(desk, receiver.url)
    here, do = (url(desk, name, hook.public_id) for name in ("webhook", "webhook_do"))
    changed = client.post(here, {"url": receiver.url + "/2", "events": ["appeal.raised"]})
    assert changed.status_code == 302
    assert client.post(here, {"url": "ftp://x", "events": ["appeal.raised"]}).status_code == 422
    assert client.post(here, {"url": receiver.url, "events": ["test"]}).status_code == 422
    assert client.post(do, {"do": "test"}).status_code == 302
    assert deliveries.deliver_due(pk=hook.pk) == 1
    assert receiver.events == ["test"]
    client.post(do, {"do": "pause"})
    projects.move_project(actor=desk.manager, project=desk.project, to="paused")
    assert Delivery.objects.count() == 1
    assert client.post(do, {"do": "test"}).status_code == 409
    client.post(do, {"do": "resume"})
    delivery = Delivery.objects.get()
    again = url(desk, "redeliver", hook.public_id, delivery.public_id)
    assert client.post(again).status_code == 302
    assert deliveries.deliver_due(pk=hook.pk) == 1
    ids = [headers["Palate-Delivery"] for headers, _body in receiver.got]
    assert ids == [delivery.public_id] * 2
    assert client.post(do, {"do": "delete"}).headers["Location"] == url(desk, "webhooks")
    assert client.get(here).status_code == 404
    assert Webhook.objects.filter(pk=hook.pk, active=False).exists()
    with pytest.raises(Refused):
        webhooks.set_active(actor=desk.manager, hook=hook, active=True)


def test_a_project_has_at_most_ten(desk: Desk, receiver: Receiver) -> None:
    for n in range(webhooks.MOST):
        hook_for(desk, f"{receiver.url}/{n}")
    with pytest.raises(Refused):
        hook_for(desk, receiver.url)


def test_only_managers_and_only_their_methods(
    desk: Desk, receiver: Receiver, bob: User, vera: User
) -> None:
    hook = hook_for(desk, receiver.url)
    pages = [url(desk, "webhooks"), url(desk, "webhook", hook.public_id)]
    posts = [url(desk, name, hook.public_id) for name in ("webhook_do", "webhook_secret")]
    for user in (bob, vera, desk.people[0]):
        client = Client()
        client.force_login(user)
        assert {client.get(page).status_code for page in pages} == {403}
        assert {client.post(page).status_code for page in pages + posts} == {403}
    assert {manager(desk).get(page).status_code for page in posts} == {405}
    assert {Client().get(page).status_code for page in pages} == {302}
    other = make_desk(people=0, n_items=0, name="Other")
    assert manager(desk).get(url(other, "webhook", hook.public_id)).status_code == 404


def test_the_pages_take_few_queries(
    desk: Desk, receiver: Receiver, django_assert_max_num_queries: Any
) -> None:
    for n in range(6):
        hook = hook_for(desk, f"{receiver.url}/{n}")
    label_all(desk)
    client = manager(desk)
    for page in (url(desk, "webhooks"), url(desk, "webhook", hook.public_id)):
        with django_assert_max_num_queries(12):
            assert client.get(page).status_code == 200


def test_a_long_import_does_not_keep_webhooks_waiting_in_its_queue() -> None:
    routes = settings_module.CELERY_TASK_ROUTES
    shared = {name for name, route in routes.items() if route == routes["workers.deliver_webhook"]}
    assert shared == {"workers.deliver_webhook"}

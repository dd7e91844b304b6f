"""Webhooks of a project: what they are told, and how managers look after them.

A payload holds ids, counts and pseudonyms, and the names of states: never a text, a producer, a
verdict, what is gold or a name (V1, V8). Who is told an id reads the rest through the API, where
it is checked who may. `FIELDS` is the whole list.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from django.core.cache import cache
from django.db import transaction
from django.utils import timezone
from django.utils.crypto import salted_hmac
from django.utils.translation import gettext as _

from annotation import policies
from annotation.enums import DeliveryState, WebhookEvent
from annotation.models import Delivery, Project, Webhook
from webapp.core import audit
from webapp.core.errors import InvalidInput, Refused, TooMany
from webapp.core.jobs import enqueue
from webapp.core.outbound import OutboundError, check_url

MOST = 10  # webhooks of a project
URL_LENGTH = 500
GUESSES, GUESS_SECONDS = 8, 900
CHOICES = [event for event in WebhookEvent if event != WebhookEvent.TEST]
FIELDS: dict[str, tuple[str, ...]] = {
    WebhookEvent.LABEL_SUBMITTED: ("item", "annotator", "revision", "late"),
    WebhookEvent.LABEL_WITHDRAWN: ("item", "annotator", "revision"),
    WebhookEvent.ITEM_SETTLED: ("item", "labels", "sources"),
    WebhookEvent.ITEM_DISPUTED: ("item", "labels"),
    WebhookEvent.PROJECT_STATE: ("before", "after"),
    WebhookEvent.IMPORT_FINISHED: ("import", "state", "added", "known", "refused"),
    WebhookEvent.EXPORT_FINISHED: ("export", "state", "rows"),
    WebhookEvent.APPEAL_RAISED: ("appeal", "item", "annotator"),
    WebhookEvent.TEST: (),
}


def announce(project: Project, event: str, payload: Mapping[str, Any]) -> None:
    """Tell the project's webhooks, in the caller's transaction: nothing is told of what fails.

    One query where nobody listens, none where the caller knows so (`project.hooked` is False).
    """
    announce_many(project, event, [payload])


def announce_many(project: Project, event: str, payloads: Sequence[Mapping[str, Any]]) -> None:
    """The same event about many things: one query, and a few statements per listener."""
    strange = set().union(*payloads) - set(FIELDS[event])
    if strange:
        raise ValueError(f"{event} does not tell {sorted(strange)}")
    for hook in _listeners(project):
        if event in hook.events:
            _queue_all(hook, event, payloads)


def _listeners(project: Project) -> list[Webhook]:
    if getattr(project, "hooked", True) is False:
        return []
    return list(Webhook.objects.filter(project=project.pk, active=True))


def queue(hook: Webhook, event: str, payload: Mapping[str, Any]) -> Delivery:
    """Write the delivery down; a job sends it when the transaction is committed."""
    return _queue_all(hook, event, [payload])[0]


def _queue_all(hook: Webhook, event: str, payloads: Sequence[Mapping[str, Any]]) -> list[Delivery]:
    now = timezone.now()
    rows = Delivery.objects.bulk_create(
        [
            Delivery(
                webhook=hook,
                event=event,
                payload={"project": hook.project_id, **payload},
                next_at=now,
                queued_at=now,
            )
            for payload in payloads
        ],
        batch_size=500,
    )
    if hook.wait_until is None or hook.wait_until <= now:
        enqueue("deliver_webhook", hook.pk)
    return rows


def secret_of(hook: Webhook) -> str:
    """The signing secret: derived, so that the database alone does not hold it.

    Another SECRET_KEY of the site makes other secrets.
    """
    value = f"{hook.public_id}:{hook.secret_version}"
    return "whsec_" + salted_hmac("palate.webhook", value, algorithm="sha256").hexdigest()


# --- looking after them -------------------------------------------------------------------------


def create_webhook(*, actor: Any, project: Project, url: str, events: Sequence[str]) -> Webhook:
    """Raises InvalidInput naming the field. The same address again is refused."""
    policies.check_manage(actor)
    _check(url, events)
    with transaction.atomic():
        Project.objects.select_for_update(no_key=True).only("pk").get(pk=project.pk)
        known = Webhook.objects.filter(project=project, deleted_at=None)
        if known.count() >= MOST:
            raise Refused(
                _("A project has at most %(most)s webhooks.") % {"most": MOST}, code="too_many"
            )
        if known.filter(url=url).exists():
            raise InvalidInput(_("There is a webhook to this address already."), field="url")
        hook = Webhook.objects.create(
            project=project, url=url, events=_ordered(events), created_by=actor
        )
        _record(actor, "create_webhook", hook, events=hook.events)
    return hook


def change_webhook(*, actor: Any, hook: Webhook, url: str, events: Sequence[str]) -> Webhook:
    """Another address or other events. What is waiting goes to the new address."""
    policies.check_manage(actor)
    _check(url, events)
    with transaction.atomic():
        row = _locked(hook)
        others = Webhook.objects.filter(project=row.project_id, deleted_at=None, url=url)
        if others.exclude(pk=row.pk).exists():
            raise InvalidInput(_("There is a webhook to this address already."), field="url")
        row.url, row.events = url, _ordered(events)
        row.save(update_fields=["url", "events"])
        _record(actor, "change_webhook", row, events=row.events)
    return row


def set_active(*, actor: Any, hook: Webhook, active: bool) -> Webhook:
    """Pause, or go on with a clean slate. While paused nothing is written down for it."""
    policies.check_manage(actor)
    with transaction.atomic():
        row = _locked(hook)
        if row.active != active:
            row.active = active
            row.failures, row.failing_since, row.wait_until, row.off_reason = 0, None, None, ""
            row.save()
            _record(actor, "resume_webhook" if active else "pause_webhook", row)
            if active:
                enqueue("deliver_webhook", row.pk)
    return row


def delete_webhook(*, actor: Any, hook: Webhook) -> None:
    """Take it out for good; what was waiting is given up, what was delivered stays listed."""
    policies.check_manage(actor)
    with transaction.atomic():
        row = _locked(hook)
        row.active, row.deleted_at = False, timezone.now()
        row.save(update_fields=["active", "deleted_at"])
        waiting = row.deliveries.filter(state=DeliveryState.WAITING)
        waiting.update(state=DeliveryState.FAILED, next_at=None)
        _record(actor, "delete_webhook", row)


def show_secret(*, actor: Any, hook: Webhook, password: str, rotate: bool = False) -> str:
    """The secret for a manager who gives the password of his account again.

    `rotate`: another one from now on; the old one is worth nothing any more.
    """
    policies.check_manage(actor)
    check_secret_reading(actor)
    if not actor.check_password(password):
        raise InvalidInput(_("This is not your password."), field="password", code="password")
    with transaction.atomic():
        row = _locked(hook)
        if rotate:
            row.secret_version += 1
            row.save(update_fields=["secret_version"])
        action = "rotate_webhook_secret" if rotate else "show_webhook_secret"
        _record(actor, action, row, version=row.secret_version)
    return secret_of(row)


def check_secret_reading(actor: Any) -> None:
    """Passwords are not to be guessed here either: a few attempts a quarter of an hour."""
    key = f"webhook-secret:{actor.pk}"
    cache.add(key, 0, GUESS_SECONDS)
    if cache.incr(key) > GUESSES:
        raise TooMany(_("Too many attempts. Wait a quarter of an hour."), code="throttled")


def send_test(*, actor: Any, hook: Webhook) -> Delivery:
    """A delivery without content, to see whether it arrives."""
    policies.check_manage(actor)
    with transaction.atomic():
        row = _locked(hook)
        if not row.active:
            raise Refused(_("This webhook is paused."), code="paused")
        return queue(row, WebhookEvent.TEST, {})


def redeliver(*, actor: Any, delivery: Delivery) -> Delivery:
    """Send it again under the same id, whatever became of it."""
    policies.check_manage(actor)
    with transaction.atomic():
        hook = _locked(delivery.webhook)
        if not hook.active:
            raise Refused(_("This webhook is paused."), code="paused")
        row = Delivery.objects.select_for_update(no_key=True).get(pk=delivery.pk)
        row.state, row.attempts, row.delivered_at = DeliveryState.WAITING, 0, None
        row.queued_at = row.next_at = timezone.now()
        row.save(update_fields=["state", "attempts", "delivered_at", "queued_at", "next_at"])
        Webhook.objects.filter(pk=hook.pk, failures__gt=0).update(wait_until=None)
        enqueue("deliver_webhook", hook.pk)
    return row


def _check(url: str, events: Sequence[str]) -> None:
    if len(url) > URL_LENGTH:
        raise InvalidInput(_("This address is too long."), field="url")
    try:
        check_url(url)
    except OutboundError as error:
        raise InvalidInput(str(error), field="url", code=error.code) from error
    if not events or set(events) - {str(event) for event in CHOICES}:
        raise InvalidInput(_("Choose at least one event."), field="events")


def _ordered(events: Sequence[str]) -> list[str]:
    return [str(event) for event in CHOICES if event in events]


def _locked(hook: Webhook) -> Webhook:
    rows = Webhook.objects.select_for_update(of=("self",), no_key=True).select_related("project")
    row = rows.filter(pk=hook.pk, deleted_at=None).first()
    if row is None:
        raise Refused(_("This webhook was deleted."), code="deleted")
    return row


def _record(actor: Any, action: str, hook: Webhook, **details: Any) -> None:
    """An address may hold a secret in its path, so the log names the webhook by its id."""
    audit.record(
        actor=actor, action=action, obj=hook.project, webhook=hook.public_id[:8], **details
    )

"""Sending what webhooks are to be told: at least once, signed, again and again for a day.

One job at a time sends for a webhook: it takes it by setting `wait_until`, which also holds after
a failure. A job that dies leaves the webhook free two minutes later, and the repair task goes on.
"""

from __future__ import annotations

import json
import random
import time
from datetime import timedelta

from django.db import transaction
from django.db.models import Exists, F, OuterRef, Q, QuerySet
from django.utils import timezone

from annotation.enums import DeliveryState
from annotation.models import Delivery, Webhook
from annotation.services.webhooks import secret_of
from annotation.signing import DAY_S, pause_s, sign
from webapp.core import audit
from webapp.core.jobs import enqueue
from webapp.core.outbound import OutboundError, Retryable, post_bytes

TIMEOUT_S = 10.0
HOLD = timedelta(minutes=2)  # longer than a run and its last request
RUN_S = 60.0
IN_A_ROW = 3  # failures after which a run leaves the rest for later
OFF_AFTER = timedelta(hours=24)
OFF_ATTEMPTS = 5  # at least, before a webhook is switched off
KEEP = timedelta(days=30)


def deliver_due(*, pk: int) -> int:
    """Send what is due to one webhook, the oldest first. Number of deliveries that arrived.

    Runs twice without harm: the second finds the webhook taken.
    """
    if not _take(pk):
        return 0
    started, sent, misses = time.monotonic(), 0, 0
    while misses < IN_A_ROW and time.monotonic() - started < RUN_S:
        row = _due(pk).select_related("webhook").order_by("next_at", "pk").first()
        if row is None:
            break
        arrived = _attempt(row)
        sent, misses = sent + arrived, 0 if arrived else misses + 1
    if _release(pk) and _due(pk).exists():
        enqueue("deliver_webhook", pk)  # came in meanwhile, or there was too much for one run
    return sent


def _take(pk: int) -> bool:
    """Compare and set: one job at a time, and none while the webhook waits after failures."""
    now = timezone.now()
    free = Q(wait_until=None) | Q(wait_until__lte=now)
    rows = Webhook.objects.filter(free, pk=pk, active=True)
    return bool(rows.update(wait_until=now + HOLD))


def _release(pk: int) -> bool:
    """Let others send; after failures only in a while. Whether they may at once."""
    hook = Webhook.objects.get(pk=pk)
    until = None
    if hook.failures:
        until = timezone.now() + timedelta(seconds=pause_s(hook.failures, random.random()))  # noqa: S311
    Webhook.objects.filter(pk=pk).update(wait_until=until)
    return until is None


def _due(pk: int) -> QuerySet[Delivery]:
    """What is to be sent by now; nothing while the webhook is paused."""
    return Delivery.objects.filter(
        webhook=pk,
        webhook__active=True,
        state=DeliveryState.WAITING,
        next_at__lte=timezone.now(),
    )


def _attempt(row: Delivery) -> bool:
    """One request, outside any transaction; then the outcome is written down."""
    hook = row.webhook
    body = envelope(row)
    at = int(time.time())
    headers = {
        "Palate-Signature": sign(secret_of(hook), at, body),
        "Palate-Event": row.event,
        "Palate-Delivery": row.public_id,
    }
    try:
        answer = post_bytes(hook.url, body, headers=headers, timeout=TIMEOUT_S, limit=0)
    except OutboundError as error:
        _failed(row, error)
        return False
    _arrived(row, answer.status)
    return True


def envelope(row: Delivery) -> bytes:
    """What is sent, byte for byte the same at every attempt."""
    found = {
        "id": row.public_id,
        "event": row.event,
        "at": row.created_at.isoformat(),
        "data": row.payload,
    }
    return json.dumps(found, separators=(",", ":"), sort_keys=True).encode()


def _arrived(row: Delivery, status: int) -> None:
    with transaction.atomic():
        Delivery.objects.filter(pk=row.pk).update(
            state=DeliveryState.DELIVERED,
            attempts=F("attempts") + 1,
            last_status=status,
            last_error="",
            next_at=None,
            delivered_at=timezone.now(),
        )
        Webhook.objects.filter(pk=row.webhook_id, failures__gt=0).update(
            failures=0, failing_since=None
        )


def _failed(row: Delivery, error: OutboundError) -> None:
    now = timezone.now()
    attempts = row.attempts + 1
    next_at = None
    if isinstance(error, Retryable):
        wait = max(pause_s(attempts, random.random()), error.retry_after or 0.0)  # noqa: S311
        next_at = now + timedelta(seconds=wait)
        if next_at > row.queued_at + timedelta(seconds=DAY_S):
            next_at = None
    with transaction.atomic():
        Delivery.objects.filter(pk=row.pk, state=DeliveryState.WAITING).update(
            state=DeliveryState.WAITING if next_at else DeliveryState.FAILED,
            attempts=attempts,
            last_status=error.http_status,
            last_error=error.code,
            next_at=next_at,
        )
        hook = Webhook.objects.select_for_update(no_key=True).get(pk=row.webhook_id)
        hook.failures += 1
        hook.failing_since = hook.failing_since or now
        hook.save(update_fields=["failures", "failing_since"])
        if hook.failures >= OFF_ATTEMPTS and now - hook.failing_since >= OFF_AFTER:
            _switch_off(hook, error)


def _switch_off(hook: Webhook, error: OutboundError) -> None:
    """Nothing arrived for a day: stop, and say why on its page."""
    if not hook.active:
        return
    hook.active = False
    hook.off_reason = error.code
    hook.save(update_fields=["active", "off_reason"])
    waiting = hook.deliveries.filter(state=DeliveryState.WAITING)
    waiting.update(state=DeliveryState.FAILED, next_at=None)
    audit.record(
        actor=None,
        action="webhook_switched_off",
        obj=hook.project,
        webhook=hook.public_id[:8],
        error=error.code,
    )


def repair_deliveries() -> int:
    """Send again where something is due, and drop what is long over. Number of webhooks."""
    now = timezone.now()
    due = Delivery.objects.filter(
        webhook=OuterRef("pk"), state=DeliveryState.WAITING, next_at__lte=now
    )
    hooks = Webhook.objects.filter(
        Exists(due), Q(wait_until=None) | Q(wait_until__lte=now), active=True
    )
    found = list(hooks.order_by("pk").values_list("pk", flat=True))
    for pk in found:
        enqueue("deliver_webhook", pk)
    old = Delivery.objects.filter(created_at__lt=now - KEEP).exclude(state=DeliveryState.WAITING)
    Delivery.objects.filter(pk__in=list(old.values_list("pk", flat=True)[:1000])).delete()
    return len(found)

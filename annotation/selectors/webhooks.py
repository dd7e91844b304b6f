"""Reading webhooks and their deliveries for managers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from django.db.models import Count, Max, Q, QuerySet

from annotation.enums import DeliveryState, WebhookEvent
from annotation.models import Delivery, Project, Webhook
from webapp.core.outbound import MESSAGES


@dataclass(frozen=True)
class HookRow:
    """A webhook with what came of it. `problem`: why it was switched off, or is failing."""

    hook: Webhook
    events: list[str]
    waiting: int
    delivered: Any
    problem: Any


def webhooks_of(project: Project) -> list[HookRow]:
    arrived = Max("deliveries__delivered_at")
    waits = Count("deliveries", filter=Q(deliveries__state=DeliveryState.WAITING))
    rows = Webhook.objects.filter(project=project, deleted_at=None)
    return [hook_row(row) for row in rows.annotate(arrived=arrived, waits=waits).order_by("pk")]


def hook_row(hook: Any) -> HookRow:
    return HookRow(
        hook=hook,
        events=[str(WebhookEvent(event).label) for event in hook.events],
        waiting=hook.waits,
        delivered=hook.arrived,
        problem=problem(hook.off_reason),
    )


def find_webhook(project: Project, public_id: str) -> Webhook | None:
    rows = Webhook.objects.select_related("project").filter(project=project, deleted_at=None)
    return rows.filter(public_id=public_id).first()


def deliveries_of(hook: Webhook) -> QuerySet[Delivery]:
    return hook.deliveries.order_by("-pk")


def problem(code: str) -> Any:
    """The sentence of an error code; empty for none."""
    return MESSAGES.get(code, code) if code else ""

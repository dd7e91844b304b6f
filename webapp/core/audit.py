"""Writing and checking the audit log.

Details must never hold a text of a sealed answer or link an answer with a contestant (V1).
"""

from __future__ import annotations

import hashlib
import json
from typing import Any

from django.db import models, transaction
from django.utils import timezone

from webapp.core.models import ChainHead, Event


def _digest(event: Event) -> str:
    body = {
        "n": event.n,
        "at": event.at.isoformat(),
        "actor": event.actor_id,
        "action": event.action,
        "object": [event.object_type, event.object_id],
        "details": event.details,
        "previous": event.previous_hash,
    }
    text = json.dumps(body, sort_keys=True, ensure_ascii=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


def record(*, actor: Any, action: str, obj: models.Model, **details: Any) -> Event:
    """Append one line in the caller's transaction. `actor` is a user or None (the system)."""
    with transaction.atomic():
        head = ChainHead.objects.select_for_update().get_or_create(pk=1)[0]
        event = Event(
            n=head.n + 1,
            at=timezone.now(),
            actor=actor,
            action=action,
            object_type=obj._meta.label_lower,
            object_id=str(obj.pk),
            details=json.loads(json.dumps(details, default=str)),
            previous_hash=head.hash,
        )
        event.hash = _digest(event)
        event.save(force_insert=True)
        head.n, head.hash = event.n, event.hash
        head.save(update_fields=["n", "hash"])
    return event


def verify_chain() -> int:
    """Number of lines checked. Raises ValueError naming the first line that does not fit.

    The head is kept apart from the lines, so that a tail that was cut off is missed too.
    """
    previous, n = "0" * 64, 0
    for event in Event.objects.order_by("n").iterator():
        n += 1
        if event.n != n or event.previous_hash != previous or event.hash != _digest(event):
            raise ValueError(f"audit line {n} does not fit the chain")
        previous = event.hash
    head = ChainHead.objects.filter(pk=1).first()
    if (n, previous) != ((head.n, head.hash) if head else (0, "0" * 64)):
        raise ValueError(f"audit lines after {n} are missing")
    return n

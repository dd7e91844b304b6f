"""Resolving reported problems. Who reported one is thanked and sees nothing more."""

from __future__ import annotations

from enum import StrEnum
from typing import Any

from django.db import transaction
from django.utils import timezone
from django.utils.translation import gettext as _

from annotation import policies
from annotation.enums import ItemFlag, ItemState
from annotation.models import Item, Problem
from annotation.services.adjudication import contest_item
from annotation.services.item_locks import lock_items
from annotation.services.items import drop_items, hold_items, release_items, remove_flag
from annotation.services.projects import locked
from annotation.services.texts import checked_text
from webapp.core import audit
from webapp.core.errors import InvalidInput, Refused
from webapp.core.locking import retry_deadlocks


class Resolution(StrEnum):
    KEEP = "keep"  # nothing is wrong; what was held for it is given out again
    DROP = "drop"  # out for good
    HOLD = "hold"  # out of the queue until somebody has mended or judged it
    ADJUDICATE = "adjudicate"  # an adjudicator decides what the labels should say


@retry_deadlocks
def resolve_problems(*, actor: Any, item: Item, to: str, note: str = "") -> int:
    """Resolve all open reports about an item in one way. Number of reports; 0 the second time."""
    policies.check_manage(actor)
    note = checked_text(note, field="note")
    if to not in list(Resolution):
        raise InvalidInput(_("Choose what is to become of the item."), field="to")
    with transaction.atomic():
        locked(item.project_id)  # before the item, as whoever changes settings does
        lock_items([item.pk], scored=lambda: [item.pk])
        row = Item.objects.select_related("project").get(pk=item.pk)
        reports = Problem.objects.filter(item=row, resolved_at=None)
        if not reports.exists():
            return 0
        _apply(actor, row, to)
        n = reports.update(
            resolution=f"{to}: {note}"[:300] if note else str(to),
            resolved_by=actor,
            resolved_at=timezone.now(),
        )
        audit.record(actor=actor, action="resolve_problems", obj=row, to=str(to), n=n)
    return n


def _apply(actor: Any, item: Item, to: str) -> None:
    project = item.project
    if to == Resolution.KEEP:
        remove_flag([item.pk], ItemFlag.REPORTED)
        item.refresh_from_db(fields=["flags", "state"])
        if item.state == ItemState.HELD and set(item.flags) <= {ItemFlag.CONTESTED}:
            release_items(actor=actor, project=project, items=[item.pk])
    elif to == Resolution.DROP:
        drop_items(actor=actor, project=project, items=[item.pk], flag=ItemFlag.REPORTED)
    elif to == Resolution.HOLD:
        held = [item.pk]
        if not hold_items(actor=actor, project=project, items=held, flag=ItemFlag.REPORTED):
            raise _impossible(item)
    elif not contest_item(actor=actor, item=item, reason="problem"):
        raise _impossible(item)


def _impossible(item: Item) -> Refused:
    return Refused(
        _("An item that is %(state)s cannot be treated so. Keep it, drop it, or change its gold.")
        % {"state": item.get_state_display()},
        code="state",
    )

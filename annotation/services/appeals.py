"""Contesting what one labelled. Nothing here asks whether the item is gold, and nothing says it."""

from __future__ import annotations

from typing import Any

from django.db import transaction
from django.utils.translation import gettext as _

from annotation import policies
from annotation.enums import GIVEN, WebhookEvent
from annotation.models import Appeal, Lease
from annotation.services.leases import locked_lease
from annotation.services.texts import checked_text
from annotation.services.webhooks import announce
from webapp.core import audit
from webapp.core.errors import Refused


def raise_appeal(*, user: Any, token: str, text: str) -> Appeal:
    """Contest a submitted item, once. The same text sent again is the same appeal.

    Raises InvalidInput naming the field, Forbidden for somebody else's item.
    """
    policies.check_worker(user)
    text = checked_text(text, required=_("Say what should be looked at again."))
    with transaction.atomic():
        lease = locked_own(user, token)
        if lease.state not in GIVEN:
            raise Refused(
                _("Only what you submitted can be contested."), code="not_submitted", field="text"
            )
        known = Appeal.objects.filter(lease=lease).first()
        if known is not None and known.text == text:
            return known
        if known is not None:
            raise Refused(_("You contested this already; it is looked at once."), code="contested")
        appeal = Appeal.objects.create(lease=lease, text=text)
        audit.record(actor=user, action="raise_appeal", obj=appeal, item=lease.item_id)
        seat = lease.member.pseudonym
        payload = {"appeal": appeal.pk, "item": lease.item.public_id, "annotator": seat}
        announce(lease.member.project, WebhookEvent.APPEAL_RAISED, payload)
    return appeal


def locked_own(user: Any, token: str) -> Lease:
    """Her lease by its token, locked against other tabs and read afterwards."""
    lease = locked_lease(user, token) if token else None
    if lease is None:
        raise policies.not_yours()
    return lease

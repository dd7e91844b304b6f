"""Answering appeals. What the annotator sees is the same for gold and for ordinary items."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.db import transaction
from django.utils import timezone
from django.utils.translation import gettext as _

from annotation import policies
from annotation.enums import AppealState
from annotation.models import Appeal
from annotation.selectors.gold import is_in_use
from annotation.services.adjudication import contest_item
from annotation.services.gold import make_gold, retire_gold
from annotation.services.texts import TEXT_LIMIT, checked_text
from webapp.core import audit
from webapp.core.errors import Refused
from webapp.core.locking import retry_deadlocks


@retry_deadlocks
def uphold_appeal(
    *,
    actor: Any,
    appeal: Appeal,
    answer: str,
    verdicts: Mapping[str, str] | None = None,
    retire: bool = False,
) -> Appeal:
    """She is right. A gold item gets the canonical `verdicts` as its answer or is retired, and
    everybody is scored again; gold that is out of use, dropped or retired, is retired. Any other
    item goes to an adjudicator, a dropped one when it is released. Twice is once.
    """
    policies.check_manage(actor)
    text = _checked(answer)
    with transaction.atomic():
        row = _locked(appeal.pk)
        if row.state == AppealState.UPHELD:
            return row
        _check_open(row)
        item = row.lease.item
        newest = item.gold.order_by("-n").first()
        if newest is None:
            contest_item(actor=actor, item=item, reason="appeal")
        elif retire or not is_in_use(item, newest):
            retire_gold(actor=actor, item=item, reason=_("appeal"))
        else:
            make_gold(
                actor=actor,
                item=item,
                verdicts=verdicts or {},
                onboarding=newest.onboarding,
                reason=_("appeal"),
            )
        return _answer(actor, row, AppealState.UPHELD, text)


@retry_deadlocks
def reject_appeal(*, actor: Any, appeal: Appeal, answer: str) -> Appeal:
    """The item stays as it is; she reads why. Twice is once."""
    policies.check_manage(actor)
    text = _checked(answer)
    with transaction.atomic():
        row = _locked(appeal.pk)
        if row.state == AppealState.REJECTED:
            return row
        _check_open(row)
        return _answer(actor, row, AppealState.REJECTED, text)


def _checked(answer: str) -> str:
    asked = _("Write an answer of at most %(most)s characters.") % {"most": TEXT_LIMIT}
    return checked_text(answer, required=asked, field="answer")


def _locked(pk: int) -> Appeal:
    Appeal.objects.select_for_update(no_key=True).only("pk").get(pk=pk)
    return Appeal.objects.select_related("lease__item__project").get(pk=pk)


def _check_open(appeal: Appeal) -> None:
    if appeal.state != AppealState.OPEN:
        raise Refused(_("This appeal was answered meanwhile."), code="answered")


def _answer(actor: Any, appeal: Appeal, state: str, text: str) -> Appeal:
    appeal.state, appeal.answer = state, text
    appeal.answered_by, appeal.answered_at = actor, timezone.now()
    appeal.save(update_fields=["state", "answer", "answered_by", "answered_at"])
    audit.record(actor=actor, action="answer_appeal", obj=appeal, state=str(state))
    return appeal

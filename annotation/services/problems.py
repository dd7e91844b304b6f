"""Reporting that something is wrong with an item. Her lease and her draft stay as they are."""

from __future__ import annotations

from typing import Any

from django.db import transaction
from django.utils.translation import gettext as _

from annotation import policies
from annotation.enums import LeaseState, ProblemKind
from annotation.models import Problem
from annotation.services.appeals import locked_own
from annotation.services.texts import checked_text
from webapp.core import audit
from webapp.core.errors import InvalidInput


def report_problem(*, user: Any, token: str, kind: str, note: str = "") -> Problem:
    """Report an item that was shown to her. One report per person and item.

    Until it is answered another report replaces the first; afterwards the first stands.
    """
    policies.check_worker(user)
    if kind not in ProblemKind.values:
        raise InvalidInput(_("Say what is wrong."), field="problem_kind", code="missing_kind")
    note = checked_text(note, field="problem_note")
    with transaction.atomic():
        lease = locked_own(user, token)
        if lease.state == LeaseState.RESERVED:
            raise policies.not_yours()
        known = Problem.objects.filter(item=lease.item_id, member=lease.member).first()
        if known is not None and (known.resolved_at or (known.kind, known.note) == (kind, note)):
            return known
        problem = known or Problem(item_id=lease.item_id, member=lease.member)
        problem.kind, problem.note = kind, note
        problem.save()
        audit.record(actor=user, action="report_problem", obj=problem, kind=kind)
    return problem

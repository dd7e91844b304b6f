"""Reading successes of a gate before a promotion: fake ones are only found by reading (E13)."""

from __future__ import annotations

from typing import Any

from django.db import transaction
from django.utils.translation import gettext as _

from training import gate_policies, policies
from training.enums import AuditVerdict, EdgeSource
from training.models import AuditMark, GateRun
from training.selectors.audits import sample
from training.services.edges import add_cases
from training.services.gates import locked
from training.services.waking import wake_chains
from webapp.core import audit
from webapp.core.errors import InvalidInput

NOTE = 500


def mark(
    *, actor: Any, gate: GateRun, item: str, draw: int, verdict: str, note: str = ""
) -> AuditMark:
    """Say what a success is worth. The same mark again adds nothing; another one corrects it."""
    policies.check_manage(actor)
    gate_policies.check_passed(gate)
    if verdict not in AuditVerdict.values:
        raise InvalidInput(_("Say whether it is genuine."), field="verdict", code="choice")
    note = note.strip()
    if len(note) > NOTE:
        message = _("At most %(limit)s characters.") % {"limit": NOTE}
        raise InvalidInput(message, field="note", code="long")
    if (item, draw) not in {(row["id"], row["draw"]) for row in sample(gate)}:
        raise InvalidInput(_("This answer is not among those to read."), field="item", code="item")
    with transaction.atomic():
        row = locked(gate.pk)
        newest = gate_policies.newest_marks(row).get((item, draw))
        if newest and (newest.verdict, newest.note) == (verdict, note):
            return newest
        made = AuditMark.objects.create(
            gate=row, item=item, draw=draw, verdict=verdict, note=note, by=actor
        )
        if verdict == AuditVerdict.FAKE:
            add_cases(row, [item], EdgeSource.AUDIT, reason=note, actor=actor)
        audit.record(actor=actor, action="mark_success", obj=row, verdict=verdict)
        wake_chains()
    return made

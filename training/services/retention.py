"""Removing the files of checkpoints; the rows stay."""

from __future__ import annotations

import shutil
from collections.abc import Iterable
from typing import Any

from django.db import transaction
from django.utils import timezone
from django.utils.translation import gettext as _

from training import policies
from training.models import Checkpoint
from training.selectors.retention import why_kept
from training.services.moving import locked
from training.storage import directory
from webapp.core import audit
from webapp.core.errors import Refused

WHY: dict[str, Any] = {
    "active": lambda: _("its run has not ended"),
    "pinned": lambda: _("its run is pinned"),
    "used": lambda: _("another run uses it"),
    "gate": lambda: _("a gate asks it, or it became a contestant"),
    "final": lambda: _("it is what the run made"),
    "resumable": lambda: _("its run could be resumed from it"),
}


def remove(*, actor: Any, checkpoints: Iterable[Checkpoint]) -> int:
    """Delete the files of these checkpoints; bytes freed. Refused where one must stay."""
    policies.check_manage(actor)
    freed = 0
    for checkpoint in checkpoints:
        freed += _remove(actor, checkpoint.pk)
    return freed


def _remove(actor: Any, pk: int) -> int:
    """Marked first, deleted afterwards: no run starts from files that are going away."""
    with transaction.atomic():
        locked(Checkpoint.objects.values_list("run", flat=True).get(pk=pk))
        row = Checkpoint.objects.select_related("run").get(pk=pk)
        if row.removed_at:
            return 0
        why = why_kept(row)
        if why:
            message = _("%(path)s of “%(name)s” stays: %(why)s.")
            named = {"path": row.path, "name": row.run.name, "why": WHY[why]()}
            raise Refused(message % named, code=f"kept_{why}")
        Checkpoint.objects.filter(pk=pk).update(removed_at=timezone.now())
        audit.record(actor=actor, action="remove_checkpoint", obj=row.run, path=row.path)
    shutil.rmtree(directory(row.run.directory) / row.path, ignore_errors=True)
    return row.size

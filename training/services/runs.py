"""What people ask of runs: launch, cancel, resume, clone, note, pin."""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from typing import Any

from django.db import IntegrityError, transaction
from django.utils import timezone
from django.utils.text import slugify
from django.utils.translation import gettext as _

from training import policies
from training.engine.config.load import Problem, apply_changes
from training.enums import ENDED, RunState
from training.launching import Inputs, InputSpec, Preflight, placed, preflight
from training.models import Alert, RunInput, TrainingRun
from training.services.moving import locked, move
from webapp.catalog.services.checks import check_text
from webapp.core import audit
from webapp.core.errors import InvalidInput, Refused
from webapp.core.jobs import enqueue

NOTE_LENGTH = 2000


class NotReady(InvalidInput):
    """The pre-flight check found problems; `problems` holds them all."""

    def __init__(self, problems: list[Problem]) -> None:
        first = problems[0]
        super().__init__("\n".join(map(str, problems)), code="preflight", field=first.field)
        self.problems = problems


def launch(
    *,
    actor: Any,
    name: str,
    kind: str,
    preset: str,
    config: Mapping[str, Any],
    inputs: Inputs,
    seed: int = 1,
    key: str | None = None,
    parent: TrainingRun | None = None,
    from_alert: Alert | None = None,
    note: str = "",
) -> TrainingRun:
    """Put a run into the queue. The same `key` gives the same run; raises NotReady."""
    policies.check_manage(actor)
    if key and (known := TrainingRun.objects.filter(key=key).first()):
        return known
    name = check_text(name.strip(), "name", limit=120)
    inputs = placed(kind, config, inputs)
    checked = preflight(kind, preset, config, inputs, seed)
    if not checked.ready:
        raise NotReady(checked.problems)
    run = TrainingRun(
        name=name,
        kind=kind,
        preset=preset,
        config=dict(config),
        config_sha256=checked.sha256,
        seed=seed,
        key=key,
        parent=parent,
        from_alert=from_alert,
        note=note.strip()[:NOTE_LENGTH],
        directory=f"{slugify(name)[:40] or kind}-{secrets.token_hex(4)}",
        steps=int(checked.facts["steps"]),
        created_by=actor,
        queued_at=timezone.now(),
    )
    return _insert(run, inputs, checked)


def _insert(run: TrainingRun, inputs: Inputs, checked: Preflight) -> TrainingRun:
    """The run with its inputs, or the one that an earlier click made."""
    try:
        with transaction.atomic():
            run.save(force_insert=True)
            RunInput.objects.bulk_create(
                RunInput(
                    run=run,
                    role=role,
                    dataset=spec.dataset,
                    split=spec.split,
                    source=spec.source,
                    sha256=spec.sha256,
                )
                for role, spec in inputs.items()
            )
            audit.record(
                actor=run.created_by,
                action="launch_run",
                obj=run,
                kind=run.kind,
                config_sha256=checked.sha256,
            )
            enqueue("start_runs", run.pk)
    except IntegrityError as error:
        known = TrainingRun.objects.filter(key=run.key).first() if run.key else None
        if known is not None:
            return known
        message = _("There is a run “%(name)s” already.") % {"name": run.name}
        raise InvalidInput(message, field="name", code="taken") from error
    return TrainingRun.objects.get(pk=run.pk)


def cancel(*, actor: Any, run: TrainingRun) -> TrainingRun:
    """Take a run out of the queue, or have a running one end at its next step. Harmless twice."""
    policies.check_manage(actor)
    with transaction.atomic():
        row = locked(run.pk)
        if row.state in ENDED or row.state == RunState.STOPPING:
            return row
        now = timezone.now()
        if row.state == RunState.QUEUED:
            move(row, RunState.CANCELLED, reason="cancelled", ended_at=now)
        else:
            move(row, RunState.STOPPING, stop="cancel", stop_at=now)
            enqueue("watch_runs", row.pk)
        audit.record(actor=actor, action="cancel_run", obj=row)
    return row


def resume(*, actor: Any, run: TrainingRun) -> TrainingRun:
    """Put a failed or cancelled run back into the queue; it goes on from its last checkpoint."""
    policies.check_manage(actor)
    with transaction.atomic():
        row = locked(run.pk)
        if row.state not in (RunState.FAILED, RunState.CANCELLED):
            if row.state != RunState.SUCCEEDED:
                return row  # resumed already
            raise Refused(_("This run succeeded: there is nothing to resume."), code="succeeded")
        move(
            row,
            RunState.QUEUED,
            queued_at=timezone.now(),
            started_at=None,
            ended_at=None,
            pid=None,
            stop="",
            stop_at=None,
            reason="",
            message="",
            changes={},
        )
        audit.record(actor=actor, action="resume_run", obj=row)
        enqueue("start_runs", row.pk)
    return row


def annotate(*, actor: Any, run: TrainingRun, note: str) -> TrainingRun:
    """Replace the note."""
    policies.check_manage(actor)
    note = note.strip()
    if len(note) > NOTE_LENGTH:
        message = _("At most %(limit)s characters.") % {"limit": NOTE_LENGTH}
        raise InvalidInput(message, field="note", code="long")
    with transaction.atomic():
        row = locked(run.pk)
        if row.note != note:
            TrainingRun.objects.filter(pk=row.pk).update(note=note)
            audit.record(actor=actor, action="annotate_run", obj=row)
    return TrainingRun.objects.get(pk=run.pk)


def pin(*, actor: Any, run: TrainingRun, pinned: bool) -> TrainingRun:
    """A pinned run keeps its checkpoints whatever the quota says."""
    policies.check_manage(actor)
    with transaction.atomic():
        row = locked(run.pk)
        if row.pinned != pinned:
            TrainingRun.objects.filter(pk=row.pk).update(pinned=pinned)
            audit.record(actor=actor, action="pin_run" if pinned else "unpin_run", obj=row)
    return TrainingRun.objects.get(pk=run.pk)


def clone(
    *,
    actor: Any,
    run: TrainingRun,
    changes: Mapping[str, Any],
    key: str | None = None,
    from_alert: Alert | None = None,
    name: str = "",
) -> TrainingRun:
    """A new run with the same inputs and seed, and exactly these dotted settings changed (G12)."""
    policies.check_manage(actor)
    if key and (known := TrainingRun.objects.filter(key=key).first()):
        return known
    return launch(
        actor=actor,
        name=name or next_name(run.name),
        kind=run.kind,
        preset=run.preset,
        config=apply_changes(run.config, changes),
        inputs=inputs_of(run),
        seed=run.seed,
        key=key,
        parent=run,
        from_alert=from_alert,
    )


def inputs_of(run: TrainingRun) -> dict[str, InputSpec]:
    """What a run was given, by role."""
    rows = run.inputs.select_related("dataset", "source")
    found = {row.role: InputSpec(row.dataset, row.split, row.source) for row in rows}
    return placed(run.kind, run.config, found)


def next_name(name: str) -> str:
    """ "old" → "old (2)", or the next number that is free."""
    stem, _space, tail = name.rpartition(" (")
    known = stem and tail.endswith(")") and tail[:-1].isdigit()
    stem, number = (stem, int(tail[:-1])) if known else (name, 1)
    taken = set(TrainingRun.objects.filter(name__startswith=stem).values_list("name", flat=True))
    while True:
        number += 1
        wanted = f"{stem[:112]} ({number})"
        if wanted not in taken:
            return wanted

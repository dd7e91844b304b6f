"""Making a contestant of a model: by its gate, by two administrators, or as a baseline (V20)."""

from __future__ import annotations

from typing import Any

from django.db import IntegrityError, transaction
from django.utils import timezone
from django.utils.translation import gettext as _

from training import gate_policies, policies
from training.enums import PromotionKind, RunKind
from training.models import Checkpoint, GateRun, OverrideRequest, Promotion, TrainingRun
from training.selectors.lineage import lineage
from webapp.catalog.enums import ContestantKind
from webapp.catalog.models import Contestant
from webapp.catalog.services.checks import check_text
from webapp.catalog.services.contestant_settings import checkpoint_settings
from webapp.catalog.services.contestants import get_or_create_contestant
from webapp.core import audit
from webapp.core.errors import Forbidden, InvalidInput, Refused

SAMPLING = {"temperature": 0.7, "max_tokens": 512}


def promote(
    *,
    actor: Any,
    gate: GateRun,
    name: str,
    version: str = "",
    sampling: dict[str, Any] | None = None,
) -> Contestant:
    """The contestant of a model that passed its gate and was read. Twice gives the same one."""
    policies.check_manage(actor)
    gate_policies.check_promotable(gate)
    grounds = {
        "kind": PromotionKind.GATE, "run": gate.candidate, "gate": gate,
        "checkpoint": gate.checkpoint, "by": actor,
    }  # fmt: skip
    return _promote(actor, name, version, sampling, grounds)


def promote_baseline(
    *,
    actor: Any,
    run: TrainingRun,
    name: str,
    version: str = "",
    sampling: dict[str, Any] | None = None,
) -> Contestant:
    """A model that no reward has trained enters without a gate, and is marked so."""
    policies.check_manage(actor)
    gate_policies.check_model(run, "run")
    if run.kind != RunKind.SFT or gate_policies.trained_by_reward(run):
        raise Refused(
            _("“%(name)s” was trained by reward: it needs a gate.") % {"name": run.name},
            code="rewarded",
        )
    grounds = {"kind": PromotionKind.BASELINE, "run": run, "by": actor}
    return _promote(actor, name, version, sampling, grounds)


def ask_override(
    *,
    actor: Any,
    run: TrainingRun,
    name: str,
    reason: str,
    version: str = "",
    gate: GateRun | None = None,
    key: str | None = None,
) -> OverrideRequest:
    """Ask another administrator to let a model in that did not pass. The same key asks once."""
    policies.check_manage(actor)
    if actor is None:
        raise Forbidden(_("An override needs two administrators, by name."))
    gate_policies.check_model(run, "run")
    if gate is not None:
        gate_policies.check_measured(gate, run)
    values = {
        "name": check_text(name.strip(), "name", limit=120),
        "version": version.strip()[:64],
        "reason": check_text(reason.strip(), "reason", limit=500),
    }
    mine = OverrideRequest.objects.filter(key=key, run=run, by=actor) if key else None
    if mine is not None and (known := mine.first()):
        return known
    try:
        with transaction.atomic():
            asked = OverrideRequest.objects.create(run=run, gate=gate, by=actor, key=key, **values)
            audit.record(actor=actor, action="ask_override", obj=asked, run=run.pk)
    except IntegrityError:
        if mine is not None and (known := mine.first()):
            return known
        raise
    return asked


def answer_override(
    *, actor: Any, asked: OverrideRequest, agreed: bool, sampling: dict[str, Any] | None = None
) -> Contestant | None:
    """Another administrator agrees, and the model becomes a contestant, or declines."""
    policies.check_manage(actor)
    if actor is None or actor.pk == asked.by_id:
        raise Forbidden(_("Somebody else must agree."))
    endpoint = _read(asked.run, asked.gate.checkpoint if asked.gate else None) if agreed else {}
    with transaction.atomic():
        OverrideRequest.objects.select_for_update().only("pk").get(pk=asked.pk)
        row = OverrideRequest.objects.select_related("run", "gate__checkpoint", "by").get(
            pk=asked.pk
        )
        if row.agreed is None:
            OverrideRequest.objects.filter(pk=row.pk).update(
                agreed=agreed, answered_by=actor, answered_at=timezone.now()
            )
            audit.record(actor=actor, action="answer_override", obj=row, agreed=agreed)
        elif row.agreed != agreed:
            raise Refused(_("This was answered already."), code="answered")
        if not agreed:
            return None
        grounds = {
            "kind": PromotionKind.OVERRIDE, "run": row.run, "gate": row.gate, "by": row.by,
            "second": row.answered_by or actor, "reason": row.reason,
            "checkpoint": row.gate.checkpoint if row.gate else None,
        }  # fmt: skip
        return _promote(actor, row.name, row.version, sampling, grounds, endpoint)


def _read(run: TrainingRun, kept: Checkpoint | None) -> dict[str, Any]:
    """Where the weights are and their hash. Reading them takes long: before anything is locked."""
    place = f"{run.directory}/{kept.path if kept else 'model'}"
    return checkpoint_settings(place=place, trained=True)


def _promote(
    actor: Any,
    name: str,
    version: str,
    sampling: dict[str, Any] | None,
    grounds: dict[str, Any],
    endpoint: dict[str, Any] | None = None,
) -> Contestant:
    """The promotion and its contestant, together or not at all; `endpoint` where it was read."""
    name = check_text(name.strip(), "name", limit=120)
    version = version.strip()[:64]
    run: TrainingRun = grounds["run"]
    kept: Checkpoint | None = grounds.get("checkpoint")
    endpoint = endpoint or _read(run, kept)
    try:
        with transaction.atomic():
            kept = _still_there(run, kept, endpoint["weights"])
            known = Promotion.objects.filter(name=name, version=version).first()
            if known is not None and (known.run_id, known.checkpoint) != (run.pk, kept):
                message = _("There is a contestant of this name and version already.")
                raise InvalidInput(message, field="name", code="taken")
            if known is None:
                known = Promotion.objects.create(name=name, version=version, **grounds)
                audit.record(actor=actor, action="promote", obj=known, kind=known.kind, run=run.pk)
            known.checkpoint = kept  # with its hash, for the lineage
            return get_or_create_contestant(
                name=name,
                version=version,
                kind=ContestantKind.CHECKPOINT,
                uses_persona=True,
                sampling={**SAMPLING, **(sampling or {})},
                endpoint=endpoint,
                provenance=lineage(known),
            )
    except IntegrityError as error:
        raise Refused(
            _("There is a contestant “%(name)s” that did not come from here.") % {"name": name},
            code="taken",
        ) from error


def _still_there(run: TrainingRun, kept: Checkpoint | None, weights: str) -> Checkpoint | None:
    """The row as it is now, with the hash that was read; raises where its files went meanwhile."""
    if kept is None:
        return None
    row = Checkpoint.objects.get(pk=kept.pk)
    gate_policies.check_checkpoint(run, row)
    row.sha256 = row.sha256 or weights
    return row

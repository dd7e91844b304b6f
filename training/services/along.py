"""A gate at 0, 50 and 100 % of a training run: before, middle, after (G27, H11)."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from typing import Any

from django.core.cache import cache
from django.db import transaction
from django.utils import timezone
from django.utils.translation import gettext as _

from training import gate_policies, policies
from training.enums import Role, RunKind, RunState
from training.models import GateRun, GateSpec, TrainingRun
from training.selectors.along import REFUSED, due, key_of
from training.selectors.checkpoints import middle_of
from training.services.findings import note_finding
from training.services.gates import Weighed, measure, weigh
from training.services.runs import NotReady
from webapp.core import audit
from webapp.core.errors import InvalidInput, PalateError

SHARES = (0, 50, 100)
PASSING = ("storage", "hardware")  # fields of problems that go away by themselves
AT_ONCE = 20
AGAIN = 600  # seconds until a run that waits is tried again

log = logging.getLogger("palate.gates")


def gate_along(*, actor: Any, spec: GateSpec, run: TrainingRun) -> list[GateRun]:
    """Send base, middle and end of a GRPO run through a gate; the gate runs in this order.

    Called again it gives the same gate runs. A base that no run made cannot be asked, nor a middle
    of which no weights are left: they are missing from the list.
    """
    policies.check_manage(actor)
    gate_policies.check_model(run, "run")
    if run.kind != RunKind.GRPO:
        raise InvalidInput(_("Only a run of GRPO has a middle."), field="run", code="no_middle")
    gate_policies.check_independent(spec, run)
    keys = {share: key_of(spec, run, share) for share in SHARES}
    known = _known(keys.values())
    missing = [share for share in SHARES if keys[share] not in known]
    stations = {share: weighed for share in missing if (weighed := _weighed(run, share))}
    with transaction.atomic():
        TrainingRun.objects.select_for_update().only("pk").get(pk=run.pk)
        found = _known(keys.values())
        made = {
            keys[share]: measure(actor, spec, weighed, keys[share])
            for share, weighed in stations.items()
            if keys[share] not in found
        }
        if made:
            audit.record(actor=actor, action="gate_along", obj=run, gate=spec.pk)
    found |= made
    return [found[key] for key in keys.values() if key in found]


def _known(keys: Iterable[str]) -> dict[str, GateRun]:
    return {str(gate.key): gate for gate in GateRun.objects.filter(key__in=keys)}


def _weighed(run: TrainingRun, share: int) -> Weighed | None:
    """One of the three, its weights read; None where there is nothing to ask."""
    if share == 0:
        base = run.inputs.filter(role=Role.BASE).select_related("source").first()
        return weigh(base.source) if base and base.source else None
    if share == 100:
        return weigh(run)
    middle = middle_of(run)
    return weigh(run, middle) if middle else None


def gate_when_done(*, pk: int) -> bool:
    """Send a run through the gate that it names, once it has succeeded; whether it was sent."""
    run = TrainingRun.objects.select_related("created_by").get(pk=pk)
    spec = GateSpec.objects.filter(name=named_gate(run)).first()
    if spec is None or run.state != RunState.SUCCEEDED:
        return False
    if GateRun.objects.filter(key=key_of(spec, run, 100)).exists():
        return False
    try:
        gate_along(actor=None, spec=spec, run=run)
    except PalateError as error:
        if passes(error):
            log.info("gate waits", extra={"run": run.pk, "why": str(error)})
            return False
        said = {"rule": REFUSED, "message": str(error), "step": run.step}
        note_finding(run, said, timezone.now())
        return False
    return True


def passes(error: PalateError) -> bool:
    """Whether it is worth asking again: space and machines come back, and names become free."""
    if isinstance(error, NotReady):
        return all(problem.field.startswith(PASSING) for problem in error.problems)
    return error.code == "taken"


def named_gate(run: TrainingRun) -> str:
    """The gate that a GRPO run names for its end; empty where it names none."""
    asked = run.config.get("grpo") if run.kind == RunKind.GRPO else None
    return str((asked or {}).get("gate") or "")


def gates_due() -> int:
    """Runs that ended and whose gate was never asked, because a message was lost or something was
    missing then. Each is tried now and then, so that those that wait hold up no others.
    """
    sent = tried = 0
    for pk in due():
        if tried < AT_ONCE and cache.add(f"gate-due:{pk}", True, AGAIN):
            tried += 1
            try:
                sent += gate_when_done(pk=pk)
            except Exception:  # one that breaks holds up no other
                log.exception("gate not sent", extra={"run": pk})
    return sent

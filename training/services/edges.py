"""Edge cases: prompts on which somebody failed, kept to be asked again (H10)."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from django.db import IntegrityError, transaction
from django.utils import timezone
from django.utils.translation import gettext as _

from training import policies, snapshots
from training.enums import EdgeSource
from training.models import EdgeCase, GateRun, RowText, TrainingRun
from training.selectors.barred import HOLDOUT, SEALED, WITHDRAWN, find_barred
from training.selectors.complaints import complaints
from training.services import rollouts
from webapp.catalog.models import Persona
from webapp.catalog.services.checks import check_text
from webapp.catalog.texts import canonical_json, prompt_hash, sha256
from webapp.core import audit
from webapp.core.errors import InvalidInput, Refused


def add_cases(
    gate: GateRun, items: Iterable[str], source: str, *, reason: str = "", actor: Any = None
) -> int:
    """Keep these items of a gate as edge cases; known ones stay as they are. In a transaction."""
    wanted = set(items)
    known = set(EdgeCase.objects.filter(item__in=wanted).values_list("item", flat=True))
    added = 0
    for row in snapshots.prompts(gate.spec.dataset, gate.spec.split):
        if row["id"] in wanted - known:
            _keep(row, source, gate=gate, reason=reason, actor=actor)
            added += 1
    return added


def add_case(
    *,
    actor: Any,
    prompt: str,
    persona: Persona | None = None,
    summary: str = "",
    source: str = EdgeSource.AUTHORED,
    reason: str = "",
) -> EdgeCase:
    """Keep a question under a persona summary as an edge case; once."""
    policies.check_manage(actor)
    if source not in EdgeSource.values:
        raise InvalidInput(_("Choose where the case comes from."), field="source", code="choice")
    text = check_text(prompt.strip(), "prompt", limit=8000)
    messages = [{"role": "user", "content": text}]
    asked = {"persona": summary.strip(), "prompt": messages}
    row = {"id": sha256(canonical_json(asked)), **asked, "stratum": ""}
    persona = persona or _of_summary(summary.strip())
    _check_free(row, persona)
    return _keep_once(row, source, reason=reason, actor=actor, persona=persona)


def _of_summary(summary: str) -> Persona | None:
    """Whose summary this is, so that it is held out or erased with that person."""
    if not summary:
        return None
    return Persona.objects.filter(versions__summary_sha256=sha256(summary)).order_by("pk").first()


def _check_free(row: Mapping[str, Any], persona: Persona | None) -> None:
    """Raise where the question or the person is held out or in a sealed round (V11)."""
    why = find_barred().reason(prompt_hash(row["prompt"]), persona.pk if persona else None)
    said = {
        HOLDOUT: _("This is held out for rounds: nothing that trains or measures may ask it."),
        SEALED: _("A round that is still sealed asks this. Keep it after the round is unsealed."),
        WITHDRAWN: _("This person has withdrawn."),
    }
    if why:
        raise InvalidInput(said[why], field="prompt", code=why)


def keep_complaint(*, actor: Any, item: int) -> EdgeCase:
    """Keep the question of a complaint that was found just, once. Raises Refused for any other."""
    policies.check_manage(actor)
    found = next((c for c in complaints() if c.item == item), None)
    if found is None:
        raise Refused(_("This complaint is no longer among those to keep."), code="gone")
    return _keep_once(
        found.row, EdgeSource.COMPLAINT, actor=actor, reason=found.what, persona=found.persona
    )


def keep_rollout(*, actor: Any, run: TrainingRun, offset: int, reason: str = "") -> EdgeCase:
    """Keep the question of an answer that a run gave and somebody found wanting, once.

    `offset` is its place in samples.jsonl. The whole conversation and the person come from the
    rows that the run was given.
    """
    policies.check_manage(actor)
    said = rollouts.sample_at(run, offset)
    if said is None:
        raise Refused(_("This answer is not on this machine."), code="gone")
    row = rollouts.asked_of(run, said)
    if row is None:
        raise Refused(_("What was asked is not among the rows of the run."), code="gone")
    _check_free(row, Persona.objects.filter(pseudonym=row.get("persona_id") or "").first())
    reason = check_text(reason.strip(), "reason", limit=300) if reason.strip() else ""
    why = reason or _("%(run)s, step %(step)s") % {"run": run.name, "step": said.get("step", 0)}
    return _keep_once(row, EdgeSource.ROLLOUT, actor=actor, reason=why)


def _keep_once(row: Mapping[str, Any], source: str, **more: Any) -> EdgeCase:
    """The case that is there, or a new one."""
    try:
        with transaction.atomic():
            known = EdgeCase.objects.filter(item=row["id"]).first()
            return known or _keep(row, source, **more)
    except IntegrityError:  # somebody else kept it meanwhile
        return EdgeCase.objects.get(item=row["id"])


def retire_case(*, actor: Any, case: EdgeCase) -> None:
    """Ask about it no more."""
    policies.check_manage(actor)
    with transaction.atomic():
        open_ = EdgeCase.objects.filter(pk=case.pk, retired_at=None)
        if open_.update(retired_at=timezone.now()):
            audit.record(actor=actor, action="retire_edge_case", obj=case)


def _keep(
    row: Mapping[str, Any],
    source: str,
    *,
    actor: Any,
    reason: str = "",
    gate: GateRun | None = None,
    persona: Persona | None = None,
) -> EdgeCase:
    if persona is None and row.get("persona_id"):
        persona = Persona.objects.filter(pseudonym=row["persona_id"]).first()
    asked = {"persona": row["persona"], "prompt": row["prompt"]}
    asked |= {"task": row["task"]} if row.get("task") else {}  # what rules judge it by
    line = canonical_json(asked)
    digest = sha256(f"edge\n{line}")
    RowText.objects.get_or_create(sha256=digest, defaults={"line": line, "persona": persona})
    case = EdgeCase.objects.create(
        name=f"edge-{row['id'][:12]}",
        row_sha256=digest,
        item=row["id"],
        persona=persona,
        stratum=row.get("stratum", ""),
        source=source,
        reason=reason[:300],
        gate=gate,
        created_by=actor,
    )
    audit.record(actor=actor, action="add_edge_case", obj=case, source=source)
    return case


def rows_of(items: Iterable[str]) -> Iterator[dict[str, Any]]:
    """The prompts of cases as an evaluation asks them; erased ones are left out (V14)."""
    cases = list(EdgeCase.objects.filter(item__in=list(items)).order_by("item"))
    texts = RowText.objects.in_bulk([case.row_sha256 for case in cases])
    for case in cases:
        if case.row_sha256 in texts:
            yield {"id": case.item, **json.loads(texts[case.row_sha256].line)}

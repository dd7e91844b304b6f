"""Edge cases: prompts on which somebody failed, kept to be asked again (H10)."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from django.db import transaction
from django.utils import timezone
from django.utils.translation import gettext as _

from training import policies, snapshots
from training.enums import EdgeSource
from training.models import EdgeCase, GateRun, RowText
from webapp.catalog.models import Persona
from webapp.catalog.services.checks import check_text
from webapp.catalog.texts import canonical_json, sha256
from webapp.core import audit
from webapp.core.errors import InvalidInput


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
    with transaction.atomic():
        known = EdgeCase.objects.filter(item=row["id"]).first()
        return known or _keep(row, source, reason=reason, actor=actor, persona=persona)


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
    line = canonical_json({"persona": row["persona"], "prompt": row["prompt"]})
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

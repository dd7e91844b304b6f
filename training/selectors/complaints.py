"""Complaints of annotators that were decided, as questions that a gate may ask again (H10)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from annotation.enums import AppealState
from annotation.models import Appeal, Item, Problem
from training.models import EdgeCase
from training.selectors.barred import find_barred
from training.selectors.sources.annotation import summary_of
from webapp.catalog.models import Persona
from webapp.catalog.texts import canonical_json, sha256

MOST = 50  # newest complaints that are looked at
JUST = ("drop", "hold", "adjudicate")  # resolutions; with "keep" nothing was found wrong


@dataclass(frozen=True)
class Complaint:
    """A question under a persona that somebody complained about with reason. `row` is the case."""

    item: int
    what: str
    at: datetime
    row: dict[str, Any]
    persona: Persona | None

    @property
    def question(self) -> str:
        return str(self.row["prompt"][-1]["content"])


def complaints() -> list[Complaint]:
    """Upheld appeals and reports that were found just, the newest first, without those that are
    cases already, that are held out or sealed, and of people who withdrew.
    """
    found: dict[int, tuple[str, Any]] = {}
    appeals = Appeal.objects.filter(state=AppealState.UPHELD).order_by("-answered_at")
    for item, text, at in appeals.values_list("lease__item", "text", "answered_at")[:MOST]:
        found.setdefault(item, (text, at))
    reports = Problem.objects.exclude(resolved_at=None).order_by("-resolved_at")
    for report in reports[:MOST]:
        if report.resolution.startswith(JUST):
            said = report.note or str(report.get_kind_display())
            found.setdefault(report.item_id, (said, report.resolved_at))
    return sorted(_allowed(found), key=lambda c: c.at, reverse=True)[:MOST]


def _allowed(found: dict[int, tuple[str, Any]]) -> Iterable[Complaint]:
    related = ("prompt", "persona_version__persona", "persona_version__text")
    items = list(Item.objects.filter(pk__in=found).select_related(*related))
    barred = find_barred()
    rows = {item.pk: _row(item) for item in items}
    ids = [row["id"] for row in rows.values() if row]
    known = set(EdgeCase.objects.filter(item__in=ids).values_list("item", flat=True))
    for item in items:
        row, version = rows[item.pk], item.persona_version
        persona = version.persona if version else None
        reason = barred.reason(item.prompt.text_hash, persona.pk if persona else None)
        if row and row["id"] not in known and not reason:
            yield Complaint(item.pk, *found[item.pk], row, persona)


def _row(item: Item) -> dict[str, Any] | None:
    """As a gate asks it; None where the summary was erased."""
    summary = summary_of(item.persona_version)
    if summary is None:
        return None
    asked = {"persona": summary, "prompt": item.prompt.messages}
    return {"id": sha256(canonical_json(asked)), **asked, "stratum": item.stratum}

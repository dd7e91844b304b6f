"""What managers read through the API, as plain data. Canonical verdicts, pseudonyms."""

from __future__ import annotations

from typing import Any

from annotation.enums import Axis, LeaseState
from annotation.models import Decision, Item, Label, Lease
from annotation.selectors.items import producers_of


def item_data(item: Item) -> dict[str, Any]:
    """An item of the list, loaded with its decisions. No text, no producer, no source."""
    held = {axis: getattr(item, f"{axis}_decision") for axis in Axis.values}
    return {
        "id": item.public_id,
        "state": item.state,
        "kind": item.kind,
        "synthetic": item.synthetic,
        "stratum": item.stratum,
        "flags": item.flags,
        "target": item.target,
        "live": item.live,
        "done": item.done,
        "decisions": {axis: _decision(row) for axis, row in held.items() if row is not None},
        "created_at": item.created_at,
    }


def _decision(row: Decision) -> dict[str, Any]:
    return {
        "verdict": row.verdict,
        "source": row.source,
        "labels": row.labels,
        "posterior": row.posterior,
    }


def item_detail(item: Item, *, with_labels: bool) -> dict[str, Any]:
    """One item with texts, gold and labels, and its producers where they may be named (V1)."""
    body, version = getattr(item, "body", None), item.persona_version
    text = getattr(version, "text", None) if version else None
    found = producers_of(item)
    producers = found and {n: getattr(found, n) for n in ("first", "second", "source")}
    return {
        **item_data(item),
        "messages": [{"role": t["role"], "content": t["content"]} for t in item.prompt.messages],
        "persona": version
        and {"pseudonym": version.persona.pseudonym, "summary": text.summary if text else ""},
        "first": body.first if body else None,
        "second": body.second if body else None,
        "producers": producers,
        "gold": _gold(item),
        "labels": standing_labels(item) if with_labels else [],
    }


def _gold(item: Item) -> dict[str, Any] | None:
    row = item.gold.order_by("-n").first()
    if row is None:
        return None
    return {
        "verdicts": _by_axis(row),
        "onboarding": row.onboarding,
        "active": row.active,
        "explanation": row.explanation,
    }


def _by_axis(row: Any, suffix: str = "") -> dict[str, Any]:
    values = {axis: getattr(row, f"{axis}{suffix}") for axis in Axis.values}
    return {axis: value for axis, value in values.items() if value}


def standing_labels(item: Item) -> list[dict[str, Any]]:
    """Every submitted label of an item: counted ones, extras, repeats and those on gold."""
    rows = Lease.objects.filter(item=item, state=LeaseState.SUBMITTED)
    found = rows.select_related("head__guideline", "member").order_by("pk")
    return [_label(row, row.head) for row in found if row.head is not None]


def _label(lease: Lease, head: Label) -> dict[str, Any]:
    return {
        "annotator": lease.member.external_name or lease.member.pseudonym,
        "verdicts": _by_axis(head),
        "strengths": _by_axis(head, "_strength"),
        "tags": head.tags,
        "comment": head.comment,
        "active_ms": head.active_ms,
        "revision": head.revision,
        "first_left": head.first_left,
        "late": head.late,
        "counted": lease.counted,
        "repeat": lease.repeat,
        "guideline": head.guideline.n if head.guideline else None,
        "at": head.at,
    }

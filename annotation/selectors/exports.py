"""Reading a project's items for its exports, in chunks by key, however many there are."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any

from django.db.models import Count, Exists, IntegerField, OuterRef, Q, Subquery
from django.db.models.functions import Coalesce

from annotation.enums import Axis, LeaseState
from annotation.exports.rows import Facts, LabelRow, Outcome, PairRow, clean
from annotation.models import GoldItem, Item, Lease, Project, SoftLabel
from annotation.selectors.items import sealed_items
from webapp.catalog.enums import Split

FACTS_CHUNK, ROWS_CHUNK = 2000, 500
DECISION = ("verdict", "source", "posterior", "labels", "at")
COLUMNS = (
    "pk", "state", "synthetic", "first_sha256", "second_sha256", "prompt_id", "prompt__text_hash",
    "prompt__split", "persona_version__persona_id", "persona_version__persona__split",
    "persona_version__persona__withdrawn_at", "body__pk", "rewrite__pair", "rewrite__state",
    "origin__details__counterfactual_pair", "gold_rows", "external", "submitted",
    *(f"{axis}_decision__{name}" for axis in Axis.values for name in DECISION),
)  # fmt: skip


def facts_of(project: Project) -> Iterator[Facts]:
    """What decides about each item of the project, in the order of their ids."""
    after = 0
    while rows := list(_annotated(project).filter(pk__gt=after).values(*COLUMNS)[:FACTS_CHUNK]):
        soft = _soft_labels(project, after, rows[-1]["pk"])
        for row in rows:
            yield _facts(row, soft)
        after = rows[-1]["pk"]


def facts_by_id(project: Project, pks: Sequence[int]) -> dict[int, Facts]:
    rows = list(_annotated(project).filter(pk__in=pks).values(*COLUMNS))
    soft = _soft_labels(project, min(pks) - 1, max(pks)) if pks else {}
    return {row["pk"]: _facts(row, soft) for row in rows}


def _annotated(project: Project) -> Any:
    leases = Lease.objects.filter(item=OuterRef("pk"), state=LeaseState.SUBMITTED)
    counted = leases.order_by().values("item").annotate(n=Count("pk")).values("n")
    return (
        Item.objects.filter(project=project)
        .order_by("pk")
        .annotate(
            gold_rows=Exists(
                GoldItem.objects.filter(
                    Q(item=OuterRef("pk")) | Q(item=OuterRef("rewrite__source_item"))
                )
            ),
            external=Exists(leases.filter(counted=True, member__user=None)),
            submitted=Coalesce(Subquery(counted, output_field=IntegerField()), 0),
        )
    )


Soft = Mapping[tuple[int, str], tuple[dict[str, float], datetime]]


def _soft_labels(project: Project, after: int, last: int) -> Soft:
    rows = SoftLabel.objects.filter(item__project=project, item__gt=after, item__lte=last)
    columns = rows.values_list("item_id", "axis", "posterior", "updated_at")
    return {(item, axis): (posterior, at) for item, axis, posterior, at in columns}


def _facts(row: Mapping[str, Any], soft: Soft) -> Facts:
    synthetic, persona = row["synthetic"], row["persona_version__persona_id"] or 0
    splits = (row["prompt__split"], row["persona_version__persona__split"])
    return Facts(
        item=row["pk"],
        state=row["state"],
        prompt=row["prompt_id"],
        persona=persona,
        prompt_key=int(row["prompt__text_hash"][:15], 16),
        outcomes=dict(_outcomes(row, soft)),
        labels=row["submitted"],
        gold=row["gold_rows"] or row["state"] == "gold",
        readable=bool(row["body__pk"] and not row["persona_version__persona__withdrawn_at"]),
        holdout=Split.HOLDOUT in splits,
        external=row["external"],
        synthetic=synthetic,
        same_text=row["first_sha256"] == row["second_sha256"],
        pair=_pair(row) if synthetic else "",
        review=row["rewrite__state"] or "",
    )


def _pair(row: Mapping[str, Any]) -> str:
    """What the two directions share; it comes along when they are exported and imported again."""
    said = row["rewrite__pair"] or row["origin__details__counterfactual_pair"]
    return said if isinstance(said, str) else ""


def _outcomes(row: Mapping[str, Any], soft: Soft) -> Iterator[tuple[str, Outcome]]:
    """The decision of each axis; its posterior is the project's soft label where that is newer."""
    for axis in Axis.values:
        verdict, source, posterior, labels, at = (
            row[f"{axis}_decision__{name}"] for name in DECISION
        )
        if source is None:
            continue
        renewed, since = soft.get((row["pk"], axis), ({}, None))
        if since is not None and since >= at and renewed:
            posterior = renewed
        yield axis, Outcome(verdict, source, posterior, labels)


def rows_of(facts: Mapping[int, Facts]) -> dict[int, PairRow]:
    """Everything about these items; producers are left out where a sealed round holds a text."""
    items = Item.objects.filter(pk__in=list(facts)).select_related(
        "prompt",
        "body",
        "origin",
        "persona_version__persona",
        "persona_version__text",
        "quality_decision",
        "personalization_decision",
    )
    labels = labels_of(list(facts))
    sealed = sealed_items(facts)
    return {
        item.pk: _row(item, facts[item.pk], labels.get(item.pk, ()), item.pk in sealed)
        for item in items
        if hasattr(item, "body")
    }


def labels_of(pks: Sequence[int]) -> dict[int, list[LabelRow]]:
    """Submitted labels by item, in the order of their leases."""
    leases = (
        Lease.objects.filter(item__in=pks, state=LeaseState.SUBMITTED)
        .select_related("head__guideline", "member")
        .order_by("item_id", "pk")
    )
    found: dict[int, list[LabelRow]] = defaultdict(list)
    for lease in leases:
        found[lease.item_id].append(_label(lease))
    return found


def _label(lease: Lease) -> LabelRow:
    head, member = lease.head, lease.member
    assert head is not None
    return LabelRow(
        annotator=member.external_name or member.pseudonym,
        pseudonym=member.pseudonym,
        verdicts={axis: getattr(head, axis) for axis in Axis.values if getattr(head, axis)},
        strengths={
            axis: strength
            for axis in Axis.values
            if (strength := getattr(head, f"{axis}_strength"))
        },
        first_left=lease.first_left,
        at=head.at.isoformat(),
        guideline=head.guideline.n if head.guideline else (head.imported or {}).get("guideline", 0),
        tags=clean(head.tags),
        comment=clean(head.comment),
        active_ms=head.active_ms,
        late=head.late,
        extra=not lease.counted and not lease.repeat,
        repeat=lease.repeat,
    )


def _row(item: Item, facts: Facts, labels: Sequence[LabelRow], sealed: bool) -> PairRow:
    version, origin = item.persona_version, getattr(item, "origin", None)
    persona = version.persona if version else None
    text = getattr(version, "text", None) if version else None
    named = origin is not None and not sealed
    return PairRow(
        id=item.public_id,
        facts=facts,
        messages=clean(item.prompt.messages),
        prompt_sha256=item.prompt.text_hash,
        category=item.prompt.category,
        language=item.prompt.language,
        persona=persona.pseudonym if persona else "",
        persona_version=version.n if version else 0,
        summary=text.summary if text else "",
        features=clean(persona.features) if persona else {},
        first=item.body.first,
        second=item.body.second,
        producers=(origin.first_producer, origin.second_producer) if named and origin else ("", ""),
        kind=item.kind,
        source="" if sealed else item.source,  # a name of a file may name the maker, too
        labels=labels,
        decisions=dict(_decisions(item)),
        details=clean(origin.details) if named and origin else {},
    )


def _decisions(item: Item) -> Iterator[tuple[str, dict[str, Any]]]:
    """The decisions that hold, as they are stored."""
    names = ("verdict", "source", "labels", "posterior", "blind_verdict", "reason", "note")
    for axis in Axis.values:
        held = getattr(item, f"{axis}_decision")
        if held is not None:
            yield axis, {name: clean(getattr(held, name)) for name in names}

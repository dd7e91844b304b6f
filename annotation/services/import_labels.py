"""Labels of a file as labels of named external annotators: each once, none lost.

A label is told apart by what it says: the n-th time that a file says it belongs to the n-th such
label of this annotator on this pair. So importing a file again adds nothing, and a row that stands
in the file twice is a repeat.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from django.db.models import F, OuterRef, Subquery
from django.db.models.functions import Greatest
from django.utils import timezone

from annotation.assignment import draw
from annotation.enums import GIVEN, Axis, ItemState, LeaseState, MemberState
from annotation.formats.rows import LabelSpec
from annotation.models import GoldItem, Item, Label, Lease, Member, Project
from annotation.services.chunks import chunks
from annotation.services.gold import score_member
from annotation.services.import_rows import Entry, label_digest, mirrored_label, occurrence
from annotation.services.settling import settle_items
from webapp.catalog.formats.rows import RowError
from webapp.catalog.scratch import Scratch

PSEUDONYM_LIMIT = 64


@dataclass
class Known:
    """What the project has of an annotator on an item: the numbers taken, and what was said."""

    repeats: set[int] = field(default_factory=set)
    said: dict[str, int] = field(default_factory=lambda: defaultdict(int))


@dataclass
class Planned:
    """A label to be written. Verdicts are those of the item, whichever way the file had it."""

    entry: Entry
    member: Member
    label: LabelSpec
    verdicts: dict[str, str]
    repeat: int
    counted: bool


def plan_labels(project: Project, entries: Sequence[Entry], scratch: Scratch) -> list[Planned]:
    """What of the labels is new. Marks rows that speak for somebody with an account as bad."""
    names = {label.annotator for entry in entries for label in entry.row.labels}
    members = members_by_name(project, names)
    known = _known(entries)
    gold = _gold_items(entries)
    planned: list[Planned] = []
    for entry in entries:
        found = []
        for n, label in enumerate(entry.row.labels):
            plan = _plan(entry, label, members[label.annotator], known, scratch)
            if plan is None:
                continue
            if plan.member.user_id is not None:
                entry.bad = RowError("annotator_is_member", f"labels[{n}].annotator")
            plan.counted = plan.counted and entry.item_id not in gold and _is_whole(plan, project)
            found.append(plan)
        if entry.bad is None:
            planned += found
            _count(entry, found)
    return planned


def _plan(
    entry: Entry,
    label: LabelSpec,
    member: Member,
    known: dict[tuple[int, int], Known],
    scratch: Scratch,
) -> Planned | None:
    """None where the project has this label already."""
    assert entry.added is not None
    verdicts = mirrored_label(label, entry.added.swapped)
    before = occurrence(entry, label, scratch)
    have = known[entry.item_id, member.pk]
    if before < have.said[label_digest(verdicts, label)]:
        return None
    again = scratch.count("by", *entry.key, label.annotator) > 0
    repeat = label.repeat or int(again and not have.repeats)
    while repeat in have.repeats:
        repeat += 1
    have.repeats.add(repeat)
    return Planned(entry, member, label, verdicts, repeat, repeat == 0 and not label.extra)


def _is_whole(plan: Planned, project: Project) -> bool:
    """A label that leaves an axis out holds no place: the pair still needs people."""
    return set(plan.verdicts) >= set(project.axes)


def _count(entry: Entry, planned: Sequence[Planned]) -> None:
    entry.labels_added = len(planned)
    entry.labels_known = len(entry.row.labels) - len(planned)
    entry.labels_repeated = sum(1 for plan in planned if plan.repeat)
    entry.labels_beside = sum(1 for plan in planned if not plan.repeat and not plan.counted)


def members_by_name(project: Project, names: Iterable[str]) -> dict[str, Member]:
    """External annotators by name, the missing ones made; members with an account by pseudonym."""
    found: dict[str, Member] = {}
    for wanted in chunks(sorted(set(names))):
        found |= _external(project, wanted)
        rows = project.members.filter(pseudonym__in=wanted, user__isnull=False)
        found |= {member.pseudonym: member for member in rows}
        missing = [name for name in wanted if name not in found]
        if missing:
            _make_members(project, missing)
            found |= _external(project, missing)
    return found


def _external(project: Project, names: Sequence[str]) -> dict[str, Member]:
    rows = project.members.filter(external_name__in=names, user=None)
    return {member.external_name: member for member in rows}


def _make_members(project: Project, names: Sequence[str]) -> None:
    taken = set(project.members.filter(pseudonym__in=names).values_list("pseudonym", flat=True))
    made = [_member(project, name, taken) for name in names]
    Member.objects.bulk_create(made, ignore_conflicts=True)


def _member(project: Project, name: str, taken: set[str]) -> Member:
    short = len(name) <= PSEUDONYM_LIMIT and name not in taken
    return Member(
        project=project,
        external_name=name,
        pseudonym=name if short else f"x-{draw(project.seed, 'external', name):016x}",
        state=MemberState.WORKING,
        axes=list(project.axes),
    )


def _known(entries: Sequence[Entry]) -> dict[tuple[int, int], Known]:
    """What there is on items that were there before."""
    found: dict[tuple[int, int], Known] = defaultdict(Known)
    for lease in Lease.objects.filter(item__in=old_items(entries)).select_related("head"):
        have = found[lease.item_id, lease.member_id]
        have.repeats.add(lease.repeat)
        if lease.state in GIVEN and lease.head is not None:
            have.said[_said(lease.head)] += 1
    return found


def old_items(entries: Sequence[Entry]) -> set[int]:
    """Items of these rows that the project had before."""
    return {entry.item_id for entry in entries if entry.added and not entry.added.new}


def _said(head: Label) -> str:
    verdicts = {axis: getattr(head, axis) for axis in Axis.values if getattr(head, axis)}
    strengths = {axis: getattr(head, f"{axis}_strength") or 0 for axis in Axis.values}
    spec = LabelSpec("", verdicts, strengths, tuple(head.tags), head.comment)
    return label_digest(verdicts, spec)


def _gold_items(entries: Sequence[Entry]) -> set[int]:
    """Old items that are gold, or will be when they are released."""
    rows = GoldItem.objects.filter(item__in=old_items(entries))
    return set(rows.values_list("item", flat=True))


# Writing


def write_labels(planned: Sequence[Planned], *, settle: set[int]) -> None:
    """Write leases and labels, take the places, settle what has enough.

    `settle`: the items that may be settled by their labels.
    """
    if not planned:
        return
    now = timezone.now()
    leases = Lease.objects.bulk_create([_lease(plan, now) for plan in planned])
    Label.objects.bulk_create(
        [_label(plan, lease, now) for plan, lease in zip(planned, leases, strict=True)]
    )
    head = Subquery(Label.objects.filter(lease=OuterRef("pk")).values("pk")[:1])
    for pks in chunks([lease.pk for lease in leases]):
        Lease.objects.filter(pk__in=pks).update(head=head, state=LeaseState.SUBMITTED)
    counted = [plan for plan in planned if plan.counted]
    take_places([plan.entry.item_id for plan in counted])
    settle_items({plan.entry.item_id for plan in counted} & settle)
    _score_on_gold(planned)


def _lease(plan: Planned, now: datetime) -> Lease:
    at = plan.label.at or now
    return Lease(
        item_id=plan.entry.item_id,
        member=plan.member,
        repeat=plan.repeat,
        state=LeaseState.SHOWN,  # submitted as soon as the label stands
        counted=plan.counted,
        first_left=_first_left(plan),
        expires_at=at,
        shown_at=at,
        submitted_at=at,
    )


def _first_left(plan: Planned) -> bool:
    assert plan.entry.added is not None
    return plan.label.first_left != plan.entry.added.swapped


def _label(plan: Planned, lease: Lease, now: datetime) -> Label:
    spec = plan.label
    values: dict[str, Any] = dict(plan.verdicts)
    for axis, strength in spec.strengths.items():
        values[f"{axis}_strength"] = strength or None
    return Label(
        lease=lease,
        item_id=lease.item_id,
        member=plan.member,
        revision=1,
        tags=sorted(set(spec.tags)),
        comment=spec.comment,
        active_ms=spec.active_ms,
        first_left=lease.first_left,
        late=spec.late,
        source="import",
        imported={"guideline": spec.guideline} if spec.guideline else None,
        at=spec.at or now,
        **values,
    )


def take_places(item_ids: Sequence[int]) -> None:
    """Count these labels on their items; an item that has more than it wanted wants that many."""
    numbers: dict[int, int] = defaultdict(int)
    for item in item_ids:
        numbers[item] += 1
    groups: dict[int, list[int]] = defaultdict(list)
    for item, n in numbers.items():
        groups[n].append(item)
    for n, items in sorted(groups.items()):
        Item.objects.filter(pk__in=items).update(
            target=Greatest(F("target"), F("live") + n), live=F("live") + n, done=F("done") + n
        )


def _score_on_gold(planned: Sequence[Planned]) -> None:
    """Score the members again whose labels fell on gold items."""
    beside = [plan for plan in planned if not plan.counted and not plan.entry.new]
    items = {plan.entry.item_id for plan in beside}
    gold = set(Item.objects.filter(pk__in=items, state=ItemState.GOLD).values_list("pk", flat=True))
    members = {plan.member.pk: plan.member for plan in beside if plan.entry.item_id in gold}
    for _pk, member in sorted(members.items()):
        score_member(member)

"""What adjudicators and managers review: disputed items, appeals, reported problems."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from django.db.models import Count, Exists, OuterRef, Q, QuerySet
from django.utils import timezone

from annotation.enums import (
    HELD,
    IN_HAND,
    AppealState,
    Axis,
    ItemFlag,
    ItemState,
    LeaseState,
    Strength,
)
from annotation.models import Adjudication, Appeal, Item, Label, Lease, Member, Problem, Project
from annotation.overlap import agreeing_pairs
from annotation.selectors.tasks import as_shown
from webapp.catalog.blind import BlindPair, difference_pair, rendered_pair

MOST = 5000  # disputed items that are looked at, the oldest first
ITEM_PARTS = ("body", "prompt", "persona_version__text", "persona_version__persona")


def seat(project: Project, user: Any) -> Member | None:
    """The user's seat in a project."""
    return Member.objects.filter(project=project, user=user).first()


def has_labelled(user: Any, item: Item) -> bool:
    """Whether the user labelled the item, even if it was taken back, or still may."""
    return _own_leases(user).filter(item=item).exists()


def _own_leases(user: Any) -> QuerySet[Lease]:
    """Leases with a label, and those that she holds or let expire: she may send them yet."""
    may_come = Q(state__in=[*HELD, LeaseState.EXPIRED])
    return Lease.objects.filter(Q(head__isnull=False) | may_come, member__user=user)


def in_hand_of(user: Any, project: Project) -> Adjudication | None:
    """What this adjudicator has in hand in a project, unless it was dropped or made gold since."""
    rows = Adjudication.objects.filter(
        adjudicator=user,
        item__project=project,
        item__state=ItemState.DISPUTED,
        state__in=IN_HAND,
        expires_at__gt=timezone.now(),
    )
    return rows.select_related("item").order_by("pk").first()


@dataclass(frozen=True)
class Disputed:
    """A disputed item as its queue shows it; `agreement` in percent, None with fewer than two
    labels. `taken`: somebody else has it in hand; `labelled`: this user labelled it.
    """

    item: Item
    labels: int
    agreement: int | None
    contested: bool
    taken: bool
    labelled: bool


def disputed_items(project: Project, show: str = "") -> QuerySet[Item]:
    """Items for adjudicators; `show`: "contested" after an appeal, "reported" with a report."""
    rows = project.items.filter(state=ItemState.DISPUTED)
    if show == "contested":
        return rows.filter(flags__icontains=ItemFlag.CONTESTED)
    if show == "reported":
        return rows.filter(Exists(Problem.objects.filter(item=OuterRef("pk"), resolved_at=None)))
    return rows


@dataclass(frozen=True)
class Queue:
    """The first disputed items of a queue, how many there are, and how many this user may take."""

    entries: list[Disputed]
    total: int
    free: int


def disputed_queue(
    project: Project, user: Any, *, show: str = "", free_only: bool = True, limit: int = 50
) -> Queue:
    """Disputed items, the least agreement first; by default those that this user may take.

    Order comes from the verdicts alone; questions are read for the first `limit` only.
    """
    found = list(disputed_items(project, show).order_by("pk").values_list("pk", "flags")[:MOST])
    labels = _verdicts_by_item(project)
    taken, labelled = _taken(project, user), _labelled(project, user)
    rows = [
        _Row(
            pk=pk,
            agreement=_percent(agreeing_pairs(labels[pk], project.axes)),
            contested=ItemFlag.CONTESTED in flags,
            free=pk not in taken and pk not in labelled,
        )
        for pk, flags in found
    ]
    free = sum(row.free for row in rows)
    chosen = [row for row in rows if row.free] if free_only else rows
    chosen.sort(key=lambda row: (101 if row.agreement is None else row.agreement, row.pk))
    parts = ("prompt", "persona_version__text")
    items = Item.objects.select_related(*parts).in_bulk([row.pk for row in chosen[:limit]])
    entries = [
        Disputed(
            item=items[row.pk],
            labels=len(labels[row.pk]),
            agreement=row.agreement,
            contested=row.contested,
            taken=row.pk in taken,
            labelled=row.pk in labelled,
        )
        for row in chosen[:limit]
    ]
    return Queue(entries, total=len(chosen), free=free)


class _Row(NamedTuple):
    pk: int
    agreement: int | None
    contested: bool
    free: bool


def _percent(share: float | None) -> int | None:
    return None if share is None else round(100 * share)


def _taken(project: Project, user: Any) -> set[int]:
    """Items that somebody else has in hand."""
    rows = Adjudication.objects.filter(
        item__project=project, state__in=IN_HAND, expires_at__gt=timezone.now()
    )
    return set(rows.exclude(adjudicator=user).values_list("item", flat=True))


def _labelled(project: Project, user: Any) -> set[int]:
    """Disputed items that the user labelled or still may label."""
    rows = _own_leases(user).filter(member__project=project, item__state=ItemState.DISPUTED)
    return set(rows.values_list("item", flat=True))


def _verdicts_by_item(project: Project) -> dict[int, list[dict[str, str]]]:
    rows = Lease.objects.filter(
        item__project=project,
        item__state=ItemState.DISPUTED,
        counted=True,
        state=LeaseState.SUBMITTED,
    )
    found: dict[int, list[dict[str, str]]] = defaultdict(list)
    for item, *verdicts in rows.values_list("item", *(f"head__{axis}" for axis in Axis.values)):
        found[item].append(dict(zip(Axis.values, verdicts, strict=True)))
    return found


# The adjudicator's page


def adjudication_parts(user: Any, token: str) -> Adjudication | None:
    """An adjudicator's own claim with what its page needs; nobody else's."""
    rows = Adjudication.objects.select_related(
        "item__project",
        "item__quality_decision",
        "item__personalization_decision",
        *(f"item__{part}" for part in ITEM_PARTS),
    )
    return rows.filter(adjudicator=user, token=token).first()


def blind_item(row: Adjudication) -> BlindPair:
    """The item of a claim as a blind object."""
    item = row.item
    return rendered_pair(row.token, item.prompt, item.persona_version, *_sides(row))


def blind_item_difference(row: Adjudication) -> BlindPair:
    """The same with the word difference in place of the rendered answers."""
    item = row.item
    return difference_pair(row.token, item.prompt, item.persona_version, *_sides(row))


def _sides(row: Adjudication) -> tuple[str, str]:
    body = getattr(row.item, "body", None)
    if body is None:
        return "", ""
    return (body.first, body.second) if row.first_left else (body.second, body.first)


@dataclass(frozen=True)
class SeenLabel:
    """A label as somebody sees it who has the two answers before him on certain sides."""

    pseudonym: str
    verdicts: dict[str, str]
    strengths: dict[str, Any]
    tags: list[str]
    comment: str
    at: Any
    guideline: int | None
    late: bool
    counted: bool


def labels_of(item: Item, *, first_left: bool) -> list[SeenLabel]:
    """The labels that stand, without repeats, with verdicts as on a page with these sides."""
    rows = (
        Lease.objects.filter(item=item, state=LeaseState.SUBMITTED, repeat=0)
        .select_related("head__guideline", "member")
        .order_by("submitted_at", "pk")
    )
    return [_seen(lease, first_left) for lease in rows]


def _seen(lease: Lease, first_left: bool) -> SeenLabel:
    head = lease.head
    assert head is not None
    return SeenLabel(
        pseudonym=lease.member.pseudonym,
        verdicts={axis: as_shown(getattr(head, axis), first_left) for axis in Axis.values},
        strengths=_strengths(head),
        tags=list(head.tags),
        comment=head.comment,
        at=head.at,
        guideline=head.guideline.n if head.guideline else None,
        late=head.late,
        counted=lease.counted,
    )


def _strengths(head: Label) -> dict[str, Any]:
    values = {axis: getattr(head, f"{axis}_strength") for axis in Axis.values}
    return {axis: Strength(value).label for axis, value in values.items() if value}


# Appeals and problems


def appeals_of(project: Project, *, answered: bool = False) -> QuerySet[Appeal]:
    """Appeals of a project: the open ones, oldest first, or the answered ones, newest first."""
    rows = Appeal.objects.filter(lease__member__project=project).select_related(
        "lease__member", "lease__item__prompt", "answered_by"
    )
    if answered:
        return rows.exclude(state=AppealState.OPEN).order_by("-answered_at", "-pk")
    return rows.filter(state=AppealState.OPEN).order_by("pk")


def appeal_parts(project: Project, pk: int) -> Appeal | None:
    """One appeal with its item, label and member."""
    rows = Appeal.objects.select_related(
        "answered_by",
        "lease__head",
        "lease__member",
        "lease__item__project",
        "lease__item__quality_decision",
        "lease__item__personalization_decision",
        *(f"lease__item__{part}" for part in ITEM_PARTS),
    )
    return rows.filter(lease__member__project=project, pk=pk).first()


@dataclass(frozen=True)
class Reported:
    """An item with what was reported about it."""

    item: Item
    problems: list[Problem]


def reported_items(project: Project) -> QuerySet[Item]:
    """Items with reports that nobody resolved, the oldest first."""
    waiting = Count("problems", filter=Q(problems__resolved_at=None))
    rows = project.items.filter(problems__resolved_at=None, problems__isnull=False)
    return rows.annotate(waiting=waiting).select_related("prompt", "body").order_by("pk")


def with_problems(items: Sequence[Item]) -> list[Reported]:
    """The items of a page with their open reports."""
    found: dict[int, list[Problem]] = defaultdict(list)
    rows = Problem.objects.filter(item__in=[item.pk for item in items], resolved_at=None)
    for problem in rows.select_related("member").order_by("pk"):
        found[problem.item_id].append(problem)
    return [Reported(item, found[item.pk]) for item in items]


def resolved_problems(project: Project) -> QuerySet[Problem]:
    rows = Problem.objects.filter(item__project=project, resolved_at__isnull=False)
    return rows.select_related("item__prompt", "member", "resolved_by").order_by("-resolved_at")


@dataclass(frozen=True)
class Waiting:
    """How much waits for somebody, for the tabs of the review pages."""

    disputes: int
    appeals: int
    problems: int


def waiting(project: Project) -> Waiting:
    problems = Problem.objects.filter(item__project=project, resolved_at=None)
    return Waiting(
        disputes=project.items.filter(state=ItemState.DISPUTED).count(),
        appeals=appeals_of(project).count(),
        problems=problems.values("item").distinct().count(),
    )

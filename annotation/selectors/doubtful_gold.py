"""Gold answers that may be wrong: those whose best annotators miss them, or that are contested."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from django.db.models import Count, Q

from annotation.enums import AppealState, Axis, ItemState, LeaseState
from annotation.gold import lower_bound
from annotation.models import Appeal, GoldItem, Item, Lease, Project

GOOD = 0.7  # accuracy on the other gold items that makes an annotator one of the best
FEWEST = 3  # of them who saw the item
DOUBT = 0.5  # share of them that surely disagrees


@dataclass(frozen=True)
class DoubtfulGold:
    """`missed` of `seen` good annotators gave another answer than `gold`, most often `instead`.

    Both are verdicts by axis. `appeals` are open or upheld.
    """

    item: Item
    gold: GoldItem
    seen: int
    missed: int
    instead: Mapping[str, str]
    appeals: int


def doubtful_gold(project: Project) -> list[DoubtfulGold]:
    """Hidden gold in use that should be looked at again, the most doubtful first.

    Who is good is told from her other gold labels, so that an item does not judge its judges.
    """
    newest = _newest(project)
    labels = _labels(project, newest)
    right, seen = _accounts(labels, newest)
    appeals = dict(
        Appeal.objects.filter(
            Q(state=AppealState.OPEN) | Q(state=AppealState.UPHELD), lease__item__in=newest
        )
        .order_by()
        .values_list("lease__item")
        .annotate(n=Count("pk"))
    )
    found = []
    for pk, gold in newest.items():
        good = [
            row
            for row in labels[pk]
            if _is_good(right[row.member_id] - _hit(row, gold), seen[row.member_id] - 1)
        ]
        missed = [row for row in good if not _hit(row, gold)]
        doubted = len(good) >= FEWEST and lower_bound(len(missed), len(good)) > DOUBT
        if doubted or appeals.get(pk):
            found.append(
                DoubtfulGold(
                    gold.item, gold, len(good), len(missed), _instead(missed), appeals.get(pk, 0)
                )
            )
    return sorted(found, key=lambda row: (-row.missed / max(row.seen, 1), -row.appeals))


def _newest(project: Project) -> dict[int, GoldItem]:
    rows = GoldItem.objects.filter(item__project=project, item__state=ItemState.GOLD)
    newest = {row.item_id: row for row in rows.select_related("item").order_by("item_id", "n")}
    return {pk: row for pk, row in newest.items() if row.active and not row.onboarding}


def _labels(project: Project, newest: Mapping[int, GoldItem]) -> defaultdict[int, list[Lease]]:
    """Labels given to hidden gold; those from before an item was gold are none."""
    rows = Lease.objects.filter(
        member__project=project,
        item__state=ItemState.GOLD,
        state=LeaseState.SUBMITTED,
        repeat=0,
        counted=False,
    ).select_related("head")
    found: defaultdict[int, list[Lease]] = defaultdict(list)
    for row in rows.order_by("pk"):
        if row.item_id in newest:
            found[row.item_id].append(row)
    return found


def _accounts(
    labels: Mapping[int, list[Lease]], newest: Mapping[int, GoldItem]
) -> tuple[Counter[int], Counter[int]]:
    """Right and seen gold labels by member."""
    right: Counter[int] = Counter()
    seen: Counter[int] = Counter()
    for pk, rows in labels.items():
        for row in rows:
            seen[row.member_id] += 1
            right[row.member_id] += _hit(row, newest[pk])
    return right, seen


def _hit(lease: Lease, gold: GoldItem) -> int:
    head: Any = lease.head
    answers = [(getattr(head, axis), getattr(gold, axis)) for axis in Axis.values]
    return int(all(given == known for given, known in answers if known))


def _is_good(right: int, seen: int) -> bool:
    """Whether she is probably right in GOOD of all cases, from her other gold labels."""
    return (1 + right) / (2 + seen) >= GOOD


def _instead(missed: list[Lease]) -> dict[str, str]:
    """The most common other answer by axis."""
    found = {}
    for axis in Axis.values:
        given = Counter(verdict for row in missed if (verdict := getattr(row.head, axis)))
        if given:
            found[axis] = given.most_common(1)[0][0]
    return found

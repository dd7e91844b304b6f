"""What somebody who learns is told about her answer. Hidden gold items never get here."""

from __future__ import annotations

from dataclasses import dataclass

from annotation.enums import Axis, MemberState, Shown
from annotation.models import GoldItem, Lease
from annotation.selectors.tasks import as_shown


@dataclass(frozen=True)
class Compared:
    """One axis: what she chose and what is right, in the words of the page."""

    axis: str
    given: str
    right: str
    same: bool


@dataclass(frozen=True)
class Feedback:
    rows: tuple[Compared, ...]
    explanation: str

    @property
    def all_same(self) -> bool:
        return all(row.same for row in self.rows)


def feedback_of(lease: Lease) -> Feedback | None:
    """Feedback on a submitted item of the onboarding set, while she is learning; else None.

    Only somebody who learns is looked up at all: for everybody else nothing here depends on gold.
    """
    label = lease.head
    if lease.member.state != MemberState.ONBOARDING or label is None or label.is_undo:
        return None
    gold = GoldItem.objects.filter(item=lease.item_id).order_by("-n").first()
    if gold is None or not gold.onboarding or not gold.active:
        return None
    rows = []
    for axis in Axis:
        right = getattr(gold, axis)
        if right:
            given = getattr(label, axis)
            rows.append(
                Compared(
                    axis=str(axis.label),
                    given=_words(given, lease.first_left),
                    right=_words(right, lease.first_left),
                    same=given == right,
                )
            )
    return Feedback(tuple(rows), gold.explanation)


def _words(verdict: str, first_left: bool) -> str:
    return str(Shown(as_shown(verdict, first_left)).label) if verdict else "–"

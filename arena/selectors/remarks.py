"""What raters remarked, with who wrote what: after unsealing only (V1)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from django.core.paginator import Page, Paginator
from django.db.models import Exists, OuterRef, Q
from django.utils.translation import gettext as _

from arena.enums import AssignmentState, RoundState, Tag
from arena.models import Assignment, Round, Vote
from webapp.core.errors import Refused

PER_PAGE = 50


@dataclass(frozen=True)
class Remark:
    """One vote with tags or a comment, sides resolved."""

    left: str
    right: str
    verdicts: dict[str, str]
    tags: list[str]
    comment: str
    rater: str


def remarks(round_: Round, page: str) -> Page[Assignment]:
    """Votes with a comment or tags, the newest first. Refused unless unsealed."""
    if round_.state != RoundState.UNSEALED:
        raise Refused(_("Remarks can be read when the round is unsealed."), code="sealed")
    rows: Any = (
        Assignment.objects.filter(round=round_, state=AssignmentState.VOTED)
        .exclude(Q(head__comment="") & Q(head__tags=[]))
        .annotate(owned=Exists(Vote.objects.filter(assignment=OuterRef("pk"), owner=True)))
        .select_related("head", "battle", "slot__x__contestant", "slot__y__contestant")
        .order_by("-head__at")
    )
    return Paginator(rows, PER_PAGE).get_page(page)


def resolved(round_: Round, rows: Page[Assignment]) -> list[Remark]:
    """The remarks of a page; raters by their pseudonyms, owners' verdicts left out (V5).

    As in the bundle, who was once an owner on a battle stays one.
    """
    pseudonyms = dict(round_.round_raters.values_list("user_id", "pseudonym"))
    return [_remark(row, pseudonyms[row.rater_id], _is_owned(row)) for row in rows]


def _is_owned(row: Assignment) -> bool:
    return bool(row.owned)  # type: ignore[attr-defined]


def _remark(row: Assignment, rater: str, owned: bool) -> Remark:
    assert row.head is not None
    x, y = str(row.slot.x.contestant), str(row.slot.y.contestant)
    left, right = (x, y) if row.battle.left_is_x else (y, x)
    shown = {} if owned else _verdicts(row)
    labels = [str(Tag(tag).label) for tag in row.head.tags]
    return Remark(left, right, shown, labels, row.head.comment, rater)


def _verdicts(row: Assignment) -> dict[str, str]:
    assert row.head is not None
    return {
        "quality": row.head.get_quality_display() if row.head.quality else "",
        "personalization": (
            row.head.get_personalization_display() if row.head.personalization else ""
        ),
    }

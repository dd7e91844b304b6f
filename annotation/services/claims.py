"""Claiming the next item: one statement, along an index that holds open places only."""

from __future__ import annotations

from typing import Any, NamedTuple

from django.db import connection

from annotation.models import Member

# The next open item for this member, beginning where she is in the queue. The index that the
# statement walks along holds open places only, so the number of items does not matter.
_PLACE = """(
  SELECT i.id FROM annotation_item i
  WHERE i.project_id = %(project)s AND i.state = 'open' AND i.live < i.target
    AND {range}
    AND NOT EXISTS (SELECT 1 FROM annotation_lease l
                    WHERE l.item_id = i.id AND l.member_id = %(member)s)
    AND NOT EXISTS (SELECT 1 FROM annotation_adjudication a
                    WHERE a.item_id = i.id AND a.adjudicator_id = %(user)s)
  ORDER BY {order} LIMIT 1 {lock}
)"""
# Where two people disagree and no third is at work, what they raised piles up, and they may not
# have it: so only the first ones of it come first, else every request would look through them all.
RAISED_FIRST = 100
_RAISED = """i.id IN (
      SELECT r.id FROM annotation_item r
      WHERE r.project_id = %(project)s AND r.state = 'open' AND r.live < r.target
        AND r.priority > 0
      ORDER BY r.priority DESC, r.shuffle_key LIMIT %(raised)s)"""
# First what disagreement has raised, then onwards from the cursor, then from the beginning again,
# then whatever else was raised. A pass runs only where those before it found nothing.
_PASSES = (
    (_RAISED, "i.priority DESC, i.shuffle_key"),
    ("i.priority = 0 AND i.shuffle_key > %(cursor)s", "i.shuffle_key"),
    ("i.priority = 0 AND i.shuffle_key <= %(cursor)s", "i.shuffle_key"),
    ("i.priority > 0", "i.priority DESC, i.shuffle_key"),
)
_CLAIM = """
UPDATE annotation_item SET live = live + 1
WHERE live < target AND state = 'open' AND id = COALESCE({passes})
RETURNING id, live, shuffle_key, priority
"""


class Claim(NamedTuple):
    """The item that was claimed, after the claim."""

    pk: int
    live: int
    shuffle_key: int
    priority: int


def claim_next(member: Member) -> Claim | None:
    """Take a place of the next item for this member, in one statement. None: nothing is left."""
    with connection.cursor() as cursor:
        cursor.execute(*claim_statement(member))
        row = cursor.fetchone()
    return Claim(*row) if row else None


def claim_statement(member: Member) -> tuple[str, dict[str, Any]]:
    """The statement and its values."""
    lock = "FOR NO KEY UPDATE OF i SKIP LOCKED" if connection.vendor == "postgresql" else ""
    passes = ", ".join(_PLACE.format(range=r, order=order, lock=lock) for r, order in _PASSES)
    values = {
        "project": member.project_id,
        "member": member.pk,
        "user": member.user_id,
        "cursor": member.cursor,
        "raised": RAISED_FIRST,
    }
    return _CLAIM.format(passes=passes), values

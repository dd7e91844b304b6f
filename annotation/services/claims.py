"""Claiming the next item: one statement, along an index that holds open places only."""

from __future__ import annotations

import time
from typing import Any, NamedTuple

from django.core.cache import cache
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


# Who labelled everything that is open has it all looked through in vain. What that took is noted
# for as long as it keeps the looking below 5 % of the time; in small projects that is no time.
REST = 20
LOOKED_S = 0.05  # less than this is not worth noting


def claim_next(member: Member, *, afresh: bool = False) -> Claim | None:
    """Take a place of the next item for this member, in one statement. None: nothing is left.

    Where a long look found nothing, the next one waits for `REST` times as long, unless `afresh`.
    """
    key = f"annotation:nothing:{member.pk}"
    if not afresh and cache.get(key):
        return None
    started = time.monotonic()
    with connection.cursor() as cursor:
        cursor.execute(*claim_statement(member))
        row = cursor.fetchone()
    took = time.monotonic() - started
    if row is None and took > LOOKED_S:
        cache.set(key, True, timeout=REST * took)
    return Claim(*row) if row else None


def is_work_left(member: Member) -> bool:
    """Whether an item waits for this member, without taking it."""
    passes = ", ".join(_PLACE.format(range=r, order=order, lock="") for r, order in _PASSES)
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT COALESCE({passes})", _values(member))
        return cursor.fetchone()[0] is not None


def claim_statement(member: Member) -> tuple[str, dict[str, Any]]:
    """The statement and its values."""
    lock = "FOR NO KEY UPDATE OF i SKIP LOCKED" if connection.vendor == "postgresql" else ""
    passes = ", ".join(_PLACE.format(range=r, order=order, lock=lock) for r, order in _PASSES)
    return _CLAIM.format(passes=passes), _values(member)


def _values(member: Member) -> dict[str, Any]:
    return {
        "project": member.project_id,
        "member": member.pk,
        "user": member.user_id,
        "cursor": member.cursor,
        "raised": RAISED_FIRST,
    }

"""What an annotator may see of an item: a blind object that has no identity field (V3, V8)."""

from __future__ import annotations

from typing import Any

from django.utils import timezone

from annotation.enums import Shown, Verdict
from annotation.models import Lease
from webapp.catalog.blind import BlindPair, difference_pair, rendered_pair

PARTS = (
    "head",
    "item__body",
    "item__prompt",
    "item__persona_version__text",
    "item__persona_version__persona",
    "member",
)


def lease_parts(pk: int) -> Lease:
    """The lease with everything its page needs, in one query."""
    return Lease.objects.select_related(*PARTS).get(pk=pk)


def own_lease(user: Any, token: str) -> Lease | None:
    """An annotator's own item by its token; nobody else's."""
    rows = Lease.objects.select_related(*PARTS, "member__project")
    return rows.filter(member__user=user, token=token).first()


def blind_pair(lease: Lease) -> BlindPair:
    """The blind object of a lease loaded by `lease_parts`."""
    item = lease.item
    return rendered_pair(lease.token, item.prompt, item.persona_version, *sides(lease))


def blind_difference(lease: Lease) -> BlindPair:
    """The same with the word-level difference in place of the rendered answers."""
    item = lease.item
    return difference_pair(lease.token, item.prompt, item.persona_version, *sides(lease))


def sides(lease: Lease) -> tuple[str, str]:
    """The two texts as shown, left first; empty where consent was withdrawn."""
    body = getattr(lease.item, "body", None)
    if body is None:
        return "", ""
    return (body.first, body.second) if lease.first_left else (body.second, body.first)


def as_shown(verdict: str, first_left: bool) -> str:
    """The canonical verdict as it looked on the page."""
    if verdict not in (Verdict.FIRST, Verdict.SECOND):
        return verdict
    return Shown.LEFT if (verdict == Verdict.FIRST) == first_left else Shown.RIGHT


def as_canonical(shown: str, first_left: bool) -> str:
    """The verdict of the page as it is stored."""
    if shown not in (Shown.LEFT, Shown.RIGHT):
        return shown
    return Verdict.FIRST if (shown == Shown.LEFT) == first_left else Verdict.SECOND


def seconds_left(lease: Lease) -> int:
    return max(int((lease.expires_at - timezone.now()).total_seconds()), 0)

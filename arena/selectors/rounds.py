"""What may be seen of a round while it is composed, screened and sealed (V1, V2)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from django.core.paginator import Page, Paginator
from django.db.models import Count, Exists, Min, OuterRef, Q, QuerySet

from arena.enums import AssignmentState
from arena.leakage import Hit, RulePolicy, ScreeningRule, masked_excerpt
from arena.models import Context, Entry, Round, ScreeningHit, Slot
from webapp.accounts.models import User
from webapp.catalog.enums import Where
from webapp.catalog.models import Exposure, Seal

HITS_PER_PAGE = 50


def listed_rounds() -> QuerySet[Round]:
    """All rounds with their totals, the newest first."""
    return Round.objects.annotate(
        voted=Count(
            "assignments", filter=Q(assignments__state=AssignmentState.VOTED), distinct=True
        )
    ).order_by("-pk")


@dataclass(frozen=True)
class MaskedHit:
    """A screening hit as an administrator may see it: no contestant, every name masked.

    `action`: what happened to the answer in the end. `count`: in how many entries it did so.
    """

    rule: str
    action: str
    excerpt: str
    count: int


def screening_hits(round_: Round, rule: str, page: str) -> Page[Any]:
    """One page of hits, in an order that depends on the texts alone.

    Hits of one rule at one place of one text are one row, in however many contexts it stands.
    """
    rows = ScreeningHit.objects.filter(entry__context__round=round_)
    if rule in {known.value for known in ScreeningRule}:
        rows = rows.filter(rule=rule)
    places = (
        rows.annotate(left_out=~Q(entry__excluded_by=""))
        .values("rule", "entry__answer__text_sha256", "start", "end", "left_out")
        .annotate(one=Min("entry"), count=Count("entry", distinct=True))
        .order_by("rule", "entry__answer__text_sha256", "start", "end", "left_out")
    )
    return Paginator(places, HITS_PER_PAGE).get_page(page)


def masked_hits(round_: Round, hits: Page[Any]) -> Iterator[MaskedHit]:
    """The hits of a page as masked excerpts, with what happened to the answers."""
    entries = Entry.objects.select_related("answer__body").in_bulk({row["one"] for row in hits})
    by_entry: dict[int, list[Hit]] = {}
    for found in ScreeningHit.objects.filter(entry__in=entries):
        hit = Hit(found.start, found.end, ScreeningRule(found.rule))
        by_entry.setdefault(found.entry_id, []).append(hit)
    for row in hits:
        hit = Hit(row["start"], row["end"], ScreeningRule(row["rule"]))
        body = getattr(entries[row["one"]].answer, "body", None)
        excerpt = masked_excerpt(body.text, by_entry[row["one"]], hit) if body else ""
        action = round_.screening_policy.get(row["rule"], RulePolicy.KEEP)
        action = RulePolicy.EXCLUDE if row["left_out"] else action
        yield MaskedHit(row["rule"], action, excerpt, row["count"])


def hit_counts(round_: Round) -> list[dict[str, Any]]:
    """Hits and entries per rule."""
    rows = (
        ScreeningHit.objects.filter(entry__context__round=round_)
        .values("rule")
        .annotate(hits=Count("pk"), entries=Count("entry", distinct=True))
        .order_by("rule")
    )
    return [dict(row) for row in rows]


def barred_raters(round_: Round) -> list[User]:
    """Raters who imported, wrote, labelled or audited answers of the round: they skip those."""
    sealed = Seal.objects.filter(holder=round_.holder).values("answer")
    met = (
        Exposure.objects.filter(answer__in=sealed, user__in=round_.round_raters.values("user"))
        .exclude(where=Where.VOTED)
        .values("user")
    )
    return list(User.objects.filter(pk__in=met).order_by("username"))


def entries_in_battles(round_: Round) -> int:
    """How many entries stand in at least one battle. A total only (V2)."""
    slots = Slot.objects.filter(round=round_)
    used = Q(pk__in=slots.values("x")) | Q(pk__in=slots.values("y"))
    return Entry.objects.filter(used, context__round=round_).count()


def asked_contexts(round_: Round) -> QuerySet[Context]:
    """All that were drawn; once the round was opened, those that a battle asks about. Of the others
    fewer than two answers could be shown, or no vote was planned.
    """
    drawn = Context.objects.filter(round=round_)
    if round_.opened_at is None:
        return drawn
    return drawn.filter(Exists(Slot.objects.filter(context=OuterRef("pk"))))


def context_totals(round_: Round) -> dict[str, int]:
    return asked_contexts(round_).aggregate(
        total=Count("pk"),
        holdout=Count("pk", filter=Q(holdout=True)),
        personas=Count("persona_version", distinct=True),
        prompts=Count("prompt", distinct=True),
    )

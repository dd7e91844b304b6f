"""Reading a project's items for its manager: filters, pages, details. Never for annotators."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from django.db.models import Count, Exists, OuterRef, Q, QuerySet
from django.utils.translation import gettext_lazy as _

from annotation.enums import DecisionSource, ItemState
from annotation.models import Decision, Item, Project
from webapp.catalog.blind import BlindPair, rendered_pair
from webapp.catalog.models import AnswerText, Prompt, Seal

CHUNK = 1000  # ids a statement
PAGE_SIZE = 50
SEARCH_WINDOW = 2000  # items that one search for a text looks through
LIST_PARTS = (
    "prompt",
    "persona_version__text",
    "persona_version__persona",
    "quality_decision",
    "personalization_decision",
)
DETAIL_PARTS = ("body", "origin", "project", "imported_in", "first_answer", "second_answer")


def sealed_items(item_ids: Iterable[int]) -> set[int]:
    """Those of the items whose producers must not be named (V1).

    A live seal covers an answer with one of their texts, whoever's answer it is: beside a producer
    the text would name the maker.
    """
    ids = list(item_ids)
    found: set[int] = set()
    for start in range(0, len(ids), CHUNK):
        rows = Item.objects.filter(_is_sealed(), pk__in=ids[start : start + CHUNK])
        found.update(rows.values_list("pk", flat=True))
    return found


def _is_sealed() -> Q:
    live = Seal.objects.filter(released_at=None)
    first = live.filter(answer__text_sha256=OuterRef("first_sha256"))
    second = live.filter(answer__text_sha256=OuterRef("second_sha256"))
    return Q(Exists(first)) | Q(Exists(second))


def sealed_since(project: int, when: datetime) -> bool:
    """Whether a seal that is still on came upon a text of the project's items after this time."""
    live = Seal.objects.filter(released_at=None, sealed_at__gte=when)
    items = Item.objects.filter(project=project)
    return any(
        live.filter(answer__text_sha256__in=items.values(side)).exists()
        for side in ("first_sha256", "second_sha256")
    )


@dataclass(frozen=True)
class Filters:
    """What the list of items shows. Empty: everything."""

    state: str = ""
    flag: str = ""
    stratum: str | None = None
    kind: str = ""
    outcome: str = ""
    source: str = ""
    text: str = ""

    @property
    def any(self) -> bool:
        return self != Filters()


OUTCOMES = {
    "raised": _("raised on disagreement"),
    DecisionSource.UNANIMOUS.value: DecisionSource.UNANIMOUS.label,
    DecisionSource.MAJORITY.value: DecisionSource.MAJORITY.label,
    DecisionSource.ADJUDICATED.value: DecisionSource.ADJUDICATED.label,
    DecisionSource.UNRESOLVED.value: DecisionSource.UNRESOLVED.label,
    DecisionSource.SYNTHETIC.value: DecisionSource.SYNTHETIC.label,
}


@dataclass(frozen=True)
class ItemPage:
    """A page of items by number; `after` and `before` lead on and back, None where nothing is.

    With a text only the next `looked` items were searched: `more` tells that others follow.
    """

    items: list[Item]
    after: int | None = None
    before: int | None = None
    looked: int = 0
    more: bool = False


def state_counts(project: Project) -> dict[str, int]:
    """Items by state, from the index alone."""
    return dict(project.items.order_by().values_list("state").annotate(n=Count("pk")))


def filtered_items(project: Project, filters: Filters) -> QuerySet[Item]:
    """Everything but the text, which is looked for in bounded steps."""
    rows = project.items.all()
    if filters.state:
        rows = rows.filter(state=filters.state)
    if filters.stratum is not None:
        rows = rows.filter(stratum=filters.stratum)
    if filters.kind:
        rows = rows.filter(kind=filters.kind)
    if filters.flag:
        rows = rows.filter(flags__icontains=f'"{filters.flag}"')
    if filters.source:
        # Which sealed texts came from a source would be told by what is found (V1).
        rows = rows.filter(~_is_sealed(), source__startswith=filters.source)
    if filters.outcome == "raised":
        return rows.filter(priority__gt=0)
    if filters.outcome:
        quality = Q(quality_decision__source=filters.outcome)
        rows = rows.filter(quality | Q(personalization_decision__source=filters.outcome))
    return rows


def item_page(
    project: Project, filters: Filters, *, after: int | None = None, before: int | None = None
) -> ItemPage:
    """The items after (or before) a number. No statement counts or skips over rows, so that a
    project of 100,000 items is as fast as a small one.
    """
    rows = filtered_items(project, filters).select_related(*LIST_PARTS)
    if filters.text:
        return _search(rows, filters.text, after or 0)
    if before is not None:
        found = list(rows.filter(pk__lt=before).order_by("-pk")[: PAGE_SIZE + 1])
        more, found = len(found) > PAGE_SIZE, found[:PAGE_SIZE][::-1]
        first, last = (found[0].pk, found[-1].pk) if found else (None, None)
        return ItemPage(found, after=last, before=first if more else None)
    found = list(rows.filter(pk__gt=after or 0).order_by("pk")[: PAGE_SIZE + 1])
    more, found = len(found) > PAGE_SIZE, found[:PAGE_SIZE]
    back = found[0].pk if found and after else None
    return ItemPage(found, after=found[-1].pk if more else None, before=back)


def _search(rows: QuerySet[Item], text: str, after: int) -> ItemPage:
    """Items among the next SEARCH_WINDOW whose number, question or answers hold the text."""
    wanted = text.casefold()
    found: list[Item] = []
    looked, last = 0, after
    window = rows.select_related(*LIST_PARTS, "body").filter(pk__gt=after).order_by("pk")
    for item in window[: SEARCH_WINDOW + 1].iterator(chunk_size=500):
        if looked == SEARCH_WINDOW or len(found) == PAGE_SIZE:
            return ItemPage(found, after=last, looked=looked, more=True)
        looked, last = looked + 1, item.pk
        if _holds(item, wanted):
            found.append(item)
    return ItemPage(found, looked=looked)


def _holds(item: Item, wanted: str) -> bool:
    body = getattr(item, "body", None)
    texts = [turn.get("content", "") for turn in item.prompt.messages]
    texts += [body.first, body.second] if body else []
    return wanted == item.public_id or any(wanted in str(text).casefold() for text in texts)


def held_reasons(project: Project) -> list[tuple[str, int]]:
    """Why items are held, with how many; of the first 20,000 held ones."""
    rows = project.items.filter(state=ItemState.HELD).order_by("pk")
    counts = Counter(
        flag for flags in rows.values_list("flags", flat=True)[:20_000] for flag in flags
    )
    return sorted(counts.items())


def held_with(project: Project, flag: str, limit: int) -> list[int]:
    """Held items with this reason and no other."""
    rows = project.items.filter(state=ItemState.HELD, flags__icontains=f'"{flag}"').order_by("pk")
    return [pk for pk, flags in rows.values_list("pk", "flags")[:limit] if flags == [flag]]


def item_strata(project: Project) -> list[str]:
    rows = project.items.order_by("stratum").values_list("stratum", flat=True).distinct()
    return list(rows[:200])


# One item


def find_item(project: Project, name: str) -> Item | None:
    """An item of the project by its number or its public id, with what its page needs."""
    rows = project.items.select_related(*LIST_PARTS, *DETAIL_PARTS)
    number = int(name) if name.isascii() and name.isdigit() and len(name) <= 18 else None
    return rows.filter(pk=number).first() if number else rows.filter(public_id=name).first()


@dataclass(frozen=True)
class Producers:
    """Who made the answers, where it may be said."""

    first: str
    second: str
    source: str
    details: str


def producers_of(item: Item) -> Producers | None:
    """None while a live seal covers one of the texts: then the source is not told either."""
    if sealed_items([item.pk]):
        return None
    origin = getattr(item, "origin", None)
    details = origin.details if origin else {}
    return Producers(
        first=origin.first_producer if origin else "",
        second=origin.second_producer if origin else "",
        source=item.source,
        details=json.dumps(details, ensure_ascii=False, indent=2) if details else "",
    )


def item_pair(item: Item) -> BlindPair:
    """Both answers rendered, the first left."""
    body = getattr(item, "body", None)
    texts = (body.first, body.second) if body else ("", "")
    return rendered_pair(item.public_id, item.prompt, item.persona_version, *texts)


def decision_history(item: Item) -> list[Decision]:
    return list(item.decisions.select_related("decided_by").order_by("-pk"))


# Pairs from the catalog


def answers_to(prompt: Prompt) -> QuerySet[AnswerText]:
    """Answers that may become items: under no live seal, whoever's answer it is that is sealed."""
    sealed = Seal.objects.filter(
        answer__text_sha256=OuterRef("answer__text_sha256"), released_at=None
    )
    rows = AnswerText.objects.filter(~Exists(sealed), answer__prompt=prompt)
    parts = (
        "answer__contestant",
        "answer__persona_version__text",
        "answer__persona_version__persona",
    )
    return rows.select_related(*parts).order_by("answer__persona_version", "answer_id")

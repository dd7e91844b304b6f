"""A project's labels as arrays, streamed row by row: the texts stay in the database."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import datetime
from typing import Any, cast

import numpy as np
import numpy.typing as npt
from django.db.models import (
    BooleanField,
    Exists,
    ExpressionWrapper,
    F,
    OuterRef,
    Q,
    Subquery,
    TextField,
)
from django.db.models.functions import Cast, Length
from django.utils import timezone

from annotation.enums import ItemState, LeaseState, Tag
from annotation.models import GoldItem, Item, ItemOrigin, Lease, Project
from annotation.policies import allowed_outcomes
from annotation.selectors.gold import served_to_learn
from annotation.selectors.items import sealed_items
from annotation.tables import (
    CLASSES,
    Bools,
    Codes,
    Ints,
    ItemArrays,
    LabelArrays,
    LabelTable,
)
from webapp.catalog.models import Seal

CHUNK = 5000  # rows fetched together
EPOCH = 719_163  # ordinal of 1970-01-01
CODES = {name: code for code, name in enumerate(CLASSES)} | {"": -1}
Rows = npt.NDArray[np.void]

_ITEM = [
    ("pk", "i8"), ("prompt", "i8"), ("stratum", "i8"), ("working", "?"), ("texts", "i8"),
    ("swapped", "?"), ("longer", "i1"),
]  # fmt: skip
_LABEL = [
    ("item", "i8"), ("member", "i8"), ("repeat", "?"), ("counted", "?"), ("first_left", "?"),
    ("at", "i8"), ("quality", "i1"), ("personalization", "i1"), ("active_ms", "i8"), ("late", "?"),
    ("ours", "?"), ("depends", "?"),
]  # fmt: skip


def read_labels(project: Project) -> LabelTable:
    """Every label of a project that holds now, with what the statistics need of its items."""
    strata: dict[str, int] = {}
    items = np.fromiter(_items(project, strata), dtype=_ITEM)
    items.sort(order="pk")
    rows = np.fromiter(_labels(project), dtype=_LABEL)
    rows = rows[np.isin(rows["item"], items["pk"])]
    rows = rows[np.lexsort((rows["repeat"], rows["member"], rows["item"]))]  # always the same
    items["stratum"] = _sorted_numbers(strata)[items["stratum"]]
    items = items[np.isin(items["pk"], rows["item"])]
    members = np.unique(rows["member"])
    once = ~rows["repeat"]
    return LabelTable(
        axes=tuple(project.axes),
        allowed=_allowed(project, rows),
        strata=tuple(sorted(strata)),
        members=members.tolist(),
        items=_item_arrays(project, items),
        first_time=_label_arrays(project, rows[once], items["pk"], members),
        repeats=_label_arrays(project, rows[~once], items["pk"], members),
    )


def _sorted_numbers(strata: dict[str, int]) -> Ints:
    """The number of each stratum in the order of their names."""
    names = sorted(strata)
    return np.array([names.index(name) for name in strata] or [0], dtype=np.int64)


def _items(project: Project, strata: dict[str, int]) -> Iterator[tuple[Any, ...]]:
    """Items that may have labels. Equal texts are told by a hash of this process."""
    rows = Item.objects.filter(Q(done__gt=0) | Q(state=ItemState.GOLD), project=project)
    columns = rows.order_by().values_list(
        "pk", "prompt_id", "stratum", "state", "first_sha256", "second_sha256",
        Length("body__first"), Length("body__second"),
    )  # fmt: skip
    for pk, prompt, stratum, state, first, second, one, other in columns.iterator(CHUNK):
        swapped = first > second
        texts = hash((prompt, second, first) if swapped else (prompt, first, second)) >> 1
        longer = 0 if one is None or one == other else (1 if one > other else -1)
        working = state not in (ItemState.GOLD, ItemState.DROPPED)
        yield (
            pk, prompt, strata.setdefault(stratum, len(strata)), working, texts, swapped, longer,
        )  # fmt: skip


def _labels(project: Project) -> Iterator[tuple[Any, ...]]:
    """Submitted leases with their head revisions."""
    depends = ExpressionWrapper(
        Q(tags_text__contains=f'"{Tag.DEPENDS}"'), output_field=BooleanField()
    )
    rows = (
        Lease.objects.filter(member__project=project, state=LeaseState.SUBMITTED)
        .exclude(pk__in=_learned(project))
        .annotate(tags_text=Cast("head__tags", TextField()), depends=depends)
        .order_by()
        .values_list(
            "item_id", "member_id", "repeat", "counted", "first_left", "submitted_at",
            "head__quality", "head__personalization", "head__active_ms", "head__late",
            "head__source", "depends",
        )
    )  # fmt: skip
    for (
        item, member, repeat, counted, first_left, at,
        quality, personalization, active_ms, late, source, depends_on,
    ) in rows.iterator(CHUNK):  # fmt: skip
        yield (
            item, member, repeat > 0, counted, first_left, int(cast(datetime, at).timestamp()),
            CODES[quality], CODES[personalization], active_ms, late, source != "import",
            depends_on,
        )  # fmt: skip


def _learned(project: Project) -> list[int]:
    """Labels given to learn with on items that are hidden gold by now: they prove nothing."""
    taught = GoldItem.objects.filter(item__project=project, onboarding=True).values("item")
    rows = Lease.objects.filter(item__in=taught, state=LeaseState.SUBMITTED, repeat=0)
    newest = GoldItem.objects.filter(item=OuterRef("item")).order_by("-n")
    rows = rows.alias(learned=served_to_learn(), still=Subquery(newest.values("onboarding")[:1]))
    return list(rows.filter(learned=True, still=False).values_list("pk", flat=True))


def _allowed(project: Project, rows: Rows) -> tuple[int, ...]:
    """What may be chosen, and what an import has brought all the same."""
    seen = {int(code) for axis in project.axes for code in np.unique(rows[axis])}
    allowed = {CODES[verdict] for verdict in allowed_outcomes(project)}
    return tuple(code for code in range(len(CLASSES)) if code in allowed or code in seen)


def _item_arrays(project: Project, items: Rows) -> ItemArrays:
    rivals, swapped = _rivals(project, items)
    return ItemArrays(
        pk=items["pk"],
        stratum=items["stratum"],
        working=items["working"],
        texts=np.unique(items["texts"], return_inverse=True)[1],
        swapped=items["swapped"],
        rivals=rivals,
        rivals_swapped=swapped,
        longer=items["longer"],
        known=_known(project, items["pk"]),
    )


def _known(project: Project, pks: Ints) -> dict[str, Codes]:
    """The answers of the hidden gold items in use, by axis."""
    known = {axis: np.full(len(pks), -1, dtype=np.int8) for axis in project.axes}
    later = GoldItem.objects.filter(item=OuterRef("item"), n__gt=OuterRef("n"))
    rows = GoldItem.objects.filter(
        ~Exists(later),
        item__project=project,
        item__state=ItemState.GOLD,
        active=True,
        onboarding=False,
    )
    for pk, quality, personalization in rows.values_list("item", "quality", "personalization"):
        at = int(np.searchsorted(pks, pk))
        if at < len(pks) and pks[at] == pk:
            answers = {"quality": quality, "personalization": personalization}
            for axis, codes in known.items():
                codes[at] = CODES[answers[axis]]
    return known


def _rivals(project: Project, items: Rows) -> tuple[Ints, Bools]:
    """Which items set the same two producers against each other on the same prompt.

    Only prompts that were judged for several strata are looked at. Who made a text that a sealed
    round holds is not looked up: not even a share may depend on it (V1).
    """
    numbers, swapped = np.full(len(items), -1, dtype=np.int64), np.zeros(len(items), dtype=bool)
    cells = np.unique(items[["prompt", "stratum"]])
    prompts, times = np.unique(cells["prompt"], return_counts=True)
    wanted = items["pk"][np.isin(items["prompt"], prompts[times > 1])]
    if not len(wanted):
        return numbers, swapped
    hidden = _hidden(wanted.tolist())
    found: dict[tuple[int, str, str], int] = {}
    for pk, one, other in _producers(project):
        at = int(np.searchsorted(items["pk"], pk))
        if at == len(items) or items["pk"][at] != pk or pk in hidden:
            continue
        swapped[at] = one > other
        key = (int(items["prompt"][at]), min(one, other), max(one, other))
        numbers[at] = found.setdefault(key, len(found))
    return np.where(np.isin(items["pk"], wanted), numbers, -1), swapped


def _hidden(pks: Iterable[int]) -> set[int]:
    return sealed_items(pks) if Seal.objects.filter(released_at=None).exists() else set()


def _producers(project: Project) -> Iterator[tuple[int, str, str]]:
    rows = ItemOrigin.objects.filter(item__project=project, item__done__gt=0).exclude(
        Q(first_producer="") | Q(second_producer="") | Q(first_producer=F("second_producer"))
    )
    yield from (
        rows.order_by().values_list("pk", "first_producer", "second_producer").iterator(CHUNK)
    )


def _label_arrays(project: Project, rows: Rows, items: Ints, members: Ints) -> LabelArrays:
    offset = timezone.localtime().utcoffset()
    seconds = int(offset.total_seconds()) if offset else 0
    return LabelArrays(
        item=np.searchsorted(items, rows["item"]),
        member=np.searchsorted(members, rows["member"]),
        verdict={axis: np.ascontiguousarray(rows[axis]) for axis in project.axes},
        first_left=rows["first_left"],
        active_ms=rows["active_ms"],
        late=rows["late"],
        depends=rows["depends"],
        counted=rows["counted"],
        ours=rows["ours"],
        day=(rows["at"] + seconds) // 86_400 + EPOCH,
    )

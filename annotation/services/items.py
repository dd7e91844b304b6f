"""Adding pairs to a project, each once; holding back what looks wrong before anyone spends time."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from django.db import transaction
from django.db.models import Exists, F, OuterRef
from django.db.models.functions import Greatest

from annotation import policies
from annotation.assignment import shuffle_key
from annotation.enums import ItemFlag, ItemKind, ItemState
from annotation.models import GoldItem, Item, ItemOrigin, ItemText, Project
from annotation.services.chunks import chunks
from annotation.services.decisions import HELD_DECISIONS, is_decided_anyway, settle_item
from annotation.services.gold import rescore_item
from annotation.services.item_locks import lock_items
from annotation.services.projects import locked
from annotation.services.queue import refresh_targets
from webapp.catalog.enums import Axis
from webapp.catalog.models import ImportRun, PersonaVersion
from webapp.catalog.strata import stratum_of
from webapp.catalog.texts import canonical_json, is_blank, sha256
from webapp.core import audit
from webapp.core.locking import retry_deadlocks
from webapp.core.worddiff import nearly_identical


@dataclass(frozen=True, slots=True)
class ItemDraft:
    """A pair to be added. `prompt_digest` is the prompt's hash, `prompt_id` its row."""

    prompt_id: int
    prompt_digest: str
    first: str
    second: str
    persona_version_id: int | None = None
    first_answer_id: int | None = None
    second_answer_id: int | None = None
    kind: str = ItemKind.IMPORTED
    synthetic: bool = False
    first_producer: str = ""
    second_producer: str = ""
    details: Mapping[str, Any] = field(default_factory=dict)
    source: str = ""


@dataclass(frozen=True, slots=True)
class Added:
    """What became of a draft. `swapped`: the item holds the two answers the other way round."""

    item_id: int
    new: bool
    swapped: bool
    flags: tuple[str, ...]


def content_sha256(draft: ItemDraft) -> str:
    """The identity of a pair: prompt, persona version and both texts, whichever comes first."""
    texts = sorted([sha256(draft.first), sha256(draft.second)])
    return sha256(canonical_json([draft.prompt_digest, draft.persona_version_id, *texts]))


def flags_of(first: str, second: str) -> tuple[str, ...]:
    """Why a pair should be looked at before it is given out."""
    if is_blank(first) or is_blank(second):
        return (ItemFlag.EMPTY_SIDE,)
    return (ItemFlag.NEAR_IDENTICAL,) if nearly_identical(first, second) else ()


def _flags(project: Project, draft: ItemDraft) -> tuple[str, ...]:
    """The same, and whether somebody would be asked whom it suits where there is nobody."""
    found = flags_of(draft.first, draft.second)
    asked = Axis.PERSONALIZATION in project.axes
    return (*found, ItemFlag.NO_PERSONA) if asked and not draft.persona_version_id else found


def add_items(
    *, project: Project, drafts: Sequence[ItemDraft], imported_in: ImportRun | None = None
) -> list[Added]:
    """Add pairs in the caller's transaction; one result per draft, in order.

    Pairs that the project has already are not added again. Who adds more than a few thousand calls
    this in batches. Call `refresh_targets` when all are in.
    """
    found: list[Added] = []
    strata = _strata(project, drafts)
    for chunk in chunks(drafts):
        found += _add_chunk(project, chunk, strata, imported_in)
    return found


def _strata(project: Project, drafts: Sequence[ItemDraft]) -> dict[int | None, str]:
    versions = {draft.persona_version_id for draft in drafts if draft.persona_version_id}
    rows = PersonaVersion.objects.filter(pk__in=versions).values_list("pk", "persona__features")
    return {pk: stratum_of(features, project.stratum_features) for pk, features in rows}


def _add_chunk(
    project: Project,
    drafts: Sequence[ItemDraft],
    strata: Mapping[int | None, str],
    imported_in: ImportRun | None,
) -> list[Added]:
    digests = [content_sha256(draft) for draft in drafts]
    known = _known(project, digests)
    first_of = dict(zip(reversed(digests), reversed(drafts), strict=True))  # the first one counts
    fresh = {d: first_of[d] for d in dict.fromkeys(digests) if d not in known}
    flags = {digest: _flags(project, draft) for digest, draft in fresh.items()}
    Item.objects.bulk_create(
        [
            _item(project, digest, draft, flags[digest], strata, imported_in)
            for digest, draft in fresh.items()
        ],
        ignore_conflicts=True,
    )
    present = _known(project, digests)
    _write_texts({present[d][0]: draft for d, draft in fresh.items()})
    results, seen = [], set(known)
    for digest, draft in zip(digests, drafts, strict=True):
        pk, first = present[digest]
        swapped = first != sha256(draft.first)
        results.append(Added(pk, digest not in seen, swapped, flags.get(digest, ())))
        seen.add(digest)
    return results


def _known(project: Project, digests: Iterable[str]) -> dict[str, tuple[int, str]]:
    rows = Item.objects.filter(project=project, content_sha256__in=list(digests))
    return {d: (pk, first) for d, pk, first in rows.values_list(*_IDENTITY)}


_IDENTITY = ("content_sha256", "pk", "first_sha256")


def _item(
    project: Project,
    digest: str,
    draft: ItemDraft,
    flags: Sequence[str],
    strata: Mapping[int | None, str],
    imported_in: ImportRun | None,
) -> Item:
    return Item(
        project=project,
        content_sha256=digest,
        prompt_id=draft.prompt_id,
        persona_version_id=draft.persona_version_id,
        first_sha256=sha256(draft.first),
        second_sha256=sha256(draft.second),
        first_answer_id=draft.first_answer_id,
        second_answer_id=draft.second_answer_id,
        kind=draft.kind,
        synthetic=draft.synthetic,
        stratum=strata.get(draft.persona_version_id, ""),
        state=ItemState.HELD if flags else ItemState.OPEN,
        flags=list(flags),
        target=project.base_overlap,
        shuffle_key=shuffle_key(project.seed, digest),
        source=draft.source[:200],
        imported_in=imported_in,
    )


def _write_texts(drafts: Mapping[int, ItemDraft]) -> None:
    ItemText.objects.bulk_create(
        [ItemText(item_id=pk, first=d.first, second=d.second) for pk, d in drafts.items()],
        ignore_conflicts=True,
    )
    ItemOrigin.objects.bulk_create(
        [
            ItemOrigin(
                item_id=pk,
                first_producer=d.first_producer[:200],
                second_producer=d.second_producer[:200],
                details=dict(d.details),
            )
            for pk, d in drafts.items()
        ],
        ignore_conflicts=True,
    )


@retry_deadlocks
def release_items(*, actor: Any, project: Project, items: Iterable[int]) -> int:
    """Give out held or dropped items after all. Number of items.

    Labels that they have count again; the target is the one that the project asks for now. What
    was gold is gold again: its answers never leave, so labels on it would be lost. What a person
    decided, or its construction, is done again: nobody is asked about it.
    """
    policies.check_manage(actor)
    with transaction.atomic():
        project = locked(project.pk)
        from_states = [ItemState.HELD, ItemState.DROPPED]
        found = _locked(project, items, state__in=from_states, body__isnull=False)
        rows = Item.objects.filter(pk__in=found)
        base = project.base_overlap
        rows.filter(priority=0).update(target=Greatest(base, F("live")))
        rows.filter(priority__gt=0).update(target=Greatest(base, F("target")))
        _put_back(found)
        _note(actor, "release_items", project, found)
        refresh_targets(project=project)
    return len(found)


def _put_back(items: list[int]) -> None:
    """The state that each of these locked items belongs in, whatever it was before."""
    rows = Item.objects.filter(pk__in=items)
    rows.update(state=ItemState.OPEN)
    gold = list(rows.filter(Exists(GoldItem.objects.filter(item=OuterRef("pk")))).order_by("pk"))
    Item.objects.filter(pk__in=[item.pk for item in gold]).update(state=ItemState.GOLD)
    for item in gold:
        rescore_item(item)
    moves: dict[str, list[int]] = {ItemState.DISPUTED: [], ItemState.DONE: []}
    for item in rows.filter(state=ItemState.OPEN).select_related(*HELD_DECISIONS):
        if ItemFlag.CONTESTED in item.flags:  # it waits for the adjudicators still
            moves[ItemState.DISPUTED].append(item.pk)
        elif is_decided_anyway(item):
            moves[ItemState.DONE].append(item.pk)
    for state, pks in moves.items():
        Item.objects.filter(pk__in=pks).update(state=state)
    for pk in rows.filter(state=ItemState.OPEN, done__gt=0).values_list("pk", flat=True):
        settle_item(pk)


@retry_deadlocks
def drop_items(*, actor: Any, project: Project, items: Iterable[int], flag: str = "") -> int:
    """Take items out; labels that they have stay. A gold item scores nobody any more."""
    policies.check_manage(actor)
    with transaction.atomic():
        project = locked(project.pk)
        found = _locked(project, items)
        rows = Item.objects.filter(pk__in=found).exclude(state=ItemState.DROPPED)
        changed = list(rows.order_by("pk").values_list("pk", flat=True))
        gold = list(rows.filter(state=ItemState.GOLD))
        Item.objects.filter(pk__in=changed).update(state=ItemState.DROPPED)
        if flag:
            add_flag(changed, flag)
        _note(actor, "drop_items", project, changed)
        for item in gold:
            rescore_item(item)
        refresh_targets(project=project)
    return len(changed)


@retry_deadlocks
def hold_items(*, actor: Any, project: Project, items: Iterable[int], flag: str) -> int:
    """Keep items that are not settled back until somebody has looked at them."""
    policies.check_manage(actor)
    with transaction.atomic():
        project = locked(project.pk)
        waiting = [ItemState.OPEN, ItemState.PARKED, ItemState.DISPUTED]
        found = _locked(project, items, state__in=waiting)
        Item.objects.filter(pk__in=found).update(state=ItemState.HELD)
        add_flag(found, flag)
        _note(actor, "hold_items", project, found)
        refresh_targets(project=project)
    return len(found)


def _locked(project: Project, items: Iterable[int], **only_if: Any) -> list[int]:
    """Ids of those of the items that are the project's, locked in order.

    Whoever labelled one that is or was gold is locked before: she is scored again.
    """
    wanted = _of_project(project, items)

    def gold() -> list[int]:
        rows = Item.objects.filter(Exists(GoldItem.objects.filter(item=OuterRef("pk"))))
        return [pk for pk in rows.filter(project=project).values_list("pk", flat=True) if pk in ids]

    ids = set(wanted)
    found = lock_items(wanted, scored=gold)
    if not only_if:
        return found
    fresh: list[int] = []
    for chunk in chunks(found):
        rows = Item.objects.filter(pk__in=chunk, **only_if)
        fresh += rows.order_by("pk").values_list("pk", flat=True)
    return fresh


def _of_project(project: Project, items: Iterable[int]) -> list[int]:
    found: list[int] = []
    for chunk in chunks(sorted(set(items))):
        rows = Item.objects.filter(project=project, pk__in=chunk)
        found += rows.values_list("pk", flat=True)
    return found


def _note(actor: Any, action: str, project: Project, items: list[int]) -> None:
    if items:
        audit.record(actor=actor, action=action, obj=project, items=items[:100], n=len(items))


def add_flag(items: Iterable[int], flag: str) -> None:
    """Note on locked items why they were taken out of the queue."""
    for item in Item.objects.filter(pk__in=list(items)).only("pk", "flags"):
        if flag not in item.flags:
            Item.objects.filter(pk=item.pk).update(flags=[*item.flags, flag])


def remove_flag(items: Iterable[int], flag: str) -> None:
    for item in Item.objects.filter(pk__in=list(items)).only("pk", "flags"):
        if flag in item.flags:
            kept = [name for name in item.flags if name != flag]
            Item.objects.filter(pk=item.pk).update(flags=kept)

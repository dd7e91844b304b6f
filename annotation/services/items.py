"""Adding pairs to a project, each once; holding back what looks wrong before anyone spends time."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from django.db import transaction
from django.db.models import F
from django.utils.translation import gettext as _

from annotation import policies
from annotation.assignment import shuffle_key
from annotation.enums import ItemFlag, ItemKind, ItemState
from annotation.models import Item, ItemOrigin, ItemText, Project
from annotation.services.projects import locked
from webapp.catalog.models import Answer, ImportRun, PersonaVersion
from webapp.catalog.strata import stratum_of
from webapp.catalog.texts import canonical_json, is_blank, sha256
from webapp.core import audit
from webapp.core.errors import InvalidInput, Refused
from webapp.core.worddiff import nearly_identical

CHUNK = 500  # rows a statement; databases limit the number of parameters


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


def add_items(
    *, project: Project, drafts: Sequence[ItemDraft], imported_in: ImportRun | None = None
) -> list[Added]:
    """Add pairs in the caller's transaction; one result per draft, in order.

    Pairs that the project has already are not added again. Who adds more than a few thousand calls
    this in batches. Call `refresh_targets` when all are in.
    """
    found: list[Added] = []
    strata = _strata(project, drafts)
    for start in range(0, len(drafts), CHUNK):
        found += _add_chunk(project, drafts[start : start + CHUNK], strata, imported_in)
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
    fresh = {d: draft for d, draft in zip(digests, drafts, strict=True) if d not in known}
    flags = {digest: flags_of(draft.first, draft.second) for digest, draft in fresh.items()}
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


def add_catalog_pair(*, actor: Any, project: Project, first: Answer, second: Answer) -> Added:
    """An item from two answers of the catalog to the same prompt and persona version.

    Refused while a sealed round shows one of them: who labels it could not vote any more.
    """
    policies.check_manage(actor)
    if (first.prompt_id, first.persona_version_id) != (second.prompt_id, second.persona_version_id):
        raise InvalidInput(
            _("The two answers are not to the same prompt and persona version."), field="second"
        )
    if first.pk == second.pk:
        raise InvalidInput(_("An answer cannot stand against itself."), field="second")
    with transaction.atomic():
        for answer in (first, second):
            _check_readable(answer)
        draft = ItemDraft(
            prompt_id=first.prompt_id,
            prompt_digest=first.prompt.text_hash,
            first=first.body.text,
            second=second.body.text,
            persona_version_id=first.persona_version_id,
            first_answer_id=first.pk,
            second_answer_id=second.pk,
            kind=ItemKind.CATALOG,
            first_producer=str(first.contestant),
            second_producer=str(second.contestant),
            source=f"catalog:{first.public_id[:8]}:{second.public_id[:8]}",
        )
        return add_items(project=project, drafts=[draft])[0]


def _check_readable(answer: Answer) -> None:
    seal = getattr(answer, "seal", None)
    if seal is not None and seal.released_at is None:
        raise Refused(_("A round that is not unsealed yet holds this answer."), code="sealed")
    if not hasattr(answer, "body"):
        raise Refused(_("The text of this answer was erased."), code="erased")


def release_items(*, actor: Any, project: Project, items: Iterable[int]) -> int:
    """Give out held items after all. Number of items."""
    return _decide_held(actor, project, items, ItemState.OPEN, "release_items")


def drop_items(*, actor: Any, project: Project, items: Iterable[int]) -> int:
    """Take items out for good; labels that they have stay."""
    return _decide_held(actor, project, items, ItemState.DROPPED, "drop_items")


def _decide_held(actor: Any, project: Project, items: Iterable[int], to: str, action: str) -> int:
    policies.check_manage(actor)
    with transaction.atomic():
        rows = Item.objects.select_for_update().filter(project=project, pk__in=list(items))
        if to == ItemState.OPEN:
            rows = rows.filter(state__in=[ItemState.HELD, ItemState.DROPPED])
        else:
            rows = rows.exclude(state=ItemState.DROPPED)
        found = sorted(row.pk for row in rows)
        Item.objects.filter(pk__in=found).update(state=to)
        if found:
            audit.record(actor=actor, action=action, obj=project, items=found[:100], n=len(found))
            refresh_targets(project=project)
    return len(found)


def refresh_targets(*, project: Project) -> None:
    """Open as many items of each stratum as it is to have, and park the others.

    Strata without a target are open whole. Items that somebody works on stay open.
    """
    with transaction.atomic():
        row = locked(project.pk)
        if not row.targets:
            parked = row.items.filter(state=ItemState.PARKED)
            parked.update(state=ItemState.OPEN)
            return
        used = Counter(
            row.items.filter(state__in=[ItemState.DONE, ItemState.DISPUTED])
            .values_list("stratum", flat=True)
            .iterator()
        )
        for stratum, wanted in row.targets.items():
            _fill(row, stratum, max(wanted - used[stratum], 0))


def _fill(project: Project, stratum: str, places: int) -> None:
    queue = project.items.filter(
        stratum=stratum, state__in=[ItemState.OPEN, ItemState.PARKED]
    ).order_by(F("live").desc(), "shuffle_key")
    chosen = list(queue.values_list("pk", flat=True)[:places])
    queue.filter(state=ItemState.OPEN, live=0).exclude(pk__in=chosen).update(state=ItemState.PARKED)
    project.items.filter(pk__in=chosen, state=ItemState.PARKED).update(state=ItemState.OPEN)

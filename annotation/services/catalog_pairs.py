"""Items from answers of the catalog: two that are named, or all that two contestants have."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django.db import transaction
from django.db.models import Q
from django.utils.translation import gettext as _

from annotation import policies
from annotation.enums import ItemKind
from annotation.models import Project
from annotation.services.chunks import chunks
from annotation.services.items import Added, ItemDraft, add_items
from annotation.services.projects import locked
from annotation.services.queue import refresh_targets
from webapp.catalog.enums import Split, Where
from webapp.catalog.models import Answer, Contestant, Persona, Seal
from webapp.catalog.selectors import readable_texts
from webapp.catalog.services.answers import note_exposure
from webapp.core import audit
from webapp.core.errors import InvalidInput, Refused
from webapp.core.locking import retry_deadlocks

PAIRS_A_CALL = 2000


@retry_deadlocks
def add_catalog_pair(*, actor: Any, project: Project, first: Answer, second: Answer) -> Added:
    """An item from two answers of the catalog to the same prompt and persona version.

    Refused while a sealed round shows one of them: who labels it could not vote any more. Refused
    for what is held out for rounds: it never leaves them (V11).
    """
    policies.check_manage(actor)
    if (first.prompt_id, first.persona_version_id) != (second.prompt_id, second.persona_version_id):
        raise InvalidInput(
            _("The two answers are not to the same prompt and persona version."), field="second"
        )
    if first.pk == second.pk:
        raise InvalidInput(_("An answer cannot stand against itself."), field="second")
    with transaction.atomic():
        locked(project.pk)
        for answer in (first, second):
            _check_not_sealed(answer)
        _check_not_held_out(first)
        loaded = _loaded([(first.pk, second.pk)])
        if not loaded:
            raise Refused(_("The text of this answer was erased."), code="erased")
        _note_chosen(actor, loaded)
        added = add_items(project=project, drafts=[_catalog_draft(*loaded[0])])[0]
        if added.new:
            audit.record(actor=actor, action="add_catalog_pairs", obj=project, n=1)
            refresh_targets(project=project)
        return added


def _catalog_draft(one: Answer, other: Answer) -> ItemDraft:
    """The pair in an order that follows from the texts: who was named first must not tell (V1)."""
    first, second = sorted((one, other), key=lambda answer: (answer.text_sha256, answer.pk))
    return ItemDraft(
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
        source="catalog",
    )


def add_catalog_pairs(
    *, actor: Any, project: Project, first: Contestant, second: Contestant
) -> tuple[int, int]:
    """Items from the answers of two contestants to the same prompts; at most 2,000 a call.

    What a sealed round holds, what is held out, and pairs that the project has are left out.
    Returns the number of items added and of pairs that are still to come.
    """
    policies.check_manage(actor)
    if first.pk == second.pk:
        raise InvalidInput(_("Choose two different contestants."), field="second")
    pairs = _free_pairs(project, first, second)
    added = 0
    for chunk in chunks(pairs[:PAIRS_A_CALL]):
        with transaction.atomic():
            locked(project.pk)
            loaded = _loaded(chunk)
            drafts = [_catalog_draft(a, b) for a, b in loaded]
            _note_chosen(actor, loaded)
            added += sum(entry.new for entry in add_items(project=project, drafts=drafts))
    with transaction.atomic():
        if added:
            # Without the names: the texts may enter a sealed round later (V1).
            audit.record(actor=actor, action="add_catalog_pairs", obj=project, n=added)
        refresh_targets(project=project)
    return added, max(len(pairs) - PAIRS_A_CALL, 0)


def _free_pairs(project: Project, first: Contestant, second: Contestant) -> list[tuple[int, int]]:
    """Ids of readable answers to the same prompt and persona version that are no item yet."""
    ours = _slots(first)
    theirs = _slots(second)
    known = project.items.filter(kind=ItemKind.CATALOG, first_answer__isnull=False)
    taken = {
        frozenset(row)
        for row in known.filter(
            Q(first_answer__contestant=first, second_answer__contestant=second)
            | Q(first_answer__contestant=second, second_answer__contestant=first)
        ).values_list("first_answer_id", "second_answer_id")
    }
    pairs = [(pk, theirs[slot]) for slot, pk in ours.items() if slot in theirs]
    return [pair for pair in pairs if frozenset(pair) not in taken]


def _slots(contestant: Contestant) -> dict[tuple[int, int | None], int]:
    held = Q(answer__prompt__split=Split.HOLDOUT)
    held |= Q(answer__persona_version__persona__split=Split.HOLDOUT)
    rows = readable_texts(contestant).filter(answer__draw=0).exclude(held)
    columns = ("answer__prompt_id", "answer__persona_version_id", "answer_id")
    found = rows.order_by("answer_id").values_list(*columns)
    return {(prompt, version): answer for prompt, version, answer in found}


def _loaded(pairs: Sequence[tuple[int, int]]) -> list[tuple[Answer, Answer]]:
    """The pairs whose texts are there, read while nobody can withdraw a consent: a text that is
    erased after it was read would live on in an item (V14).
    """
    ids = [pk for pair in pairs for pk in pair]
    personas = Persona.objects.select_for_update(no_key=True).filter(
        pk__in=Answer.objects.filter(pk__in=ids).values("persona_version__persona")
    )
    list(personas.order_by("pseudonym").values_list("pk"))
    rows = Answer.objects.select_related("prompt", "contestant", "body").in_bulk(ids)
    whole = {pk: row for pk, row in rows.items() if hasattr(row, "body")}
    return [(whole[a], whole[b]) for a, b in pairs if a in whole and b in whole]


def _note_chosen(actor: Any, pairs: Sequence[tuple[Answer, Answer]]) -> None:
    """Who chose the two models knows who wrote the texts, and does not vote on them (V7)."""
    met = sorted({answer.pk for pair in pairs for answer in pair})
    note_exposure(user=actor, answers=met, where=Where.AUDITED)


def _check_not_held_out(answer: Answer) -> None:
    """Raise where the question or the persona is kept for holdout contexts."""
    version = answer.persona_version
    splits = {answer.prompt.split, version.persona.split if version else Split.NONE}
    if Split.HOLDOUT in splits:
        raise Refused(
            _("This question or persona is held out for rounds and never labelled."),
            code="holdout",
        )


def _check_not_sealed(answer: Answer) -> None:
    """Raise where a live seal covers an answer with this text, whoever's it is."""
    live = Seal.objects.filter(answer__text_sha256=answer.text_sha256, released_at=None)
    if live.exists():
        raise Refused(_("A round that is not unsealed yet holds this answer."), code="sealed")

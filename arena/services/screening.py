"""Choosing each contestant's answer for each context, sealing it, and screening its text.

Runs as a job in batches of contexts; a batch is one transaction, so a killed worker goes on where
it stopped. Screening knows the round's contestants as a set of names, never who wrote the text.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from typing import Any

from django.core.cache import cache
from django.db import IntegrityError, transaction
from django.db.models import Exists, OuterRef, Q, QuerySet
from django.utils import timezone
from django.utils.translation import gettext as _

from arena import policies
from arena.blinding import text_sha256
from arena.enums import RoundState
from arena.leakage import (
    IDENTITY_RULES,
    ContestantNames,
    Hit,
    RulePolicy,
    Screener,
    ScreeningRule,
    find_duplicates,
    mask_spans,
)
from arena.models import Context, Entry, Round, ScreeningHit
from arena.selectors.answering import check_answers_are_made
from arena.services.rounds import contestants_of, locked, move
from webapp.catalog.models import Answer, Seal
from webapp.core.errors import Refused
from webapp.core.jobs import enqueue

BATCH = 50
AnswerKey = tuple[int, int, int | None]  # contestant, prompt, persona version


def start_screening(*, actor: Any, round_: Round) -> None:
    """Seal the answers of the draft and have them screened by a job."""
    policies.check_compose(actor)
    with transaction.atomic():
        round_ = locked(round_.pk)
        check_answers_are_made(round_)
        total = round_.contexts.count()
        if not total:
            raise Refused(_("The round has no contexts."), code="no_contexts")
        move(
            round_,
            RoundState.SCREENING,
            actor=actor,
            screening_total=total,
            screening_done=0,
            screened_at=None,
        )
        enqueue("screen_round", round_.pk)


def screen_round(pk: int) -> None:
    """Screen what is left, batch by batch. Safe to run twice and to interrupt."""
    round_ = Round.objects.get(pk=pk)
    screener = Screener(
        ContestantNames(contestant.name, contestant.vendor) for contestant in contestants_of(round_)
    )
    while _screen_batch(pk, screener):
        pass


def _screen_batch(pk: int, screener: Screener) -> bool:
    """Take the next contexts without entries. False when nothing is left or the round moved on."""
    with transaction.atomic():
        round_ = locked(pk)
        if round_.state != RoundState.SCREENING or round_.screened_at is not None:
            return False
        done = round_.screening_done
        contexts = list(
            Context.objects.filter(round=round_)
            .select_related("prompt")
            .order_by("pk")[done : done + BATCH]
        )
        if not contexts:
            Round.objects.filter(pk=pk).update(screened_at=timezone.now())
            return False
        entries = _make_entries(round_, contexts)
        _screen(round_, entries, screener)
        cache.set(f"screening:{pk}", 1, 60)  # a sign of life: repair leaves it alone
        Round.objects.filter(pk=pk).update(screening_done=done + len(contexts))
    return True


def _make_entries(round_: Round, contexts: list[Context]) -> list[Entry]:
    """One entry per context and contestant that has a free answer; the answers get sealed."""
    contestants = sorted(round_.round_contestants.values_list("contestant_id", flat=True))
    found = free_answers(round_, contexts, contestants)
    chosen: list[Entry] = []
    for context in contexts:
        for contestant in contestants:
            answer = found.get(
                (contestant, context.prompt_id, context.persona_version_id)
            ) or found.get((contestant, context.prompt_id, None))
            if answer is not None:
                chosen.append(Entry(context=context, contestant_id=contestant, answer=answer))
    seal_answers(round_, {entry.answer_id for entry in chosen})
    return chosen


def free_answers(
    round_: Round, contexts: list[Context], contestants: list[int]
) -> dict[AnswerKey, Answer]:
    """The first draw of each slot whose text was not erased and is in no other round's hands.

    A seal covers the text, whoever's answer it stands on: a published mapping would unblind its
    return (V5). Within the round equal texts are a matter of the duplicate rule.
    """
    versions = {context.persona_version_id for context in contexts} - {None}
    elsewhere = _seals_elsewhere(round_).filter(answer__text_sha256=OuterRef("text_sha256"))
    rows = (
        Answer.objects.filter(
            ~Exists(elsewhere),
            Q(persona_version__in=versions) | Q(persona_version=None),
            contestant__in=contestants,
            prompt__in={context.prompt_id for context in contexts},
            body__isnull=False,
        )
        .select_related("body")
        .order_by("draw", "pk")
    )
    found: dict[AnswerKey, Answer] = {}
    for row in rows:
        found.setdefault((row.contestant_id, row.prompt_id, row.persona_version_id), row)
    return found


def _seals_elsewhere(round_: Round) -> QuerySet[Seal]:
    """Seals of other rounds, live or released."""
    return Seal.objects.exclude(holder=round_.holder)


def seal_answers(round_: Round, answers: Iterable[int]) -> None:
    """Write the seals; a text enters one round only (V5)."""
    wanted = set(answers)
    _check_texts_are_free(round_, wanted)
    own = set(
        Seal.objects.filter(answer__in=wanted, holder=round_.holder).values_list(
            "answer_id", flat=True
        )
    )
    try:
        with transaction.atomic():
            Seal.objects.bulk_create(
                Seal(answer_id=answer, holder=round_.holder) for answer in sorted(wanted - own)
            )
    except IntegrityError as error:
        raise _taken() from error


def _check_texts_are_free(round_: Round, answers: set[int]) -> None:
    """Hold all answers with these texts, so that two rounds never take one text at once."""
    digests = Answer.objects.filter(pk__in=answers).values("text_sha256")
    rows = Answer.objects.select_for_update(no_key=True).filter(text_sha256__in=digests)
    list(rows.order_by("pk").values_list("pk", flat=True))  # takes the locks, in one order
    if _seals_elsewhere(round_).filter(answer__text_sha256__in=digests).exists():
        raise _taken()


def _taken() -> Refused:
    return Refused(
        _("Another round took some of these answers at the same time. Screen again."),
        code="answer_taken",
    )


def _screen(round_: Round, entries: list[Entry], screener: Screener) -> None:
    """Fill spans, hash and exclusion of the entries and write them with their hits."""
    hits = {
        id(entry): list(screener.screen(entry.answer.body.text, entry.answer.finish_reason))
        for entry in entries
    }
    for group in find_duplicates(
        (id(entry), str(entry.context_id), entry.answer.body.text) for entry in entries
    ):
        for key in group:
            hits[key].append(Hit(0, 0, ScreeningRule.DUPLICATE))
    for entry in entries:
        _apply(entry, hits[id(entry)], round_.screening_policy)
    created = Entry.objects.bulk_create(entries, batch_size=500)
    ScreeningHit.objects.bulk_create(
        (
            ScreeningHit(entry=entry, rule=hit.rule.value, start=hit.start, end=hit.end)
            for entry in created
            for hit in hits[id(entry)]
        ),
        batch_size=500,
    )


def _apply(entry: Entry, hits: list[Hit], policy: dict[str, str]) -> None:
    """What the rules fixed before say about these hits: mask, exclude or keep."""
    actions: dict[str, list[Hit]] = defaultdict(list)
    for hit in hits:
        actions[policy.get(hit.rule.value, RulePolicy.KEEP)].append(hit)
    excluding = sorted(actions[RulePolicy.EXCLUDE], key=lambda hit: hit.rule.value)
    entry.excluded_by = excluding[0].rule.value if excluding else ""
    entry.spans = [
        [hit.start, hit.end] for hit in actions[RulePolicy.MASK] if hit.rule in IDENTITY_RULES
    ]
    entry.shown_sha256 = text_sha256(mask_spans(entry.answer.body.text, entry.spans))
    entry.screened = True


def restart_stalled() -> int:
    """Send the job again where screening stands still: its message or worker may be lost."""
    rows = Round.objects.filter(state=RoundState.SCREENING, screened_at=None)
    pks = [pk for pk in rows.values_list("pk", flat=True) if cache.add(f"screening:{pk}", 1, 60)]
    for pk in pks:
        enqueue("screen_round", pk)
    return len(pks)

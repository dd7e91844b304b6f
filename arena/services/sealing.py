"""Opening a round: plan the battles, commit to them, freeze everything (V4–V6)."""

from __future__ import annotations

import hmac
from collections import Counter, defaultdict
from typing import Any

from django.db import transaction
from django.db.models import QuerySet
from django.utils import timezone
from django.utils.translation import gettext as _

from arena import policies
from arena.blinding import (
    SeededStream,
    canonical_json,
    derive_key,
    new_salt,
    rater_pseudonym,
    seal_allocation,
)
from arena.bundles import check_protocol
from arena.enums import RoundState
from arena.matchmaking import ContextSpec, PlanError, PlannedSlot, axis_order, plan_slots
from arena.models import Battle, Context, Entry, Round, RoundRater, Slot
from arena.protocol import comparable_contexts, protocol_of
from arena.sampling import stratum_shortfalls
from arena.selectors.answering import check_answers_are_made
from arena.selectors.sealed import sealed_battle
from arena.services.rounds import contestants_of, locked, move
from webapp.catalog.enums import Split
from webapp.catalog.models import Persona, Prompt
from webapp.core.errors import InvalidInput, Refused


def open_round(*, actor: Any, round_: Round) -> Round:
    """Seal and open. All in one transaction: either everything is committed to, or nothing."""
    policies.check_compose(actor)
    with transaction.atomic():
        round_ = locked(round_.pk)
        policies.check_move(round_, RoundState.OPEN)
        _check_ready(round_)
        seed, salt = bytes.fromhex(round_.seed), new_salt()
        entries = usable_entries(round_)
        handles = contestant_handles(entries, seed)
        slots = _make_slots(round_, entries, handles, seed)
        battles = _mirrored(round_, slots, seed)
        _prepare_raters(round_, seed)
        protocol = protocol_of(round_)
        check_protocol(protocol)
        seal = seal_allocation(protocol, [sealed_battle(battle) for battle in battles], salt)
        for battle in battles:
            battle.leaf_index = seal.leaf_of[battle.public_id]
        Battle.objects.bulk_create(battles, batch_size=1000)
        _fix_splits(round_)
        move(
            round_,
            RoundState.OPEN,
            actor=actor,
            opened_at=timezone.now(),
            salt=salt.hex(),
            merkle_root=seal.root,
            commitment=seal.commitment,
            protocol=canonical_json(protocol).decode(),
        )
    return round_


def _check_ready(round_: Round) -> None:
    policies.check_still_possible(round_)
    if round_.screened_at is None:
        raise Refused(_("Screening is not finished."), code="not_screened")
    check_answers_are_made(round_)
    _check_contestants(round_)
    reasons = round_shortfalls(round_)
    if reasons:
        raise Refused(" ".join(reasons), code="too_uniform")


def _check_contestants(round_: Round) -> None:
    """Whoever the protocol names is compared: each contestant needs an answer that is left.

    Whose answers screening took out is not said: the excerpts of them can be read, and after a
    change of the rule the same texts could stand in a battle (V1).
    """
    entries = Entry.objects.filter(context__round=round_)
    answered = set(entries.values_list("contestant", flat=True))
    usable = set(_usable(round_).values_list("contestant", flat=True))
    for contestant in sorted(contestants_of(round_), key=str):
        if contestant.pk not in answered:
            text = _("%(name)s has no answer that this round may use. Import some or leave it out.")
            raise _cannot_play(text % {"name": contestant})
    if answered - usable:
        raise _cannot_play(
            _(
                "Screening took out all answers of a contestant. Which one is not said, because "
                "its texts could then be recognised. Change the rules or the contestants."
            )
        )


def _cannot_play(text: str) -> InvalidInput:
    return InvalidInput(text, field="contestants", code="bad_contestant")


def round_shortfalls(round_: Round) -> list[str]:
    """Why the contexts prove too little: strata below the minimum, or only one kind of user.

    After screening only contexts count in which two answers are left to compare.
    """
    screened = round_.screened_at is not None
    rows = comparable_contexts(round_) if screened else Context.objects.filter(round=round_)
    strata = rows.values_list("stratum", flat=True)
    found = stratum_shortfalls(
        list(strata), round_.minimum_per_stratum, minimum_strata=round_.minimum_strata
    )
    reasons = []
    for shortfall in found:
        if shortfall.code == "too_few_strata":
            text = _("%(have)s kinds of users where %(need)s are needed: one kind proves nothing.")
        else:
            text = _("Stratum “%(stratum)s” has %(have)s contexts, %(need)s are needed.")
        reasons.append(
            text % {"have": shortfall.have, "need": shortfall.need, "stratum": shortfall.stratum}
        )
    return reasons


def _usable(round_: Round) -> QuerySet[Entry]:
    return Entry.objects.filter(context__round=round_, excluded_by="", screened=True)


def usable_entries(round_: Round) -> list[Entry]:
    """Entries that passed screening, with what sealing needs."""
    rows = _usable(round_).select_related(
        "context__prompt", "context__persona_version", "contestant"
    )
    return list(rows.defer("context__prompt__messages").order_by("pk"))


def contestant_handles(entries: list[Entry], seed: bytes) -> dict[int, str]:
    """A planning name for each contestant that depends on its texts and the seed alone.

    The plan must be the same whoever stands behind the texts (V1), so neither names nor row
    numbers may enter it. Only contestants that show the same text in every context are told apart
    by a counter: whoever of them comes first, the battles look the same.
    """
    shown: dict[int, list[tuple[int, str]]] = defaultdict(list)
    for entry in entries:
        shown[entry.contestant_id].append((entry.context_id, entry.shown_sha256))
    key, twins, handles = derive_key(seed, "handle"), Counter[bytes](), {}
    for pk in sorted(shown):
        texts = canonical_json(sorted(shown[pk]))
        handles[pk] = hmac.digest(key, texts + b"#%d" % twins[texts], "sha256").hex()
        twins[texts] += 1
    return handles


def _make_slots(
    round_: Round, entries: list[Entry], handles: dict[int, str], seed: bytes
) -> list[Slot]:
    by_context: dict[int, dict[str, Entry]] = defaultdict(dict)
    for entry in entries:
        by_context[entry.context_id][handles[entry.contestant_id]] = entry
    planned = _plan(round_, sorted(set(handles.values())), by_context, seed)
    slots = [
        Slot(
            round=round_,
            context=by_context[int(slot.context)][slot.x].context,
            x=by_context[int(slot.context)][slot.x],
            y=by_context[int(slot.context)][slot.y],
            order=number,
            target=round_.votes_per_battle,
        )
        for number, slot in enumerate(planned)
    ]
    return Slot.objects.bulk_create(slots, batch_size=1000)


def _plan(
    round_: Round, names: list[str], by_context: dict[int, dict[str, Entry]], seed: bytes
) -> list[PlannedSlot]:
    specs = [
        ContextSpec(f"{pk:012d}", next(iter(row.values())).context.stratum, frozenset(row))
        for pk, row in by_context.items()
    ]
    try:
        return plan_slots(
            contestants=names,
            contexts=specs,
            planned_votes=round_.planned_votes,
            votes_per_battle=round_.votes_per_battle,
            seed=seed,
        )
    except PlanError as error:
        raise InvalidInput(_plan_message(error), field="planned_votes", code=error.code) from error


def _plan_message(error: PlanError) -> str:
    """The reason in the reader's language; handles of contestants stay out of it."""
    messages = {
        "too_few_contestants": _("After screening fewer than two contestants have usable answers."),
        "bad_votes": _("Plan at least one vote and one vote per battle."),
        "too_few_votes": _("Too few votes are planned to connect all contestants."),
        "not_connectable": _(
            "The contestants cannot all be compared: some share no context with the others."
        ),
        "too_few_comparisons": _(
            "There are fewer possible battles than the planned votes need. Plan fewer votes, more "
            "votes per battle, or more contexts."
        ),
    }
    return messages.get(error.code, _("The battles cannot be planned as asked."))


def _mirrored(round_: Round, slots: list[Slot], seed: bytes) -> list[Battle]:
    """Two battles per slot, with ids from the secret seed: they tell nothing of the order."""
    stream = SeededStream(seed, "battle ids")
    return [
        Battle(
            round=round_,
            slot=slot,
            left_is_x=left_is_x,
            public_id=f"{stream.word():016x}{stream.word():016x}",
        )
        for slot in slots
        for left_is_x in (True, False)
    ]


def _prepare_raters(round_: Round, seed: bytes) -> None:
    """Pseudonyms and the order of the axes, balanced between raters."""
    raters = list(round_.round_raters.all())
    orders = axis_order(seed, [str(rater.user_id) for rater in raters], round_.axes)
    for rater in raters:
        rater.pseudonym = rater_pseudonym(seed, str(rater.user_id))
        rater.axes = list(orders[str(rater.user_id)])
    RoundRater.objects.bulk_update(raters, ["pseudonym", "axes"])


def _fix_splits(round_: Round) -> None:
    """What was used rotating stays rotating, what was held out stays held out (V11)."""
    for holdout, split in ((True, Split.HOLDOUT), (False, Split.ROTATING)):
        contexts = Context.objects.filter(round=round_, holdout=holdout)
        personas = contexts.exclude(persona_version=None).values("persona_version__persona")
        Persona.objects.filter(pk__in=personas, split=Split.NONE).update(split=split)
        Prompt.objects.filter(pk__in=contexts.values("prompt"), split=Split.NONE).update(
            split=split
        )

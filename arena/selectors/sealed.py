"""The parts of a published bundle, read from the rows of an unsealed round and from no other."""

from __future__ import annotations

import json
from collections.abc import Iterable

from django.db.models import OuterRef, Q, Subquery, Value
from django.db.models.functions import Coalesce
from django.utils.translation import gettext as _

from arena.blinding import SealedBattle, VoteRecord
from arena.bundles import BundleInput, BundleVote
from arena.enums import RoundState
from arena.models import Battle, Entry, Round, RoundRater, Slot, Vote
from arena.protocol import round_key
from arena.selectors.texts import shown_hashes, shown_text
from webapp.core.errors import Refused
from webapp.core.models import Event

CHUNK = 2000


def bundle_input(round_: Round) -> BundleInput:
    """Everything that the bundle is made of, in a few queries. Refused unless unsealed."""
    if round_.state != RoundState.UNSEALED:
        raise Refused(_("The bundle is published when the round is unsealed."), code="sealed")
    return BundleInput(
        protocol=json.loads(round_.protocol),
        battles=sealed_battles(round_),
        salt=bytes.fromhex(round_.salt),
        commitment=round_.commitment,
        vote_digest=round_.vote_digest,
        votes=bundle_votes(round_),
        texts=rotating_texts(round_),
        erased=erased_texts(round_),
        audit=unsealing_line(round_),
    )


def sealed_battles(round_: Round) -> list[SealedBattle]:
    """Every battle as its leaf commits to it; must stay what sealing made of it."""
    rows = Battle.objects.filter(round=round_).select_related(
        "slot__context__prompt",
        "slot__context__persona_version",
        "slot__x__contestant",
        "slot__y__contestant",
    )
    rows = rows.defer("slot__context__prompt__messages").order_by("leaf_index")
    return [sealed_battle(row) for row in rows.iterator(chunk_size=CHUNK)]


def sealed_battle(battle: Battle) -> SealedBattle:
    """The battle as its leaf commits to it. Needs both entries with contestant and slot.context
    with prompt and persona version.
    """
    slot = battle.slot
    version = slot.context.persona_version
    return SealedBattle(
        battle=battle.public_id,
        context=f"c{slot.context_id}",
        stratum=slot.context.stratum,
        kind="holdout" if slot.context.holdout else "rotating",
        x=str(slot.x.contestant),
        y=str(slot.y.contestant),
        left_is_x=battle.left_is_x,
        sha256_x=slot.x.shown_sha256,
        sha256_y=slot.y.shown_sha256,
        prompt_sha256=slot.context.prompt.text_hash,
        summary_sha256=version.summary_sha256 if version else "",
    )


def bundle_votes(round_: Round) -> list[BundleVote]:
    """Every revision. Who was once an owner on a battle stays one: his record is not published."""
    seats = RoundRater.objects.filter(round=round_, user=OuterRef("rater"))
    rows = (
        Vote.objects.filter(assignment__round=round_)
        .select_related("battle__slot__x", "battle__slot__y")
        .annotate(pseudonym=Coalesce(Subquery(seats.values("pseudonym")[:1]), Value("")))
    )
    votes = list(rows.order_by("pk").iterator(chunk_size=CHUNK))
    owned = {(vote.battle_id, vote.rater_id) for vote in votes if vote.owner}
    key, axes = round_key(round_), list(round_.axes)
    return [
        BundleVote(
            _record(vote, key, vote.pseudonym, axes),
            owner=(vote.battle_id, vote.rater_id) in owned,
        )
        for vote in votes
    ]


def _record(vote: Vote, key: str, pseudonym: str, axes: Iterable[str]) -> VoteRecord:
    verdicts = {axis: getattr(vote, axis) for axis in axes if getattr(vote, axis)}
    battle = vote.battle
    left, right = shown_hashes(battle.slot, battle.left_is_x)
    return VoteRecord(
        key, battle.public_id, pseudonym, vote.revision, verdicts, left, right, vote.nonce
    )


def rotating_texts(round_: Round) -> dict[str, str]:
    """Displayed text by its hash, for the battles of rotating contexts alone."""
    slots = Slot.objects.filter(round=round_, context__holdout=False)
    entries = Entry.objects.filter(Q(pk__in=slots.values("x")) | Q(pk__in=slots.values("y")))
    rows = entries.select_related("answer__body").order_by("pk")
    return {
        row.shown_sha256: shown_text(row)
        for row in rows.iterator(chunk_size=CHUNK)
        if hasattr(row.answer, "body")
    }


def erased_texts(round_: Round) -> frozenset[str]:
    """Hashes of displayed texts that are gone because consent was withdrawn (V14)."""
    rows = Entry.objects.filter(context__round=round_, answer__body__isnull=True)
    return frozenset(rows.values_list("shown_sha256", flat=True))


def unsealing_line(round_: Round) -> tuple[int, str] | None:
    """Number and hash of the audit line of the unsealing: the hash covers the lines before it."""
    lines = Event.objects.filter(
        object_type=Round._meta.label_lower, object_id=str(round_.pk), action="round_unsealed"
    )
    return lines.order_by("n").values_list("n", "hash").first()


def find_receipt(round_: Round, code: str) -> Vote | None:
    """The vote revision of a receipt, or of the beginning of one (16 characters or more)."""
    if round_.state != RoundState.UNSEALED:
        raise Refused(_("The bundle is published when the round is unsealed."), code="sealed")
    rows = Vote.objects.filter(assignment__round=round_, receipt__startswith=code)
    found = list(rows[:2])
    return found[0] if len(found) == 1 else None

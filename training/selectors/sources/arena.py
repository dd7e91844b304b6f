"""Rows from the votes of unsealed rounds, on rotating contexts only (V11, step 9 of the loop).

Votes are aggregated per pair, context and axis; late ones count unless the round registered that
they do not. Texts that screening masked are left out: what
raters saw is not what a model should learn.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from django.db.models import Exists, OuterRef, QuerySet

from arena.enums import RoundState, Verdict
from arena.exclusions import excluded_votes
from arena.models import Entry, Round, Slot
from arena.selectors.votes import counted_votes, standing_votes
from training.enums import Kind, Source
from training.rows import said
from training.selectors.sources.annotation import summary_of
from training.selectors.sources.common import Candidate, Chooser, Fact, about, in_chunks, turns
from webapp.catalog.models import AnswerText

VOTES = "votes"  # the value of the column `decided`


@dataclass
class Tally:
    """Votes on one pair and axis; `owners` of them by the person behind the persona.

    `raters` are the pseudonyms that the round has published.
    """

    x: int = 0
    y: int = 0
    tie: int = 0
    both_bad: int = 0
    owners: int = 0
    raters: set[str] = field(default_factory=set)

    @property
    def total(self) -> int:
        return self.x + self.y + self.tie + self.both_bad

    @property
    def posterior(self) -> float:
        """That the winner is better, by Laplace's rule of succession over decisive votes."""
        return round((max(self.x, self.y) + 1) / (self.x + self.y + 2), 4)

    @property
    def weight(self) -> float:
        """Share for the winner − share for the other: 1 when all agree, less with every doubt."""
        return round(abs(self.x - self.y) / self.total, 4) if self.total else 0.0


def unsealed(chooser: Chooser) -> QuerySet[Round]:
    """The rounds that the filter takes; simulated ones only when asked for."""
    rows = Round.objects.filter(state=RoundState.UNSEALED)
    if chooser.spec.rounds:
        rows = rows.filter(pk__in=chooser.spec.rounds)
    return rows if chooser.spec.simulated else rows.filter(simulated=False)


def facts(kind: str, chooser: Chooser) -> Iterator[Fact]:
    for round_ in unsealed(chooser).order_by("pk"):
        if kind == Kind.COUNTEREXAMPLES:
            yield from _screened_out(round_, chooser)
        else:
            yield from _pairs(round_, chooser)


def _pairs(round_: Round, chooser: Chooser) -> Iterator[Fact]:
    tallies = _tallies(round_, chooser.spec.axis)
    rows = Slot.objects.filter(round=round_, context__holdout=False).annotate(
        x_there=Exists(AnswerText.objects.filter(answer=OuterRef("x__answer"))),
        y_there=Exists(AnswerText.objects.filter(answer=OuterRef("y__answer"))),
    )
    related = rows.select_related("context__prompt", "context__persona_version", "x", "y")
    for chunk in in_chunks(related.defer("context__prompt__messages"), 2000):
        for slot in chunk:
            tally = tallies.get(slot.pk)
            if tally is not None:
                reason = _reason(slot, tally, chooser)
                yield _fact(slot.pk, slot.context, round_, chooser, VOTES, reason)


def _tallies(round_: Round, axis: str) -> dict[int, Tally]:
    """By slot. Votes that the round's registered exclusions leave out are no examples either."""
    found: dict[int, Tally] = defaultdict(Tally)
    cast = counted_votes(round_)  # in the order of the rows below
    left_out = excluded_votes(cast, round_.exclusions)
    columns = (axis, "owner", "battle__left_is_x", "battle__slot_id")
    rows = standing_votes(round_).order_by("pk").values_list(*columns).iterator(chunk_size=5000)
    for number, (verdict, owner, left_is_x, slot) in enumerate(rows):
        if not verdict or number in left_out:
            continue
        tally = found[slot]
        tally.owners += owner
        tally.raters.add(cast[number].rater)
        if verdict in (Verdict.LEFT, Verdict.RIGHT):
            side = "x" if (verdict == Verdict.LEFT) == left_is_x else "y"
            setattr(tally, side, getattr(tally, side) + 1)
        elif verdict == Verdict.TIE:
            tally.tie += 1
        else:
            tally.both_bad += 1
    return found


def _reason(slot: Any, tally: Tally, chooser: Chooser) -> str:
    checks = (
        ("erased", not (slot.x_there and slot.y_there)),
        ("masked", bool(slot.x.spans or slot.y.spans)),
        ("both_bad", 2 * tally.both_bad > tally.total),
        ("tie", tally.x == tally.y),
        ("votes", max(tally.x, tally.y) < chooser.spec.votes),
        ("posterior", 100 * tally.posterior < chooser.spec.minimum),
        ("same_text", slot.x.shown_sha256 == slot.y.shown_sha256),
        (
            "no_persona",
            chooser.spec.axis == "personalization" and slot.context.persona_version is None,
        ),
    )
    return next((name for name, holds in checks if holds), "")


def _fact(
    pk: int, context: Any, round_: Round, chooser: Chooser, decided: str, reason: str
) -> Fact:
    prompt, version = context.prompt, context.persona_version
    persona_id = version.persona_id if version else None
    barred = chooser.reason(prompt.text_hash, persona_id, prompt.language, prompt.category)
    return Fact(
        source=Source.ARENA,
        pk=pk,
        prompt_sha256=prompt.text_hash,
        persona_id=persona_id,
        stratum=chooser.stratum(persona_id),
        origin=("rounds", round_.pk),
        language=prompt.language,
        category=prompt.category,
        decided=decided,
        reason=barred or reason,
    )


def _screened_out(round_: Round, chooser: Chooser) -> Iterator[Fact]:
    """Answers that screening took out of an unsealed round: what must not be said."""
    entries = Entry.objects.filter(context__round=round_, context__holdout=False)
    rows: QuerySet[Any] = entries.exclude(excluded_by="").annotate(
        readable=Exists(AnswerText.objects.filter(answer=OuterRef("answer")))
    )
    related = rows.select_related("context__prompt", "context__persona_version")
    for chunk in in_chunks(related.defer("context__prompt__messages"), 2000):
        for entry in chunk:
            reason = "" if entry.readable else "erased"
            yield _fact(entry.pk, entry.context, round_, chooser, entry.excluded_by, reason)


def rows(kind: str, chooser: Chooser, kept: Sequence[Fact]) -> Iterator[Candidate]:
    if kind == Kind.COUNTEREXAMPLES:
        yield from _bad_rows(kept)
        return
    related = ("context__prompt", "context__persona_version__persona",
               "context__persona_version__text", "x__answer__body", "y__answer__body",
               "round")  # fmt: skip
    slots = Slot.objects.select_related(*related).in_bulk([fact.pk for fact in kept])
    by_round: dict[int, list[int]] = defaultdict(list)
    for slot in slots.values():
        by_round[slot.round_id].append(slot.pk)
    tallies = {
        pk: tally
        for round_ in Round.objects.filter(pk__in=by_round)
        for pk, tally in _cached_tallies(round_, chooser).items()
    }
    for fact in kept:
        slot = slots[fact.pk]
        context = _context_columns(slot.context, fact)
        texts = [_text(slot.x), _text(slot.y)]
        if context is not None and None not in texts:
            row = context | _pair(slot, tallies[slot.pk], texts, chooser.spec.axis)
            yield Candidate(fact, row, f"slot:{slot.pk}:{chooser.spec.axis}", slot.context_id)


def _cached_tallies(round_: Round, chooser: Chooser) -> dict[int, Tally]:
    """Tallies of the round read last; facts come round by round."""
    held: dict[str, Any] = chooser.__dict__.setdefault("tallies", {})
    if held.get("round") != round_.pk:
        held.update(round=round_.pk, found=_tallies(round_, chooser.spec.axis))
    found: dict[int, Tally] = held["found"]
    return found


def _context_columns(context: Any, fact: Fact) -> dict[str, Any] | None:
    summary = summary_of(context.persona_version)
    if summary is None:
        return None
    persona = context.persona_version.persona if context.persona_version else None
    columns = about(persona, summary, fact.language, fact.category, fact.source)
    return {"prompt": turns(context.prompt.messages), **columns, "synthetic": False}


def _text(entry: Entry) -> str | None:
    return entry.answer.body.text if hasattr(entry.answer, "body") else None


def _pair(slot: Slot, tally: Tally, texts: list[Any], axis: str) -> dict[str, Any]:
    chosen, rejected = texts if tally.x > tally.y else texts[::-1]
    return {
        "chosen": said(chosen),
        "rejected": said(rejected),
        "axis": axis,
        "decided": VOTES,
        "posterior": tally.posterior,
        "judgements": tally.total,
        "agreeing": max(tally.x, tally.y),
        "owner_votes": tally.owners,
        "weight": tally.weight,
        "raters": ",".join(sorted(tally.raters)),
        "simulated": slot.round.simulated,
        "pair": "",
    }


def _bad_rows(kept: Sequence[Fact]) -> Iterator[Candidate]:
    related = ("context__prompt", "context__persona_version__persona",
               "context__persona_version__text", "answer__body")  # fmt: skip
    entries = Entry.objects.select_related(*related).in_bulk([fact.pk for fact in kept])
    for fact in kept:
        entry = entries[fact.pk]
        context, text = _context_columns(entry.context, fact), _text(entry)
        if context is not None and text is not None:
            bad = {
                "completion": said(text),
                "label": False,
                "reason": f"screening: {entry.excluded_by}",
                "better": [],
            }
            yield Candidate(fact, context | bad, f"entry:{entry.pk}", entry.context_id)

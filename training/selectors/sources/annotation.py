"""Rows from decisions of annotation. Gold items never enter, nor what nobody decided (D1, F2)."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from django.db.models import Exists, F, OuterRef, Q, QuerySet

from annotation.enums import DecisionSource, ItemKind, ItemState, LeaseState, ReviewState, Verdict
from annotation.models import GoldItem, Item, ItemText, Lease
from annotation.policies import allowed_outcomes
from annotation.posterior import Voter, item_posterior
from training.enums import Kind, Source
from training.rows import said
from training.selectors.sources.common import Candidate, Chooser, Fact, about, in_chunks, turns

FACTS = 2000  # items looked at together, without texts
SURE = (DecisionSource.ADJUDICATED, DecisionSource.SYNTHETIC)  # need no posterior


@dataclass
class Labels:
    """Labels of one item: counted ones and, where asked for, late ones."""

    given: list[tuple[Lease, str]] = field(default_factory=list)
    simulated: bool = False

    def agreeing(self, verdict: str) -> int:
        return sum(1 for _lease, given in self.given if given == verdict)


def facts(kind: str, chooser: Chooser) -> Iterator[Fact]:
    """Every decided item on the axis, with the reason why it stays out where it does."""
    axes = [chooser.spec.axis] if chooser.spec.axis else ["quality", "personalization"]
    for axis in axes:
        for chunk in in_chunks(_items(kind, axis, chooser), FACTS):
            labels = _labels([item.pk for item in chunk], axis, chooser.spec.extras)
            for item in chunk:
                yield from _facts_of(kind, item, axis, labels[item.pk], chooser)


def _items(kind: str, axis: str, chooser: Chooser) -> QuerySet[Item]:
    # Neither gold, nor a rewrite of what is gold: it has the same question and answer.
    gold = Q(item=OuterRef("pk")) | Q(item=OuterRef("rewrite__source_item"))
    rows = Item.objects.filter(
        ~Exists(GoldItem.objects.filter(gold)),
        **{f"{axis}_decision__isnull": False},
        state=ItemState.DONE,
    ).annotate(
        readable=Exists(ItemText.objects.filter(item=OuterRef("pk"))),
        pair=F("rewrite__pair"),
        review=F("rewrite__state"),
    )
    if chooser.spec.projects:
        rows = rows.filter(project__in=chooser.spec.projects)
    if kind == Kind.COUNTERFACTUALS:
        rows = rows.filter(kind=ItemKind.COUNTERFACTUAL)
    return rows.select_related("project", "prompt", "persona_version", f"{axis}_decision").defer(
        "prompt__messages"
    )


def _labels(items: Sequence[int], axis: str, extras: bool) -> dict[int, Labels]:
    found: dict[int, Labels] = defaultdict(Labels)
    rows = Lease.objects.filter(item__in=items, state=LeaseState.SUBMITTED, repeat=0)
    if not extras:
        rows = rows.filter(counted=True)
    for lease in rows.select_related("head", "member__user").order_by("pk"):
        verdict = getattr(lease.head, axis)
        if verdict:
            found[lease.item_id].given.append((lease, verdict))
        user = lease.member.user
        found[lease.item_id].simulated |= bool(user and user.preferences.get("simulated"))
    return found


def _facts_of(kind: str, item: Any, axis: str, labels: Labels, chooser: Chooser) -> Iterator[Fact]:
    decision = getattr(item, f"{axis}_decision")
    prompt = item.prompt
    persona_id = item.persona_version.persona_id if item.persona_version else None
    fact = Fact(
        source=Source.ANNOTATION,
        pk=item.pk,
        prompt_sha256=prompt.text_hash,
        persona_id=persona_id,
        stratum=chooser.stratum(persona_id),
        origin=("projects", item.project_id),
        language=prompt.language,
        category=prompt.category,
        decided=decision.source,
        synthetic=item.synthetic or decision.source == DecisionSource.SYNTHETIC,
        group=item.pair or "",
        score=_score(item, decision, labels, chooser.spec.extras),
        part=axis,
    )
    reason = chooser.reason(prompt.text_hash, persona_id, prompt.language, prompt.category)
    reason = reason or _reason(kind, item, fact, decision, labels, chooser)
    if kind == Kind.COUNTEREXAMPLES:
        for side in ("first", "second"):
            yield replace(fact, part=f"{axis}:{side}", reason=reason)
    else:
        yield replace(fact, reason=reason)


def _score(item: Item, decision: Any, labels: Labels, extras: bool) -> float:
    posterior = decision.posterior
    if extras and decision.source not in SURE:
        given = [
            (verdict, Voter(lease.member.gold_right, lease.member.gold_seen))
            for lease, verdict in labels.given
        ]
        posterior = item_posterior(given, allowed_outcomes(item.project))
    sure = 1.0 if decision.source in SURE else 0.0
    return round(float(posterior.get(decision.verdict, sure)), 4)


def _reason(
    kind: str, item: Any, fact: Fact, decision: Any, labels: Labels, chooser: Chooser
) -> str:
    """Why a decided item stays out, looked at in this order."""
    spec = chooser.spec
    wanted_bad = kind == Kind.COUNTEREXAMPLES
    checks = (
        ("erased", not item.readable),
        ("rejected", item.review == ReviewState.REJECTED),
        ("synthetic", fact.synthetic and "synthetic" not in spec.decided),
        ("simulated", labels.simulated and not spec.simulated),
        ("undecided", not decision.verdict),
        ("decided", decision.source not in spec.decided),
        ("not_bad", wanted_bad and decision.verdict != Verdict.BOTH_BAD),
        ("tie", decision.verdict == Verdict.TIE and not wanted_bad),
        ("both_bad", decision.verdict == Verdict.BOTH_BAD and not wanted_bad),
        ("posterior", decision.source not in SURE and 100 * fact.score < spec.minimum),
        ("same_text", item.first_sha256 == item.second_sha256 and not wanted_bad),
        ("no_persona", spec.axis == "personalization" and fact.persona_id is None),
    )
    return next((name for name, holds in checks if holds), "")


def rows(kind: str, chooser: Chooser, kept: Sequence[Fact]) -> Iterator[Candidate]:
    """The texts of a chunk of facts, in their order. What was erased meanwhile is left out."""
    found = Item.objects.select_related(
        "prompt", "body", "persona_version__persona", "persona_version__text",
        "quality_decision", "personalization_decision",
    ).in_bulk({fact.pk for fact in kept})  # fmt: skip
    labels = {
        axis: _labels(list(found), axis, chooser.spec.extras)
        for axis in {fact.part.partition(":")[0] for fact in kept}
    }
    for fact in kept:
        item = found[fact.pk]
        summary = summary_of(item.persona_version)
        if not hasattr(item, "body") or summary is None:
            continue
        axis, _colon, side = fact.part.partition(":")
        persona = item.persona_version.persona if item.persona_version else None
        row = {
            "prompt": turns(item.prompt.messages),
            **about(persona, summary, fact.language, fact.category, fact.source),
            "synthetic": fact.synthetic,
        }
        decision = getattr(item, f"{axis}_decision")
        if side:
            row |= _bad(getattr(item.body, side), decision, labels[axis][item.pk])
        else:
            row |= _pair(item, fact, decision, labels[axis][item.pk])
        yield Candidate(fact, row, f"item:{item.pk}:{fact.part}")


def summary_of(version: Any) -> str | None:
    """The summary; "" without a persona, None where it was erased."""
    if version is None:
        return ""
    return version.text.summary if hasattr(version, "text") else None


def _pair(item: Item, fact: Fact, decision: Any, labels: Labels) -> dict[str, Any]:
    texts = [item.body.first, item.body.second]
    if decision.verdict == Verdict.SECOND:
        texts.reverse()
    return {
        "chosen": said(texts[0]),
        "rejected": said(texts[1]),
        "axis": fact.part,
        "decided": decision.source,
        "posterior": fact.score,
        "judgements": len(labels.given),
        "agreeing": labels.agreeing(decision.verdict),
        "owner_votes": 0,
        "weight": weight_of(labels, decision),
        "raters": "",
        "simulated": labels.simulated,
        "pair": fact.group,
    }


def weight_of(labels: Labels, decision: Any) -> float:
    """Share of the labels for the outcome − share for its opposite; 1 where it is sure."""
    if decision.source in SURE or not labels.given:
        return 1.0
    opposite = {Verdict.FIRST: Verdict.SECOND, Verdict.SECOND: Verdict.FIRST}
    against = labels.agreeing(opposite.get(decision.verdict, ""))
    return round((labels.agreeing(decision.verdict) - against) / len(labels.given), 4)


def _bad(text: str, decision: Any, labels: Labels) -> dict[str, Any]:
    """A counter-example: the reason is what the adjudicator or most annotators said."""
    tags = Counter(tag for lease, _verdict in labels.given for tag in _tags(lease))
    named = [decision.reason] if decision.reason else []
    named += [tag for tag, _n in sorted(tags.items(), key=lambda entry: (-entry[1], entry[0]))]
    return {
        "completion": said(text),
        "label": False,
        "reason": ", ".join(named) or Verdict.BOTH_BAD.value,
        "better": [],
    }


def _tags(lease: Lease) -> list[str]:
    return list(lease.head.tags) if lease.head else []

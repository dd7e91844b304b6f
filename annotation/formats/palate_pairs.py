"""Our own format of labelled pairs: JSON Lines, one pair a line. Nothing is lost in it.

Export, import into an empty project, export again: the two files are equal. The flat form for
spreadsheets (`annotation.formats.palate_csv`) has the same content.

    key              value                                                           left out when
    prompt           text, or [{"role": system|user|assistant, "content": text}…]
                     whose last turn is the user's (a single user turn is a text)
    first, second    {"text": text, "producer": text}; a text alone is {"text": …}
                     (`producer` is left out when empty, or when a live seal covers the pair: V1)
    persona          {"pseudonym", "summary", "features": {…}}                       there is none
    category, language                     of the prompt                             empty
    kind             imported | catalog | counterfactual                             imported
    synthetic        true | false                                                    false
    state            held | parked | open | disputed | done | dropped                open
    source           where the pair came from, e.g. "pairs.jsonl:12"                 empty; the
                     import then writes file and line
    details          object: what else the source said                               empty
    labels           list, in the order of the leases (oldest first)                 none
    decisions        {axis: decision} for the axes that have one                     none
    meta             anything; never read

A label:

    annotator        the pseudonym of a member with an account, else the external name
    verdicts         {axis: first | second | tie | both_bad}; axes without a verdict are left out
    strengths        {axis: 1 | 2 | 3}                                               none
    tags             list of texts, sorted                                           none
    comment          text                                                            empty
    active_ms        whole number                                                    0
    at               ISO 8601 with zone, of the revision that holds
    guideline        number of the guidelines' version                               none
    first_left       true | false: the first answer stood left                       true
    late, extra      true: after the lease ran out; beside the labels that count     false
    repeat           1, 2, …: the same pair shown to her again                       0

A decision (`annotation.models.Decision`):

    verdict          first | second | tie | both_bad; "" while unresolved
    source           unanimous | majority | adjudicated | unresolved | synthetic
    labels           how many labels it rests on
    posterior        {verdict: probability}
    blind_verdict, reason, note            of an adjudication                        empty

What is not in it: gold items, drafts, skipped and expired leases, taken-back labels, public ids,
who decided, and whether a label came by page, API or import.

An import takes decisions over as they are where the pair is new; without them it settles the item
from its labels. Without `state` it holds back pairs that look wrong; with a state other than held
or dropped it does not. The annotator's name becomes an external annotator of the project, unless a
member has this pseudonym: then the label must be there already, since nobody labels in her name.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any

from annotation.formats import taking
from annotation.formats.rows import AXES, VERDICTS, DecisionSpec, LabelSpec, Options, PairRow
from webapp.catalog.formats import fields, palate
from webapp.catalog.formats.reading import Item
from webapp.catalog.formats.rows import RowError

KEYS = (
    "prompt",
    "first",
    "second",
    "persona",
    "category",
    "language",
    "kind",
    "synthetic",
    "state",
    "source",
    "details",
    "labels",
    "decisions",
    "meta",
)
LABEL_KEYS = (
    "annotator",
    "verdicts",
    "strengths",
    "tags",
    "comment",
    "active_ms",
    "at",
    "guideline",
    "first_left",
    "late",
    "extra",
    "repeat",
)
DECISION_KEYS = ("verdict", "source", "labels", "posterior", "blind_verdict", "reason", "note")
KINDS = ("imported", "catalog", "counterfactual")
STATES = ("held", "parked", "open", "disputed", "done", "dropped")
SOURCES = ("unanimous", "majority", "adjudicated", "unresolved", "synthetic")
REASONS = ("ambiguous", "guideline_gap", "annotator_error", "subjective")
COMMENT_LIMIT, TAG_LIMIT, TAGS_LIMIT, LABELS_LIMIT = 20_000, 64, 50, 1000
LONGEST_MS, MOST_REPEATS, MOST_GUIDELINES = 10**9, 1000, 10**6


def pairs(item: Item, options: Options) -> Iterator[PairRow]:
    """The pair of one record."""
    line = fields.mapping(item.value, "")
    fields.known_keys(line, "", KEYS)
    first, first_producer = _side(line, "first")
    second, second_producer = _side(line, "second")
    kind = fields.choice(line.get("kind"), "kind", KINDS) or KINDS[0]
    labels = tuple(_labels(line.get("labels")))
    yield PairRow(
        place=item.place,
        offset=item.offset,
        messages=taking.prompt(fields.required(line, "prompt")),
        first=first,
        second=second,
        persona=palate.persona(line.get("persona"), options.limits),
        category=fields.optional_text(line, "category", "category", limit=64),
        language=fields.optional_text(line, "language", "language", limit=16),
        first_producer=first_producer,
        second_producer=second_producer,
        labels=() if options.gold else labels,
        gold=_gold(labels) if options.gold else {},
        decisions={} if options.gold else dict(_decisions(line.get("decisions"))),
        kind=kind,
        synthetic=_flag(line, "synthetic", "synthetic"),
        state=fields.choice(line.get("state"), "state", STATES),
        source=fields.optional_text(line, "source", "source", limit=200),
        details=fields.mapping(line.get("details") or {}, "details"),
        raw=item.value,
    )


def _side(line: Mapping[str, Any], name: str) -> tuple[str, str]:
    value = fields.required(line, name)
    if isinstance(value, str):
        return value, ""
    side = fields.mapping(value, name)
    fields.known_keys(side, name, ("text", "producer"))
    text = taking.answer(fields.required(side, "text", f"{name}.text"), f"{name}.text")
    return text, taking.producer(side.get("producer"), f"{name}.producer")


def _flag(source: Mapping[str, Any], name: str, field: str, default: bool = False) -> bool:
    value = source.get(name)
    return default if value is None else fields.flag(value, field)


def _gold(labels: tuple[LabelSpec, ...]) -> dict[str, str]:
    """The right answer of a pair whose labels are gold: they must agree."""
    found: dict[str, str] = {}
    for n, label in enumerate(labels):
        for axis, verdict in label.verdicts.items():
            if found.setdefault(axis, verdict) != verdict:
                raise RowError("gold_labels_differ", f"labels[{n}].verdicts.{axis}")
    if not found:
        raise RowError("empty", "labels")
    return found


def _labels(value: Any) -> Iterator[LabelSpec]:
    if value is None:
        return
    if not isinstance(value, list):
        raise RowError("type", "labels", found=fields.kind(value), wanted="list")
    if len(value) > LABELS_LIMIT:
        raise RowError("range", "labels", found=len(value), low=0, high=LABELS_LIMIT)
    for n, entry in enumerate(value):
        yield _label(entry, f"labels[{n}]")


def _label(value: Any, field: str) -> LabelSpec:
    source = fields.mapping(value, field)
    fields.known_keys(source, field, LABEL_KEYS)

    def number(name: str, high: int) -> int:
        given = source.get(name)
        return 0 if given is None else taking.whole(given, f"{field}.{name}", 0, high)

    annotator = fields.required(source, "annotator", f"{field}.annotator")
    return LabelSpec(
        annotator=taking.name(annotator, f"{field}.annotator"),
        verdicts=_verdicts(fields.required(source, "verdicts", f"{field}.verdicts"), field),
        strengths=_strengths(source.get("strengths"), f"{field}.strengths"),
        tags=_tags(source.get("tags"), f"{field}.tags"),
        comment=_comment(source.get("comment"), f"{field}.comment"),
        active_ms=number("active_ms", LONGEST_MS),
        at=_time(source.get("at"), f"{field}.at"),
        first_left=_flag(source, "first_left", f"{field}.first_left", default=True),
        late=_flag(source, "late", f"{field}.late"),
        extra=_flag(source, "extra", f"{field}.extra"),
        repeat=number("repeat", MOST_REPEATS),
        guideline=number("guideline", MOST_GUIDELINES),
    )


def _verdicts(value: Any, field: str) -> dict[str, str]:
    given = fields.mapping(value, f"{field}.verdicts")
    fields.known_keys(given, f"{field}.verdicts", AXES)
    found = {
        axis: fields.choice(given[axis], f"{field}.verdicts.{axis}", VERDICTS)
        for axis in AXES
        if given.get(axis)
    }
    if not found:
        raise RowError("empty", f"{field}.verdicts")
    return found


def _strengths(value: Any, field: str) -> dict[str, int]:
    if value is None:
        return {}
    given = fields.mapping(value, field)
    fields.known_keys(given, field, AXES)
    return {
        axis: taking.whole(given[axis], f"{field}.{axis}", 1, 3) for axis in AXES if axis in given
    }


def _tags(value: Any, field: str) -> tuple[str, ...]:
    if value is None:
        return ()
    if not isinstance(value, list) or len(value) > TAGS_LIMIT:
        raise RowError("type", field, found=fields.kind(value), wanted="list")
    return tuple(fields.text(tag, f"{field}[{n}]", limit=TAG_LIMIT) for n, tag in enumerate(value))


def _comment(value: Any, field: str) -> str:
    if value is None:
        return ""
    found = taking.answer(value, field)
    if len(found) > COMMENT_LIMIT:
        raise RowError("long", field, count=len(found), limit=COMMENT_LIMIT)
    return found


def _time(value: Any, field: str) -> datetime | None:
    if value is None:
        return None
    try:
        found = datetime.fromisoformat(value) if isinstance(value, str) else None
    except ValueError:
        found = None
    if found is None or found.tzinfo is None:
        said = value[:40] if isinstance(value, str) else fields.kind(value)
        raise RowError("time", field, found=said)
    return found


def _decisions(value: Any) -> Iterator[tuple[str, DecisionSpec]]:
    if value is None:
        return
    given = fields.mapping(value, "decisions")
    fields.known_keys(given, "decisions", AXES)
    for axis in AXES:
        if axis in given:
            yield axis, _decision(given[axis], f"decisions.{axis}")


def _decision(value: Any, field: str) -> DecisionSpec:
    source = fields.mapping(value, field)
    fields.known_keys(source, field, DECISION_KEYS)
    verdict = fields.choice(source.get("verdict") or None, f"{field}.verdict", VERDICTS)
    origin = fields.choice(
        fields.required(source, "source", f"{field}.source"), f"{field}.source", SOURCES
    )
    if bool(verdict) == (origin == "unresolved"):
        raise RowError("decision", f"{field}.verdict")
    blind = source.get("blind_verdict") or None
    return DecisionSpec(
        verdict=verdict,
        source=origin,
        labels=taking.whole(source.get("labels", 0), f"{field}.labels", 0, 10_000),
        posterior=_posterior(source.get("posterior"), f"{field}.posterior"),
        blind_verdict=fields.choice(blind, f"{field}.blind_verdict", VERDICTS),
        reason=fields.choice(source.get("reason") or None, f"{field}.reason", REASONS),
        note=_comment(source.get("note"), f"{field}.note"),
    )


def _posterior(value: Any, field: str) -> dict[str, float]:
    given = fields.mapping(value or {}, field)
    fields.known_keys(given, field, VERDICTS)
    found = {}
    for verdict, share in given.items():
        if not 0 <= taking.number(share, f"{field}.{verdict}") <= 1:
            raise RowError("range", f"{field}.{verdict}", found=str(share)[:20], low=0, high=1)
        found[verdict] = share
    return found

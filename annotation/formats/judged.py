"""Files of pairs with a judgement: HelpSteer3, summarize_from_feedback, AlpacaEval, LLMBar and
PandaLM. Pure.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from annotation.formats import taking
from annotation.formats.rows import FIRST, SECOND, TIE, LabelSpec, Options, PairRow
from webapp.catalog.formats import fields
from webapp.catalog.formats.reading import Item
from webapp.catalog.formats.rows import RowError

BY_NUMBER = {0: TIE, 1: FIRST, 2: SECOND}


# HelpSteer3: context, response1, response2, overall_preference -3 … 3 (3: the second much better)


def helpsteer_pairs(item: Item, options: Options) -> Iterator[PairRow]:
    source = fields.mapping(item.value, "")
    context = taking.json_cell(fields.required(source, "context"), "context")
    overall = _score(fields.required(source, "overall_preference"), "overall_preference")
    language = fields.optional_text(source, "language", "language")
    domain = fields.optional_text(source, "domain", "domain", limit=64)
    verdict = taking.by_sign(overall, second_positive=True)
    people = () if options.gold else tuple(_people(source, options))
    yield PairRow(
        place=item.place,
        offset=item.offset,
        messages=taking.prompt(context, "context"),
        first=taking.required_answer(source, "response1"),
        second=taking.required_answer(source, "response2"),
        category=domain,
        language=language if len(language) <= 16 else "",
        labels=people or _overall(options, verdict, overall),
        gold=taking.gold(options, verdict),
        details={"overall_preference": overall},
    )


def _score(value: Any, field: str) -> int:
    return taking.whole(value, field, -3, 3)


def _overall(options: Options, verdict: str, score: int) -> tuple[LabelSpec, ...]:
    if options.gold:
        return ()
    strengths = {options.axis: abs(score)} if score else {}
    return (LabelSpec(options.annotator, {options.axis: verdict}, strengths),)


def _people(source: Mapping[str, Any], options: Options) -> Iterator[LabelSpec]:
    """`individual_preference`: who judged is not said, so the place in the list names them."""
    given = taking.json_cell(source.get("individual_preference") or [], "individual_preference")
    if not isinstance(given, list):
        found = fields.kind(given)
        raise RowError("type", "individual_preference", found=found, wanted="list")
    for n, entry in enumerate(given):
        field = f"individual_preference[{n}]"
        one = fields.mapping(entry, field)
        score = _score(fields.required(one, "score", f"{field}.score"), f"{field}.score")
        told = [one.get(name) for name in ("reasoning", "feedback1", "feedback2")]
        yield LabelSpec(
            annotator=f"annotator {n + 1}",
            verdicts={options.axis: taking.by_sign(score, second_positive=True)},
            strengths={options.axis: abs(score)} if score else {},
            comment=taking.joined(*(text for text in told if isinstance(text, str))),
        )


# summarize_from_feedback: info, summaries, choice 0/1, worker, extra.confidence


def summary_pairs(item: Item, options: Options) -> Iterator[PairRow]:
    source = fields.mapping(item.value, "")
    info = fields.mapping(taking.json_cell(fields.required(source, "info"), "info"), "info")
    given = taking.json_cell(fields.required(source, "summaries"), "summaries")
    if not isinstance(given, list) or len(given) != 2:
        raise RowError("two", "summaries", found=len(given) if isinstance(given, list) else 0)
    sides = [fields.mapping(side, f"summaries[{n}]") for n, side in enumerate(given)]
    texts = [_summary_text(side, f"summaries[{n}].text") for n, side in enumerate(sides)]
    makers = [
        taking.producer(side.get("policy"), f"summaries[{n}].policy")
        for n, side in enumerate(sides)
    ]
    verdict = (FIRST, SECOND)[taking.whole(fields.required(source, "choice"), "choice", 0, 1)]
    worker = taking.name(source["worker"], "worker") if taking.present(source, "worker") else ""
    yield PairRow(
        place=item.place,
        offset=item.offset,
        messages=(("user", _post(info)),),
        first=texts[0],
        second=texts[1],
        first_producer=makers[0],
        second_producer=makers[1],
        labels=taking.one_label(options, verdict, worker),
        gold=taking.gold(options, verdict),
        details={
            **taking.details(info, ("id", "site", "subreddit")),
            **taking.details(source, ("batch", "split", "extra")),
        },
    )


def _summary_text(side: Mapping[str, Any], field: str) -> str:
    return taking.answer(fields.required(side, "text", field), field).strip()


def _post(info: Mapping[str, Any]) -> str:
    """The post as TRL writes it, the article with its title."""
    title = fields.optional_text(info, "title", "info.title")
    if taking.present(info, "post"):
        post = fields.text(info["post"], "info.post")
        group = fields.optional_text(info, "subreddit", "info.subreddit")
        return f"SUBREDDIT: r/{group}\n\nTITLE: {title}\n\nPOST: {post}\n\nTL;DR:"
    article = fields.text(fields.required(info, "article", "info.article"), "info.article")
    return taking.joined(title, article, "TL;DR:")


# AlpacaEval annotations: preference 0/1/2, or from 1.0 (the first) to 2.0 (the second)


def alpaca_pairs(item: Item, options: Options) -> Iterator[PairRow]:
    source = fields.mapping(item.value, "")
    verdict = _preference(source.get("preference"))
    annotator = source.get("annotator")
    name = taking.name(annotator, "annotator") if annotator not in (None, "") else ""
    yield PairRow(
        place=item.place,
        offset=item.offset,
        messages=(("user", _instruction(source)),),
        first=taking.required_answer(source, "output_1"),
        second=taking.required_answer(source, "output_2"),
        category=fields.optional_text(source, "dataset", "dataset", limit=64),
        first_producer=taking.producer(source.get("generator_1"), "generator_1"),
        second_producer=taking.producer(source.get("generator_2"), "generator_2"),
        labels=taking.one_label(options, verdict, name),
        gold=taking.gold(options, verdict),
        details=taking.details(source, ("preference",)),
    )


def _preference(value: Any) -> str:
    """ "" where nobody judged (null)."""
    if value is None or value == "":
        return ""
    found = taking.number(value, "preference")
    if found == 0:
        return TIE
    if not 1 <= found <= 2:
        raise RowError("preference", "preference", found=str(value)[:20])
    return taking.by_sign(1.5 - found)


def _instruction(source: Mapping[str, Any]) -> str:
    """The instruction with what belongs to it; one of them must say something."""
    asked = fields.required(source, "instruction")
    instruction = taking.answer(asked, "instruction")
    extra = source.get("input")
    more = taking.answer(extra, "input") if extra is not None else ""
    return fields.text(taking.joined(instruction, more), "instruction")


# LLMBar: input, output_1, output_2, label 1/2


def llmbar_pairs(item: Item, options: Options) -> Iterator[PairRow]:
    source = fields.mapping(item.value, "")
    label = fields.required(source, "label")
    verdict = BY_NUMBER[taking.whole(label, "label", 1, 2)]
    asked = fields.text(fields.required(source, "input"), "input")
    yield PairRow(
        place=item.place,
        offset=item.offset,
        messages=(("user", asked),),
        first=taking.required_answer(source, "output_1"),
        second=taking.required_answer(source, "output_2"),
        labels=taking.one_label(options, verdict),
        gold=taking.gold(options, verdict),
    )


# PandaLM: instruction, input, response1, response2, annotator1 … 3 (0 tie, 1, 2), cmp_key


def pandalm_pairs(item: Item, options: Options) -> Iterator[PairRow]:
    source = fields.mapping(item.value, "")
    makers = fields.optional_text(source, "cmp_key", "cmp_key").split("_")
    if len(makers) != 2:  # names with "_" in them cannot be told apart
        makers = ["", ""]
    labels = tuple(_judges(source, options))
    yield PairRow(
        place=item.place,
        offset=item.offset,
        messages=(("user", _instruction(source)),),
        first=taking.required_answer(source, "response1"),
        second=taking.required_answer(source, "response2"),
        category=fields.optional_text(source, "motivation_app", "motivation_app", limit=64),
        first_producer=taking.producer(makers[0], "cmp_key"),
        second_producer=taking.producer(makers[1], "cmp_key"),
        labels=() if options.gold else labels,
        gold=taking.gold(options, _agreed(labels, options.axis)),
        details=taking.details(source, ("idx", "cmp_key")),
    )


def _judges(source: Mapping[str, Any], options: Options) -> Iterator[LabelSpec]:
    for name in sorted(name for name in source if name.startswith("annotator")):
        if source[name] not in (None, ""):
            verdict = BY_NUMBER[taking.whole(source[name], name, 0, 2)]
            yield LabelSpec(name[: taking.NAME_LIMIT], {options.axis: verdict})


def _agreed(labels: tuple[LabelSpec, ...], axis: str) -> str:
    """The verdict that all give; gold needs one."""
    verdicts = {label.verdicts[axis] for label in labels}
    return verdicts.pop() if len(verdicts) == 1 else ""

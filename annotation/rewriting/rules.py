"""The deterministic rewriter: concise ↔ stepwise, formal ↔ casual, in English and Chinese. Pure.

It changes how a text is laid out and addressed, drops pleasantries and explanations, or adds
connecting words. It never states anything new: sentences of the original stay word for word, except
for contractions and forms of address.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from annotation.rewriting import phrases
from annotation.rewriting.checks import anchors
from annotation.rewriting.parts import (
    FENCE,
    LIST_LINE,
    PROTECTED,
    Block,
    blocks,
    is_chinese,
    joined,
    sentences,
)
from annotation.rewriting.styles import CASUAL, CONCISE, FORMAL, STEPWISE


def rewrite(text: str, to: str) -> str:
    """The text in another style; "" where the rules can do nothing with it."""
    return RULES[to](text, "zh" if is_chinese(text) else "en")


def _concise(text: str, lang: str) -> str:
    """The statements in a row: no greeting, no explanation, no list, no remark on the way."""
    chinese, parts, paragraph = lang == "zh", [], list[str]()
    seen: set[str] = set()
    for block in blocks(text):
        if block.kind == "code":
            parts += [joined(paragraph), block.text]
            paragraph = []
        elif block.kind != "heading" or anchors(block.text) - seen:
            for sentence in sentences(_bare(block)):
                kept = _statement(sentence, seen, lang, first=not (paragraph or parts))
                if kept:
                    seen |= anchors(kept)
                    paragraph.append(_ended(kept, chinese))
    parts.append(joined(paragraph))
    return "\n\n".join(part for part in parts if part)


def _bare(block: Block) -> str:
    return phrases.STEP_LABEL.sub("", block.text)


def _statement(sentence: str, seen: set[str], lang: str, *, first: bool) -> str:
    """What of a sentence stays. What names a number, a name or code for the first time stays."""
    named = anchors(sentence) - seen
    said = sentence in phrases.NOTES[lang] or sentence in (
        phrases.OPENING[lang],
        *sentences(phrases.CLOSING[lang]),
    )
    if not named and (said or phrases.PLEASANTRY.match(sentence)):
        return ""
    if not named and not first and phrases.EXPLANATION.match(sentence):
        return ""
    for pattern in (phrases.CLAUSE, phrases.ASIDE):
        shorter = pattern.sub("", sentence)
        if anchors(shorter) == anchors(sentence) and len(shorter) > len(sentence) // 4:
            sentence = shorter
    return _capital(phrases.LEAD.sub("", sentence))


def _capital(sentence: str) -> str:
    return sentence[:1].upper() + sentence[1:] if sentence[:1].islower() else sentence


def _ended(sentence: str, chinese: bool) -> str:
    if sentence.endswith((".", "!", "?", "。", "！", "？", ":", "：", "`", ")", "；", ";")):
        return sentence
    return sentence + ("。" if chinese else ".")


def _stepwise(text: str, lang: str) -> str:
    """A numbered step for every statement, with connecting words and a remark after each."""
    steps = _steps(text)
    if not steps:
        return ""
    told = [phrases.OPENING[lang]]
    for n, (statement, code) in enumerate(steps):
        note = phrases.NOTES[lang][n % len(phrases.NOTES[lang])]
        told.append(f"{n + 1}. {_lead(n, len(steps), lang)}{statement or phrases.CODE_ONLY[lang]}")
        told += code
        told.append(f"   - {note}")
    told.append(phrases.CLOSING[lang])
    return "\n\n".join(told[:1]) + "\n\n" + "\n".join(told[1:-1]) + "\n\n" + told[-1]


def _lead(n: int, steps: int, lang: str) -> str:
    if 0 < n == steps - 1:
        return phrases.LAST[lang]
    first, *further = phrases.LEADS[lang]
    return further[(n - 1) % len(further)] if n else first


def _steps(text: str) -> list[tuple[str, list[str]]]:
    """Statements with the code that follows each."""
    found: list[tuple[str, list[str]]] = []
    for block in blocks(text):
        if block.kind == "code":
            if not found:
                found.append(("", []))
            found[-1][1].append(block.text)
            continue
        whole = [_bare(block)] if block.kind != "text" else sentences(block.text)
        told = [p for p in _clauses(whole) if not phrases.PLEASANTRY.match(p) or anchors(p)]
        found += [(phrases.LEAD.sub("", part), []) for part in told]
    return found


def _clauses(whole: Sequence[str]) -> list[str]:
    """Sentences; a single one also ends at a semicolon."""
    if len(whole) > 1 or not whole:
        return list(whole)
    if PROTECTED.search(whole[0]):
        return list(whole)
    return [part.strip() for part in re.split(r"(?<=[;；])\s*", whole[0]) if part.strip()]


def _casual(text: str, lang: str) -> str:
    pairs: list[tuple[str, str]] = list(phrases.ZH_CASUAL)
    if lang == "en":
        pairs = [*phrases.CONTRACTIONS, *phrases.CASUAL_WORDS]
    said = _replaced(text, pairs, lang).strip()
    apart = "\n\n" if FENCE.match(said) or LIST_LINE.match(said) or said.startswith("#") else ""
    return f"{phrases.GREETING[lang]}{apart}{said}\n\n{phrases.PARTING[lang]}"


def _formal(text: str, lang: str) -> str:
    pairs: list[tuple[str, str]] = list(phrases.ZH_FORMAL)
    if lang == "en":
        pairs = [(casual, formal) for formal, casual in phrases.CONTRACTIONS]
        pairs += phrases.FORMAL_WORDS
    said = _replaced(text, pairs, lang, calm=True)
    return f"{phrases.FORMAL_OPENING[lang]}\n\n{said.strip()}\n\n{phrases.FORMAL_PARTING[lang]}"


def _replaced(text: str, pairs: Sequence[tuple[str, str]], lang: str, *, calm: bool = False) -> str:
    """Words exchanged outside of code, with capitals kept; `calm` ends exclamations quietly."""

    def prose(part: str) -> str:
        if calm:
            part = re.sub(r"(?<=\w)!+(?=\s|$)", ".", part)
            part = re.sub(r"！+", "。", part)
        for old, new in pairs:
            bound = rf"\b{re.escape(old)}\b" if lang == "en" else re.escape(old)
            part = re.sub(bound, lambda m, new=new: _like(m.group(), new), part, flags=re.I)  # type: ignore[misc]
        return part

    return _outside(text, prose)


def _like(found: str, new: str) -> str:
    return new[0].upper() + new[1:] if found[:1].isupper() else new


def _outside(text: str, change: Callable[[str], str]) -> str:
    """Change everything but code and addresses."""
    kept = re.compile(f"{FENCE.pattern}|{PROTECTED.pattern}", re.M | re.S)
    told, at = [], 0
    for span in kept.finditer(text):
        told += [change(text[at : span.start()]), span.group()]
        at = span.end()
    return "".join([*told, change(text[at:])])


RULES: dict[str, Callable[[str, str], str]] = {
    CONCISE: _concise,
    STEPWISE: _stepwise,
    FORMAL: _formal,
    CASUAL: _casual,
}

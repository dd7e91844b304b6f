"""Patterns that find names in folded lower-case text, and the company that ambiguous ones need.

Pure. Latin terms end at letters and digits of the Latin alphabet only, so that "我是Claude模型"
is found although \\b sees no boundary there; Chinese terms have no boundaries.
"""

from __future__ import annotations

import re
from bisect import bisect
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache

from arena import leakage_terms as terms
from arena.leakage_fold import Folded, fold

Span = tuple[int, int]

_JOIN = r"(?:'s\s)?[\s\-_./*`~·]{0,3}"
_VERSION = r"(?:[\s\-_.]?v?\d+(?:\.\d+)*(?:[a-z]{1,2}(?![a-z]))?)"
_SIZE = r"(?:\d+x)?\d+(?:\.\d+)*[bmk]?|[rkvn]\d+(?:\.\d+)*"
_SUFFIX = r"(?:[\s\-_.]+(?:" + "|".join(terms.SUFFIXES) + "|" + _SIZE + r")(?![a-z0-9]))"
_TAIL = rf"{_VERSION}?{_SUFFIX}*"
_START, _END = r"(?<![a-z0-9])", r"s?(?![a-z0-9])"

# What stands directly before or after a name that is meant as a model's.
_MODEL_WORD = (
    r"(?:(?:large |foundation |generative )?(?:language |ai |chat )?models?\b|llms?\b|chat ?bots?\b"
    r"|ai\b|api\b|assistants?\b|checkpoints?\b)"
)
_MODEL_WORD_ZH = (
    r"(?:这个|这一|系列)?(?:大语言模型|大模型|语言模型|ai模型|模型|人工智能"
    r"|聊天机器人|机器人|智能助手|ai助手|助手|助理|ai)"
)
_AFTER_MODEL = re.compile(
    rf"[\"'”*`]*(?:'s)?[\s\-]{{0,2}}{_MODEL_WORD}|[\"”》」*`]*\s?的?{_MODEL_WORD_ZH}"
)
_AFTER_SELF = re.compile(r"[\"'”*`]*\s+here\s*[!.,:]|[\"'”*`]*,\s+(?:an?|your)\s+(?:\w+ ){0,3}ai\b")
_BEFORE_SELF = re.compile(
    r"(?:\bi am|\bi'm|\bmy name is|\bmy name's|\bcall me|\byou are (?:talking|speaking|chatting)"
    r" (?:to|with)|\byou're (?:talking|speaking|chatting) (?:to|with)"
    r"|\b(?:ai|assistant|model|chatbot|bot|llm)\b[^.!?\n]{0,24}\b(?:named|called|known as)"
    r"|我是|我叫|我的名字(?:是|叫)|叫我|(?:模型|助手|ai|机器人)[^。！？\n]{0,8}(?:名为|名叫|叫做|名字是))"
    r"\s*[\"'“《「*`]*$"
)
_BEFORE_MODEL = re.compile(
    r"(?:\b(?:language model|llm|chatbot|ai model|ai assistant|foundation model|ai system|model)"
    r"s?,?\s+(?:like|such as|called|named|including|family)|\b(?:language model|llm|chatbot)s?,?"
    r"|(?:模型|助手|聊天机器人)(?:如|例如|比如|包括|有)?)\s*[\"'“(《「]*$"
)
_AFTER_VERSION = re.compile(
    r"[\s\-_]?v?\d+\.\d+|[\-_]v?\d+(?:\.\d+)?[a-z]?(?![a-z0-9])|\s\d+(?:\.\d+)?b(?![a-z0-9])"
    r"|\d+(?:\.\d+)?b?(?![a-z0-9])"
    r"|\s\d(?=\s*(?:[,;:!?)]|$|\.\s|\.$|and\b|or\b|model|api|的|模型|大模型"
    r"|(?:is|was|has|can|will)\b))"
)
_MADE = (
    r"(?:developed|created|trained|built|made|designed|powered|provided|released|engineered"
    r"|operated|fine[- ]?tuned|launched|maintained)"
)
_BEFORE_VENDOR = re.compile(
    r"(?:\bi am|\bi'm|\bi was|\bi were|\bi've been|\bi have been|\bas an?"
    r"|\bmy (?:creator|developer|maker)s?"
    r"|\b(?:ai|language model|llm|chatbot|assistant)\b)[^.!?\n]{0,80}"
    rf"(?:\b{_MADE}(?:,? and \w+)? (?:by|at)|\bfrom|(?:creator|developer|maker)s? (?:is|are))"
    r"\s(?:the )?"
    r"(?:(?:team|company|researchers|engineers|people|folks|scientists|lab)s?"
    r" (?:at|of|from|called) )?[\"'“*`]*$"
)
_AFTER_VENDOR = re.compile(
    r"[\"'”*`]*(?:'s)?[\s\-]{1,2}(?:large |own |new )?(?:language models?|llms?|ai\b|chat ?bots?"
    r"|ai (?:model|assistant)s?)\b"
    r"|(?:公司|集团|团队|研究院)?(?:自主|独立)?(?:所)?(?:开发|训练|研发|推出|打造)的[^。！？\n]{0,12}(?:模型|ai|助手|人工智能|机器人)"
    r"|的?(?:大语言模型|大模型|语言模型|人工智能助手|ai助手|聊天机器人)"
)
_ZH_MADE = r"(?:开发|训练|研发|创造|打造|推出|构建|设计|提供|创建|研制)"
_AFTER_VENDOR_BY = re.compile(
    rf"(?:公司|集团|团队|研究院|实验室)?(?:的\w{{0,8}})?(?:自主|独立|共同)?(?:所)?{_ZH_MADE}"
)
_BEFORE_VENDOR_BY = re.compile(
    r"(?:我|作为|模型|助手|ai|人工智能|机器人)[^。！？\n]{0,16}(?:由|来自|出自|归属于?)[\"“]?$"
)
_NOT_VENDOR = re.compile(r"\s*(?:principle|reasoning|bias|argument|cosmolog|selection)")
_REACH = 120


@dataclass(frozen=True, slots=True)
class Matcher:
    """Finds one term. Every match of ``pattern`` begins with ``first`` and holds ``anchor``."""

    first: str
    anchor: str
    pattern: re.Pattern[str]
    rule: str  # a value of ScreeningRule
    ambiguous: bool = False

    def plain_spans(self, low: str) -> Iterator[Span]:
        """Yield where an unambiguous term stands."""
        if not self.ambiguous:
            yield from (match.span() for match in self._matches(low))

    def beside_spans(self, low: str, plain: Sequence[Span]) -> Iterator[Span]:
        """Yield where an ambiguous term stands in company that gives it away."""
        if self.ambiguous:
            for match in self._matches(low):
                telling = _is_vendor if self.rule == "vendor" else _is_model
                if telling(low, match, plain):
                    yield match.span()

    def _matches(self, low: str) -> Iterator[re.Match[str]]:
        """Like finditer; str.find skips ahead faster than a pattern that looks behind first."""
        at = low.find(self.first)
        while at >= 0:
            match = self.pattern.match(low, at)
            if match:
                yield match
            at = low.find(self.first, match.end() if match else at + 1)


def _is_model(low: str, match: re.Match[str], plain: Sequence[Span]) -> bool:
    start, word_end = match.span("word")
    before = low[max(0, start - _REACH) : start]
    return bool(
        _AFTER_VERSION.match(low, word_end)
        or _AFTER_MODEL.match(low, match.end())
        or _AFTER_SELF.match(low, match.end())
        or _BEFORE_SELF.search(before)
        or _BEFORE_MODEL.search(before)
        or _as_itself(low, match)
        or _in_a_list(low, match.span(), plain)
    )


def _as_itself(low: str, match: re.Match[str]) -> bool:
    """ "As Claude, I ..." and 作为豆包，我…"""
    before = low[max(0, match.start() - 6) : match.start()]
    if before.endswith("作为"):
        return low[match.end() : match.end() + 2].strip()[:1] in (",", "，", "我")
    return bool(re.search(r"\bas $", before) and re.match(r",?\s+i\b", low[match.end() :]))


def _in_a_list(low: str, span: Span, plain: Sequence[Span]) -> bool:
    """Joined by a comma, "and", "or", "by", "vs" or a slash to a name that counts by itself."""
    nearest = bisect(plain, span)
    for start, end in plain[max(0, nearest - 1) : nearest + 1]:
        gap = low[end : span[0]] if end <= span[0] else low[span[1] : start]
        if len(gap) <= 12 and _LINK.fullmatch(gap):
            return True
    return False


_LINK = re.compile(
    r"[\s\"'“”*`]*(?:,|、|/|，|&|\+)?\s*(?:and|or|vs\.?|versus|by|from|和|与|或|及|以及|的)?[\s\"'“”*`(]*"
)


def _is_vendor(low: str, match: re.Match[str], plain: Sequence[Span]) -> bool:
    if _NOT_VENDOR.match(low, match.end()):
        return False
    before = low[max(0, match.start() - _REACH) : match.start()]
    return bool(
        _BEFORE_VENDOR.search(before)
        or _AFTER_VENDOR.match(low, match.end())
        or (_BEFORE_VENDOR_BY.search(before) and _AFTER_VENDOR_BY.match(low, match.end()))
        or (before.endswith(("来自", "来自于")) and _AFTER_MODEL.match(low, match.end()))
        or _in_a_list(low, match.span(), plain)
    )


# --- terms to matchers ------------------------------------------------------------------------


def _matcher(term: str, rule: str, ambiguous: bool = False, join: str = _JOIN) -> Matcher:
    words = term.split()
    body = join.join(map(re.escape, words))
    latin = term.isascii()
    tail = _TAIL if rule != "vendor" else ""
    start = _START if term[0].isascii() else ""
    end = f"{tail}{_END}" if latin else f"(?:{tail}(?![a-z0-9]))?"
    return Matcher(
        first=words[0],
        anchor=max(words, key=len),
        pattern=re.compile(rf"{start}(?P<word>{body}){end}"),
        rule=rule,
        ambiguous=ambiguous,
    )


@cache
def vocabulary() -> tuple[Matcher, ...]:
    """Return the matchers of all known models and vendors."""
    plain = {
        "model": terms.PLAIN_MODELS + terms.PLAIN_MODELS_ZH,
        "vendor": terms.PLAIN_VENDORS + terms.PLAIN_VENDORS_ZH,
    }
    ambiguous = {
        "model": terms.AMBIGUOUS_MODELS + terms.AMBIGUOUS_MODELS_ZH,
        "vendor": terms.AMBIGUOUS_VENDORS + terms.AMBIGUOUS_VENDORS_ZH,
    }
    return tuple(
        _matcher(term, rule, doubtful)
        for doubtful, lists in ((False, plain), (True, ambiguous))
        for rule, names in lists.items()
        for term in names
    )


_TOKEN = re.compile(r"[a-z]+|\d+(?:\.\d+)*|[^\W\d_a-z]+")
_SECONDARY = re.compile(r"[(|@·:]")
_FAMILY_LETTERS = 4
_COMMON_WORDS = (
    "answer assistant base basic best chat coach concise default demo draft english expert final"
    " formal friendly large long main medium mini model plain polite short simple small standard"
    " terse test tiny verbose version warm wordy"
)
_COMMON = frozenset(_COMMON_WORDS.split())


def contestant_matchers(
    names: Iterable[str], vendors: Iterable[str], aliases: Iterable[str]
) -> list[Matcher]:
    """Return matchers for a round's own names in their spellings ("pythia-12b", "Pythia 12B").

    A name with a digit, an inner capital or a joining sign counts wherever it stands; a name that
    may be an ordinary word, and the family word of a longer name, only in telling company.
    Aliases were chosen to give away and always count.
    """
    found: dict[tuple[str, bool, str], Matcher] = {}
    for name in names:
        for term, ambiguous, join in _name_terms(name):
            found.setdefault((term, ambiguous, join), _matcher(term, "contestant", ambiguous, join))
    for vendor in vendors:
        if term := " ".join(_TOKEN.findall(fold(vendor).low)):
            found.setdefault((term, True, _JOIN), _matcher(term, "vendor", ambiguous=True))
    for alias in aliases:
        if len(term := " ".join(_TOKEN.findall(fold(alias).low))) >= 2:
            found.setdefault((term, False, _JOIN), _matcher(term, "contestant"))
    return list(found.values())


def _name_terms(name: str) -> Iterator[tuple[str, bool, str]]:
    """Yield (term, ambiguous, joiner) for the spellings of one contestant's name."""
    cased = fold(_SECONDARY.split(name.strip())[0].split("/")[-1].strip()).cased
    tokens = _TOKEN.findall(cased.lower())
    if sum(map(len, tokens)) < 3:
        return
    whole, family = " ".join(tokens), tokens[0]
    if any(token[0].isdigit() for token in tokens) and not tokens[0][0].isdigit():
        sized = next(i for i, token in enumerate(tokens) if token[0].isdigit())
        unit = len(tokens) > sized + 1 and tokens[sized + 1] in ("b", "m", "k", "t")
        yield whole, False, _JOIN
        if family not in _COMMON:
            yield " ".join(tokens[: sized + 1 + unit]), False, _JOIN
    elif len(tokens) > 1 and not re.search(r"\s", cased):
        yield whole, False, r"[\-_./]?"  # "warm-coach", not "a warm coach"
        yield whole, True, _JOIN
    else:
        coined = bool(re.search(r"[a-z][A-Z]", cased)) or not whole.isascii()
        yield whole, not coined, _JOIN
    if len(tokens) > 1 and len(family) >= _FAMILY_LETTERS and family not in _COMMON:
        yield family, True, _JOIN


# --- who says so himself ----------------------------------------------------------------------

_NAME = r"(?P<name>[A-Z][\w&'-]*(?:[ .][A-Z0-9][\w&'-]*){0,3})"
_AI_WORD = (
    r"(?i:\bAI\b|artificial intelligence|language model|\bassistant\b|chatbot|\bLLM\b|\bbot\b)"
)
_TEAM = r"(?:the )?(?:(?:team|company|people|researchers)s? (?:at|of|called) )?"
_SELF_EN = (
    re.compile(
        rf"(?i:\bi am|\bi'm|\bas an?)\b[^.!?\n]{{0,40}}?{_AI_WORD}[^.!?\n]{{0,60}}?"
        rf"(?i:\b{_MADE}(?:,? and \w+)? (?:by|at) {_TEAM})" + _NAME
    ),
    re.compile(
        rf"(?i:\bi am|\bi'm)\b[^.!?\n]{{0,40}}?{_AI_WORD} (?i:named|called|known as) [\"*]*{_NAME}"
    ),
    re.compile(
        rf"(?i:\bi am|\bi'm)\s+{_NAME},? (?i:and i(?: am|'m| was) (?:trained|developed|built))"
    ),
    re.compile(
        r"(?i:\bi (?:was|am|have been)(?: \w+ly)? (?:developed|trained|programmed|fine-tuned|built)"
        rf" by {_TEAM})" + _NAME
    ),
    re.compile(
        rf"(?i:\bi am|\bi'm|\bmy name is)\s+[\"*]*{_NAME}[\"*]*,? (?i:an?|the|your)\b"
        rf"[^.!?\n]{{0,30}}?{_AI_WORD}"
    ),
)
_ZH_NAME = r"(?P<name>[A-Za-z][\w\-. ]{1,20}?|[\u4e00-\u9fff]{2,10}?)"
_SELF_ZH = (
    re.compile(
        rf"(?:我是|作为|我)(?:一个|一款|一位|一名)?由\s*{_ZH_NAME}\s*(?:公司|集团|团队|实验室)?(?:自主|独立|共同)?(?:所)?{_ZH_MADE}"
    ),
    re.compile(
        rf"我(?:是|叫|的名字是|的名字叫)\s*[\"“]?{_ZH_NAME}[\"”]?(?=[,，、](?:是)?(?:一个|一款|一种|由|您的|你的)"
        r"[^。！？\n]{0,24}(?:AI|人工智能|语言模型|助手|机器人))"
    ),
)
_NOT_NAMES = (
    "god humans people engineers researchers humanity you i my the an a ai assistant sorry llm"
    " 一个 一款 一名 一位 人工智能 人类 工程师 专家 您的 你的 研究人员 他们 他 她 我们"
)
_NOT_A_NAME = frozenset(_NOT_NAMES.split())


def self_reference_spans(folded: Folded) -> Iterator[Span]:
    """Yield where the writer names himself or his maker by a name that no list knows."""
    text = folded.cased
    if (
        " by " in folded.low
        or "i am " in folded.low
        or "i'm " in folded.low
        or "my name" in folded.low
    ):
        yield from _named(text, _SELF_EN)
    if "我" in text or "作为" in text:
        yield from _named(text, _SELF_ZH)


def _named(text: str, patterns: Sequence[re.Pattern[str]]) -> Iterator[Span]:
    for pattern in patterns:
        for match in pattern.finditer(text):
            if match["name"].strip().lower() not in _NOT_A_NAME:
                yield match.span("name")

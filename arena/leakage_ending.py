"""Does an answer stop in the middle? A heuristic for texts without a trustworthy finish reason.

Pure. Prefers to miss: a list item, heading, table row, verse, formula or one-word answer without
a full stop is finished; prose that breaks off, an open code fence or a dangling comma is not.
"""

from __future__ import annotations

import re

CUT_REASONS = frozenset(
    {"length", "max_tokens", "max_length", "max_new_tokens", "max_output_tokens", "model_length",
     "token_limit", "incomplete"}
)  # fmt: skip
DONE_REASONS = frozenset(
    {"stop", "end_turn", "eos", "eos_token", "stop_sequence", "complete", "completed", "finished"}
)

_FENCE = re.compile(r"^[ \t>]*(`{3,}|~{3,})", re.MULTILINE)
_TERMINAL = frozenset(".!?…。！？；;：:｡．!?~～)]}）】》」』”’\"'*_`|>")
_DANGLING = frozenset(",，、-–—(（[{《「『“&=+/\\")
_LIST_ITEM = re.compile(
    r"\s*(?:[-*+•·–]|\(?\d{1,3}[.)、）]|[a-zA-Z][.)]|[一二三四五六七八九十]+[、.])\s*\S"
)
_STRUCTURE = re.compile(r"\s*(?:#|\||>|\$|\\)")
_CJK = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]")
_SENTENCE_END = re.compile(r"[.!?。！？][\"'”’)）*]*(?:\s|$|(?=[\u3400-\u9fff]))")
_URL = re.compile(r"(?:https?://|www\.)\S+$")
_OPEN_WORDS_EN = """
a an the of to and or but with for in on at by from as that which who whose is are was were be been
has have had will would can could should may might must not if when while because than into their
its your my our this these those such very more most also
"""
_OPEN_WORDS = frozenset(_OPEN_WORDS_EN.split())
_OPEN_CJK = ("的", "和", "与", "及", "或", "是", "在", "把", "被", "对", "从", "向", "以及", "因为",
             "所以", "但是", "而且", "如果", "并且", "例如", "比如")  # fmt: skip
_PROSE_WORDS, _PROSE_CJK = 6, 14


def is_unfinished(text: str, finish_reason: str = "") -> bool:
    """Say whether the answer was cut. A known finish reason decides; else the ending does."""
    reason = finish_reason.strip().lower()
    if reason in CUT_REASONS:
        return True
    if reason in DONE_REASONS or not text.strip():
        return False
    return ends_open(text)


def ends_open(text: str) -> bool:
    """Judge by the ending alone."""
    body = text.rstrip().rstrip("\u200b\u200c\u200d\ufeff").rstrip()
    if not body:
        return False
    if (fence := _fence_state(body)) is not None:
        return fence
    lines = [line for line in body.splitlines() if line.strip()]
    last = lines[-1].strip()
    if last[-1] in _DANGLING and not set(last) <= _DANGLING | {" "}:
        return True
    if last[-1] in _TERMINAL or _URL.search(last) or _STRUCTURE.match(last):
        return False
    if not (last[-1].isalnum() or last[-1] == "%"):
        return False  # an emoji, a symbol
    if _ends_on_open_word(last):
        return True
    if _LIST_ITEM.match(last):
        return _breaks_list_habit(lines)
    return _is_broken_prose(lines)


def _fence_state(body: str) -> bool | None:
    """True: a code fence is open. False: the text ends with a closed fence. None: neither."""
    opened = ""
    end = 0
    for match in _FENCE.finditer(body):
        mark = match.group(1)
        if not opened:
            opened = mark
        elif mark[0] == opened[0] and len(mark) >= len(opened):
            opened, end = "", match.end()
    if opened:
        return True
    return False if end and not body[end:].strip() else None


def _ends_on_open_word(last: str) -> bool:
    words = last.split()
    if len(words) >= 3 and words[-1] in _OPEN_WORDS:
        return True
    return len(last) >= 6 and bool(_CJK.match(last[-1])) and last.endswith(_OPEN_CJK)


def _breaks_list_habit(lines: list[str]) -> bool:
    """A last item without full stop, after one within it or after two items that all have one."""
    if _SENTENCE_END.search(_LIST_ITEM.sub("", lines[-1])):
        return True
    earlier = [line.rstrip() for line in lines[:-1] if _LIST_ITEM.match(line)]
    return len(earlier) >= 2 and all(line[-1] in ".!?。！？" for line in earlier)


def _is_broken_prose(lines: list[str]) -> bool:
    """The last line is long enough for a sentence, in a text that otherwise ends sentences."""
    last = lines[-1]
    long_enough = len(_CJK.findall(last)) >= _PROSE_CJK or len(last.split()) >= _PROSE_WORDS
    if _SENTENCE_END.search(last):
        return True  # sentences that end, and then one that does not
    if len(lines) > 1:
        return long_enough and any(_SENTENCE_END.search(line) for line in lines[:-1])
    return len(_CJK.findall(last)) >= 2 * _PROSE_CJK or len(last.split()) >= 2 * _PROSE_WORDS

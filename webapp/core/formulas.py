r"""Formulas in Markdown: $x$, $$x$$, \(x\) and \[x\] as MathML. What does not convert stays text.

One rule for every delimiter, each look-ahead bounded: a text full of openers costs linear time.
"""

import html
import re
from collections.abc import MutableMapping, Sequence
from dataclasses import dataclass
from typing import Any
from xml.etree import ElementTree

from latex2mathml.converter import convert_to_element
from markdown_it import MarkdownIt
from markdown_it.renderer import RendererProtocol
from markdown_it.ruler import RuleOptionsType
from markdown_it.rules_block import StateBlock
from markdown_it.rules_inline import StateInline
from markdown_it.token import Token
from markdown_it.utils import OptionsDict

INLINE_REACH = 1_000  # characters between the delimiters
BLOCK_REACH = 40  # lines between the delimiters
ESCAPED_CLOSERS = 20  # "\$" tolerated before the search for a closing "$" gives up
FORMULA_BUDGET = 20_000  # characters of formulas converted in one text; the rest stays literal

_TEX = frozenset("\\^_{}=<>+")
_HIDING = re.compile(r"\\(href|url|style|class|cssId)\b")  # their first argument is not shown
_WORD = re.compile(r"[^\W\d_]{2,}")


@dataclass(frozen=True)
class _Fence:
    start: str
    end: str
    display: bool


# Longer openers first: "$$" must not be read as an empty "$…$".
_FENCES = (
    _Fence("$$", "$$", True),
    _Fence("\\[", "\\]", True),
    _Fence("\\(", "\\)", False),
    _Fence("$", "$", False),
)


def formulas(md: MarkdownIt) -> None:
    """Teach a parser the four delimiters (a markdown-it plugin)."""
    md.inline.ruler.before("escape", "formula", _inline)
    interrupts: RuleOptionsType = {"alt": ["paragraph", "reference", "blockquote", "list"]}
    md.block.ruler.before("fence", "formula_block", _block, interrupts)
    md.add_render_rule("formula", _render)
    md.add_render_rule("formula_block", _render)


def to_mathml(latex: str, *, display: bool) -> str | None:
    """MathML markup of a formula, or None where it cannot be converted or would lose a part."""
    if _HIDING.search(latex):
        return None
    try:
        root = convert_to_element(latex, display="block" if display else "inline")
        for node in root.iter():
            node.text = html.unescape(node.text) if node.text else node.text
        return ElementTree.tostring(root, encoding="unicode")
    except Exception:  # the converter meets arbitrary text and raises whatever it likes
        return None


def _inline(state: StateInline, silent: bool) -> bool:
    fence = _fence_at(state.src, state.pos)
    if fence is None:
        return False
    begin = state.pos + len(fence.start)
    end = _closing(state.src, begin, fence)
    if end is None or _is_prose(state.src[begin:end]):
        return False
    if fence.start == "$" and not _is_dollar_formula(state.src, begin, end):
        return False
    if not silent:
        _push(state.push("formula", "math", 0), state.src[begin:end], fence)
    state.pos = end + len(fence.end)
    return True


def _fence_at(src: str, pos: int) -> _Fence | None:
    if src[pos] not in "$\\":
        return None
    return next((fence for fence in _FENCES if src.startswith(fence.start, pos)), None)


def _closing(src: str, begin: int, fence: _Fence) -> int | None:
    """Where the closing delimiter stands; None without one nearby or with nothing in between."""
    search = begin
    for _ in range(ESCAPED_CLOSERS):
        end = src.find(fence.end, search, begin + INLINE_REACH)
        if end < 0:
            return None
        if fence.end[0] != "$" or src[end - 1] != "\\":
            return end if src[begin:end].strip() else None
        search = end + 1
    return None


def _is_dollar_formula(src: str, begin: int, end: int) -> bool:
    """Whether "$…$" is a formula and not two prices or two shell variables."""
    content = src[begin:end]
    if content[0].isspace() or content[-1].isspace():
        return False
    if _is_ascii_word(src[begin - 2 : begin - 1]) or _is_ascii_word(src[end + 1 : end + 2]):
        return False
    return not (content[0].isdigit() and _TEX.isdisjoint(content) and _WORD.search(content))


def _is_prose(content: str) -> bool:
    """Whether words stand between the delimiters: "\\[not a link\\]", "$5, she said, or 6$"."""
    return _TEX.isdisjoint(content) and len(_WORD.findall(content)) >= 2


def _is_ascii_word(char: str) -> bool:
    return char.isascii() and char.isalnum()


def _block(state: StateBlock, start: int, end_line: int, silent: bool) -> bool:
    if state.is_code_block(start):
        return False
    first = _line(state, start)
    fence = next((f for f in _FENCES if f.display and first.startswith(f.start)), None)
    if fence is None:
        return False
    last = _closing_line(state, start, end_line, fence)
    if last is None:
        return False
    if not silent:
        lines = [_line(state, number) for number in range(start, last + 1)]
        content = "\n".join(lines)[len(fence.start) : -len(fence.end)]
        token = state.push("formula_block", "math", 0)
        token.block = True
        token.map = [start, last + 1]
        _push(token, content, fence)
    state.line = last + 1
    return True


def _closing_line(state: StateBlock, start: int, end_line: int, fence: _Fence) -> int | None:
    """The line that ends with the closing delimiter; a blank or outdented line ends the search."""
    for number in range(start, min(end_line, start + BLOCK_REACH)):
        line = _line(state, number)
        if number == start:
            line = line[len(fence.start) :]
        elif not line or state.sCount[number] < state.blkIndent:
            return None
        if line.endswith(fence.end):
            alone = number == start and not line[: -len(fence.end)].strip()
            return None if alone else number
        if fence.end in line:
            return None
    return None


def _line(state: StateBlock, number: int) -> str:
    return state.src[state.bMarks[number] + state.tShift[number] : state.eMarks[number]].rstrip()


def _push(token: Token, content: str, fence: _Fence) -> None:
    token.content = content
    token.meta = {"fence": fence}


def _render(
    renderer: RendererProtocol,
    tokens: Sequence[Token],
    idx: int,
    options: OptionsDict,
    env: MutableMapping[str, Any],
) -> str:
    token = tokens[idx]
    fence: _Fence = token.meta["fence"]
    spent = env["formula_chars"] = env.get("formula_chars", 0) + len(token.content)
    markup = None
    if spent <= FORMULA_BUDGET:
        markup = to_mathml(token.content.strip(), display=fence.display)
    if markup is None:
        literal = html.escape(f"{fence.start}{token.content}{fence.end}")
        return f'<p class="plain">{literal}</p>\n' if token.block else literal
    if token.block:
        return f'<div class="math display">{markup}</div>\n'
    return f'<span class="math{" display" if fence.display else ""}">{markup}</span>'

"""Word-level difference of two texts, and how alike they are. CJK texts go by character.

Both sides are marked in the same way: nothing says which of the two would be the original.
Alignment after Myers, "An O(ND) difference algorithm and its variations" (1986), with a bound on D.
"""

import re
from collections import Counter
from collections.abc import Iterable
from html import escape

from django.utils.safestring import SafeString, mark_safe

NEARLY_IDENTICAL = 0.9
MAX_EDITS = 1_000  # words inserted and deleted; texts that lie further apart are compared by line

_CJK = "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff\U00020000-\U0003134f"
# A word, one CJK character or one other sign, each with the white space behind it.
_TOKEN = re.compile(rf"(?:[{_CJK}]|[^\W{_CJK}]+|[^\w\s])\s*|\s+")
_LINE = re.compile(r"[^\n]*\n|[^\n]+")

_Shared = tuple[list[bool], list[bool]]


def diff(left: str, right: str) -> tuple[SafeString, SafeString]:
    """Both texts as HTML, with <mark> around what the other one does not have."""
    for pattern in (_TOKEN, _LINE):
        a, b = pattern.findall(left), pattern.findall(right)
        shared = _shared(_keys(a), _keys(b))
        if shared is not None:
            return _marked(a, shared[0]), _marked(b, shared[1])
    return _marked([left], [False]), _marked([right], [False])


def similarity(left: str, right: str) -> float:
    """Share of words that both have, in order: 0 … 1.

    Clearly different texts get the share without regard to order, an upper bound that needs no
    alignment.
    """
    a, b = _keys(_TOKEN.findall(left)), _keys(_TOKEN.findall(right))
    size = len(a) + len(b)
    if not size:
        return 1.0
    bound = 2 * (Counter(a) & Counter(b)).total() / size
    if bound < NEARLY_IDENTICAL:
        return bound
    shared = _shared(a, b)
    if shared is None:
        return min(bound, 1 - MAX_EDITS / size)
    return (sum(shared[0]) + sum(shared[1])) / size


def nearly_identical(left: str, right: str) -> bool:
    """Whether the difference deserves to be pointed out."""
    return similarity(left, right) >= NEARLY_IDENTICAL


def _keys(tokens: Iterable[str]) -> list[str]:
    """What tokens are compared by: white space does not count."""
    return [token.strip() for token in tokens]


def _shared(a: list[str], b: list[str]) -> _Shared | None:
    """For each token of either text, whether the other has it too at this place.

    None where more than MAX_EDITS lie between them. Swapping the texts swaps the result.
    """
    if (len(a), a) > (len(b), b):
        swapped = _shared(b, a)
        return None if swapped is None else (swapped[1], swapped[0])
    trace = _furthest_reaching(a, b)
    return None if trace is None else _walk_back(a, b, trace)


def _furthest_reaching(a: list[str], b: list[str]) -> list[list[int]] | None:
    """Per number of edits d, the furthest x on each diagonal -d-1 … d+1 before step d."""
    n, m = len(a), len(b)
    mid = MAX_EDITS + 1
    reach = [0] * (2 * mid + 1)
    trace: list[list[int]] = []
    for d in range(MAX_EDITS + 1):
        trace.append(reach[mid - d - 1 : mid + d + 2])
        for k in range(-d, d + 1, 2):
            x = _step(reach, mid + k, k, d)
            while x < n and x - k < m and a[x] == b[x - k]:
                x += 1
            reach[mid + k] = x
            if x == n and x - k == m:
                return trace
    return None


def _step(reach: list[int], at: int, k: int, d: int) -> int:
    """One edit further: down from diagonal k + 1, or right from diagonal k - 1."""
    down = k == -d or (k != d and reach[at - 1] < reach[at + 1])
    return reach[at + 1] if down else reach[at - 1] + 1


def _walk_back(a: list[str], b: list[str], trace: list[list[int]]) -> _Shared:
    in_a, in_b = [False] * len(a), [False] * len(b)
    x, y = len(a), len(b)
    for d in range(len(trace) - 1, -1, -1):
        k, at = x - y, x - y + d + 1
        start = _step(trace[d], at, k, d) if d else 0
        while x > start:
            x, y = x - 1, y - 1
            in_a[x] = in_b[y] = True
        if d:
            down = k == -d or (k != d and trace[d][at - 1] < trace[d][at + 1])
            x, y = (x, y - 1) if down else (x - 1, y)
    return in_a, in_b


def _marked(tokens: list[str], shared: list[bool]) -> SafeString:
    parts: list[str] = []
    for number, token in enumerate(tokens):
        first = not shared[number] and (number == 0 or shared[number - 1])
        last = not shared[number] and (number + 1 == len(tokens) or shared[number + 1])
        word = token.rstrip() if last else token
        opening, closing = "<mark>" if first else "", "</mark>" if last else ""
        parts.append(f"{opening}{escape(word)}{closing}{escape(token[len(word) :])}")
    return mark_safe("".join(parts))  # noqa: S308

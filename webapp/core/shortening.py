"""Names that have to fit into a picture: their width, and what is left of them."""

from collections.abc import Sequence
from unicodedata import east_asian_width


def pixels(text: str) -> float:
    """Estimated width in pixels at 14 px: a wide character takes a full em."""
    return sum(14.0 if east_asian_width(c) in "WF" else 7.8 for c in text)


def fit(text: str, limit: float, *, head: float = 0.4) -> str:
    """The text; where it would not fit, without its middle. `head`: the share of the beginning."""
    if pixels(text) <= limit:
        return text
    room = limit - 14
    start = _prefix(text, room * head)
    end = _prefix(text[::-1], room - pixels(start))[::-1]
    return f"{start}…{end}"


def _prefix(text: str, room: float) -> str:
    """As many characters from the beginning as have room."""
    width = 0.0
    for number, character in enumerate(text):
        width += pixels(character)
        if width > room:
            return text[:number]
    return text


def fit_names(names: Sequence[str], limit: float) -> list[str]:
    """The names, shortened at such a place that different ones stay different, if there is one."""
    heads = (0.4, 0.0, 1.0, 0.2, 0.6, 0.8)
    tries = [[fit(name, limit, head=head) for name in names] for head in heads]
    return next((shown for shown in tries if len(set(shown)) == len(set(names))), tries[0])

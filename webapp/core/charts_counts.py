"""Charts of counts by day and of pairs of people, as SVG text like those of `charts`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil

from django.utils.safestring import SafeString
from django.utils.translation import gettext as _

from webapp.core.charts import (
    ACCENT,
    CELL,
    HIGH,
    LINE,
    LOW,
    STRONGEST,
    Scale,
    _clean,
    _empty,
    _level,
    _name,
    _round_step,
    _svg,
    _text,
)
from webapp.core.shortening import fit_names, pixels

BAR, BARS_HEIGHT = 24, 200  # width of a day, height of the picture
NAMED = 3  # every third day is named below, the last one surely


def day_bars(labels: Sequence[str], values: Sequence[int], *, title: str) -> SafeString:
    """One bar per day, oldest first; the description holds the numbers."""
    if not values:
        return _empty(title, False)
    step = max(_round_step(max(max(values), 1) / 4), 1)
    top = step * ceil(max(max(values), 1) / step)
    scale = Scale(0, top, BARS_HEIGHT - 36, 16)
    plot = max(BAR * len(values), 280)
    parts = [_level(scale, level, plot - 16) for level in range(0, int(top) + 1, int(step))]
    for number, (label, value) in enumerate(zip(labels, values, strict=True)):
        x = 72 + BAR * number
        height = round(scale(0) - scale(value), 1)
        parts.append(
            f'<rect class="c-point" x="{x}" y="{scale(value)}" width="{BAR - 6}" '
            f'height="{height}" fill="{ACCENT}"><title>{_clean(label)}: {value:,}</title></rect>'
        )
        if (len(labels) - 1 - number) % NAMED == 0:
            parts.append(
                _text(x + 9, BARS_HEIGHT - 12, label, tone="muted", anchor="middle", size=11)
            )
    words = " ".join(f"{a}: {n:,}." for a, n in zip(labels, values, strict=True))
    return _svg(parts, 72 + plot + 16, BARS_HEIGHT, title, words, False)


@dataclass(frozen=True)
class PairCell:
    """A value from -1 to 1 (None: not told) and the number of items behind it."""

    value: float | None
    n: int


def pair_map(
    names: Sequence[str], cells: Sequence[Sequence[PairCell | None]], *, title: str
) -> SafeString:
    """A symmetric map: below the diagonal the value of each pair, under it the number of items."""
    if not names:
        return _empty(title, False)
    left = min(max(pixels(name) for name in names), 220) + 56
    size = CELL * len(names)
    shown = fit_names(names, 220)
    parts = []
    for i, name in enumerate(names):
        middle = 32 + CELL * i + CELL / 2
        parts.append(_text(28, middle + 5, f"{i + 1}.", tone="muted", anchor="end"))
        parts.append(_name(40, middle + 5, shown[i], name))
        at = left + CELL * i + CELL / 2
        parts.append(_text(at, 22, str(i + 1), tone="muted", anchor="middle"))
        parts += [
            _pair_cell(left + CELL * j, 32 + CELL * i, cells[i][j]) for j in range(len(names))
        ]
    return _svg(parts, left + size + 16, size + 48, title, _pair_words(names, cells), False)


def _pair_cell(x: float, y: float, cell: PairCell | None) -> str:
    frame = f'x="{x}" y="{y}" width="{CELL}" height="{CELL}"'
    edge = f'<rect class="c-cell" {frame} fill="none" stroke="{LINE}"/>'
    if cell is None:
        return edge
    middle = x + CELL / 2
    count = _text(middle, y + 40, f"{cell.n:,}", anchor="middle", size=11)
    if cell.value is None:
        return edge + _text(middle, y + 23, "–", tone="muted", anchor="middle") + count
    tone, colour = ("high", HIGH) if cell.value >= 0 else ("low", LOW)
    opacity = round(min(abs(cell.value), 1) * STRONGEST, 3)
    fill = f'<rect class="c-{tone}" {frame} fill="{colour}" fill-opacity="{opacity}"/>'
    number = f"{cell.value:.2f}".replace("-", "−")
    return fill + edge + _text(middle, y + 23, number, anchor="middle") + count


def _pair_words(names: Sequence[str], cells: Sequence[Sequence[PairCell | None]]) -> str:
    text = _("%(one)s and %(other)s: %(value)s on %(n)s items.")
    return " ".join(
        text
        % {
            "one": names[i],
            "other": names[j],
            "value": "–" if cell.value is None else f"{cell.value:.2f}",
            "n": f"{cell.n:,}",
        }
        for i in range(len(names))
        for j, cell in enumerate(cells[i][:i])
        if cell is not None
    )

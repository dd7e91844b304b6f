"""The heat map of wins, as SVG text like that of `charts`."""

from __future__ import annotations

from collections.abc import Sequence
from math import isfinite

from django.utils.safestring import SafeString
from django.utils.translation import gettext as _

from webapp.core.charts import CELL, HIGH, LINE, LOW, STRONGEST, _empty, _name, _svg, _text
from webapp.core.shortening import fit_names, pixels


def heat_map(
    names: Sequence[str],
    matrix: Sequence[Sequence[float | None]],
    counts: Sequence[Sequence[int]],
    *,
    title: str = "",
    standalone: bool = False,
) -> SafeString:
    """Win fraction of row against column (0 … 1, None: never met), with the number of votes."""
    title = title or _("Win fraction of the row against the column")
    if not names:
        return _empty(title, standalone)
    left = min(max(pixels(name) for name in names), 220) + 56
    size = CELL * len(names)
    parts = []
    shown = fit_names(names, 220)
    for i, name in enumerate(names):
        middle = 32 + CELL * i + CELL / 2
        parts.append(_text(28, middle + 5, f"{i + 1}.", tone="muted", anchor="end"))
        parts.append(_name(40, middle + 5, shown[i], name))
        parts.append(
            _text(left + CELL * i + CELL / 2, 22, str(i + 1), tone="muted", anchor="middle")
        )
        for j in range(len(names)):
            x, y = left + CELL * j, 32 + CELL * i
            parts.append(_heat_cell(x, y, i == j, matrix[i][j], counts[i][j]))
    words = _heat_words(names, matrix, counts)
    return _svg(parts, left + size + 16, size + 48, title, words, standalone)


def _heat_cell(x: float, y: float, diagonal: bool, value: float | None, count: int) -> str:
    frame = f'x="{x}" y="{y}" width="{CELL}" height="{CELL}"'
    edge = f'<rect class="c-cell" {frame} fill="none" stroke="{LINE}"/>'
    if diagonal:
        return edge
    middle = x + CELL / 2
    if value is None or not isfinite(value):
        return edge + _text(middle, y + 29, "–", tone="muted", anchor="middle")
    tone, colour = ("high", HIGH) if value >= 0.5 else ("low", LOW)
    opacity = round(min(abs(value - 0.5) * 2, 1) * STRONGEST, 3)
    fill = f'<rect class="c-{tone}" {frame} fill="{colour}" fill-opacity="{opacity}"/>'
    share = _text(middle, y + 23, f"{100 * value:.0f}", anchor="middle")
    return fill + edge + share + _text(middle, y + 40, f"{count:,}", anchor="middle", size=11)


def _heat_words(
    names: Sequence[str],
    matrix: Sequence[Sequence[float | None]],
    counts: Sequence[Sequence[int]],
) -> str:
    text = _("%(row)s against %(column)s: %(share)s of %(votes)s votes.")
    sentences = []
    for i, row in enumerate(names):
        for j, column in enumerate(names[:i]):
            value = matrix[i][j]
            if value is None or not isfinite(value):
                continue
            share, votes = f"{100 * value:.0f} %", f"{counts[i][j]:,}"
            sentences.append(text % {"row": row, "column": column, "share": share, "votes": votes})
    return " ".join(sentences)

"""Differences with their intervals around zero, as SVG text like that of `charts`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import floor

from django.utils.safestring import SafeString
from django.utils.translation import gettext as _

from webapp.core.charts import (
    ACCENT,
    AXIS,
    LINE,
    LOW,
    ROW,
    Scale,
    _dot,
    _empty,
    _name,
    _round_step,
    _stroke,
    _svg,
    _text,
)
from webapp.core.shortening import fit_names, pixels


@dataclass(frozen=True)
class DifferenceRow:
    """Candidate − baseline with bounds; None where it is not known. `margin`: how low it may be."""

    name: str
    mean: float | None
    low: float | None
    high: float | None
    n: int
    margin: float | None = None


def difference_chart(rows: Sequence[DifferenceRow], *, title: str) -> SafeString:
    """One row each: name, interval around 0, the margin as a mark, the number of prompts."""
    known = [v for row in rows for v in (row.mean, row.low, row.high) if v is not None]
    if not known:
        return _empty(title, False)
    names = min(max(pixels(row.name) for row in rows), 260) + 16
    left, plot = 24 + names, 320
    scale, ticks = _around_zero([*known, *(-(row.margin or 0) for row in rows)], left, left + plot)
    bottom = ROW * len(rows) + 16
    parts = [_stroke("grid", scale(t), 12, scale(t), bottom, LINE, 1) for t in ticks]
    parts += [_text(scale(t), bottom + 18, signed(t), tone="muted", anchor="middle") for t in ticks]
    parts.append(_stroke("axis", scale(0), 12, scale(0), bottom, AXIS, 1.5))
    shown = fit_names([row.name for row in rows], 260)
    for number, row in enumerate(rows):
        parts.append(_row(row, shown[number], scale, 32 + ROW * number, left + plot))
    return _svg(parts, left + plot + 184, bottom + 32, title, _words(rows), False)


def signed(value: float | None, digits: int = 2) -> str:
    """A number with its sign; a dash where it is not known."""
    return "–" if value is None else f"{value:+z.{digits}f}".replace("-", "−")


def _row(row: DifferenceRow, shown: str, scale: Scale, y: float, end: float) -> str:
    parts = [_name(16, y + 5, shown, row.name)]
    if row.margin is not None:
        at = scale(-row.margin)
        parts.append(_stroke("low", at, y - 10, at, y + 10, LOW, 2))
    if row.low is not None and row.high is not None:
        parts.append(_stroke("interval", scale(row.low), y, scale(row.high), y, ACCENT, 3))
    if row.mean is not None:
        parts.append(_dot(scale(row.mean), y))
    parts.append(_text(end + 72, y + 5, signed(row.mean), anchor="end"))
    parts.append(_text(end + 168, y + 5, f"{row.n:,}", tone="muted", anchor="end"))
    return "".join(parts)


def _around_zero(values: Sequence[float], start: float, end: float) -> tuple[Scale, list[float]]:
    low, high = min(*values, 0.0), max(*values, 0.0)
    room = max((high - low) * 0.08, 0.01)
    step = _round_step((high - low + 2 * room) / 4)
    low, high = low - room, high + room
    ticks = [step * n for n in range(-floor(-low / step), floor(high / step) + 1)]
    return Scale(low, high, start + 12, end - 12), ticks


def _words(rows: Sequence[DifferenceRow]) -> str:
    text = _("%(name)s: %(mean)s, from %(low)s to %(high)s, on %(n)s prompts.")
    return " ".join(
        text
        % {
            "name": row.name,
            "mean": signed(row.mean, 3),
            "low": signed(row.low, 3),
            "high": signed(row.high, 3),
            "n": row.n,
        }
        for row in rows
    )

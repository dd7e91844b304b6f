"""Curves over steps as SVG text like the charts of `charts`: lines, a band, marks on the time axis.

A line is told apart by colour and by dash. Each line carries its steps and values, so that
`curves.js` can read them to whoever points at the picture or uses the arrow keys; without scripts
the description of the picture and the table of values hold them.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from django.utils.safestring import SafeString, mark_safe
from django.utils.translation import gettext as _

from webapp.core.charts import (
    ACCENT,
    FONT,
    HIGH,
    INK,
    LINE,
    LOW,
    MUTED,
    Scale,
    _clean,
    _round_step,
    _stroke,
    _text,
)

WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM = 360, 200, 52, 10, 24, 26
MOST = 300  # points of a line; longer ones are means, with their range behind them
COLOURS = (ACCENT, HIGH, LOW, "#1c6443", INK)
DASHES = ("", "7 3", "2 3", "9 3 2 3", "14 4")
Value = float | None


@dataclass(frozen=True)
class Point:
    """A value at a step; of a long line the mean of some steps, and their least and greatest."""

    step: float
    value: Value
    low: Value = None
    high: Value = None


@dataclass(frozen=True)
class Curve:
    name: str
    points: Sequence[Point]


@dataclass(frozen=True)
class Mark:
    """Something that happened at a step, drawn on the time axis."""

    step: float
    label: str
    severe: bool = False


@dataclass(frozen=True)
class Band:
    """A range of values that is expected."""

    low: float
    high: float


def thin(pairs: Sequence[tuple[float, Value]], most: int = MOST) -> list[Point]:
    """At most `most` points: means of equally many steps. What is no number breaks the line."""
    if len(pairs) <= most:
        return [Point(step, value) for step, value in pairs]
    found = []
    for n in range(most):
        part = pairs[n * len(pairs) // most : (n + 1) * len(pairs) // most]
        known = [value for _, value in part if value is not None]
        if known:
            mean = math.fsum(known) / len(known)
            found.append(Point(part[-1][0], mean, min(known), max(known)))
        else:
            found.append(Point(part[-1][0], None))
    return found


def curve_chart(
    curves: Sequence[Curve],
    *,
    title: str,
    reach: tuple[float, float] | None = None,
    band: Band | None = None,
    window: tuple[float, float] | None = None,
    marks: Sequence[Mark] = (),
    height: int = HEIGHT,
) -> SafeString:
    """Lines over steps. `reach`: the steps of the axis; `window`: steps to point out."""
    # An empty line keeps its number: elsewhere the same number is the same colour.
    drawn = {k: c for k, c in enumerate(curves) if any(p.value is not None for p in c.points)}
    if not drawn:
        return _nothing(title, height)
    curves = list(drawn.values())
    across = _across(curves, reach)
    up, ticks, digits = _up(curves, band, height)
    parts = _ground(across, up, band, window, height)
    parts += [_level(up(tick), number(tick, digits)) for tick in ticks]
    parts += _steps(across, height)
    parts += [_range(curve, across, up, k) for k, curve in drawn.items()]
    parts += [_line(curve, across, up, k) for k, curve in drawn.items()]
    parts += _marks(marks, across, height)
    cursor = f'<line class="c-cursor" x1="0" x2="0" y1="{TOP}" y2="{height - BOTTOM}"/>'
    data = f'data-left="{across.start}" data-right="{across.end}" '
    data += f'data-first="{across.low}" data-last="{across.high}"'
    return _picture([*parts, cursor], title, _words(curves), height, data)


def swatch(k: int) -> SafeString:
    """The look of line `k`, for a legend."""
    line = f'<path {_look(k)} d="M1 5H31"/>'
    frame = 'class="chart swatch" width="32" height="10" viewBox="0 0 32 10" aria-hidden="true"'
    return mark_safe(f"<svg {frame}>{line}</svg>")  # noqa: S308


def number(value: Value, digits: int | None = None) -> str:
    """Short: three significant digits, or as many decimals as the ticks need."""
    if value is None:
        return "–"
    tiny = value and (abs(value) < 1e-3 if digits is None else digits > 4)
    if tiny or abs(value) >= 1e6:
        text = f"{value:.2e}" if digits is None else f"{value:.1e}"
        mantissa, _e, power = text.partition("e")
        text = f"{mantissa}e{int(power)}"
    elif digits is not None:
        text = f"{value:z,.{digits}f}"
    else:
        text = f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"
    return text.replace("-", "−")


def _across(curves: Sequence[Curve], reach: tuple[float, float] | None) -> Scale:
    steps = [p.step for curve in curves for p in curve.points]
    first, last = reach or (min(steps), max(steps))
    return Scale(first, max(last, first + 1), LEFT, WIDTH - RIGHT)


def _up(curves: Sequence[Curve], band: Band | None, height: int) -> tuple[Scale, list[float], int]:
    """The scale of values, its ticks, and the decimals that tell them apart."""
    values = [
        v for c in curves for p in c.points for v in (p.value, p.low, p.high) if v is not None
    ]
    values += [band.low, band.high] if band else []
    low, high = min(values), max(values)
    if high - low < 1e-12:
        margin = abs(high) * 0.1 or 0.5
        low, high = low - margin, high + margin
    step = _round_step((high - low) / 3)
    first, last = math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9)
    ticks = [step * n for n in range(first, last + 1)]
    digits = max(0, -math.floor(math.log10(step) + 1e-9))
    return Scale(ticks[0], ticks[-1], height - BOTTOM, TOP), ticks, digits


def _ground(
    across: Scale,
    up: Scale,
    band: Band | None,
    window: tuple[float, float] | None,
    height: int,
) -> list[str]:
    """What lies behind the lines: the expected range of values, the steps pointed out."""
    parts = []
    if band:
        top, bottom = up(band.high), up(band.low)
        size = f'width="{WIDTH - RIGHT - LEFT}" height="{round(bottom - top, 1)}"'
        parts.append(f'<rect class="c-band" x="{LEFT}" y="{top}" {size} fill="{LINE}"/>')
    if window:
        left, right = across(window[0]), across(window[1])
        size = f'width="{round(max(right - left, 2), 1)}" height="{height - TOP - BOTTOM}"'
        parts.append(f'<rect class="c-band" x="{left}" y="{TOP}" {size} fill="{LINE}"/>')
    return parts


def _level(y: float, label: str) -> str:
    grid = _stroke("grid", LEFT, y, WIDTH - RIGHT, y, LINE, 1)
    return grid + _text(LEFT - 6, y + 4, label, tone="muted", anchor="end", size=11)


def _steps(across: Scale, height: int) -> list[str]:
    """Round steps below the picture."""
    gap = max(1.0, _round_step((across.high - across.low) / 5))
    first = math.ceil(across.low / gap)
    ticks = [gap * n for n in range(first, math.floor(across.high / gap) + 1)]
    return [
        _text(across(t), height - 8, f"{t:,.0f}", tone="muted", anchor="middle", size=11)
        for t in ticks
        if across(t) < WIDTH - RIGHT - 4 or t == ticks[-1]
    ]


def _look(k: int) -> str:
    n = k % len(COLOURS)
    dash = f' stroke-dasharray="{DASHES[n]}"' if DASHES[n] else ""
    return f'class="c-run c-run-{n}" fill="none" stroke="{COLOURS[n]}" stroke-width="1.75"{dash}'


def _line(curve: Curve, across: Scale, up: Scale, k: int) -> str:
    """A path with gaps; a value between two gaps is a dot."""
    path, draw = [], False
    for p in curve.points:
        if p.value is not None:
            path.append(f"{'L' if draw else 'M'}{across(p.step)} {up(p.value)}")
        draw = p.value is not None
    known = [p for p in curve.points if p.value is not None]
    steps = " ".join(f"{p.step:g}" for p in known)
    values = " ".join(f"{p.value:.4g}" for p in known)
    data = f'data-name="{_clean(curve.name)}" data-steps="{steps}" data-values="{values}"'
    dots = ""
    if len(known) <= 12:
        where = [f'cx="{across(p.step)}" cy="{up(p.value)}"' for p in known if p.value is not None]
        n = k % len(COLOURS)
        dots = "".join(
            f'<circle class="c-dot c-dot-{n}" {at} r="3" fill="{COLOURS[n]}"/>' for at in where
        )
    return f'<path {_look(k)} d="{"".join(path)}" {data}/>{dots}'


def _range(curve: Curve, across: Scale, up: Scale, k: int) -> str:
    """Least and greatest values behind the means of a long line."""
    known = [(across(p.step), up(p.low), up(p.high)) for p in curve.points if p.low is not None
             and p.high is not None]  # fmt: skip
    if len(known) < 2:
        return ""
    there = "L".join(f"{x} {high}" for x, _, high in known)
    back = "L".join(f"{x} {low}" for x, low, _ in reversed(known))
    n = k % len(COLOURS)
    fill = f'fill="{COLOURS[n]}" fill-opacity="0.18"'
    return f'<path class="c-range c-range-{n}" {fill} d="M{there}L{back}Z"/>'


def _marks(marks: Sequence[Mark], across: Scale, height: int) -> list[str]:
    """Lines with their labels above; labels that would touch are joined."""
    parts: list[str] = []
    labels: list[tuple[float, list[str]]] = []
    for mark in sorted(marks, key=lambda m: m.step):
        x = across(mark.step)
        tone, colour = ("severe", "#9c241c") if mark.severe else ("alert", "#7a4f00")
        line = _stroke(tone, x, TOP - 4, x, height - BOTTOM, colour, 1.5)
        parts.append(line.replace("/>", ' stroke-dasharray="4 3"/>'))
        if labels and x - labels[-1][0] < 30:
            labels[-1][1].append(mark.label)
        else:
            labels.append((x, [mark.label]))
    for x, names in labels:
        words = "▲" + (f"{names[0]}–{names[-1]}" if len(names) > 2 else ",".join(names))
        at = min(max(x, LEFT + 4), WIDTH - RIGHT - 12)
        parts.append(_text(at, TOP - 9, words, anchor="middle", size=11))
    return parts


def _words(curves: Sequence[Curve]) -> str:
    text = _("%(name)s: %(first)s at step %(start)s, %(last)s at step %(end)s, "
             "least %(low)s, greatest %(high)s.")  # fmt: skip
    sentences = []
    for curve in curves:
        known = [p for p in curve.points if p.value is not None]
        lows = [p.value if p.low is None else p.low for p in known]
        highs = [p.value if p.high is None else p.high for p in known]
        sentences.append(text % {
            "name": curve.name, "first": number(known[0].value), "start": f"{known[0].step:g}",
            "last": number(known[-1].value), "end": f"{known[-1].step:g}",
            "low": number(min(v for v in lows if v is not None)),
            "high": number(max(v for v in highs if v is not None)),
        })  # fmt: skip
    return " ".join(sentences)


def _picture(
    parts: Sequence[str], title: str, words: str, height: int, data: str = ""
) -> SafeString:
    head = f"<title>{_clean(title)}</title><desc>{_clean(words)}</desc>"
    attributes = (
        f'xmlns="http://www.w3.org/2000/svg" class="chart curves" role="img" width="{WIDTH}" '
        f'height="{height}" viewBox="0 0 {WIDTH} {height}" font-family="{FONT}" font-size="14" '
        f'aria-label="{_clean(title)}. {_clean(words)}" {data}'
    )
    return mark_safe(f"<svg {attributes}>{head}{''.join(parts)}</svg>")  # noqa: S308


def _nothing(title: str, height: int) -> SafeString:
    words = _("No data yet")
    y = height / 2
    text = f'<text class="c-muted" x="{WIDTH / 2}" y="{y}" text-anchor="middle" fill="{MUTED}">'
    return _picture([f"{text}{_clean(words)}</text>"], title, words, height)


def share_bars(rows: Sequence[tuple[str, Value, bool]], *, limit: float, title: str) -> SafeString:
    """Shares from 0 to 1 as bars: name, value (None: not measured), whether that is enough."""
    row, left, width = 28, 130, 360
    across = Scale(0, 1, left, width - 76)
    parts = []
    for n, (name, value, passed) in enumerate(rows):
        y = 10 + row * n
        parts.append(_text(left - 8, y + 14, name, anchor="end", size=12))
        if value is not None:
            tone, colour = ("point", ACCENT) if passed else ("low", LOW)
            size = f'width="{round(max(across(value) - left, 1), 1)}" height="18"'
            parts.append(f'<rect class="c-{tone}" x="{left}" y="{y}" {size} fill="{colour}"/>')
        said = ("" if passed else "✗ ") + number(value)
        parts.append(_text(width - 66, y + 14, said, size=12))
    bottom = 10 + row * len(rows)
    line = _stroke("axis", across(limit), 4, across(limit), bottom, MUTED, 1.5)
    parts.append(line.replace("/>", ' stroke-dasharray="4 3"/>'))
    parts.append(
        _text(across(limit), bottom + 12, number(limit), tone="muted", anchor="middle", size=11)
    )
    words = " ".join(f"{name}: {number(value)}." for name, value, _passed in rows)
    return _picture(parts, title, words, bottom + 20)

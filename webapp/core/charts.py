"""Charts as SVG text, made on the server. No scripts and no style attributes.

Colours are presentation attributes, so that a picture stands on its own; on our pages the style
sheet overrides them by class and follows the theme. Every chart carries a title and a description
with its numbers. Text that comes from outside is escaped.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from html import escape
from math import ceil, floor, log10

from django.utils.safestring import SafeString, mark_safe
from django.utils.translation import gettext as _

from webapp.core.shortening import fit, fit_names, pixels

INK, MUTED, LINE, AXIS, ACCENT = "#1e1b22", "#5c5664", "#e0dbd4", "#857e8c", "#6b2458"
HIGH, LOW, PAPER = "#1f5a96", "#a8500c", "#ffffff"
FONT = "system-ui, 'PingFang SC', 'Noto Sans CJK SC', 'Microsoft YaHei', sans-serif"

MOST = 1_000_000  # ratings beyond this are shown as infinite
ROW = 32  # height of a row of the interval chart
COLUMN = 112  # least width of a round of the history
CELL = 48  # side of a cell of the heat map
STRONGEST = 0.5  # opacity of a cell at 0 % or 100 %: its number stays readable
_FORBIDDEN = re.compile("[\x00-\x1f\ud800-\udfff\ufffe\uffff]")
DASHES = ("", "6 3", "2 3", "8 3 2 3")  # tells lines apart without colour


@dataclass(frozen=True)
class IntervalRow:
    """One contestant: rank interval as text ("2–4"), rating with its bounds on the Elo scale."""

    rank: str
    name: str
    rating: float
    lo: float
    hi: float
    votes: int


@dataclass(frozen=True)
class HistoryPoint:
    """A rating at one round. `at` is the index of the round among the labels."""

    at: int
    rating: float
    lo: float
    hi: float


@dataclass(frozen=True)
class HistorySeries:
    name: str
    points: Sequence[HistoryPoint]


@dataclass(frozen=True)
class Scale:
    """A linear map from values to pixels; what lies outside is drawn at the edge."""

    low: float
    high: float
    start: float
    end: float

    def __call__(self, value: float) -> float:
        if value != value:
            value = self.low
        share = (min(max(value, self.low), self.high) - self.low) / (self.high - self.low)
        return round(self.start + share * (self.end - self.start), 1)


def interval_chart(
    rows: Sequence[IntervalRow], *, title: str = "", standalone: bool = False
) -> SafeString:
    """Rank, name, interval with its point, rating and votes: one row each."""
    title = title or _("Ratings with their intervals")
    if not rows:
        return _empty(title, standalone)
    names = min(max(pixels(row.name) for row in rows), 260) + 16
    left, plot = 56 + names, 320
    width, height = left + plot + 168, ROW * len(rows) + 48
    scale, ticks = _value_scale(_bounds(rows), left + 12, left + plot - 12)
    parts = [_axis(scale, ticks, 12, ROW * len(rows) + 16)]
    shown = fit_names([row.name for row in rows], 260)
    for number, row in enumerate(rows):
        parts.append(_interval_row(row, shown[number], scale, 32 + ROW * number, left, plot))
    return _svg(parts, width, height, title, _interval_words(rows), standalone)


def interval_mark(row: IntervalRow, low: float, high: float) -> SafeString:
    """The interval alone, for the cell of a table that already holds the numbers."""
    scale = Scale(low, high if high > low else low + 1, 6, 394)
    fixed = 'stroke-linecap="round" vector-effect="non-scaling-stroke"'
    body = "".join(
        _stroke("interval", x1, 10, x2, 10, ACCENT, width).replace("/>", f" {fixed}/>")
        for x1, x2, width in _mark_lines(row, scale)
    )
    body += "".join(_stroke("grid", x, 0, x, 20, LINE, 1) for x in (scale.start, scale.end))
    attributes = 'class="chart" viewBox="0 0 400 20" preserveAspectRatio="none" aria-hidden="true"'
    return mark_safe(f'<svg {attributes} focusable="false">{body}</svg>')  # noqa: S308


def _mark_lines(row: IntervalRow, scale: Scale) -> list[tuple[float, float, float]]:
    """The interval, and the point as a line without length: a stretched picture keeps it round."""
    if not _drawable(row.rating):
        return []
    return [(scale(row.lo), scale(row.hi), 3), (scale(row.rating), scale(row.rating), 9)]


def mark_range(rows: Iterable[IntervalRow]) -> tuple[float, float]:
    """The common range of the marks of a table."""
    return _padded(_bounds(list(rows)))


def range_ends(low: float, high: float) -> tuple[str, str]:
    """The ends of the common range, as they stand above the marks."""
    return _number(low), _number(high)


def history_chart(
    labels: Sequence[str],
    series: Sequence[HistorySeries],
    *,
    title: str = "",
    standalone: bool = False,
) -> SafeString:
    """Ratings with their intervals over rounds, one line per contestant, named at its end."""
    title = title or _("Ratings over rounds")
    series = [line for line in series if line.points]
    if not labels or not series:
        return _empty(title, standalone)
    bounds = _bounds([point for line in series for point in line.points])
    height = max(280, 20 * len(series) + 80)
    plot = max(280, COLUMN * len(labels))
    room = min(plot / max(len(labels) - 1, 1) - 8, 2 * 72 - 8)  # what stands left of the first
    scale, ticks = _value_scale(bounds, height - 48, 20)
    across = Scale(0, max(len(labels) - 1, 1), 72, 72 + plot)
    parts = [_level(scale, tick, plot) for tick in ticks]
    parts += [_label(across(i), height, label, room) for i, label in enumerate(labels)]
    parts += [_line(line, k, len(series), across, scale) for k, line in enumerate(series)]
    parts += _line_names(series, scale, 72 + plot + 16, height)
    names = min(max(pixels(line.name) for line in series), 220)
    width = 72 + plot + max(32 + names, 72)
    return _svg(parts, width, height, title, _history_words(labels, series), standalone)


# Parts


def _interval_row(
    row: IntervalRow, shown: str, scale: Scale, y: float, left: float, plot: float
) -> str:
    return "".join(
        [
            _text(44, y + 5, row.rank, tone="muted", anchor="end"),
            _name(56, y + 5, shown, row.name),
            _interval(row, scale, y),
            _text(left + plot + 64, y + 5, _number(row.rating), anchor="end"),
            _text(left + plot + 152, y + 5, f"{row.votes:,}", tone="muted", anchor="end"),
        ]
    )


def _interval(row: IntervalRow | HistoryPoint, scale: Scale, y: float) -> str:
    if not _drawable(row.rating):
        return ""
    x1, x2 = scale(row.lo), scale(row.hi)
    return _stroke("interval", x1, y, x2, y, ACCENT, 3) + _dot(scale(row.rating), y)


def _dot(x: float, y: float) -> str:
    return f'<circle class="c-point" cx="{x}" cy="{y}" r="4" fill="{ACCENT}"/>'


def _axis(scale: Scale, ticks: Sequence[float], top: float, bottom: float) -> str:
    lines = [_stroke("grid", scale(t), top, scale(t), bottom, LINE, 1) for t in ticks]
    texts = [_text(scale(t), bottom + 18, _number(t), tone="muted", anchor="middle") for t in ticks]
    return "".join(lines + texts)


def _level(scale: Scale, tick: float, plot: float) -> str:
    y = scale(tick)
    grid = _stroke("grid", 56, y, 72 + plot + 8, y, LINE, 1)
    return grid + _text(48, y + 5, _number(tick), tone="muted", anchor="end")


def _label(x: float, height: float, label: str, room: float) -> str:
    return _name(x, height - 20, fit(label, room), label, tone="muted", anchor="middle")


def _line(line: HistorySeries, k: int, n: int, across: Scale, scale: Scale) -> str:
    """One contestant's line; points of the same round stand side by side."""
    shift = (k - (n - 1) / 2) * min(4.0, 24 / n)
    at = [(round(across(p.at) + shift, 1), p) for p in line.points if _drawable(p.rating)]
    path = " ".join(f"{x},{scale(p.rating)}" for x, p in at)
    dash = f' stroke-dasharray="{DASHES[k % 4]}"' if DASHES[k % 4] else ""
    marks = [_stroke("interval", x, scale(p.lo), x, scale(p.hi), ACCENT, 1) for x, p in at]
    dots = [_dot(x, scale(p.rating)) for x, p in at]
    drawn = f'class="c-line" points="{path}" fill="none" stroke="{ACCENT}" stroke-width="1.5"{dash}'
    return f"<polyline {drawn}/>" + "".join(marks + dots)


def _line_names(
    series: Sequence[HistorySeries], scale: Scale, x: float, height: float
) -> list[str]:
    """Names at the ends of their lines, pushed apart where they would overlap."""
    shown = fit_names([line.name for line in series], 220)
    wanted = sorted(
        (scale(line.points[-1].rating), short, line.name)
        for line, short in zip(series, shown, strict=True)
    )
    placed, previous = [], 0.0
    for number, (y, short, name) in enumerate(wanted):
        latest = height - 48 - 18 * (len(wanted) - 1 - number)
        previous = max(previous + 18, min(y, latest))
        placed.append(_name(x, previous + 5, short, name))
    return placed


# Words for those who do not see the picture


def _interval_words(rows: Sequence[IntervalRow]) -> str:
    text = _(
        "Rank %(rank)s: %(name)s, rating %(rating)s, interval %(lo)s to %(hi)s, %(votes)s votes."
    )
    return " ".join(
        text
        % {
            "rank": row.rank,
            "name": row.name,
            "rating": _number(row.rating),
            "lo": _number(row.lo),
            "hi": _number(row.hi),
            "votes": f"{row.votes:,}",
        }
        for row in rows
    )


def _history_words(labels: Sequence[str], series: Sequence[HistorySeries]) -> str:
    sentences = []
    for line in series:
        values = [f"{labels[p.at]} {_number(p.rating)}" for p in line.points]
        sentences.append(f"{line.name}: {', '.join(values)}.")
    return " ".join(sentences)


# Primitives


def _svg(
    parts: Iterable[str], width: float, height: float, title: str, words: str, standalone: bool
) -> SafeString:
    w, h = round(width), round(height)
    body = "".join(parts)
    if standalone:
        body = f'<rect width="{w}" height="{h}" fill="{PAPER}"/>{body}'
    head = f"<title>{_clean(title)}</title><desc>{_clean(words)}</desc>"
    attributes = (
        f'xmlns="http://www.w3.org/2000/svg" class="chart" role="img" width="{w}" height="{h}" '
        f'viewBox="0 0 {w} {h}" font-family="{FONT}" font-size="14" aria-label="{_clean(title)}"'
    )
    return mark_safe(f"<svg {attributes}>{head}{body}</svg>")  # noqa: S308


def _empty(title: str, standalone: bool) -> SafeString:
    words = _("No data yet")
    text = _text(180, 45, words, tone="muted", anchor="middle")
    return _svg([text], 360, 80, title, words, standalone)


def _text(
    x: float, y: float, words: str, *, tone: str = "text", anchor: str = "start", size: int = 14
) -> str:
    colour = MUTED if tone == "muted" else INK
    where = f'x="{round(x, 1)}" y="{round(y, 1)}" text-anchor="{anchor}"'
    small = f' font-size="{size}"' if size != 14 else ""
    return f'<text class="c-{tone}" {where} fill="{colour}"{small}>{_clean(words)}</text>'


def _name(
    x: float, y: float, shown: str, name: str, *, tone: str = "text", anchor: str = "start"
) -> str:
    """A name; where it was shortened, the whole of it appears under the pointer."""
    text = _text(x, y, shown, tone=tone, anchor=anchor)
    if shown == name:
        return text
    return text.removesuffix("</text>") + f"<title>{_clean(name)}</title></text>"


def _stroke(
    tone: str, x1: float, y1: float, x2: float, y2: float, colour: str, width: float
) -> str:
    ends = f'x1="{x1}" y1="{y1}" x2="{x2}" y2="{y2}"'
    return f'<line class="c-{tone}" {ends} stroke="{colour}" stroke-width="{width}"/>'


def _clean(text: str) -> str:
    """Escaped, without the characters that XML forbids."""
    return escape(_FORBIDDEN.sub("", text))


def _drawable(value: float) -> bool:
    """Whether a rating has a place on a scale: a number, and not beyond all measure."""
    return abs(value) <= MOST


def _number(value: float) -> str:
    if value != value:
        return "–"
    if not _drawable(value):
        return "∞" if value > 0 else "−∞"
    return f"{value:z,.0f}".replace("-", "−")


def _bounds(rows: Sequence[IntervalRow] | Sequence[HistoryPoint]) -> tuple[float, float]:
    """Smallest and largest finite value among ratings and bounds."""
    values = [v for row in rows for v in (row.rating, row.lo, row.hi) if _drawable(v)]
    return (min(values), max(values)) if values else (0.0, 1.0)


def _padded(bounds: tuple[float, float]) -> tuple[float, float]:
    low, high = bounds
    margin = max((high - low) * 0.04, 1.0)
    return low - margin, high + margin


def _value_scale(
    bounds: tuple[float, float], start: float, end: float
) -> tuple[Scale, list[float]]:
    """A scale with round ticks, about five of them."""
    low, high = _padded(bounds)
    step = _round_step((high - low) / 4)
    first = ceil(low / step)
    ticks = [step * number for number in range(first, floor(high / step) + 1)]
    return Scale(low, high, start, end), ticks


def _round_step(raw: float) -> float:
    power = 10.0 ** floor(log10(raw))
    return next(power * factor for factor in (1, 2, 5, 10) if power * factor >= raw)

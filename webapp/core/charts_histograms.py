"""Histograms as SVG text like the charts of `charts`: one or two counts per bin, side by side."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from django.utils.safestring import SafeString

from webapp.core.charts import ACCENT, Scale, _clean, _empty, _level, _round_step, _svg, _text
from webapp.core.shortening import pixels

BIN, HEIGHT, TOP = 64, 220, 36  # least width of a bin; height; room for the legend
SMALL = 11 / 14  # names of bins are set smaller than what `pixels` measures


@dataclass(frozen=True)
class Counted:
    """A name and its count in every bin."""

    name: str
    counts: Sequence[int]


def histogram(labels: Sequence[str], series: Sequence[Counted], *, title: str) -> SafeString:
    """Bars over named bins. The first series is filled, the second one outlined.

    The title under the pointer and the description hold the numbers.
    """
    if not labels or not any(sum(line.counts) for line in series):
        return _empty(title, False)
    top = max(max(line.counts) for line in series)
    step = max(_round_step(max(top, 1) / 4), 1)
    scale = Scale(0, max(top, step), HEIGHT - 36, TOP)
    across = max(BIN, round(max(map(pixels, labels)) * SMALL) + 12)
    plot = max(across * len(labels), 280)
    parts = [_level(scale, step * n, plot - 16) for n in range(int(top // step) + 1)]
    width = (across - 16) / len(series)
    for k, line in enumerate(series):
        for number, count in enumerate(line.counts):
            x = round(80 + across * number + k * width, 1)
            parts.append(_bar(x, scale, count, width - 2, k, f"{line.name}, {labels[number]}"))
    for number, label in enumerate(labels):
        middle = 80 + across * number + (across - 16) / 2
        parts.append(_text(middle, HEIGHT - 14, label, tone="muted", anchor="middle", size=11))
    if len(series) > 1:
        parts += _legend(series)
    return _svg(parts, 72 + plot + 16, HEIGHT, title, _words(labels, series), False)


def _bar(x: float, scale: Scale, count: int, width: float, k: int, name: str) -> str:
    height = round(scale(0) - scale(count), 1)
    frame = f'x="{x}" y="{scale(count)}" width="{round(width, 1)}" height="{height}"'
    look = (
        f'class="c-point" fill="{ACCENT}"'
        if k == 0
        else f'class="c-line" fill="none" stroke="{ACCENT}" stroke-width="1.5"'
    )
    return f"<rect {look} {frame}><title>{_clean(name)}: {count:,}</title></rect>"


def _legend(series: Sequence[Counted]) -> list[str]:
    parts, x = [], 72.0
    for k, line in enumerate(series):
        look = (
            f'class="c-point" fill="{ACCENT}"'
            if k == 0
            else f'class="c-line" fill="none" stroke="{ACCENT}" stroke-width="1.5"'
        )
        parts.append(f'<rect {look} x="{x}" y="8" width="12" height="12"/>')
        parts.append(_text(x + 18, 18, line.name, size=12))
        x += 44 + pixels(line.name)
    return parts


def _words(labels: Sequence[str], series: Sequence[Counted]) -> str:
    return " ".join(
        f"{line.name}: "
        + ", ".join(f"{label} {n:,}" for label, n in zip(labels, line.counts, strict=True))
        + "."
        for line in series
    )

"""Curves over steps: thinning, gaps, marks, and text that comes from outside."""

from __future__ import annotations

import re
from xml.etree import ElementTree

import pytest

from webapp.core.charts_curves import (
    Band,
    Curve,
    Mark,
    Point,
    curve_chart,
    number,
    share_bars,
    thin,
)

SVG = "{http://www.w3.org/2000/svg}"


def line(name: str, *values: float | None) -> Curve:
    return Curve(name, thin(list(enumerate(values))))


def test_long_lines_become_means_with_their_range() -> None:
    pairs = [(step, float(step % 2)) for step in range(10_000)]
    points = thin(pairs)
    assert len(points) == 300
    assert points[-1].step == 9999
    assert all(p.value == pytest.approx(0.5, abs=0.05) for p in points)
    assert {(p.low, p.high) for p in points} == {(0.0, 1.0)}
    assert thin(pairs[:5]) == [Point(float(s), v) for s, v in pairs[:5]]


def test_a_spike_stays_in_the_range_of_a_long_line() -> None:
    pairs = [(step, 1.0) for step in range(3000)]
    pairs[1500] = (1500, 80.0)
    assert max(p.high or 0.0 for p in thin(pairs)) == 80.0
    assert "c-range" in curve_chart([Curve("a", thin(pairs))], title="T")


def test_what_is_no_number_breaks_the_line() -> None:
    svg = curve_chart([line("a", 1.0, 2.0, None, 3.0, 4.0)], title="T")
    path = re.search(r'class="c-run[^>]* d="([^"]*)"', svg)
    assert path is not None
    assert path[1].count("M") == 2
    assert 'data-steps="0 1 3 4"' in svg


def test_the_picture_is_xml_without_style_or_script_and_escapes_names() -> None:
    evil = '<script>"&'
    svg = curve_chart(
        [line(evil, 1.0, 2.0), line("b", 2.0, 3.0)], title=evil, band=Band(1.0, 2.0),
        window=(0, 1), marks=[Mark(1, evil), Mark(1, "2", True)],
    )  # fmt: skip
    root = ElementTree.fromstring(svg)
    assert root.tag == f"{SVG}svg"
    assert "<script" not in svg
    assert " style=" not in svg
    paths = [e for e in root.iter(f"{SVG}path") if e.get("data-name")]
    assert [p.get("data-name") for p in paths] == [evil, "b"]
    assert len({(p.get("stroke"), p.get("stroke-dasharray")) for p in paths}) == 2


def test_a_line_without_values_keeps_the_look_of_the_others() -> None:
    alone = curve_chart([line("a"), line("b", 1.0, 2.0)], title="T")
    assert "c-run-1" in alone
    assert "c-run-0" not in alone
    assert "No data yet" in curve_chart([line("a"), line("b", None)], title="T")


def test_marks_that_touch_share_a_label() -> None:
    curve = line("a", *map(float, range(100)))
    marks = [Mark(50, "1"), Mark(51, "2"), Mark(52, "3"), Mark(90, "4")]
    svg = curve_chart([curve], title="T", marks=marks)
    assert "▲1–3" in svg
    assert "▲4" in svg


@pytest.mark.parametrize("values", [(0.0,), (5.0, 5.0), (-1e-9, 1e-9), (1e9, -1e9), (2e-6, 1e-6)])
def test_any_range_of_values_can_be_drawn(values: tuple[float, ...]) -> None:
    ElementTree.fromstring(curve_chart([line("a", *values)], title="T"))


@pytest.mark.parametrize(
    ("value", "text"),
    [(None, "–"), (0.0, "0"), (0.12345, "0.123"), (-2.5, "−2.5"), (2e-6, "2.00e−6"),
     (1234.5, "1,234")],
)  # fmt: skip
def test_numbers_are_short(value: float | None, text: str) -> None:
    assert number(value) == text


def test_bars_say_what_does_not_reach_the_limit() -> None:
    svg = share_bars([("vague", 0.5, False), ("cut", 1.0, True)], limit=0.9, title="T")
    ElementTree.fromstring(svg)
    assert "✗ 0.5" in svg
    assert "vague: 0.5." in svg

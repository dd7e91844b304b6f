"""Charts of days and of pairs: well-formed, escaped, with their numbers in words."""

from __future__ import annotations

from xml.etree import ElementTree

from webapp.core.charts_counts import PairCell, day_bars, pair_map

SVG = "{http://www.w3.org/2000/svg}"


def test_a_bar_per_day_as_high_as_its_number() -> None:
    root = ElementTree.fromstring(day_bars(["1 Nov", "2 Nov", "3 Nov"], [0, 10, 40], title="Days"))
    heights = [float(bar.attrib["height"]) for bar in root.iter(f"{SVG}rect")]
    assert heights[0] == 0
    assert heights[2] > 3.9 * heights[1] > 0
    description = root.find(f"{SVG}desc")
    assert description is not None
    assert description.text == "1 Nov: 0. 2 Nov: 10. 3 Nov: 40."


def test_empty_charts_say_so() -> None:
    for chart in (day_bars([], [], title="Days"), pair_map([], [], title="Pairs")):
        ElementTree.fromstring(chart)
    assert day_bars(["1 Nov"], [0], title="Days").count("<rect") == 1


def test_cells_hold_value_and_number_and_names_are_escaped() -> None:
    low, none = PairCell(-0.25, 1200), PairCell(None, 3)
    cells = [[None, low, none], [low, None, None], [none, None, None]]
    chart = pair_map(["<b>", "中文", "c"], cells, title="Kappa")
    root = ElementTree.fromstring(chart)
    texts = [element.text for element in root.iter(f"{SVG}text")]
    assert texts.count("−0.25") == 2
    assert texts.count("1,200") == 2
    assert texts.count("–") == 2
    assert "<b>" in texts
    description = root.find(f"{SVG}desc")
    assert description is not None
    assert description.text is not None
    assert "中文 and <b>: -0.25 on 1,200 items." in description.text

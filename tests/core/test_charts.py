"""Charts: well-formed, escaped, described, calm about missing data."""

import re
from math import inf, nan
from xml.etree import ElementTree

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from webapp.core.charts import (
    HistoryPoint,
    HistorySeries,
    IntervalRow,
    history_chart,
    interval_chart,
    interval_mark,
    mark_range,
)
from webapp.core.charts_heat import heat_map

SVG = "{http://www.w3.org/2000/svg}"
NAMES = ["Harbor 8B", "青松 7B（第三次训练）", "<script>alert('x')</script> & \"Co\"", "x" * 300]
ROWS = [
    IntervalRow(f"{i + 1}", name, 1086.0 - 20 * i, 1050.0 - 20 * i, 1120.0 - 20 * i, 1920)
    for i, name in enumerate(NAMES)
]
MATRIX = [
    [None, 0.75, 1.0, None],
    [0.25, None, 0.5, 0.4],
    [0.0, 0.5, None, nan],
    [None, 0.6, 0.1, None],
]
COUNTS = [[0, 40, 12, 0], [40, 0, 1234, 7], [12, 1234, 0, 9], [0, 7, 9, 0]]
SERIES = [
    HistorySeries(name, [HistoryPoint(at, 1000.0 + 30 * k, 980.0, 1090.0) for at in range(3)])
    for k, name in enumerate(NAMES)
]
LABELS = ["Round 1", "Round 2", "第 3 轮"]


def parse(svg: str) -> ElementTree.Element:
    assert "style=" not in svg
    assert "<script" not in svg
    return ElementTree.fromstring(svg)


def words(svg: str) -> str:
    return "\n".join(parse(svg).itertext())


def charts(*, standalone: bool = False) -> list[str]:
    return [
        interval_chart(ROWS, standalone=standalone),
        heat_map(NAMES, MATRIX, COUNTS, standalone=standalone),
        history_chart(LABELS, SERIES, standalone=standalone),
    ]


@pytest.mark.parametrize("standalone", [False, True])
def test_every_chart_is_well_formed_and_described(standalone: bool) -> None:
    for svg in charts(standalone=standalone):
        root = parse(svg)
        assert root.get("role") == "img"
        title, description = root.findtext(f"{SVG}title"), root.findtext(f"{SVG}desc")
        assert title == root.get("aria-label")
        assert description is not None
        for name in NAMES[:3]:
            assert name in description


def test_every_chart_names_chinese_contestants() -> None:
    for svg in charts():
        assert "青松 7B（第三次训练）" in "\n".join(parse(svg).itertext())


def test_standalone_pictures_carry_their_own_ground() -> None:
    for svg, bare in zip(charts(standalone=True), charts(), strict=True):
        assert 'fill="#ffffff"' in svg
        assert 'fill="#ffffff"' not in bare


def test_long_names_are_cut_in_the_picture_only() -> None:
    root = parse(interval_chart(ROWS))
    shown = [node.text or "" for node in root.iter(f"{SVG}text")]
    assert any("…" in text for text in shown)
    assert "x" * 300 in (root.findtext(f"{SVG}desc") or "")


def test_interval_chart_says_the_numbers() -> None:
    text = words(interval_chart(ROWS))
    assert "Rank 1: Harbor 8B, rating 1,086, interval 1,050 to 1,120, 1,920 votes." in text


def test_heat_map_shows_share_and_votes_and_two_hues() -> None:
    svg = heat_map(NAMES, MATRIX, COUNTS)
    assert {"75", "25", "1,234", "–"} <= set(words(svg).split("\n"))
    assert 'class="c-high"' in svg
    assert 'class="c-low"' in svg
    even = re.search(r'<rect class="c-high"[^>]*fill-opacity="0.0"', svg)
    assert even, "fifty per cent has no colour"


def test_the_number_of_a_row_stands_before_its_name() -> None:
    """“Harborlight 8B 1” would read like a name."""
    drawn = re.findall(r"<text[^>]*>([^<]*)</text>", heat_map(["Harbor 8B"], [[None]], [[0]]))
    assert drawn[:2] == ["1.", "Harbor 8B"]


@pytest.mark.parametrize(
    "names",
    [
        [f"theblackcat102/pythia-12b-deduped-sft {mode}" for mode in ("greedy", "k50", "typical")],
        ["青松 七十亿参数第三次训练完成之后的检查点 " + end for end in ("甲", "乙")],
        [f"{start} pythia-12b-deduped-sft checkpoint at the end" for start in ("one", "two")],
        ["short", "a name that is so long that it has no room in any of the charts"],
    ],
)
def test_long_names_stay_different_and_can_be_read_in_full(names: list[str]) -> None:
    rows = [IntervalRow("1", name, 1000, 990, 1010, 5) for name in names]
    series = [HistorySeries(name, [HistoryPoint(0, 1000, 990, 1010)]) for name in names]
    grid: list[list[float | None]] = [[None] * len(names) for _ in names]
    for svg in (
        interval_chart(rows),
        heat_map(names, grid, [[0] * len(names)] * len(names)),
        history_chart(["Round"], series),
    ):
        nodes = list(parse(svg).iter(f"{SVG}text"))
        full = [node.findtext(f"{SVG}title") or node.text for node in nodes]
        shown = [node.text for node, name in zip(nodes, full, strict=True) if name in names]
        assert len(set(shown)) == len(names)
        assert set(names) <= set(full)


@pytest.mark.parametrize("rounds", [1, 2, 5, 20])
def test_names_of_rounds_have_room(rounds: int) -> None:
    labels = [f"Round no {n:05d}" for n in range(rounds)]  # 14 characters
    line = HistorySeries("a", [HistoryPoint(n, 1000, 990, 1010) for n in range(rounds)])
    root = parse(history_chart(labels, [line]))
    texts = {node.text: float(node.get("x", "")) for node in root.iter(f"{SVG}text")}
    shown = [name for name in texts if name and name.startswith("Round no")]
    assert len(shown) == rounds
    assert min(len(name) for name in shown) >= 12
    width = float(root.get("width", ""))
    for name in shown:
        half = 7.8 * len(name) / 2
        assert texts[name] - half >= 0
        assert texts[name] + half <= width


def test_marks_share_one_scale() -> None:
    low, high = mark_range(ROWS)
    marks = [interval_mark(row, low, high) for row in ROWS]
    starts = [float(parse(mark).findall("line")[0].get("x1", "")) for mark in marks]
    assert starts == sorted(starts, reverse=True)
    assert all(parse(mark).get("aria-hidden") == "true" for mark in marks)


@pytest.mark.parametrize("value", [nan, inf, -inf])
def test_numbers_that_are_not_finite_do_not_break_a_chart(value: float) -> None:
    row = IntervalRow("1", "a", value, value, inf, 0)
    for svg in (
        interval_chart([row, ROWS[0]]),
        interval_chart([row]),
        interval_mark(row, *mark_range([row])),
        history_chart(["1"], [HistorySeries("a", [HistoryPoint(0, value, -inf, inf)])]),
    ):
        parse(svg)
        assert "nan" not in svg.replace("contestant", "")
        assert "inf" not in re.sub(r"<(title|desc)>.*?</\1>", "", svg)


def test_no_data_is_said() -> None:
    for svg in (
        interval_chart([]),
        heat_map([], [], []),
        history_chart([], []),
        history_chart(["1"], []),
    ):
        assert "No data yet" in words(svg)


@settings(max_examples=100, deadline=None)
@given(st.lists(st.tuples(st.text(), st.floats(), st.floats(), st.floats()), max_size=6))
def test_any_names_and_numbers_make_well_formed_pictures(
    data: list[tuple[str, float, float, float]],
) -> None:
    rows = [IntervalRow(name, name, rating, lo, hi, 1) for name, rating, lo, hi in data]
    parse(interval_chart(rows))
    points = [HistorySeries(name, [HistoryPoint(0, *values)]) for name, *values in data]
    parse(history_chart(["1"], points))
    grid = [[rating for _, rating, _, _ in data] for _ in data]
    parse(heat_map([name for name, *_ in data], grid, [[1] * len(data)] * len(data)))

"""Histograms: every number in the picture and in words, texts escaped."""

from __future__ import annotations

from training.mix import LENGTHS, SHARES, Histogram, Mix
from training.selectors.pages import bin_labels
from webapp.core.charts_histograms import Counted, histogram


def test_bars_carry_their_numbers() -> None:
    svg = histogram(["0–50", "> 50"], [Counted("a", [3, 0]), Counted("<b>", [1, 2])], title="T")
    assert "a, 0–50: 3" in svg
    assert "&lt;b&gt;" in svg
    assert "<b>" not in svg
    assert "a: 0–50 3, &gt; 50 0." in svg
    assert svg.count("<rect") == 6  # four bars and the legend
    assert "No data yet" in histogram([], [], title="T")
    assert "No data yet" in histogram(["a"], [Counted("a", [0])], title="T")


def test_bins_hold_their_lower_edge_and_have_a_name_each() -> None:
    counts = Histogram(LENGTHS)
    for value in (0, 49, 50, 6400, 99999):
        counts.add(value)
    assert counts.as_json()["counts"] == [2, 1, 0, 0, 0, 0, 0, 0, 2]
    assert len(bin_labels(LENGTHS)) == len(LENGTHS)
    assert bin_labels(SHARES, percent=True) == ["0", "0–20", "20–40", "40–60", "60–80", "80–100"]
    shares = Histogram(SHARES)
    for share in (0.0, 0.1, 1.0):
        shares.add(share)
    assert shares.as_json()["counts"] == [1, 1, 0, 0, 0, 1]


def test_many_categories_are_counted_together_beyond_a_limit() -> None:
    mix = Mix()
    for number in range(300):
        mix.add({"split": "train", "category": f"c{number:03}"}, {"synthetic": number < 2})
    found = mix.as_json()
    assert found["rows"] == 300
    assert found["groups"]["category"]["…"] == 100
    assert found["marks"] == {"synthetic": 2}

"""Flags are raised only where a whole interval lies outside of what needs no reason."""

from __future__ import annotations

from dataclasses import replace

import pytest

from annotation.signals import Flag, Share, Signals, flags

NOTHING = Share(0, 0)
USUAL = Signals(
    gold=NOTHING,
    left=Share(500, 1000),
    longer=Share(600, 1000),
    consistent=Share(90, 100),
    agrees=Share(800, 1000),
    late=Share(10, 1000),
    timed=1000,
    median_ms=30_000,
)
ONE = replace(USUAL, gold=Share(9, 10), left=Share(22, 40), longer=Share(25, 40))


def test_who_works_like_the_others_is_not_flagged() -> None:
    assert flags(ONE, USUAL, 0.5) == []
    empty = Signals(NOTHING, NOTHING, NOTHING, NOTHING, NOTHING, NOTHING, 0, 0)
    assert flags(empty, USUAL, 0.5) == []


@pytest.mark.parametrize(
    ("flag", "much", "little"),
    [
        (Flag.GOLD, {"gold": Share(2, 20)}, {"gold": Share(2, 5)}),
        (Flag.LEFT, {"left": Share(90, 100)}, {"left": Share(7, 9)}),
        (Flag.RIGHT, {"left": Share(10, 100)}, {"left": Share(2, 9)}),
        (Flag.LONGER, {"longer": Share(95, 100)}, {"longer": Share(9, 10)}),
        (Flag.SHORTER, {"longer": Share(10, 100)}, {"longer": Share(1, 4)}),
        (Flag.INCONSISTENT, {"consistent": Share(10, 40)}, {"consistent": Share(1, 3)}),
        (Flag.ALONE, {"agrees": Share(40, 100)}, {"agrees": Share(5, 9)}),
        (Flag.LATE, {"late": Share(50, 100)}, {"late": Share(2, 5)}),
        (Flag.FAST, {"median_ms": 9000}, {"median_ms": 9000, "timed": 5}),
    ],
)
def test_a_flag_needs_enough_labels(
    flag: Flag, much: dict[str, Share], little: dict[str, Share]
) -> None:
    assert flags(replace(ONE, **much), USUAL, 0.5) == [flag]  # type: ignore[arg-type]
    assert flags(replace(ONE, **little), USUAL, 0.5) == []  # type: ignore[arg-type]


def test_a_share_without_chances_has_no_value() -> None:
    assert (NOTHING.value, NOTHING.bounds, NOTHING.above(0), NOTHING.below(1)) == (
        None,
        None,
        False,
        False,
    )

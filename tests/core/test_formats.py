"""Dates read the same in both languages."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from django.utils import formats, translation

AT = datetime(2026, 3, 4, 15, 6, tzinfo=UTC)


@pytest.mark.parametrize("language", ["en", "zh-hans"])
def test_a_short_date_leaves_no_doubt_which_number_is_the_month(language: str) -> None:
    with translation.override(language):
        assert formats.date_format(AT, "SHORT_DATE_FORMAT") == "2026-03-04"
        assert formats.date_format(AT, "SHORT_DATETIME_FORMAT") == "2026-03-04 15:06"


@pytest.mark.parametrize(
    ("language", "expected"), [("en", "4 March 2026, 15:06"), ("zh-hans", "2026年3月4日 15:06")]
)
def test_long_ones_are_written_out(language: str, expected: str) -> None:
    with translation.override(language):
        assert formats.date_format(AT, "DATETIME_FORMAT") == expected

"""The rows of a leaderboard's table, ready to read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from django.utils.safestring import SafeString

from arena import exports
from arena.selectors import leaderboard as select
from arena.selectors.answering import PerAnswer
from webapp.core.charts import interval_mark, mark_range


@dataclass(frozen=True)
class Line:
    """A row of the table, ready to read."""

    rank: str
    name: str
    first: bool
    rating: str
    interval: str
    mark: SafeString
    votes: str
    ties: str
    both_bad: str
    tokens: str = ""
    milliseconds: str = ""


def lines(board: select.Board, costs: Mapping[int, PerAnswer]) -> list[Line]:
    rows = exports.interval_rows(board)
    low, high = mark_range(rows)
    return [
        Line(
            rank=row.rank,
            name=row.contestant,
            first=row.first,
            rating=points(row.rating),
            interval=interval(row.lo, row.hi),
            mark=interval_mark(drawn, low, high),
            votes=f"{row.votes:,}",
            ties=percent(row.tie_rate),
            both_bad=percent(row.both_bad_rate),
            **_cost(costs.get(row.contestant_id)),
        )
        for row, drawn in zip(board.rows, rows, strict=True)
    ]


def _cost(cost: PerAnswer | None) -> dict[str, str]:
    """What an answer took; a dash where it was not made here."""
    if cost is None:
        return {"tokens": "–", "milliseconds": "–"}
    asked, answered, took = (
        "–" if value is None else f"{value:,.0f}"
        for value in (cost.prompt_tokens, cost.completion_tokens, cost.milliseconds)
    )
    return {"tokens": f"{asked} + {answered}", "milliseconds": took}


def points(value: float | None) -> str:
    return "–" if value is None else f"{value:z,.0f}".replace("-", "−")


def interval(lo: float | None, hi: float | None) -> str:
    """Bounds on the Elo scale; an end that the votes leave open is written as …"""
    if lo is None and hi is None:
        return "–"
    return f"{'…' if lo is None else points(lo)} – {'…' if hi is None else points(hi)}"


def percent(share: float | None) -> str:
    return "–" if share is None else f"{100 * share:.0f} %"

"""What is left to do in a project, when it will be done and what it costs: from the snapshot."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date, timedelta
from typing import Any

from django.utils import timezone
from django.utils.formats import date_format
from django.utils.translation import gettext as _

from annotation.enums import ProjectState
from annotation.forecast import WINDOW, Finish, Unknown, WhatIf, Workload, finish, what_if
from annotation.models import Project
from annotation.selectors.agreement import AXES

CHART_DAYS = 42


@dataclass(frozen=True)
class Outlook:
    """`left` labels to the end, `served` of them with gold and repeats; costs as text."""

    left: int
    served: int
    raised: str
    spent: str
    to_come: str
    end: tuple[str, str]  # date and interval
    pace: str
    what_ifs: tuple[WhatIfRow, ...]


@dataclass(frozen=True)
class WhatIfRow:
    overlap: int
    labels: int
    cost: str
    end: tuple[str, str]  # date and interval
    right: tuple[str, ...]  # by axis
    chosen: bool


def outlook(project: Project, report: Mapping[str, Any], chosen: int | None) -> Outlook:
    load = Workload(**report["workload"])
    pace = daily(report["days"])
    is_open = project.state == ProjectState.OPEN
    left = load.expected
    found = finish(left, pace, is_open=is_open)
    rows = [
        _what_if_row(project, report, row, finish(row.labels, pace, is_open=is_open), chosen)
        for row in what_if(load, None, report["choices"])
    ]
    return Outlook(
        left=left,
        served=with_hidden(project, left),
        raised=f"{load.raised:.2f}",
        spent=money(project, report["paid"]),
        to_come=money(project, with_hidden(project, left)),
        end=end_words(found),
        pace=f"{found.pace:,.0f}" if found.pace else "–",
        what_ifs=tuple(rows),
    )


def _what_if_row(
    project: Project, report: Mapping[str, Any], row: WhatIf, end: Finish, chosen: int | None
) -> WhatIfRow:
    load = Workload(**report["workload"])
    right = []
    for axis in report["axes"]:
        hits, n = report["models"][axis]["skill"]
        found = what_if(load, hits / n if n else None, report["choices"])[row.overlap - 1]
        if found.right is None or found.none is None:
            right.append("–")
        else:
            right.append(
                _("%(right).1f %% right, %(none).1f %% without a majority")
                % {"right": 100 * found.right, "none": 100 * found.none}
            )
    return WhatIfRow(
        overlap=row.overlap,
        labels=row.labels,
        cost=money(project, with_hidden(project, row.labels)),
        end=end_words(end),
        right=tuple(right),
        chosen=row.overlap == chosen,
    )


def axis_names(report: Mapping[str, Any]) -> list[str]:
    return [str(AXES[axis]) for axis in report["axes"]]


def with_hidden(project: Project, labels: int) -> int:
    """Labels with the gold and repeated items that come between them."""
    hidden = project.gold_percent + project.repeat_percent
    return round(labels * 100 / (100 - hidden))


def money(project: Project, labels: int) -> str:
    """The price of so many labels, or a dash where labels have none."""
    if not project.price_cents:
        return "–"
    return f"{labels * project.price_cents / 100:,.2f} {project.currency}"


def daily(days: list[list[int]], *, window: int = WINDOW) -> list[int]:
    """Labels that fill places by whole day, oldest first: the last two weeks, without today."""
    if not days:
        return []
    today = timezone.localdate().toordinal()
    places = {day: filled for day, _all, filled in days}
    first = max(days[0][0], today - window)
    return [places.get(day, 0) for day in range(first, today)]


def shown_days(days: list[list[int]]) -> tuple[list[str], list[int]]:
    """Names and numbers for the chart: all labels given here by day, today at the end."""
    if not days:
        return [], []
    today = timezone.localdate().toordinal()
    given = {day: total for day, total, _filled in days}
    first = max(days[0][0], today - CHART_DAYS + 1)
    span = range(first, today + 1)
    names = [date_format(date.fromordinal(day), "j M") for day in span]
    return names, [given.get(day, 0) for day in span]


def end_words(found: Finish) -> tuple[str, str]:
    """A date and its interval, or why there is none and nothing."""
    reasons = {
        Unknown.NOTHING_LEFT: _("nothing is left to do"),
        Unknown.NOT_OPEN: _("cannot be told: the project is not open"),
        Unknown.FEW_DAYS: _("cannot be told yet: fewer than three whole days of work"),
        Unknown.NO_WORK: _("cannot be told: nobody has worked in the last two weeks"),
    }
    if found.unknown is not None:
        return reasons[found.unknown], ""
    if found.days is None or found.lo is None:
        return _("more than ten years away at this pace"), ""
    values = {"lo": _date(found.lo), "hi": _date(found.hi)}
    if found.hi is None:
        return _date(found.days), _("%(lo)s or later, no end can be told") % values
    return _date(found.days), _("%(lo)s … %(hi)s") % values


def _date(days: int | None) -> str:
    if days is None:
        return "–"
    return date_format(timezone.localdate() + timedelta(days=days), "j M Y")

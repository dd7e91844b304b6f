"""The page of evidence: rows, pictures and sentences of what was found."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from django.db.models import Count
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _

from arena.enums import RoundState
from arena.models import RoundContestant
from training.enums import PromotionKind
from training.evidence.battles import AxisResult, Tally
from training.evidence.intervals import Interval
from training.selectors.evidence import BASE, Evidence, Group, Predicted
from webapp.catalog.enums import Axis
from webapp.catalog.models import Contestant
from webapp.catalog.strata import stratum_label
from webapp.core.charts_curves import Curve, Point, curve_chart, swatch
from webapp.core.charts_differences import DifferenceRow, difference_chart

DIAGONAL = (Point(0.0, 0.0), Point(1.0, 1.0))


@dataclass(frozen=True)
class ListRow:
    contestant: Contestant
    kind: str
    rounds: int


@dataclass(frozen=True)
class Line:
    """One row of a table of results, as text."""

    name: str
    win: int
    tie: int
    loss: int
    both_bad: int
    score: str
    bounds: str
    n: int
    raters: int


@dataclass(frozen=True)
class AxisPage:
    """One axis against one opponent."""

    name: str
    said: str
    picture: SafeString
    rows: list[Line]


@dataclass(frozen=True)
class ScorerPage:
    """One reward model on one axis: sentences, numbers, calibration."""

    one: Predicted
    axis: str
    role: str
    verdict: str
    state: str
    agreement: str
    predicted: str
    people: str
    gap: str
    picture: SafeString
    legend: list[tuple[SafeString, str]]
    bins: list[tuple[str, str, int]]


def list_rows(contestants: Iterable[Contestant]) -> list[ListRow]:
    """With the number of their unsealed rounds, in one query."""
    rows = list(contestants)
    found = RoundContestant.objects.filter(contestant__in=rows, round__state=RoundState.UNSEALED)
    counts = dict(found.values_list("contestant").annotate(n=Count("pk")).order_by())
    return [ListRow(row, promoted_as(row), counts.get(row.pk, 0)) for row in rows]


def promoted_as(contestant: Contestant) -> str:
    kind = (contestant.provenance or {}).get("promotion", "")
    return str(PromotionKind(kind).label) if kind in PromotionKind.values else ""


def page_of(found: Evidence) -> dict[str, Any]:
    """What the template needs; texts in the reader's language."""
    groups: list[dict[str, Any]] = [
        {
            "key": group.key,
            "title": _title(found, group),
            "axes": [_axis(name, result) for name, result in group.axes.items()],
            "predictions": [_scorer(one) for one in found.predictions if one.group == group.key],
        }
        for group in found.groups
    ]
    return {
        "found": found,
        "groups": groups,
        "reward_models": [
            (str(Axis(branch).label), one.run, one.rewarded, found.runs.get(branch))
            for branch, one in found.asked.items()
        ],
        "warned": [page for g in groups for page in g["predictions"] if page.one.compared.flatters],
    }


def _title(found: Evidence, group: Group) -> str:
    if group.key == BASE:
        return _("Against its base, %(name)s") % {"name": found.base}
    return _("Against everybody in the round")


def _axis(name: str, result: AxisResult) -> AxisPage:
    label = str(Axis(name).label)
    rows: list[tuple[str, Tally]] = [
        (_("all"), result.whole),
        (_("seen personas"), result.seen),
        (_("unseen personas (holdout)"), result.unseen),
        *((stratum_label(stratum), part) for stratum, part in result.strata.items()),
    ]
    drawn = [
        DifferenceRow(title, _off(t.mean), _off(t.low), _off(t.high), t.n) for title, t in rows
    ]
    picture = difference_chart(drawn, title=_("%(axis)s: mean score − ½") % {"axis": label})
    return AxisPage(label, _said(result.whole), picture, [_line(*row) for row in rows])


def _off(value: float | None) -> float | None:
    """Above 0: more than half of the points."""
    return None if value is None else value - 0.5


def _said(whole: Tally) -> str:
    """The result in a sentence."""
    if not whole.n:
        return _("There are no votes.")
    if whole.low is None or whole.high is None:
        return _("Too few people or questions for an interval.")
    if whole.low > 0.5:
        return _("Shown to be better.")
    if whole.high < 0.5:
        return _("Shown to be worse.")
    return _("No difference is shown.")


def _line(name: str, part: Tally) -> Line:
    counts = (part.win, part.tie, part.loss, part.both_bad)
    score = "–" if part.mean is None else f"{part.mean:.2f}"
    return Line(name, *counts, score, bounds(part.score), part.n, part.raters)


def bounds(of: Interval, percent: bool = False) -> str:
    """Like “0.52 – 0.71”."""
    if of.low is None or of.high is None:
        return "–"
    if percent:
        return f"{100 * of.low:.0f} – {100 * of.high:.0f} %"
    return f"{of.low:.2f} – {of.high:.2f}".replace("-", "−")


def _scorer(one: Predicted) -> ScorerPage:
    c = one.compared
    auditors = one.scorer.endswith("/auditors")
    if auditors:
        role = _("auditors, which never give reward")
    else:
        role = _("gave the reward") if one.rewarded else _("judged at the gate")
    verdict, state = _verdict(one)
    curves = [
        Curve(_("people"), [_point(b.predicted, b.people) for b in c.bins]),
        Curve(_("as predicted"), DIAGONAL),
    ]
    title = _("%(scorer)s: predicted chance and share of wins") % {"scorer": one.scorer}
    picture = curve_chart(curves, title=title, reach=(0.0, 1.0)) if c.bins else SafeString("")
    return ScorerPage(
        one=one,
        axis=str(Axis(one.axis).label),
        role=role,
        verdict=verdict,
        state=state,
        agreement=_share(c.agreement),
        predicted=_percent(c.predicted_mean),
        people=_share(c.people),
        gap=_points(c.flattery),
        picture=picture,
        legend=[(swatch(k), curve.name) for k, curve in enumerate(curves)],
        bins=[(_percent(b.predicted), _share(b.people), b.people.n) for b in c.bins],
    )


def _verdict(one: Predicted) -> tuple[str, str]:
    """In plain words, and the colour of the badge."""
    c = one.compared
    if c.flatters:
        return _("It flatters this model: it promised more wins than people gave."), "err"
    if c.low_balls:
        return _("It underrates this model: people gave more wins than it promised."), "warn"
    if c.flattery.low is None:
        return _("Too few decided votes to say."), ""
    return _("No flattery is shown."), "ok"


def _point(predicted: float, people: Interval) -> Point:
    return Point(predicted, people.mean, people.low, people.high)


def _percent(value: float | None) -> str:
    return "–" if value is None else f"{100 * value:.0f} %"


def _share(of: Interval) -> str:
    if of.mean is None:
        return "–"
    return f"{_percent(of.mean)} ({bounds(of, percent=True)})"


def _points(of: Interval) -> str:
    """Percentage points with their sign."""
    if of.mean is None:
        return "–"
    said = f"{100 * of.mean:+.0f}"
    if of.low is not None and of.high is not None:
        said += f" ({100 * of.low:+.0f} … {100 * of.high:+.0f})"
    return said.replace("-", "−")


def evidence_of_run(run_pk: int) -> list[Contestant]:
    """Contestants that a run became."""
    return list(Contestant.objects.filter(provenance__run__id=run_pk).order_by("pk")[:20])


def contestant_of(promotion: Any) -> Contestant | None:
    """What a promotion made."""
    if promotion is None:
        return None
    return Contestant.objects.filter(name=promotion.name, version=promotion.version).first()

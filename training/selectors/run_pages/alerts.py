"""Alerts as the run page shows them: what was seen, its picture, what to do, what to change."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from training.models import Alert, TrainingRun
from training.selectors.run_pages.curves import Chart, Curves, Legend, Pairs
from training.selectors.run_pages.settings import Change, changes, flat, resolved
from training.words import metrics, rules
from webapp.core.charts_curves import Curve, Mark, curve_chart, number, swatch, thin

MOST = 4  # pictures of one alert


@dataclass(frozen=True)
class AlertCard:
    """`n` is the number of its mark on the time axis. `clones` are runs that took its proposal."""

    pk: int
    n: int
    rule: str
    title: str
    badge: str
    step: int
    at: Any
    said: str
    advice: str
    pictures: list[Chart]
    changes: list[Change]
    clones: list[TrainingRun]
    key: str  # of the one-click clone


def alert_cards(run: TrainingRun, alerts: Sequence[Alert], curves: Curves) -> list[AlertCard]:
    """In the order of steps. Clones are read in one statement for all alerts."""
    had = flat(resolved(run))
    ids = [alert.pk for alert in alerts]
    cloned: dict[int | None, list[TrainingRun]] = {}
    if ids:
        for clone in TrainingRun.objects.filter(from_alert__in=ids).order_by("pk"):
            cloned.setdefault(clone.from_alert_id, []).append(clone)
    return [
        AlertCard(
            pk=alert.pk,
            n=n,
            rule=alert.rule,
            title=str(rules.words_of(alert.rule).title),
            badge="err" if alert.severity == "critical" else "warn",
            step=alert.step,
            at=alert.at,
            said=rules.sentence(alert.rule, alert.evidence),
            advice=rules.advice(alert.rule, alert.evidence),
            pictures=pictures(alert, n, curves),
            changes=changes(had, alert.changes),
            clones=cloned.get(alert.pk, []),
            key=uuid.uuid4().hex,
        )
        for n, alert in enumerate(alerts, 1)
    ]


def curves_of(alerts: Sequence[Alert]) -> tuple[str, ...]:
    """The names of all curves that these alerts show."""
    names = (n for alert in alerts for n in alert.evidence.get("curves", ())[:MOST])
    return tuple(dict.fromkeys(names))


def pictures(alert: Alert, n: int, curves: Curves) -> list[Chart]:
    """The curves that the rule looked at, over its window and half as much around it."""
    window = alert.evidence.get("window") or (alert.step, alert.step)
    first, last = float(window[0]), float(window[1])
    around = max((last - first) / 2, 5)
    found = []
    for name in alert.evidence.get("curves", ())[:MOST]:
        near = within(curves.pairs(name), first - around, last + around)
        if near:
            svg = curve_chart(
                [Curve(metrics.metric_name(name), thin(near))],
                title=metrics.metric_name(name),
                reach=(max(0.0, first - around), max(near[-1][0], last)),
                window=(first, last),
                marks=[Mark(alert.step, str(n), alert.severity == "critical")],
                height=160,
            )
            ident = f"alert-{alert.pk}-{name.replace('/', '-')}"
            title = metrics.metric_name(name)
            shown = next((v for s, v in reversed(near) if s <= alert.step), None)
            legend = [Legend(swatch(0), title, number(shown))]
            found.append(Chart(ident, title, metrics.unit(name), svg, legend))
    return found


def within(pairs: Pairs, first: float, last: float) -> Pairs:
    return [(step, value) for step, value in pairs if first <= step <= last]

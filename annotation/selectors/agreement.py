"""Statistics in words: numbers with their intervals, and a sentence where there is none."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext

from annotation.agreement import Measure, Reason
from annotation.enums import Axis
from annotation.gold import interval
from annotation.statistics import BOTH
from webapp.catalog.strata import stratum_label

AXES: dict[str, Any] = {BOTH: gettext_lazy("both axes together"), **dict(Axis.choices)}
MEASURES: dict[str, Any] = {
    Measure.PERCENT: gettext_lazy("share of equal labels"),
    Measure.FLEISS: gettext_lazy("Fleiss’ kappa"),
    Measure.ALPHA_NOMINAL: gettext_lazy("Krippendorff’s alpha, nominal"),
    Measure.ALPHA_ORDINAL: gettext_lazy("Krippendorff’s alpha, ordinal"),
    Measure.AC1: gettext_lazy("Gwet’s AC1"),
}
MEANINGS: dict[str, Any] = {
    Measure.PERCENT: gettext_lazy(
        "How often two labels of the same item are equal. Chance is not taken off."
    ),
    Measure.FLEISS: gettext_lazy(
        "Agreement beyond chance, where chance goes by how common each verdict is."
    ),
    Measure.ALPHA_NOMINAL: gettext_lazy(
        "The same idea, exact for few items and for different numbers of labels per item."
    ),
    Measure.ALPHA_ORDINAL: gettext_lazy(
        "“Equal” lies between the two sides, so first against equal is a smaller disagreement than "
        "first against second. “Both are bad” has no place in that order and counts as missing."
    ),
    Measure.AC1: gettext_lazy(
        "Agreement beyond chance that stays meaningful where nearly all labels are the same."
    ),
}


@dataclass(frozen=True)
class Number:
    """A value with its interval as numbers and as text; `why`: a sentence about what is missing."""

    value: float | None
    lo: float | None
    hi: float | None
    n: int
    why: str = ""
    text: str = "–"
    interval: str = "–"


@dataclass(frozen=True)
class MeasureRow:
    label: str
    meaning: str
    number: Number


@dataclass(frozen=True)
class Block:
    """The measures of the project, or of one stratum, on one axis."""

    label: str
    items: int
    labels: int
    annotators: int
    rows: tuple[MeasureRow, ...]

    def of(self, measure: str) -> Number:
        return self.rows[list(MEASURES).index(Measure(measure))].number

    @property
    def percent(self) -> Number:
        return self.of(Measure.PERCENT)

    @property
    def alpha(self) -> Number:
        return self.of(Measure.ALPHA_NOMINAL)

    @property
    def ac1(self) -> Number:
        return self.of(Measure.AC1)


def why_missing(reason: str, n: int) -> str:
    """What the reason of an estimate means, in a sentence."""
    sentences = {
        Reason.NO_PAIRS: _("Not defined: no item has two labels that can be compared."),
        Reason.NO_VARIATION: _(
            "Not defined: all labels are the same, so chance alone would agree every time and "
            "leaves nothing to measure. Look at the share of equal labels and at AC1."
        ),
        Reason.ALL_AGREE: _("No interval: no disagreement was seen, so drawing again shows none."),
        Reason.FEW_ITEMS: ngettext(
            "No interval: %(n)d item is too few.", "No interval: %(n)d items are too few.", n
        )
        % {"n": n},
    }
    return sentences.get(Reason(reason), "") if reason else ""


def measured(estimate: Sequence[Any], n: int) -> Number:
    """An estimate of the report: [value, low, high, reason]."""
    value, lo, hi, reason = estimate
    return Number(value, lo, hi, n, why_missing(reason, n), _plain(value), _range(lo, hi, _plain))


def counted_share(share: Sequence[float]) -> Number:
    """A share of the report, [hits, chances], with the interval of its Beta posterior."""
    hits, n = share
    if not n:
        return Number(None, None, None, 0)
    lo, hi = interval(hits, n)
    value = hits / n
    return Number(value, lo, hi, int(n), "", _percent(value), _range(lo, hi, _percent))


def _plain(value: float | None) -> str:
    return "–" if value is None else f"{value:.3f}".replace("-", "−")


def _percent(value: float | None) -> str:
    return "–" if value is None else f"{100 * value:.0f} %"


def _range(lo: float | None, hi: float | None, form: Any) -> str:
    if lo is None or hi is None:
        return "–"
    low, high = form(lo), form(hi)
    return f"{low.removesuffix(' %')} … {high}"


def block_of(found: Mapping[str, Any], label: str) -> Block:
    rows = tuple(
        MeasureRow(
            str(MEASURES[name]),
            str(MEANINGS[name]),
            measured(found["measures"][name], found["items"]),
        )
        for name in MEASURES
    )
    return Block(label, found["items"], found["labels"], found["annotators"], rows)


def whole(report: Mapping[str, Any], axis: str) -> Block:
    return block_of(report["agreement"][axis][""], str(AXES[axis]))


def by_stratum(report: Mapping[str, Any], axis: str) -> list[Block]:
    return [
        block_of(found, stratum_label(stratum))
        for stratum, found in report["agreement"][axis].items()
        if stratum
    ]


def axes_of(report: Mapping[str, Any]) -> list[tuple[str, str]]:
    return [(name, str(AXES[name])) for name in AXES if name in report["agreement"]]


# Segments


def segment_sentences(report: Mapping[str, Any], axis: str) -> list[str]:
    """Whether people of different strata want different things, with counts and intervals."""
    found = report["segments"].get(axis)
    if found is None:
        return []
    what = {
        "texts": _("the same two answers"),
        "rivals": _("answers of the same two producers to the same question"),
    }
    sentences: list[str] = []
    for part, words in what.items():
        if found[part]["compared"] or found[part]["across"] is not None:
            sentences += _difference_sentences(found[part], words)
    return sentences or [
        _("No pair was judged for people of different segments, so nothing can be compared.")
    ]


def _difference_sentences(found: Mapping[str, Any], what: str) -> list[str]:
    lo, hi = found["interval"]
    sentences = []
    if found["compared"]:
        sentences.append(
            _(
                "For %(what)s, the majority of one segment differs from that of another in "
                "%(differ)d of %(compared)d cases (95 %% interval %(range)s)."
            )
            % {
                "what": what,
                "differ": found["differ"],
                "compared": found["compared"],
                "range": _range(lo, hi, _percent),
            }
        )
    sentences.append(_verdict(found, what))
    return sentences


def _verdict(found: Mapping[str, Any], what: str) -> str:
    across, within, chance = found["across"], found["within"], found["by_chance"]
    if not chance or across is None or within is None:
        return _(
            "Each segment has one label for %(what)s, so a difference between people cannot be "
            "told from one between annotators. Ask for two labels per item."
        ) % {"what": what}
    values = {
        "across": _percent(across),
        "within": _percent(within),
        "range": _range(chance[0], chance[1], _percent),
    }
    if found["beyond_chance"]:
        return (
            _(
                "People of these segments want different things: two labels disagree in %(across)s "
                "of cases across segments and in %(within)s within one; if segments did not "
                "matter, it would be %(range)s across them. This is not noise, and more labels "
                "will not remove it."
            )
            % values
        )
    return (
        _(
            "No sign that segments want different things: two labels disagree in %(across)s of "
            "cases across segments and in %(within)s within one, and %(range)s would be expected "
            "across them if segments did not matter."
        )
        % values
    )


@dataclass(frozen=True)
class StrataRow:
    one: str
    other: str
    number: Number


def segment_rows(report: Mapping[str, Any], axis: str) -> list[StrataRow]:
    """Pairs of strata: how often their majorities on the same two answers differ."""
    found = report["segments"].get(axis)
    rows = found["texts"]["strata"] or found["rivals"]["strata"] if found else []
    return [
        StrataRow(stratum_label(one), stratum_label(other), counted_share([differ, compared]))
        for one, other, compared, differ in rows
    ]


@dataclass(frozen=True)
class DependsRow:
    label: str
    number: Number


def depends_rows(report: Mapping[str, Any]) -> list[DependsRow]:
    """How often labels carry “another person would choose otherwise”, in all and by stratum."""
    return [
        DependsRow(stratum_label(stratum) if stratum else _("all items"), counted_share(share))
        for stratum, share in report["depends"].items()
    ]

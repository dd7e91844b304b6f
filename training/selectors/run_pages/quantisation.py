"""What a quantisation left and what an adapter gained, in words and as rows of a table."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from training.enums import RunKind
from training.models import Checkpoint, TrainingRun
from training.quantisation_policies import KEPT, quantised
from webapp.core.charts_curves import number

UNKNOWN = _("Its weights have %(bits)s bits; how much of the sensitivity to the persona is left is "
             "not known.")  # fmt: skip
ADAPTED = _("It is an adapter on weights of %(bits)s bits; with it %(share)s %% of the sensitivity "
             "to the persona are there, %(least)s %% are needed for a promotion.")  # fmt: skip
LEFT = _("Its weights have %(bits)s bits; %(share)s %% of the sensitivity to the persona are left, "
          "%(least)s %% are needed for a promotion.")  # fmt: skip


@dataclass(frozen=True)
class Row:
    """Values as text."""

    name: str
    before: str
    after: str
    value: str
    interval: str
    n: str


@dataclass(frozen=True)
class Rounded:
    passed: bool
    said: str
    rows: list[Row]


@dataclass(frozen=True)
class Adapted:
    gain: bool
    said: str
    rows: list[Row]


def context(run: TrainingRun) -> dict[str, Any]:
    """Both cards of the run page; None for a run that has none."""
    facts: Mapping[str, Any] = (run.manifest or {}).get("facts") or {}
    return {"rounded": _rounded(run, facts), "adapted": _adapted(facts)}


def _rounded(run: TrainingRun, facts: Mapping[str, Any]) -> Rounded | None:
    found = facts.get("sensitivity")
    if run.kind != RunKind.QUANTIZE or not found:
        return None
    rows = [
        _row(gettext("sensitivity to the persona, bits"), found, "original", "quantised", "ratio")
    ]
    if margin := found.get("margin"):
        name = gettext("margin of the reward model between personas")
        rows.append(_row(name, margin, "original", "quantised", "ratio"))
    left = quantised(run)  # of all quantisations behind it: that is what promotion asks about
    passed = left is not None and left.ratio is not None and left.ratio >= KEPT
    return Rounded(passed, rounded_words(run), rows)


def rounded_words(run: TrainingRun, checkpoint: Checkpoint | None = None) -> str:
    """Which quantisation stands behind a model and what it left; empty where there is none."""
    found = quantised(run, checkpoint)
    if found is None:
        return ""
    if found.ratio is None:
        return str(UNKNOWN) % {"bits": found.bits}
    share = {"bits": found.bits, "share": f"{100 * found.ratio:.0f}", "least": f"{100 * KEPT:.0f}"}
    return str(ADAPTED if found.adapted else LEFT) % share


def _adapted(facts: Mapping[str, Any]) -> Adapted | None:
    found = facts.get("adaptation")
    if not found:
        return None
    names = {
        "sensitivity": gettext("sensitivity to the persona, bits"),
        "reward": gettext("reference reward"),
    }
    rows = [_row(name, found[key], "before", "after", "difference") for key, name in names.items()]
    gained = gettext("A gain is shown: an interval lies above 0, and nothing is shown to be lower.")
    none = gettext("No gain is shown: no interval lies above 0, or something is shown to be lower.")
    base = (
        gettext("The quantised weights are what they were.")
        if found["base"]["unchanged"]
        else gettext("The quantised weights changed: this is no adaptation.")
    )
    return Adapted(bool(found["gain"]), f"{gained if found['gain'] else none} {base}", rows)


def _row(name: str, found: Mapping[str, Any], before: str, after: str, value: str) -> Row:
    low, high = found.get("low"), found.get("high")
    interval = "–" if low is None or high is None else f"{number(low)} … {number(high)}"
    first, second, third = (number(found.get(key)) for key in (before, after, value))
    return Row(name, first, second, third, interval, str(found.get("n") or 0))

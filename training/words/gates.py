"""Words for gates: reasons of a verdict, rules, scorers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.utils.translation import gettext as _now
from django.utils.translation import gettext_lazy as _

from webapp.catalog.enums import Axis
from webapp.catalog.strata import stratum_label
from webapp.core.charts_differences import signed

REASONS: dict[str, Any] = {
    "candidate_errors": _("%(errors)s of %(n)s answers of the candidate have no score on this "
                          "axis; at most %(limit)s may."),
    "baseline_errors": _("%(errors)s of %(n)s answers of the baseline have no score on this axis; "
                         "at most %(limit)s may."),
    "too_few": _("Only %(prompts)s prompts could be compared; %(minimum)s are needed."),
    "quality_lower": _("Quality is shown to be lower: %(mean)s, at most %(high)s."),
    "personalization_lower": _("Personalization is shown to be lower: %(mean)s, at most %(high)s."),
    "stratum_lower": _("This stratum lies at %(mean)s, below its margin of −%(margin)s."),
    "same_answers": _("It says the same to many questions: its commonest answer goes to "
                      "%(candidate)s of the questions, that of the baseline to %(baseline)s."),
    "edge_regressions": _("%(found)s edge cases came back; at most %(limit)s may."),
    "no_gain": _("More personalization is not shown: the lower bound is %(low)s."),
    "quality_not_shown": _("Personalization gained, but it is not shown that quality holds: its "
                           "lower bound is %(low)s, the margin −%(margin)s. More prompts may show "
                           "it."),
}  # fmt: skip
SIGNED = ("mean", "high", "low")
RULES: dict[str, tuple[Any, Any]] = {
    "quality_margin": (_("Margin of quality"), _("It may not be lower by more than this.")),
    "gain": (_("Gain in personalization"), _("It must be higher by more than this.")),
    "stratum_margin": (_("Margin of a stratum"), _("None may be lower by more, on either axis.")),
    "stratum_minimum": (_("Prompts of a stratum"), _("Smaller ones are shown, not judged.")),
    "error_limit": (_("Answers without a score"), _("Share of either side; with more there is no "
                                                   "verdict.")),
    "minimum": (_("Prompts, at least"), _("With fewer there is no verdict.")),
    "level": (_("Confidence, one-sided"), _("0.975: an equal model passes in at most 2.5 of 100 "
                                            "gates.")),
    "resamples": (_("Draws of the bootstrap"), ""),
    "sameness": (_("The same answer to many questions"),
                 _("Share of the questions by which its commonest answer may be more common than "
                   "that of the baseline; 1: not judged.")),
    "regressions": (_("Edge cases that may come back"), _("Empty: they are reported, not judged.")),
    "seed": (_("Seed"), ""),
}  # fmt: skip
SCORERS: dict[str, Any] = {
    "quality": _("the members of its reward model"),
    "personalization": _("the members of its reward model"),
    "quality/auditors": _("the auditors of its reward model, which never gave reward"),
    "personalization/auditors": _("the auditors of its reward model, which never gave reward"),
    "rules": _("rules, where the rows have a task that says what to check"),
}


def reason(said: Mapping[str, Any]) -> str:
    """One reason of a verdict as a sentence, with its axis and stratum."""
    params = {
        name: signed(value) if name in SIGNED else value for name, value in said["params"].items()
    }
    if said["code"] == "same_answers":
        params = {name: f"{value:.0%}" for name, value in said["params"].items()}
    where = [str(Axis(said["axis"]).label)] if said["axis"] else []
    where += [stratum_label(said["stratum"])] if said["stratum"] else []
    sentence = str(REASONS[said["code"]]) % params
    return f"{', '.join(where)}: {sentence}" if where else sentence


def explain_failure(reason: str) -> str:
    """Why a gate was not measured."""
    return _now("An evaluation did not end well (%(reason)s).") % {"reason": reason or "–"}

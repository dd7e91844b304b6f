"""Which items leave, as what, and why the others stay. Each item that stays has one reason. Pure.

The same rule says what the page counts beforehand and what the export writes.
"""

from __future__ import annotations

from dataclasses import dataclass

from annotation.exports.options import Options
from annotation.exports.rows import BOTH_BAD, FIRST, SECOND, TIE, Facts, Outcome

# Reasons, in the order in which they are looked at.
REASONS = (
    "gold", "withdrawn", "holdout", "dropped", "held", "synthetic", "not_reviewed", "rejected",
    "external", "undecided", "unresolved", "source", "posterior", "tie", "both_bad", "same_text",
    "evaluation", "partner", "changed",
)  # fmt: skip
SETTLED_ANYWAY = ("adjudicated", "synthetic")


@dataclass(frozen=True, slots=True)
class Verdict:
    """What an item says on the axis. `probability` is its posterior."""

    verdict: str
    source: str
    probability: float
    smoothing: float


@dataclass(frozen=True, slots=True)
class Choice:
    """Either a reason to leave the item out, or what it says (None in our own formats)."""

    reason: str = ""
    verdict: Verdict | None = None


def choose(facts: Facts, options: Options) -> Choice:
    """Whether the item is exported. Looks at nothing but the item itself."""
    reason = _unfit(facts, options)
    if reason:
        return Choice(reason)
    if options.own:
        decided = any(outcome.verdict for outcome in facts.outcomes.values())
        return Choice("" if decided or options.undecided else "undecided")
    return _on_axis(facts.outcomes.get(options.axis), facts, options)


def _unfit(facts: Facts, options: Options) -> str:
    """Why an item cannot leave whatever it says. Gold never leaves, nor what ever was gold."""
    everything = options.own and options.undecided
    checks = (
        ("gold", facts.gold),
        ("withdrawn", not facts.readable),
        ("holdout", facts.holdout),
        ("dropped", facts.state == "dropped" and facts.review != "rejected" and not everything),
        ("held", facts.state == "held" and not everything),
        ("synthetic", facts.synthetic and options.synthetic == "no"),
        ("rejected", facts.review == "rejected"),
        (
            "not_reviewed",
            facts.synthetic and options.synthetic == "reviewed" and facts.review != "accepted",
        ),
        ("external", facts.external and not options.external),
    )
    return next((reason for reason, holds in checks if holds), "")


def _on_axis(outcome: Outcome | None, facts: Facts, options: Options) -> Choice:
    if outcome is None:
        return Choice("undecided")
    found = outcome
    if outcome.source == "unresolved":
        likely = likeliest(outcome)
        if "unresolved" not in options.sources or likely is None:
            return Choice("unresolved")
        if 100 * outcome.posterior[likely] < options.unresolved:
            return Choice("unresolved")
        found = Outcome(likely, "unresolved", outcome.posterior, outcome.labels)
    elif outcome.source != "synthetic" and outcome.source not in options.sources:
        return Choice("source")
    return _by_verdict(found, facts, options)


def _by_verdict(outcome: Outcome, facts: Facts, options: Options) -> Choice:
    probability = outcome.posterior.get(outcome.verdict, 1.0)
    if outcome.source not in SETTLED_ANYWAY and 100 * probability < options.minimum:
        return Choice("posterior")
    if outcome.verdict == TIE and options.ties == "drop":
        return Choice("tie")
    if outcome.verdict == BOTH_BAD and options.both_bad == "drop":
        return Choice("both_bad")
    if facts.same_text:
        return Choice("same_text")
    return Choice(verdict=Verdict(outcome.verdict, outcome.source, probability, smoothing(outcome)))


def likeliest(outcome: Outcome) -> str | None:
    """The verdict with the highest posterior; None where two share it."""
    ranked = sorted(outcome.posterior.items(), key=lambda pair: -pair[1])
    if not ranked or (len(ranked) > 1 and ranked[0][1] == ranked[1][1]):
        return None
    return ranked[0][0]


def smoothing(outcome: Outcome) -> float:
    """How probable it is that the pair stands the wrong way round, from 0 to 0.5, 4 digits.

    p(other) / (p(verdict) + p(other)), for label smoothing per row. An adjudicator may decide
    against the labels; then it says 0.5 at most, because training the other way is never meant.
    """
    if outcome.verdict not in (FIRST, SECOND):
        return 0.0
    other = SECOND if outcome.verdict == FIRST else FIRST
    chosen, rejected = (outcome.posterior.get(name, 0.0) for name in (outcome.verdict, other))
    if not outcome.posterior or chosen + rejected == 0:
        return 0.0
    return round(min(rejected / (chosen + rejected), 0.5), 4)

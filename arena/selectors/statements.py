"""What a reader of ratings has to be told, in sentences of the reader's language."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from arena.enums import COMPOSITE, Axis, ExclusionRule, Variant
from arena.selectors.leaderboard import OWNER, Board

PERCENT = 100


def axis_label(axis: str) -> str:
    labels = {COMPOSITE: _("overall"), OWNER: _("personalization, owners only")}
    return labels.get(axis) or str(Axis(axis).label)


def variant_label(variant: str) -> str:
    return str(Variant(variant).label)


def simulated_sentence() -> str:
    return _("The votes of this round are simulated: no person gave them, and they prove nothing.")


def board_sentences(board: Board) -> list[str]:
    """Everything that has to be said about a board, the most important first."""
    return [
        *_simulated(board),
        _first(board),
        _interval(board),
        *side_sentences(board.result.get("side")),
        *_flow(board),
        *note_sentences(board.result.get("notes", ())),
    ]


def _simulated(board: Board) -> list[str]:
    return [simulated_sentence()] if board.simulated else []


def _first(board: Board) -> str:
    if board.first:
        return _("%(name)s is first: its rating is separated from every other one.") % {
            "name": board.first
        }
    return _("Nobody is first: the votes do not separate the leaders from one another.")


def _interval(board: Board) -> str:
    confidence = round(PERCENT * float(board.snapshot.spec.get("confidence", 0.95)))
    raters, contexts = board.result.get("raters"), board.result.get("contexts")
    return _(
        "Verdicts: %(votes)s; raters: %(raters)s; contexts: %(contexts)s. Intervals hold with "
        "%(percent)s %% confidence for each rating; ranks hold for all contestants at once."
    ) % {
        "votes": f"{board.result.get('votes', 0):,}",
        "raters": "–" if raters is None else f"{raters:,}",
        "contexts": "–" if contexts is None else f"{contexts:,}",
        "percent": confidence,
    }


def side_sentences(side: Mapping[str, Any] | None) -> list[str]:
    """Whether standing on the left helped."""
    if not side or side.get("elo") is None:
        return []
    values = {"elo": _signed(side["elo"]), "share": _percent(side.get("left_share"))}
    lo, hi = side.get("lo"), side.get("hi")
    if lo is None or hi is None:
        text = _(
            "Standing on the left was worth %(elo)s points; %(share)s of decided votes went left."
        )
    elif lo <= 0 <= hi:
        text = _(
            "No side effect was found: standing on the left was worth %(elo)s points, within its "
            "interval around 0; %(share)s of decided votes went left."
        )
    else:
        text = _(
            "There is a side effect: standing on the left was worth %(elo)s points, and %(share)s "
            "of decided votes went left. Sides are balanced, so it favours nobody."
        )
    return [text % values]


def _signed(points: float) -> str:
    """Points with their sign; what rounds to 0 has none."""
    text = f"{points:+z,.0f}"
    return "0" if text == "+0" else text.replace("-", "−")


def _flow(board: Board) -> list[str]:
    """How many votes the pre-registered rules leave out, and whether this board does so."""
    rules = {rule: n for rule, n in board.flow.items() if rule != "voted"}
    if not rules and not board.round.exclusions:
        return [_("No exclusions were registered for this round.")]
    if not rules:
        return [_("The pre-registered exclusions leave out no vote.")]
    said = ", ".join(f"{ExclusionRule(rule).label}: {n:,}" for rule, n in rules.items())
    left_out, voted = sum(rules.values()), board.flow.get("voted", 0)
    values = {"n": f"{left_out:,}", "all": f"{voted:,}", "why": said}
    if board.variant == Variant.EXCLUDED:
        text = _("Left out by the pre-registered rules: %(n)s of %(all)s votes (%(why)s).")
    else:
        text = _(
            "The pre-registered rules would leave out %(n)s of %(all)s votes (%(why)s); here they "
            "count."
        )
    return [text % values]


def _percent(share: float | None) -> str:
    return "–" if share is None else f"{PERCENT * share:.0f} %"


def note_sentences(notes: Sequence[Mapping[str, Any]]) -> list[str]:
    """The notes of a rating; one that has no translation yet is said as it was stored."""
    return [note_sentence(note) for note in notes]


def note_sentence(note: Mapping[str, Any]) -> str:
    text, names = str(note.get("text", "")), ", ".join(note.get("names") or ())
    known = _known_note(str(note.get("code", "")), len(note.get("names") or ()))
    if known is None:
        return text
    axis, colon, _rest = text.partition(": ")
    sentence = known % {"names": names}
    return f"{axis_label(axis)}: {sentence}" if colon and axis in Axis.values else sentence


def _known_note(code: str, n: int) -> str | None:
    """The sentence of a stable code."""
    sentences = {
        "no_votes_at_all": _("There are no votes, so nothing is rated."),
        "no_votes": ngettext(
            "%(names)s has no votes and therefore no rating.",
            "%(names)s have no votes and therefore no rating.",
            n,
        ),
        "never_loses": _("Never lost or tied, so the rating has no upper bound: %(names)s."),
        "never_wins": _("Never won or tied, so the rating has no lower bound: %(names)s."),
        "regularised": _(
            "No chain of wins leads from each of %(names)s to every other, so maximum likelihood "
            "has no finite answer. The fit was regularised: every one of these contestants was "
            "given one virtual tie, spread evenly over the others."
        ),
        "only_ties": _("Every vote is a tie: the contestants cannot be told apart."),
        "no_ties": _("There are no ties, so the tie parameter is 0 (plain Bradley–Terry)."),
        "not_converged": _("The fit did not converge to full precision."),
        "variance_raised": _(
            "There are too few votes for the two-way covariance of every contestant: where it fell "
            "below a quarter of what independent votes would have, it was raised to that quarter."
        ),
        "cluster_unknown": _("The votes do not say who gave them or on what."),
        "one_cluster": _("All votes come from one rater or one context, so there is no interval."),
        "disconnected": _(
            "The contestants fall into groups that never met, so ratings compare only within a "
            "group."
        ),
        "anchor_unrated": _("The anchor %(names)s has no rating here; the mean takes its place."),
        "side_unknown": _("The votes cannot tell what standing on the left is worth."),
        "bootstrap_raters_only": _(
            "The bootstrap resamples raters only; what contexts share is not in the interval."
        ),
        "bootstrap_regularised": _("Some bootstrap samples had to be regularised."),
        "online_elo": _(
            "Online Elo is a diagnostic: it depends on the order of the votes and is not the "
            "rating."
        ),
        "rounds_not_joined": _(
            "These rounds share no contestant, so their ratings cannot be put on one scale: "
            "%(names)s."
        ),
        "single_link": _("Joined through a single shared contestant: %(names)s."),
    }
    return sentences.get(code)

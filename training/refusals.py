"""The sentences behind codes: filters that do not fit, freezes that were refused, rows left out."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.utils.translation import gettext_lazy as _

from training.filters import FilterError

FILTERS: dict[str, Any] = {
    "unknown": _("There is no such setting."),
    "choice": _("Choose one of the values that are offered."),
    "source": _("%(source)s is no source of this kind of dataset. Possible: %(allowed)s."),
    "percentage": _("Give a whole number from 0 to 100."),
    "shares": _("The shares of the splits add up to %(sum)s %%; they must add up to 100 %%."),
    "train_only": _("What a program wrote measures nothing: all rows must be for training."),
}

FREEZES: dict[str, Any] = {
    "empty": _("No row fits the filter."),
    "clash": _(
        "%(count)s rows hang together with others in such a way that their prompt and their "
        "persona would be in different splits. Allow leaving such rows out, or choose others."
    ),
    "empty_split": _(
        "The split “%(split)s” would stay empty: there are %(prompts)s prompts and %(personas)s "
        "personas, and what belongs to a split already stays there. Take more rows or set its "
        "share to 0."
    ),
    "one_directional": _(
        "The pairs teach a style, not what a person wants. In %(more)s of %(differing)s training "
        "pairs the better answer has more of “%(feature)s” (%(percent)s %%); between %(low)s %% "
        "and %(high)s %% are needed. Add the opposite direction."
    ),
    "task_clash": _(
        "“%(prompt)s” has two different tasks under the same persona. Rows of one prompt and "
        "persona share one task: correct the file, or leave an import out."
    ),
    "restless": _(
        "What the rows belong to kept changing while they were frozen. Try again when no other "
        "dataset is being frozen."
    ),
    "leak": _("Rows of the split “%(split)s” belong to “%(other)s” already."),
    "unexpected": _("Something unexpected happened. The log says more; try again."),
}

LEFT_OUT: dict[str, Any] = {
    "holdout": _("prompt or persona is held out for rounds"),
    "sealed": _("a sealed round still asks this prompt"),
    "withdrawn": _("consent was withdrawn"),
    "erased": _("a text was erased"),
    "rejected": _("a reviewer rejected it"),
    "synthetic": _("synthetic, not asked for"),
    "simulated": _("simulated, not asked for"),
    "undecided": _("not decided"),
    "decided": _("decided in another way"),
    "not_bad": _("at least one answer is not bad"),
    "tie": _("a tie"),
    "both_bad": _("both answers are bad"),
    "posterior": _("not sure enough"),
    "votes": _("too few votes"),
    "masked": _("screening masked a part"),
    "same_text": _("both answers are the same"),
    "no_persona": _("no persona"),
    "language": _("another language"),
    "category": _("another category"),
    "stratum": _("another stratum"),
    "duplicate": _("the same row again"),
    "between": _("prompt and persona are in different splits"),
    "evaluation": _("synthetic, but in a split for evaluation"),
    "partner": _("the other direction of the pair is missing"),
}

RECORDS: dict[str, tuple[Any, Any]] = {  # of imported records, beside the catalog's own
    "few_turns": (
        _("One turn alone teaches nothing."),
        _("At least one turn of the user and one of the assistant."),
    ),
    "last_assistant": (
        _("The last turn is by “%(found)s”."),
        _("The last turn is the assistant's answer, with text."),
    ),
    "same_answer": (
        _("The better answer is the bad one."),
        _("Another text, or no “better”."),
    ),
    "no_question": (
        _("Nobody asks before the assistant speaks."),
        _("A turn of the user first."),
    ),
    "no_calls": (
        _("No tool is called."),
        _("At least one call; without tools this is an instruction."),
    ),
    "tool_twice": (_("The tool “%(name)s” is declared twice."), _("Each tool once.")),
    "unknown_tool": (
        _("The tool “%(name)s” is not declared."),
        _("One of: %(allowed)s."),
    ),
    "call_unanswered": (
        _("The call “%(id)s” has no result."),
        _("A turn of the role “tool” with this tool_call_id before anybody else speaks."),
    ),
    "answer_without_call": (
        _("No open call has the id “%(id)s”."),
        _("The id of a call of the turn before, once each."),
    ),
    "call_twice": (_("The id “%(id)s” is used twice."), _("An id of its own for each call.")),
    "other_tool": (
        _("The result is by “%(found)s”, the call was to “%(name)s”."),
        _("The tool that was called."),
    ),
    "arguments_json": (
        _("The arguments are not valid JSON."),
        _("A JSON object, or its text."),
    ),
    "task_empty": (
        _("The task demands nothing."),
        _(
            "At least one of entities, numbers, forbidden, required_steps, reference_steps, words "
            "and arguments with something in it, or no task."
        ),
    ),
    "task_many": (
        _("There are %(count)s entries; at most %(limit)s are allowed."),
        _("At most %(limit)s entries."),
    ),
    "task_words": (
        _("These are not the least and the most words."),
        _("Two whole numbers, like [25, 80]; 0 is no limit, the second is not below the first."),
    ),
    "argument_missing": (
        _("The argument “%(name)s” is missing."),
        _("Every argument that the tool requires."),
    ),
}

FEATURES: dict[str, Any] = {
    "characters": _("length"),
    "lists": _("lists"),
    "questions": _("questions"),
}


def explain_filter(error: FilterError) -> str:
    return str(FILTERS[error.code]) % error.params


def explain_freeze(refusal: Mapping[str, Any]) -> str:
    """A kept refusal in the reader's language."""
    params = dict(refusal.get("params", {}))
    if "feature" in params:
        params["feature"] = str(FEATURES.get(params["feature"], params["feature"]))
    return str(FREEZES.get(refusal["code"], FREEZES["unexpected"])) % params

"""What the engine's pre-flight check says, in the reader's language.

The engine speaks English. Its fixed sentences are a table, those with numbers are patterns; what is
neither is shown as it is. In English every sentence stays what it was: a test holds this.
"""

from __future__ import annotations

import re

from django.utils.translation import gettext, gettext_noop

FIXED = (
    gettext_noop("a quantised base stays as it is: train an adapter"),
    gettext_noop("lies between 0 and 1"),
    gettext_noop("needs swaps of personas, or prompts, to measure on"),
    gettext_noop("a group needs at least 2 completions to compare"),
    gettext_noop("a judge may give at most half of the quality"),
    gettext_noop("a judge needs an address and a model"),
    gettext_noop("a member must leave a fold out"),
    gettext_noop("above 0.1 the policy hardly moves"),
    gettext_noop("above 1.1 the policy explores nonsense"),
    gettext_noop("cannot be negative"),
    gettext_noop("has no points"),
    gettext_noop("must be above 0"),
    gettext_noop("needs the folder of a trained model (run SFT first)"),
    gettext_noop("no model is named"),
    gettext_noop("no reward model is named"),
    gettext_noop("nothing holds the policy, no KL is measured"),
    gettext_noop("progress must rise from 0 to 1"),
    gettext_noop("so little lets the policy cheat"),
    gettext_noop("starts below 0.5: personalization before quality; give reward.alpha_reason"),
    gettext_noop("α lies between 0 and 1"),
    gettext_noop("is not a known setting"),
    gettext_noop("is missing"),
)
PATTERNS = (
    (r"must be one of (?P<names>.+)", gettext_noop("must be one of %(names)s")),
    (
        r"(?P<name>\S+) is not one of (?P<names>.+)",
        gettext_noop("%(name)s is not one of %(names)s"),
    ),
    (
        r"the package (?P<name>\S+) is not installed",
        gettext_noop("the package %(name)s is not installed"),
    ),
    (r"needs (?P<n>\d+) GPU, none is found", gettext_noop("needs %(n)s GPU, none is found")),
    (r"needs (?P<n>\d+) GPU, (?P<has>\d+) found", gettext_noop("needs %(n)s GPU, %(has)s found")),
    (r"needs (?P<n>\S+) GB a GPU", gettext_noop("needs %(n)s GB a GPU")),
    (
        r"needs (?P<n>\S+) GB of free disk, (?P<left>\S+) GB are left",
        gettext_noop("needs %(n)s GB of free disk, %(left)s GB are left"),
    ),
    (
        r"(?P<batch>\d+) completions × (?P<passes>\d+) passes × (?P<processes>\d+) processes = "
        r"(?P<total>\d+) is not a multiple of the group of (?P<group>\d+)\.",
        gettext_noop(
            "%(batch)s completions × %(passes)s passes × %(processes)s processes = %(total)s is "
            "not a multiple of the group of %(group)s."
        ),
    ),
)


def problem_text(message: str) -> str:
    """The sentence translated, where it is one that the engine says."""
    if message in FIXED:
        return gettext(message)
    for pattern, text in PATTERNS:
        if found := re.fullmatch(pattern, message):
            return gettext(text) % found.groupdict()
    return message

"""The letter keys of the comparison pages: what each does, and which one a person chose.

`User.preferences["keys"]` is {action: key}; {} switches the letters off. An action that is missing
in it has its default.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from django.utils.translation import gettext as _

DEFAULT_KEYS = {
    "verdicts": "v",
    "reasons": "r",
    "undo": "u",
    "skip": "s",
    "diff": "d",
    "guide": "g",
    "flag": "f",
    "help": "?",
}
DIGITS = ("1", "2", "3")  # in a row of verdicts they say how much better an answer is


def names() -> dict[str, str]:
    """What each key does, in the order of the page."""
    return {
        "verdicts": _("go to the first row"),
        "reasons": _("go to the reasons and the comment"),
        "undo": _("take the last one back"),
        "skip": _("skip"),
        "diff": _("show differences"),
        "guide": _("show the guidelines, when labelling"),
        "flag": _("report a problem, when labelling"),
        "help": _("show the keys"),
    }


def keys_of(user: Any) -> dict[str, str]:
    """The keys that hold for this person; {} where they are switched off."""
    chosen = user.preferences.get("keys")
    if chosen == {}:
        return {}
    known = chosen if isinstance(chosen, dict) else {}
    return {**DEFAULT_KEYS, **{name: known[name] for name in DEFAULT_KEYS if name in known}}


def keys_json(user: Any) -> str:
    """A person's own keys for the script, or "" for the defaults."""
    chosen = user.preferences.get("keys")
    return json.dumps(chosen) if isinstance(chosen, dict) else ""


def key_errors(chosen: Mapping[str, str]) -> dict[str, str]:
    """What is wrong with a choice of keys, by action."""
    errors: dict[str, str] = {}
    taken: set[str] = set()
    for name, key in chosen.items():
        if len(key) > 1:
            errors[name] = _("One character, or empty to switch this key off.")
        elif key in DIGITS:
            errors[name] = _("1, 2 and 3 say how much better an answer is.")
        elif key and key.lower() in taken:
            errors[name] = _("This key is taken already.")
        taken.add(key.lower())
    return errors

"""The sentences behind the codes of refused rows and unreadable files: reason and what is right."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, override

from webapp.catalog.formats.rows import FormatError, Refusal


class Explanation(NamedTuple):
    reason: str
    right: str


_T = gettext_lazy
ROWS: dict[str, tuple[Any, Any]] = {
    "json": (
        _T("This is not valid JSON: %(detail)s."),
        _T("One complete JSON object on this line."),
    ),
    "rest": (
        _T("The list breaks here (%(detail)s), so nothing after this place was read."),
        _T("Repair the JSON at this place and import the file again; known rows are left alone."),
    ),
    "rest_long": (
        _T("One item is larger than %(limit)s kB, so nothing after this place was read."),
        _T("Items of at most %(limit)s kB."),
    ),
    "line_long": (
        _T("The line is longer than %(limit)s kB."),
        _T("Lines of at most %(limit)s kB."),
    ),
    "utf8": (_T("This is not valid UTF-8."), _T("A file saved as UTF-8.")),
    "nul": (
        _T("A NUL character stands at position %(position)s; no database keeps it."),
        _T("Text without U+0000."),
    ),
    "surrogate": (
        _T("Half of a surrogate pair stands alone at position %(position)s."),
        _T(r"Both halves (like \ud83d\ude00), or the character itself."),
    ),
    "number": (_T("%(value)s is not a finite number."), _T("A finite number.")),
    "duplicate_key": (
        _T("The key “%(name)s” stands twice in one object."),
        _T("Each key once."),
    ),
    "type": (_T("This is %(found)s."), _T("Here belongs: %(wanted)s.")),
    "missing": (_T("The field is missing."), _T("Give this field.")),
    "empty": (_T("The field is empty."), _T("A text with something to read.")),
    "long": (
        _T("The text has %(count)s characters; at most %(limit)s are allowed."),
        _T("At most %(limit)s characters."),
    ),
    "range": (
        _T("%(found)s is out of range."),
        _T("A whole number from %(low)s to %(high)s."),
    ),
    "choice": (_T("“%(found)s” is not known here."), _T("One of: %(allowed)s.")),
    "slug": (
        _T("“%(found)s” is not a short word."),
        _T("Letters, digits, “-”, “_”, “.” and “+”, without spaces."),
    ),
    "unknown_field": (_T("This field is not known."), _T("One of: %(allowed)s.")),
    "unknown_feature": (
        _T("Nothing else about a person is kept than the listed features."),
        _T("One of: %(allowed)s."),
    ),
    "last_turn": (
        _T("The last turn is by “%(found)s”."),
        _T("The last turn of a prompt is the user's."),
    ),
    "slot_conflict": (
        _T("This contestant has another answer to this prompt, persona and draw already."),
        _T("The same text, another draw number, or another contestant version."),
    ),
    "withdrawn": (
        _T("This persona's consent was withdrawn."),
        _T("Leave the persona out; withdrawn consent is final."),
    ),
    "feature_conflict": (
        _T("The persona has %(name)s = “%(known)s” here; the row says “%(found)s”."),
        _T("The known value, or another pseudonym."),
    ),
    "contestant_conflict": (
        _T("This contestant is known with other settings (%(names)s)."),
        _T("The known settings, or another version name."),
    ),
    "contestant_kind": (
        _T("This contestant's answers are made here (%(kind)s) and cannot be imported."),
        _T("Another name or version."),
    ),
}

FILES: dict[str, Any] = {
    "empty": _T("The file is empty."),
    "utf16": _T("The file is UTF-16. Save it as UTF-8."),
    "unknown": _T("The format cannot be told from the file. Choose one of: %(formats)s."),
    "no_format": _T("There is no format “%(name)s”. Choose one of: %(formats)s."),
    "wrong": _T("This file looks like %(found)s, not like %(wanted)s."),
    "a_list": _T("This file is a JSON list, which %(wanted)s is not."),
    "not_list": _T("This file is not a JSON list, which %(wanted)s is."),
    "no_key": _T("The outer object lacks “%(name)s” in the form that this format needs."),
    "json": _T("Line %(line)s, column %(column)s: not valid JSON (%(detail)s)."),
    "gone": _T("The file is no longer there. Upload it again."),
    "changed": _T("The file was changed after the import had begun. Import it anew."),
}


def explain(code: str, params: Mapping[str, str]) -> Explanation:
    reason, right = ROWS.get(code, (_T("The row cannot be used."), ""))
    return Explanation(str(reason) % params, str(right) % params if right else "")


def explain_file(error: FormatError) -> str:
    return str(FILES.get(error.code, _T("The file cannot be read."))) % error.params


def explain_failure(failure: Mapping[str, Any]) -> str:
    """A kept failure of a whole file in the reader's language."""
    return explain_file(FormatError(failure["code"], **failure["params"]))


def as_record(refusal: Refusal) -> dict[str, Any]:
    """What is kept of a refusal: place, field, code and parameters. Never a text of an answer."""
    place = refusal.place
    record: dict[str, Any] = {"line": place.line, "column": place.column}
    if place.item:
        record["item"] = place.item
    return {**record, "field": refusal.field, "code": refusal.code, "params": refusal.params}


def as_error_line(refusal: Refusal, file_name: str) -> dict[str, Any]:
    """One line of the error file, in English like the log, with the code for programs."""
    with override("en"):
        reason, right = explain(refusal.code, refusal.params)
    return {"file": file_name, **as_record(refusal), "reason": reason, "right": right}


def explained(record: Mapping[str, Any]) -> dict[str, Any]:
    """A kept refusal with its sentences in the reader's language."""
    reason, right = explain(record["code"], record["params"])
    where = _("line %(line)s, column %(column)s") % record
    if record.get("item"):
        where = _("item %(item)s, line %(line)s") % record
    return {**record, "reason": reason, "right": right, "where": where}

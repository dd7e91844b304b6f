"""The sentences behind the codes of refused rows and unreadable files: reason and what is right."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from django.utils.translation import gettext, override
from django.utils.translation import gettext_lazy as _

from webapp.catalog.formats.rows import FormatError, Refusal


class Explanation(NamedTuple):
    reason: str
    right: str


ROWS: dict[str, tuple[Any, Any]] = {
    "json": (
        _("This is not valid JSON: %(detail)s."),
        _("One complete JSON object on this line."),
    ),
    "rest": (
        _("The list breaks here (%(detail)s), so nothing after this place was read."),
        _("Repair the JSON at this place and import the file again; known rows are left alone."),
    ),
    "rest_long": (
        _("One item is larger than %(limit)s kB, so nothing after this place was read."),
        _("Items of at most %(limit)s kB."),
    ),
    "line_long": (
        _("The line is longer than %(limit)s kB."),
        _("Lines of at most %(limit)s kB."),
    ),
    "utf8": (_("This is not valid UTF-8."), _("A file saved as UTF-8.")),
    "nul": (
        _("A NUL character stands at position %(position)s; no database keeps it."),
        _("Text without U+0000."),
    ),
    "surrogate": (
        _("Half of a surrogate pair stands alone at position %(position)s."),
        _(r"Both halves (like \ud83d\ude00), or the character itself."),
    ),
    "number": (_("%(value)s is not a finite number."), _("A finite number.")),
    "duplicate_key": (
        _("The key “%(name)s” stands twice in one object."),
        _("Each key once."),
    ),
    "type": (_("Found: %(found)s."), _("Wanted: %(wanted)s.")),
    "missing": (_("The field is missing."), _("Give this field.")),
    "empty": (_("The field is empty."), _("A text with something to read.")),
    "long": (
        _("The text has %(count)s characters; at most %(limit)s are allowed."),
        _("At most %(limit)s characters."),
    ),
    "range": (
        _("%(found)s is out of range."),
        _("A whole number from %(low)s to %(high)s."),
    ),
    "choice": (_("“%(found)s” is not known here."), _("One of: %(allowed)s.")),
    "slug": (
        _("“%(found)s” is not a short word."),
        _("Letters, digits, “-”, “_”, “.” and “+”, without spaces."),
    ),
    "unknown_field": (_("This field is not known."), _("One of: %(allowed)s.")),
    "unknown_feature": (
        _("Nothing else about a person is kept than the listed features."),
        _("One of: %(allowed)s."),
    ),
    "last_turn": (
        _("The last turn is by “%(found)s”."),
        _("The last turn of a prompt is the user's."),
    ),
    "slot_conflict": (
        _("This contestant has another answer to this prompt, persona and draw already."),
        _("The same text, another draw number, or another contestant version."),
    ),
    "withdrawn": (
        _("This persona's consent was withdrawn."),
        _("Leave the persona out; withdrawn consent is final."),
    ),
    "feature_conflict": (
        _("The persona has %(name)s = “%(known)s” here; the row says “%(found)s”."),
        _("The known value, or another pseudonym."),
    ),
    "contestant_conflict": (
        _("This contestant is known with other settings (%(names)s)."),
        _("The known settings, or another version name."),
    ),
    "contestant_kind": (
        _("This contestant's answers are made here (%(kind)s) and cannot be imported."),
        _("Another name or version."),
    ),
}

FILES: dict[str, Any] = {
    "empty": _("The file is empty."),
    "utf16": _("The file is UTF-16. Save it as UTF-8."),
    "unknown": _("The format cannot be told from the file. Choose one of: %(formats)s."),
    "no_format": _("There is no format “%(name)s”. Choose one of: %(formats)s."),
    "wrong": _("This file looks like %(found)s, not like %(wanted)s."),
    "a_list": _("This file is a JSON list, which %(wanted)s is not."),
    "not_list": _("This file is not a JSON list, which %(wanted)s is."),
    "no_key": _("The outer object lacks “%(name)s” in the form that this format needs."),
    "json": _("Line %(line)s, column %(column)s: not valid JSON (%(detail)s)."),
    "gone": _("The file is no longer there. Upload it again."),
    "lost": _(
        "The process that read the file was lost or failed %(times)s times after row %(row)s, "
        "perhaps because memory was short. What was imported before stays. Look at the rows that "
        "follow, or go on to try again."
    ),
    "changed": _("The file was changed after the import had begun. Import it anew."),
}


# Kinds of values, and what the JSON decoder of Python says. What is not here is shown as it is.
WORDS: dict[str, Any] = {
    "text": _("text"),
    "object": _("object"),
    "list": _("list"),
    "whole number": _("whole number"),
    "number": _("number"),
    "bytes": _("bytes"),
    "true or false": _("true or false"),
    "text or list of turns": _("text or list of turns"),
    "a huge integer": _("a huge integer"),
    "nested too deeply": _("nested too deeply"),
    "Expecting value": _("a value is missing"),
    "Expecting '['": _("“[” is missing"),
    "Expecting ']'": _("“]” is missing"),
    "Expecting '{'": _("“{” is missing"),
    "Expecting '}'": _("“}” is missing"),
    "Expecting ':'": _("“:” is missing"),
    "Expecting ','": _("“,” is missing"),
    "Expecting '\"'": _("a quotation mark is missing"),
    "Expecting ':' delimiter": _("“:” is missing"),
    "Expecting ',' delimiter": _("“,” is missing"),
    "Expecting property name enclosed in double quotes": _("a key in double quotes is missing"),
    "Illegal trailing comma before end of object": _("a comma before the end of the object"),
    "Illegal trailing comma before end of array": _("a comma before the end of the list"),
    "Expecting a key": _("a key is missing"),
    "Extra data": _("more text after the value"),
    "Unterminated string starting at": _("a text has no closing quotation mark"),
    "Invalid control character at": _("a control character within a text"),
    "Invalid \\escape": _(r"a wrong “\” within a text"),
    "Invalid \\uXXXX escape": _(r"a wrong “\u” within a text"),
}
WORDED = {  # which parameters of which code are words of ours
    "type": ("found", "wanted"),
    "number": ("value",),
    "json": ("detail",),
    "rest": ("detail",),
}


def _worded(code: str, params: Mapping[str, str]) -> dict[str, str]:
    """The parameters with our own words in the reader's language."""
    return {
        name: _word(value) if name in WORDED.get(code, ()) else value
        for name, value in params.items()
    }


def _word(value: str) -> str:
    if value.startswith("number "):
        return gettext("number %(value)s") % {"value": value.removeprefix("number ")}
    return str(WORDS.get(value.removesuffix(": "), value))


_MORE_ROWS: dict[str, tuple[Any, Any]] = {}
_MORE_FILES: dict[str, Any] = {}


def also_explain(
    rows: Mapping[str, tuple[Any, Any]], files: Mapping[str, Any] | None = None
) -> None:
    """Sentences for the codes of a domain's own importer: of rows, and of whole files."""
    _MORE_ROWS.update(rows)
    _MORE_FILES.update(files or {})


def explain(code: str, params: Mapping[str, str]) -> Explanation:
    unknown = (_("The row cannot be used."), "")
    reason, right = ROWS.get(code) or _MORE_ROWS.get(code, unknown)
    params = _worded(code, params)
    return Explanation(str(reason) % params, str(right) % params if right else "")


def explain_file(error: FormatError) -> str:
    said = FILES.get(error.code) or _MORE_FILES.get(error.code, _("The file cannot be read."))
    return str(said) % _worded(error.code, error.params)


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
    where = gettext("line %(line)s, column %(column)s") % record
    if record.get("item"):
        where = gettext("item %(item)s, line %(line)s") % record
        if not record["line"]:
            where = gettext("item %(item)s") % record
    return {**record, "reason": reason, "right": right, "where": where}

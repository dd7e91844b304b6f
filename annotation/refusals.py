"""The sentences behind refused rows and files that only imports of pairs have."""

from __future__ import annotations

from typing import Any

from django.utils.translation import gettext_lazy as _

ROWS: dict[str, tuple[Any, Any]] = {
    "time": (
        _("“%(found)s” is not a time with its zone."),
        _("A time like 2026-05-01T12:00:00+00:00."),
    ),
    "no_answer": (
        _("The conversation does not end with an answer."),
        _("A conversation whose last turn is the assistant's."),
    ),
    "no_shared_prompt": (
        _("The two conversations do not begin with the same question."),
        _("Two conversations that share the turns before the answers."),
    ),
    "no_dialogue": (
        _("This is not a dialogue with “Human:” and “Assistant:”."),
        _(r"Turns that begin with “\n\nHuman:” or “\n\nAssistant:”."),
    ),
    "mixed": (
        _("One answer is a text, the other a list of turns."),
        _("Both in the same form."),
    ),
    "two": (_("There are %(found)s of them."), _("Exactly two.")),
    "preference": (
        _("%(found)s is no preference."),
        _("0 for a tie, 1 and 2 for the outputs, or a number from 1.0 to 2.0."),
    ),
    "turns": (
        _("There are %(found)s answers to %(wanted)s questions."),
        _("As many answers as questions."),
    ),
    "one_winner": (
        _("%(found)s of the three outcomes are marked."),
        _("Exactly one of them is 1, the others 0."),
    ),
    "no_pair": (
        _("No question here has two answers."),
        _("At least two answers to one question."),
    ),
    "no_parent": (
        _("The message that this one answers does not stand before it."),
        _("Whole trees, each message after the one it answers."),
    ),
    "two_roots": (_("The tree begins a second time."), _("One first message in a tree.")),
    "no_person": (
        _("The survey does not know this person."),
        _("The survey file of the same release."),
    ),
    "decision": (
        _("Verdict and source do not go together."),
        _("No verdict while unresolved, and one otherwise."),
    ),
    "gold_labels_differ": (
        _("The labels of the pair disagree, so none of them is gold."),
        _("Labels that agree."),
    ),
    "no_gold": (
        _("The row does not say which answer is right."),
        _("A row with one clear verdict, or an import that is not gold."),
    ),
    "gold_conflict": (
        _("This pair has another known answer already."),
        _("The same answer, or a correction on the page of the gold item."),
    ),
    "item_dropped": (_("This pair was dropped from the project."), _("Release the pair first.")),
    "axis_not_asked": (
        _("The project does not ask about %(axis)s."),
        _("Labels on: %(axes)s. Or another project."),
    ),
    "verdict_not_allowed": (
        _("The project does not allow the verdict “%(found)s”."),
        _("One of: %(allowed)s. Or a project that allows it."),
    ),
    "annotator_is_member": (
        _("This is the pseudonym of somebody who works here, and the label is not hers."),
        _("Another name: nobody labels in the name of a member."),
    ),
    "cells": (
        _("The row has %(found)s cells, the first line %(wanted)s."),
        _("As many cells as there are columns; texts with commas or quotes stand in quotes."),
    ),
    "csv": (
        _("A quotation mark stands within a cell."),
        _("A cell in quotes, with each quotation mark in it doubled."),
    ),
    "rest_csv": (
        _("A quotation mark is opened here and never closed, so nothing after it was read."),
        _("Close it and import the file again; known rows are left alone."),
    ),
    "rest_parquet": (
        _("The Parquet file is damaged from here on (%(detail)s)."),
        _("Write the file again and import it; known rows are left alone."),
    ),
}

FILES: dict[str, Any] = {
    "packed": _("The archive is damaged or needs a password."),
    "unpacked": _(
        "Unpacked, this file or a part of it takes more than %(limit)s MB. "
        "Send it in smaller parts."
    ),
    "excel": _("This is a spreadsheet file. Save it as CSV (UTF-8)."),
    "zip_names": _(
        "The archive holds %(names)s. It should hold one file, or utterances.jsonl and "
        "survey.jsonl of PRISM."
    ),
    "parquet": _("The Parquet file cannot be read."),
    "csv_header": _("The first line of the table cannot be read. It holds the names of columns."),
    "one_column": _(
        "The first line has only one column. Columns are separated by “,”, “;” or a tab, and the "
        "first line names them."
    ),
    "column_twice": _("Two columns have the name “%(name)s”."),
    "no_records": _(
        "The file does not begin with records. JSON Lines holds one object a line, a JSON file "
        "holds a list of objects."
    ),
    "lacks": _("%(wanted)s needs the fields %(keys)s; the file has %(columns)s."),
    "choose_columns": _(
        "Say which columns hold what: the prompt, and either the first and second answer or the "
        "chosen and rejected one. The file has %(columns)s."
    ),
    "no_column": _("There is no column “%(name)s”. The file has %(columns)s."),
    "no_such_what": _("“%(name)s” cannot be chosen. Possible: %(allowed)s."),
    "survey_wanted": _(
        "PRISM needs its survey: import a zip file with utterances.jsonl and survey.jsonl, or name "
        "the survey with --survey at the command line."
    ),
    "survey_line": _("Line %(line)s of the survey is not valid JSON."),
    "survey_empty": _("The survey names nobody."),
}

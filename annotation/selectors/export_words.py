"""The words for what an export was asked for and what came of it."""

from __future__ import annotations

from typing import Any

from django.utils.translation import gettext_lazy as _

from annotation.exports import options as known

FORMATS: dict[str, Any] = {
    known.TRL: _("TRL preference, prompt apart"),
    known.TRL_IMPLICIT: _("TRL preference, prompt inside both answers"),
    known.TRL_UNPAIRED: _("TRL single answers with a label (KTO)"),
    known.OPENAI: _("OpenAI preference"),
    known.PAIRS: _("Palate pairs: every item with all its labels, as lines"),
    known.PAIRS_CSV: _("Palate pairs as a table for spreadsheets"),
}
FILE_TYPES: dict[str, Any] = {
    "jsonl": _("JSON Lines"),
    "parquet": _("Parquet"),
    "dataset": _("dataset on disk, zipped"),
    "csv": _("CSV"),
}
STYLES: dict[str, Any] = {
    "conversational": _("turns with roles"),
    "standard": _("plain text"),
}
TIES: dict[str, Any] = {
    "drop": _("leave out"),
    "both": _("two single answers (only with labels on single answers)"),
}
SYNTHETIC: dict[str, Any] = {
    "no": _("leave out"),
    "yes": _("take those that no reviewer rejected"),
    "reviewed": _("take only those that a reviewer accepted"),
}
SPLITS: dict[str, Any] = {
    "train": _("Training, %"),
    "validation": _("Validation, %"),
    "test": _("Test, %"),
}
SPLIT_NAMES: dict[str, Any] = {
    "train": _("training"),
    "validation": _("validation"),
    "test": _("test"),
}
REASONS: dict[str, Any] = {
    "gold": _("gold, now or once"),
    "withdrawn": _("consent withdrawn, text erased"),
    "holdout": _("prompt or persona is held out"),
    "dropped": _("dropped"),
    "held": _("held back"),
    "synthetic": _("made by a rewriter"),
    "not_reviewed": _("made by a rewriter, not accepted yet"),
    "rejected": _("rejected by a reviewer"),
    "external": _("labels come from outside"),
    "undecided": _("no outcome yet"),
    "unresolved": _("unresolved"),
    "source": _("decided in a way that was not asked for"),
    "posterior": _("posterior too low"),
    "tie": _("the answers are equal"),
    "both_bad": _("both answers are bad"),
    "same_text": _("the answers are the same text"),
    "evaluation": _("made by a rewriter, would stand in an evaluation set"),
    "partner": _("the other direction of the counterfactual is left out"),
    "changed": _("changed while the export ran"),
    # of labels only
    "in_rows": _("in the rows"),
    "repeat": _("repeated items, kept for consistency"),
    "extra": _("late, beside those that count"),
    "other_axis": _("no verdict on this axis"),
}
FAILURES: dict[str, Any] = {
    "proof": _("The written file did not pass its check, so it is not handed out."),
    "unexpected": _("Something unexpected went wrong; the log of the worker says what."),
}
STEPS: dict[str, Any] = {
    "datasets": _("loaded by datasets under the columns below"),
    "trl": _("prepared by TRL as for training"),
    "openai": _("checked against the documented shape"),
    "import": _("read back by the import"),
}
PHASES: dict[str, Any] = {
    "plan": _("choosing items"),
    "write": _("writing"),
    "proof": _("checking the written file"),
    "pack": _("packing"),
}

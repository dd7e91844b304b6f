"""The answers of an unsealed round as reward models are shown them, and what they said of them.

Only what stood in battles, on rotating contexts: holdout contexts and their texts never leave the
arena (V11). A text that screening masked is left out, because people judged another one; so is a
text that a sealed round holds, whoever wrote it there (V1).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from django.db.models import Exists, OuterRef, Q, QuerySet

from arena.enums import RoundState
from arena.models import Entry, Round, Slot
from training.engine.rewards.predictions import FILE
from training.engine.rundir import read_lines
from training.enums import RunKind, RunState
from training.models import TrainingRun
from training.selectors.sources.annotation import summary_of
from training.selectors.sources.common import in_chunks, turns
from training.storage import directory
from webapp.catalog.models import Seal

Values = dict[str, dict[str, float | None]]  # answer → scorer → value
RELATED = ("context__prompt", "context__persona_version__text", "answer__body")


def entries_of(round_: Round) -> QuerySet[Entry]:
    """The entries in battles whose texts may be shown."""
    sealed = Seal.objects.filter(
        answer__text_sha256=OuterRef("answer__text_sha256"), released_at=None
    )
    used = Slot.objects.filter(Q(x=OuterRef("pk")) | Q(y=OuterRef("pk")))
    return Entry.objects.filter(
        Exists(used),
        ~Exists(sealed),
        context__round=round_,
        context__round__state=RoundState.UNSEALED,
        context__holdout=False,
        answer__body__isnull=False,
    )


def answers_of(round_: Round) -> Iterator[dict[str, Any]]:
    """Rows of data/answers.jsonl: id (of the entry), persona, prompt, completion. No contestant."""
    for chunk in in_chunks(entries_of(round_).select_related(*RELATED)):
        for entry in chunk:
            summary = summary_of(entry.context.persona_version)
            if summary is None or entry.spans or not entry.answer.body.text:
                continue
            yield {
                "id": entry.public_id,
                "persona": summary,
                "prompt": turns(entry.context.prompt.messages),
                "completion": entry.answer.body.text,
            }


def prediction_runs(round_: Round) -> list[TrainingRun]:
    """Runs that were asked about this round, the newest first, with their inputs."""
    rows = TrainingRun.objects.filter(kind=RunKind.PREDICT, config__predict__round=round_.pk)
    return list(rows.order_by("-pk").prefetch_related("inputs")[:100])


def predictions_of(run: TrainingRun) -> Values:
    """What the reward models said; None where one could not score. Empty before the run ended."""
    if run.state != RunState.SUCCEEDED:
        return {}
    return {
        str(row["id"]): {name: _value(name, parts) for name, parts in row["parts"].items()}
        for row in read_lines(directory(run.directory) / FILE)
        if "id" in row
    }


def _value(name: str, parts: Any) -> float | None:
    value = (parts or {}).get(name.partition("/")[0])
    return None if value is None else float(value)

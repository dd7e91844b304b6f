"""Rows from imported files: instructions, tool traces, counter-examples."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any

from django.db.models import Exists, OuterRef, QuerySet

from training.enums import Source
from training.models import Record, RowText
from training.selectors.sources.common import Candidate, Chooser, Fact, in_chunks


def facts(kind: str, chooser: Chooser) -> Iterator[Fact]:
    rows: QuerySet[Any] = Record.objects.filter(kind=kind).annotate(
        readable=Exists(RowText.objects.filter(sha256=OuterRef("row_sha256")))
    )
    if chooser.spec.imports:
        rows = rows.filter(imported_in__in=chooser.spec.imports)
    for chunk in in_chunks(rows, 2000):
        for record in chunk:
            reason = chooser.reason(
                record.prompt_sha256, record.persona_id, record.language, record.category
            )
            yield Fact(
                source=Source.IMPORT,
                pk=record.pk,
                prompt_sha256=record.prompt_sha256,
                persona_id=record.persona_id,
                stratum=chooser.stratum(record.persona_id),
                origin=("imports", record.imported_in_id),
                language=record.language,
                category=record.category,
                decided=Source.IMPORT.value,
                reason=reason or ("" if record.readable else "erased"),
                synthetic=record.synthetic,
            )


def rows(kind: str, chooser: Chooser, kept: Sequence[Fact]) -> Iterator[Candidate]:
    records = Record.objects.in_bulk([fact.pk for fact in kept])
    texts = RowText.objects.in_bulk([record.row_sha256 for record in records.values()])
    for fact in kept:
        record = records[fact.pk]
        text = texts.get(record.row_sha256)
        if text is not None:
            yield Candidate(fact, json.loads(text.line), f"record:{record.pk}")

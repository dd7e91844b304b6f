"""Withdrawn consent: the rows of a persona go, hashes stay, old datasets are marked (V14)."""

from __future__ import annotations

from typing import Any

from django.db.models import Count
from django.utils import timezone

from training import spool
from training.enums import DatasetState
from training.models import Dataset, DatasetItem, RowText
from training.services.run_erasing import erase_from_runs


def erase_persona(persona: Any) -> int:
    """Erase the texts of all rows for this persona. Runs in the withdrawal's transaction.

    A freeze at work finds its rows barred and begins anew; its working files go at once.
    """
    erase_from_runs(persona)
    erased = RowText.objects.filter(persona=persona).delete()[0]
    counts = (
        DatasetItem.objects.filter(persona=persona)
        .values("dataset")
        .annotate(n=Count("pk"))
        .values_list("dataset", flat=True)
    )
    for dataset in Dataset.objects.filter(pk__in=list(counts), state=DatasetState.FROZEN):
        gone = DatasetItem.objects.filter(dataset=dataset)
        texts = RowText.objects.filter(sha256__in=gone.values("row_sha256"))
        Dataset.objects.filter(pk=dataset.pk).update(
            erased_rows=dataset.rows - texts.count(), marked_at=timezone.now()
        )
    for pk in Dataset.objects.filter(state=DatasetState.FREEZING).values_list("pk", flat=True):
        spool.discard(pk)
    return erased

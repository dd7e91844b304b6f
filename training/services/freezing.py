"""The job that freezes a dataset: collect rows, give them splits, store them, seal the set.

    collect   the sources' rows go to a working file; then splits are assigned and written beside
    store     batches of rows into the database; `rows_done` says where to go on
    finish    one transaction: splits are claimed for ever, hash and counts written, state frozen

A killed job goes on from its files; a job that finds its rows overtaken (a consent withdrawn, a
split claimed by another dataset) begins anew. `heartbeat_at` is the fence: every commit names the
heartbeat it saw last, so two processes never both go on.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from itertools import islice
from typing import Any

from django.db import DatabaseError, IntegrityError, transaction
from django.db.models import Q
from django.utils import timezone

from training import spool
from training.enums import DatasetState
from training.models import Dataset, DatasetItem, RowText
from training.services import collecting, sealing
from training.services.collecting import FreezeRefused
from training.services.sealing import Overtaken
from training.services.waking import wake_chains
from training.spool import Spooled
from webapp.catalog.models import Persona
from webapp.core.jobs import enqueue

log = logging.getLogger("palate.datasets")
STALE = timedelta(seconds=60)  # no commit for so long: the process is gone
BATCH = 500
ATTEMPTS = 3


class TakenOverError(Exception):
    """Another process goes on with this dataset."""


def run_freeze(*, pk: int, take_over: bool = False) -> Dataset | None:
    """Work on a freeze until it is done. None where another process has it; harmless twice."""
    dataset = _claim(pk, take_over)
    if dataset is None:
        return None
    try:
        _work(dataset)
    except TakenOverError:
        return None
    except FreezeRefused as refused:
        _refuse(dataset, refused)
    except DatabaseError:
        raise  # what is not committed is done again
    except Exception:
        _refuse(dataset, FreezeRefused("unexpected"))
        raise
    dataset.refresh_from_db()
    return dataset


def repair_freezes() -> int:
    """Send freezes again whose process is gone (beat)."""
    silent = Q(heartbeat_at=None) | Q(heartbeat_at__lt=timezone.now() - STALE)
    rows = Dataset.objects.filter(silent, state=DatasetState.FREEZING)
    waiting = list(rows.order_by("pk").values_list("pk", flat=True)[:100])
    for pk in waiting:
        enqueue("freeze_dataset", pk)
    return len(waiting)


def _claim(pk: int, take_over: bool) -> Dataset | None:
    """Compare and set: one process gets the freeze, unless the one that had it fell silent."""
    now = timezone.now()
    free = Q() if take_over else Q(heartbeat_at=None) | Q(heartbeat_at__lt=now - STALE)
    mine = Dataset.objects.filter(free, pk=pk, state=DatasetState.FREEZING)
    if not mine.update(heartbeat_at=now):
        return None
    return Dataset.objects.get(pk=pk)


def _work(dataset: Dataset) -> None:
    for _attempt in range(ATTEMPTS):
        try:
            if not spool.chosen(dataset.pk).exists():
                _start_over(dataset)
                collecting.collect(dataset, beat=lambda: _beat(dataset))
            _store(dataset)
            _finish(dataset)
        except (Overtaken, FileNotFoundError):
            spool.discard(dataset.pk)  # collect anew what is allowed now
        else:
            spool.discard(dataset.pk)
            return
    raise FreezeRefused("restless")


def _start_over(dataset: Dataset) -> None:
    """Drop what an earlier attempt stored; its rows may not be the same."""
    with _step(dataset):
        _fenced(dataset, stage="collect", rows_done=0, rows_total=0)
        DatasetItem.objects.filter(dataset=dataset).delete()


def _beat(dataset: Dataset) -> None:
    """A sign of life between commits, at most once in a few seconds."""
    if dataset.heartbeat_at and timezone.now() - dataset.heartbeat_at > timedelta(seconds=3):
        _fenced(dataset)


def _fenced(dataset: Dataset, **values: Any) -> None:
    """Change the row only while it is ours; otherwise undo the transaction."""
    now = timezone.now()
    mine = Dataset.objects.filter(
        pk=dataset.pk, state=DatasetState.FREEZING, heartbeat_at=dataset.heartbeat_at
    )
    if not mine.update(heartbeat_at=now, **values):
        raise TakenOverError
    dataset.heartbeat_at = now
    for name, value in values.items():
        setattr(dataset, name, value)


def _store(dataset: Dataset) -> None:
    """Batches of rows into the database, from where the last commit left off."""
    total = int(spool.read_facts(dataset.pk)["rows"])
    _fenced(dataset, stage="store", rows_total=total)
    rows = spool.read_rows(spool.chosen(dataset.pk), skip=dataset.rows_done)
    while batch := list(islice(rows, BATCH)):
        try:
            with _step(dataset):
                _store_batch(dataset, batch)
                _fenced(dataset, rows_done=dataset.rows_done + len(batch))
        except IntegrityError as error:
            raise Overtaken from error  # a consent was withdrawn between reading and writing


@contextmanager
def _step(dataset: Dataset) -> Iterator[None]:
    """A transaction; where it is undone, what we know of our row is undone as well."""
    known = dataset.heartbeat_at, dataset.rows_done
    try:
        with transaction.atomic():
            yield
    except BaseException:
        dataset.heartbeat_at, dataset.rows_done = known
        raise


def _store_batch(dataset: Dataset, batch: list[Spooled]) -> None:
    people = {row.persona for row in batch if row.persona}
    if Persona.objects.filter(pk__in=people, withdrawn_at__isnull=False).exists():
        raise Overtaken
    known = set(
        RowText.objects.filter(sha256__in=[row.sha256 for row in batch]).values_list(
            "sha256", flat=True
        )
    )
    RowText.objects.bulk_create(
        [
            RowText(sha256=row.sha256, line=row.line, persona_id=row.persona)
            for row in batch
            if row.sha256 not in known
        ],
        ignore_conflicts=True,
    )
    DatasetItem.objects.bulk_create(list(_items(dataset, batch)))


def _items(dataset: Dataset, batch: list[Spooled]) -> Iterator[DatasetItem]:
    for row in batch:
        yield DatasetItem(
            dataset=dataset,
            row_sha256=row.sha256,
            prompt_sha256=row.prompt,
            persona_id=row.persona,
            split=row.split,
            source=row.source,
            stratum=row.stratum,
            synthetic=row.synthetic,
            simulated=row.simulated,
            ref=row.ref,
        )


def _finish(dataset: Dataset) -> None:
    with _step(dataset):
        _fenced(dataset, stage="finish")
        sealing.seal(dataset, spool.read_facts(dataset.pk))
        wake_chains()


def _refuse(dataset: Dataset, refused: FreezeRefused) -> None:
    """Back to a draft, with the reason kept so that the page says it in the reader's language."""
    report = {"refusal": {"code": refused.code, "params": refused.params}, **refused.report}
    with transaction.atomic():
        changed = Dataset.objects.filter(
            pk=dataset.pk, state=DatasetState.FREEZING, heartbeat_at=dataset.heartbeat_at
        ).update(state=DatasetState.DRAFT, report=report, heartbeat_at=None, stage="")
        if changed:
            DatasetItem.objects.filter(dataset=dataset).delete()
    spool.discard(dataset.pk)
    log.info("freeze refused", extra={"dataset": dataset.pk, "code": refused.code})

"""Making datasets: a draft with its filter, sending it to be frozen, discarding it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.db import IntegrityError, transaction
from django.utils.translation import gettext as _

from training import filters, policies
from training.enums import DatasetState, Kind
from training.models import Dataset
from training.refusals import explain_filter
from webapp.catalog.services.checks import check_text
from webapp.core import audit
from webapp.core.errors import InvalidInput
from webapp.core.jobs import enqueue


def parsed_filter(kind: str, values: Mapping[str, Any]) -> filters.Filter:
    """The filter, or an InvalidInput that says which setting does not fit."""
    if kind not in Kind.values:
        raise InvalidInput(_("There is no such kind of dataset."), field="kind", code="choice")
    try:
        return filters.parse(kind, values)
    except filters.FilterError as error:
        raise InvalidInput(explain_filter(error), field=error.field, code=error.code) from error


def create_dataset(
    *, actor: Any, name: str, kind: str, values: Mapping[str, Any], key: str | None = None
) -> Dataset:
    """A draft. The same `key` gives the same dataset, so that a double click makes one."""
    policies.check_manage(actor)
    name = check_text(name.strip(), "name", limit=120)
    spec = parsed_filter(kind, values)
    if key and (known := Dataset.objects.filter(key=key).first()):
        return known
    try:
        with transaction.atomic():
            dataset = Dataset.objects.create(
                name=name, kind=kind, filter=spec.as_json(), key=key, created_by=actor
            )
            audit.record(actor=actor, action="create_dataset", obj=dataset, kind=kind)
    except IntegrityError as error:
        known = Dataset.objects.filter(key=key).first() if key else None
        if known is not None:
            return known
        message = _("There is a dataset “%(name)s” already.") % {"name": name}
        raise InvalidInput(message, field="name", code="taken") from error
    return dataset


def freeze_dataset(*, actor: Any, dataset: Dataset) -> Dataset:
    """Send a draft to be frozen by a job. Pressing twice freezes once."""
    policies.check_manage(actor)
    with transaction.atomic():
        row = locked(dataset.pk)
        if row.state in (DatasetState.FREEZING, DatasetState.FROZEN):
            return row
        move(
            row, DatasetState.FREEZING, stage="", rows_done=0, rows_total=0, report={},
            heartbeat_at=None,
        )  # fmt: skip
        audit.record(actor=actor, action="freeze_dataset", obj=row)
        enqueue("freeze_dataset", row.pk)
    return row


def discard_dataset(*, actor: Any, dataset: Dataset) -> None:
    """Put a draft away; its name is free again. A frozen dataset is never discarded."""
    policies.check_manage(actor)
    with transaction.atomic():
        row = locked(dataset.pk)
        if row.state != DatasetState.DISCARDED:
            move(row, DatasetState.DISCARDED, name=f"{row.name[:100]} (#{row.pk})")
            audit.record(actor=actor, action="discard_dataset", obj=row)


def locked(pk: int) -> Dataset:
    """The dataset with its row locked; what it joins is read after the wait."""
    Dataset.objects.select_for_update().only("pk").get(pk=pk)
    return Dataset.objects.get(pk=pk)


def move(dataset: Dataset, to: str, **columns: Any) -> None:
    """The only way to another state. The caller holds the row."""
    policies.check_move(dataset, to)
    Dataset.objects.filter(pk=dataset.pk, state=dataset.state).update(state=to, **columns)
    dataset.refresh_from_db()

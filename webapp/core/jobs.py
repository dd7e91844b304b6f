"""Sending jobs by name, once the transaction that asked for them is committed.

Services must not import `workers`; a job is only a name and an id. A message that gets lost is
replaced by the repair task, which finds what remains from the rows.
"""

from __future__ import annotations

import logging

from celery import current_app
from django.db import transaction

log = logging.getLogger(__name__)


def enqueue(name: str, pk: int) -> None:
    """Send task `workers.<name>` with `pk` after commit; repair makes up for a lost message."""

    def send() -> None:
        try:
            current_app.send_task(f"workers.{name}", args=[pk])
        except OSError:
            log.exception("job not sent, repair will find it", extra={"job": name})
        except current_app.connection_for_write().connection_errors:
            log.exception("job not sent, repair will find it", extra={"job": name})

    def run_or_send() -> None:
        if current_app.conf.task_always_eager:
            current_app.tasks[f"workers.{name}"].apply(args=(pk,), throw=True)
        else:
            send()

    transaction.on_commit(run_or_send)

"""Telling chains that something ended, so that they need not wait for their next look."""

from __future__ import annotations

from training.enums import ACTIVE_CHAIN
from training.models import ChainRun
from webapp.core.jobs import enqueue


def wake_chains() -> None:
    """Have chains look, once what was done is committed; nothing where none is under way."""
    if ChainRun.objects.filter(state__in=ACTIVE_CHAIN).exists():
        enqueue("advance_chains", 0)

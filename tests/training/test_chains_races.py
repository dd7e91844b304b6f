"""Several workers look at a chain at once on PostgreSQL: everything is made once."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import pytest
from django.db import connection

from tests.threads import at_once
from tests.training import chain_factories as made
from tests.training.chain_factories import chain, states
from tests.training.factories import admin
from tests.training.test_chains import ONCE, once
from training.models import ChainRun, GateRun
from training.services import runs
from training.services.chains import advance_all, advance_chain, start_chain, start_due

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.postgres]


@pytest.fixture(autouse=True)
def quiet(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing starts by itself when a run is launched."""
    monkeypatch.setattr(runs, "enqueue", lambda *_args: None)


def test_workers_that_advance_at_once_make_everything_once(tmp_path: Path) -> None:
    assert connection.vendor == "postgresql"
    run = start_chain(actor=admin(), chain=chain(tmp_path))
    for _turn in range(12):
        look = partial(advance_chain, pk=run.pk)
        found = at_once([look, look, advance_all, look])
        assert not [said for said in found if isinstance(said, Exception)]
        made.freeze_waiting()
        made.end_queued()
        for gate in GateRun.objects.filter(verdict="pass", promotions=None):
            made.read_all(gate)
    run = ChainRun.objects.get()
    assert (run.state, run.reason) == ("done", "complete"), states(run)
    assert once() == ONCE


def test_two_clocks_and_a_hand_begin_one_time(tmp_path: Path) -> None:
    found = chain(tmp_path, hour=0)
    type(found).objects.update(enabled_at=found.created_at.replace(hour=0, minute=0, second=0))
    hand = partial(start_chain, actor=admin(), chain=found)
    at_once([start_due, start_due, hand, start_due])
    assert ChainRun.objects.count() == 1

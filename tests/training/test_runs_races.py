"""Many ask at once on PostgreSQL: one start a run, one run a device, one row a line."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import pytest
from django.db import connection

from tests.threads import at_once
from tests.training.factories import admin
from tests.training.run_factories import ended, instructions, sft
from training.enums import Role
from training.launching import InputSpec
from training.models import Device, TrainingRun
from training.services import running, runs
from training.services.ingest import ingest
from webapp.core.models import Event

pytestmark = [
    pytest.mark.django_db(transaction=True), pytest.mark.postgres,
    pytest.mark.usefixtures("trainer"),
]  # fmt: skip


@pytest.fixture(autouse=True)
def quiet(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing starts by itself when a run is launched: the tests say who starts."""
    monkeypatch.setattr(runs, "enqueue", lambda *_args: None)


def test_two_starters_and_one_device_start_one_run(tmp_path: Path) -> None:
    assert connection.vendor == "postgresql"
    queued = [sft(tmp_path, "steps=60 pause=0.05") for _ in range(3)]
    running.ensure_devices()
    found = at_once([running.lease_next] * 4)
    assert [run.pk for run in found if run] == [queued[0].pk]
    assert Device.objects.get().run == queued[0]
    at_once([lambda: running.begin(queued[0])] * 4)
    assert Event.objects.filter(action="run_started").count() == 1
    assert TrainingRun.objects.get(pk=queued[0].pk).attempts == 1


def test_two_devices_take_two_runs(tmp_path: Path, settings: Any) -> None:
    settings.PALATE_DEVICES = ["one", "two"]
    queued = [sft(tmp_path) for _ in range(3)]
    running.ensure_devices()
    found = {run.pk for run in at_once([running.lease_next] * 4) if run}
    assert found == {queued[0].pk, queued[1].pk}


def test_launched_twice_at_once_it_is_one_run(tmp_path: Path) -> None:
    dataset, actor = instructions(tmp_path), admin()

    def click() -> TrainingRun:
        inputs = {Role.TRAIN: InputSpec(dataset, "train")}
        return runs.launch(
            actor=actor, name="One", kind="sft", preset="tiny", config={}, inputs=inputs, key="k"
        )

    found = at_once([click] * 4)
    assert len({run.pk for run in found}) == 1
    assert Event.objects.filter(action="launch_run").count() == 1


def test_read_by_two_at_once_every_line_is_there_once(tmp_path: Path) -> None:
    run = ended(sft(tmp_path, "steps=50"))
    TrainingRun.objects.filter(pk=run.pk).update(offsets={})
    at_once([lambda: ingest(run)] * 4)
    assert run.metrics.count() == 50
    assert run.alerts.count() == 1


def test_cancelled_while_it_is_leased_it_never_keeps_the_device(tmp_path: Path) -> None:
    actor = admin()
    for _ in range(5):
        run = sft(tmp_path, "steps=2")
        at_once([running.start_next, partial(runs.cancel, actor=actor, run=run)])
        assert ended(run).state in ("cancelled", "succeeded")
        assert not Device.objects.exclude(run=None).exists()

"""Two freezes at once on PostgreSQL: splits stay disjoint, each dataset is frozen once."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import pytest
from django.db import connection, connections

from tests.training.factories import admin, draft, make_pairs
from training.models import Dataset, SplitClaim
from training.selectors.datasets import check_all_splits
from training.services.datasets import freeze_dataset
from training.services.freezing import run_freeze
from webapp.core.models import Event

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.postgres]


def together(*works: Callable[[], object]) -> list[Any]:
    """Run in threads that start at the same moment; errors are raised here."""
    barrier, errors = threading.Barrier(len(works)), []
    results: list[Any] = [None] * len(works)

    def run(number: int, work: Callable[[], object]) -> None:
        try:
            barrier.wait(60)
            results[number] = work()
        except Exception as error:
            errors.append(error)
        finally:
            connections.close_all()

    threads = [threading.Thread(target=run, args=(n, work)) for n, work in enumerate(works)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
    if errors:
        raise errors[0]
    return results


def freezing(**values: Any) -> Dataset:
    dataset = draft(**values)
    Dataset.objects.filter(pk=dataset.pk).update(state="freezing")
    return dataset


def test_two_sets_over_the_same_rows_never_disagree_on_splits() -> None:
    assert connection.vendor == "postgresql"
    make_pairs(people=8, prompts=8)
    gates = {"train": 60, "reward_model_gate": 20, "gate": 20}
    one, two = freezing(seed=1, **gates), freezing(seed=2, **gates)
    together(lambda: run_freeze(pk=one.pk), lambda: run_freeze(pk=two.pk))
    one.refresh_from_db()
    two.refresh_from_db()
    assert {one.state, two.state} <= {"frozen", "draft"}
    assert "frozen" in (one.state, two.state)
    assert check_all_splits() == []
    claims = dict(SplitClaim.objects.filter(of="prompt").values_list("key", "split"))
    for dataset in (one, two):
        for prompt, split in dataset.items.values_list("prompt_sha256", "split"):
            assert claims[prompt] == split


def test_a_task_delivered_twice_freezes_once() -> None:
    make_pairs(people=2, prompts=2)
    dataset = freezing()
    results = together(*[lambda: run_freeze(pk=dataset.pk)] * 4)
    assert sum(result is not None for result in results) == 1
    dataset.refresh_from_db()
    assert (dataset.state, dataset.items.count()) == ("frozen", 4)
    assert Event.objects.filter(action="dataset_frozen").count() == 1


def test_pressing_twice_at_once_sends_once() -> None:
    make_pairs(people=2, prompts=1)
    dataset, actor = draft(), admin()
    together(*[lambda: freeze_dataset(actor=actor, dataset=dataset)] * 3)
    assert Event.objects.filter(action="freeze_dataset").count() == 1

"""The statistics job: what it finds is what was planted, and it repeats itself without harm."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from annotation.enums import ItemState
from annotation.models import Label, Lease, Project, SoftLabel, StatisticsSnapshot
from annotation.services import labels, leases, statistics
from annotation.services.gold import make_gold
from annotation.services.items import ItemDraft, add_items
from annotation.statistics import make_report
from tests.annotation.factories import Desk, label_all, make_desk, submit, working
from tests.catalog.factories import make_answer, seal
from webapp.accounts.models import User
from webapp.catalog.services.prompts import get_or_create_prompt
from webapp.core.errors import Forbidden

pytestmark = pytest.mark.django_db
TWO = {"base_overlap": 2, "max_overlap": 2}


def compute(desk: Desk) -> dict[str, Any]:
    snapshot = statistics.compute_statistics(pk=desk.project.pk)
    assert snapshot is not None
    report: dict[str, Any] = snapshot.report
    return report


def by_pseudonym(desk: Desk, report: dict[str, Any]) -> list[dict[str, Any]]:
    """The annotators of a report in the order of the desk's people."""
    rows = {row["member"]: row for row in report["people"]}
    return [rows[desk.member(user).pk] for user in desk.people]


def test_agreement_is_told_by_axis_and_stratum() -> None:
    desk = make_desk(people=2, n_items=24, settings={**TWO, "stratum_features": ["expertise"]})
    second = desk.member(desk.people[1]).pk
    expert = desk.versions[0].pk

    def choose(lease: Lease) -> str:
        odd = lease.member_id == second and lease.item.persona_version_id == expert
        return "second" if odd else ("first" if lease.item_id % 3 else "tie")

    label_all(desk, choose)
    report = compute(desk)
    whole = report["agreement"]["quality"]
    assert whole["expertise=novice"]["measures"]["percent"][0] == 1
    assert whole["expertise=expert"]["measures"]["percent"][0] == 0
    assert whole[""]["measures"]["percent"][0] == 0.5
    assert (whole[""]["items"], whole[""]["labels"], whole[""]["annotators"]) == (24, 48, 2)
    assert report["agreement"]["both"][""]["labels"] == 96
    (pair,) = report["pairs"]["personalization"]["rows"]
    assert pair[2:4] == [24, 12]


def test_soft_labels_follow_the_labels_and_are_not_written_twice() -> None:
    desk = make_desk(people=2, n_items=6, settings=TWO)
    label_all(desk)
    compute(desk)
    rows = list(SoftLabel.objects.order_by("pk"))
    assert len(rows) == 12
    assert all(row.posterior["first"] > 0.9 for row in rows)
    assert sum(rows[0].posterior.values()) == pytest.approx(1, abs=1e-3)
    compute(desk)
    again = list(SoftLabel.objects.order_by("pk"))
    assert [row.updated_at for row in again] == [row.updated_at for row in rows]


def test_an_item_that_becomes_gold_has_no_soft_label_and_no_part_in_agreement() -> None:
    desk = make_desk(people=2, n_items=6, settings=TWO)
    label_all(desk)
    compute(desk)
    make_gold(actor=desk.manager, item=desk.items()[0], verdicts={"quality": "second"})
    report = compute(desk)
    assert not SoftLabel.objects.filter(item=desk.items()[0]).exists()
    assert report["agreement"]["quality"][""]["items"] == 5


def test_hidden_gold_tells_who_is_good() -> None:
    settings = {**TWO, "gold_percent": 50, "gold_floor": 0}
    desk = make_desk(people=2, n_items=40, settings=settings)
    working(desk)
    for item in desk.items()[:16]:
        make_gold(actor=desk.manager, item=item, verdicts={"quality": "first"})
    bad = desk.member(desk.people[1]).pk
    label_all(desk, lambda lease: "second" if lease.member_id == bad else "first")
    good, poor = by_pseudonym(desk, compute(desk))
    assert good["axes"]["quality"]["accuracy"] > 0.8 > 0.5 > poor["axes"]["quality"]["accuracy"]
    disputed = desk.project.items.filter(state=ItemState.DISPUTED).first()
    assert disputed is not None
    assert SoftLabel.objects.get(item=disputed, axis="quality").posterior["first"] > 0.9


def test_sides_lengths_repeats_and_times_are_counted_per_annotator() -> None:
    desk = make_desk(people=2, n_items=40, settings={**TWO, "repeat_percent": 20})
    working(desk)
    left = desk.member(desk.people[0]).pk

    def choose(lease: Lease) -> str:
        if lease.member_id == left:
            return "first" if lease.first_left else "second"
        return "second"  # always the longer one

    label_all(desk, choose)
    one, other = by_pseudonym(desk, compute(desk))
    assert one["axes"]["quality"]["left"] == [40, 40]
    assert other["axes"]["quality"]["longer"] == [40, 40]
    assert one["axes"]["quality"]["consistent"][0] == 0
    same, twice = other["axes"]["quality"]["consistent"]
    assert same == twice > 0
    assert 10 < one["axes"]["quality"]["agrees"][0] < 30
    assert (one["timed"], one["median_ms"]) == (40, 4000)


def test_the_usual_time_goes_to_the_leases() -> None:
    desk = make_desk(people=2, n_items=6, settings=TWO)
    label_all(desk, limit=9)
    compute(desk)
    assert Project.objects.get(pk=desk.project.pk).median_active_ms == 0
    label_all(desk)
    compute(desk)
    assert Project.objects.get(pk=desk.project.pk).median_active_ms == 4000


def test_a_taken_back_label_counts_nowhere() -> None:
    desk = make_desk(people=1, n_items=2)
    label_all(desk)
    token = Lease.objects.order_by("-submitted_at")[0].token
    labels.undo_label(user=desk.people[0], token=token)
    assert compute(desk)["labels"] == 1


def same_texts_for_both(desk: Desk, n: int) -> None:
    """The same two answers for an expert and for a novice, in either order."""
    drafts = []
    for number in range(n):
        prompt = get_or_create_prompt(messages=f"The same question {number}?")
        pair = [
            (f"Short answer {number}.", "Harbor"),
            (f"A long answer with every step, number {number}.", "Quarry"),
        ]
        for version in desk.versions:
            drafts.append(
                ItemDraft(
                    prompt_id=prompt.pk,
                    prompt_digest=prompt.text_hash,
                    first=pair[0][0],
                    second=pair[1][0],
                    persona_version_id=version.pk,
                    first_producer=pair[0][1],
                    second_producer=pair[1][1],
                )
            )
            pair.reverse()
    add_items(project=desk.project, drafts=drafts)


def test_segments_that_want_different_things_are_reported_as_such() -> None:
    settings = {"base_overlap": 3, "max_overlap": 3, "stratum_features": ["expertise"]}
    desk = make_desk(people=3, n_items=1, settings=settings)
    same_texts_for_both(desk, 10)
    expert = desk.versions[0].pk

    def choose(lease: Lease) -> str:
        short = lease.item.body.first.startswith("Short")
        wants_short = lease.item.persona_version_id == expert
        return "first" if short == wants_short else "second"

    label_all(desk, choose)
    found = compute(desk)["segments"]["personalization"]
    for part in ("texts", "rivals"):
        assert (found[part]["compared"], found[part]["differ"]) == (10, 10)
        assert found[part]["beyond_chance"]
        assert (found[part]["across"], found[part]["within"]) == (1, 0)
    assert found["texts"]["strata"] == [["expertise=expert", "expertise=novice", 10, 10]]


def test_producers_behind_a_sealed_text_have_no_part_in_it() -> None:
    settings = {"base_overlap": 1, "max_overlap": 1, "stratum_features": ["expertise"]}
    desk = make_desk(people=1, n_items=1, settings=settings)
    same_texts_for_both(desk, 3)
    label_all(desk)
    seal(make_answer("Short answer 0."))
    found = compute(desk)["segments"]["quality"]
    assert found["texts"]["compared"] == 3
    assert found["rivals"]["compared"] == 2


def test_a_project_without_labels_has_an_empty_report() -> None:
    desk = make_desk(n_items=2)
    report = compute(desk)
    assert report["labels"] == 0
    assert report["agreement"]["quality"][""]["measures"]["percent"] == [
        None,
        None,
        None,
        "no_pairs",
    ]
    assert report["workload"]["by_done"] == {"0": 2}
    assert report["people"] == []


def test_old_snapshots_go() -> None:
    desk = make_desk(n_items=1)
    for number in range(statistics.KEEP + 3):
        StatisticsSnapshot.objects.create(project=desk.project, labels_seen=number)
    compute(desk)
    assert desk.project.statistics.count() == statistics.KEEP


def ago(seconds: int) -> Any:
    return timezone.now() - timedelta(seconds=seconds)


def backdate_snapshots(seconds: int) -> None:
    StatisticsSnapshot.objects.update(created_at=ago(seconds))


def test_the_job_is_sent_when_there_is_news_and_not_before_its_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    sent: list[int] = []
    monkeypatch.setattr(statistics, "enqueue", lambda _name, pk: sent.append(pk))
    monkeypatch.setattr(statistics, "SETTLING", timedelta(0))
    desk = make_desk(people=1, n_items=4)
    assert statistics.refresh_stale() == 0
    label_all(desk, limit=2)
    assert statistics.refresh_stale() == 1
    compute(desk)
    label_all(desk, limit=1)
    assert statistics.refresh_stale() == 0
    backdate_snapshots(31)
    assert statistics.refresh_stale() == 1
    compute(desk)
    backdate_snapshots(31)
    assert statistics.refresh_stale() == 0
    assert sent == [desk.project.pk] * 2


def test_a_change_of_a_label_is_news(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(statistics, "enqueue", lambda _name, _pk: None)
    monkeypatch.setattr(statistics, "SETTLING", timedelta(0))
    desk = make_desk(people=1, n_items=1)
    lease = leases.serve(user=desk.people[0], project=desk.project).lease
    assert lease is not None
    submit(desk.people[0], lease, "first")
    compute(desk)
    submit(desk.people[0], lease, "second")
    backdate_snapshots(31)
    assert statistics.refresh_stale() == 1


def test_a_label_that_may_not_be_committed_yet_is_looked_for_again() -> None:
    desk = make_desk(people=1, n_items=1)
    label_all(desk)
    assert statistics.newest_label() < Label.objects.latest("pk").pk


def test_two_processes_do_not_compute_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    desk = make_desk(n_items=1)
    inner: list[Any] = []
    whole = make_report

    def nested(table: Any) -> Any:
        inner.append(statistics.compute_statistics(pk=desk.project.pk))
        return whole(table)

    monkeypatch.setattr(statistics, "make_report", nested)
    assert statistics.compute_statistics(pk=desk.project.pk) is not None
    assert inner == [None]


def test_only_managers_ask_for_statistics(chen: User) -> None:
    desk = make_desk()
    with pytest.raises(Forbidden):
        statistics.request_statistics(actor=chen, project=desk.project)

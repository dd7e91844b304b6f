"""The demo's annotation project, and simulated annotators that can be found out again."""

from __future__ import annotations

import io
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from annotation.demo import loading
from annotation.enums import ItemState, LeaseState
from annotation.models import Item, Label, Lease, Project
from annotation.services.simulated import make_simulated_annotators, simulate_labels
from annotation.simulation import SimulatedAnnotator, planted_truth
from arena.demo import loading as arena_demo
from tests.annotation.factories import make_desk


@pytest.mark.django_db
def test_the_demo_project_stands_and_loading_twice_changes_nothing(
    settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings.DEMO = True
    monkeypatch.setattr(arena_demo, "SIMULATED_VOTES", 200)
    monkeypatch.setattr(arena_demo, "VOTES_PER_BATTLE", 1)
    call_command("load_demo", stdout=io.StringIO())
    call_command("load_annotation_demo", stdout=io.StringIO())
    project = Project.objects.get()
    states = {state: project.items.filter(state=state).count() for state in ItemState.values}
    assert states[ItemState.GOLD] == loading.ONBOARDING + loading.HIDDEN
    assert states[ItemState.DONE] > 10
    assert project.items.exclude(first_answer__seal__released_at__isnull=False).count() == 0
    labels = Label.objects.count()
    assert labels == loading.LABELS
    assert project.members.filter(adjudicates=True).count() == 1
    call_command("load_annotation_demo", stdout=io.StringIO())
    assert (Project.objects.count(), Label.objects.count()) == (1, labels)


@pytest.mark.django_db
def test_the_demo_is_only_loaded_where_it_is_asked_for() -> None:
    with pytest.raises(CommandError, match="PALATE_DEMO"):
        call_command("load_annotation_demo")


@pytest.mark.django_db
def test_simulated_annotators_go_on_where_they_stopped() -> None:
    desk = make_desk(people=0, n_items=30)
    users = make_simulated_annotators(2)
    from annotation.services import projects

    projects.add_members(actor=desk.manager, project=desk.project, users=users)
    team = [(user, SimulatedAnnotator(user.username, 3)) for user in users]
    assert simulate_labels(project=desk.project, annotators=team, limit=8) == 8
    assert simulate_labels(project=desk.project, annotators=team, limit=20) == 12
    assert Lease.objects.filter(state=LeaseState.SUBMITTED).count() == 20
    assert Item.objects.filter(done__gt=1).count() == 0


def test_accuracy_and_side_bias_come_out_as_planted() -> None:
    person = SimulatedAnnotator("x", 1, accuracy=0.8, left_bias=0.25)
    verdicts = ["first", "tie", "second", "both_bad"]
    right = sum(
        person.verdict("quality", "first", str(n), verdicts) == "first" for n in range(2000)
    )
    assert abs(right / 2000 - 0.8) < 0.03
    left = sum(person.says_left("quality", str(n)) for n in range(2000))
    assert abs(left / 2000 - 0.25) < 0.03


def test_the_planted_taste_follows_the_persona() -> None:
    short, long = "Yes.", "Yes, and this is why, step by step."
    detail = planted_truth("personalization", {"detail": "high"}, short, long, "k")
    brief = planted_truth("personalization", {"detail": "low"}, short, long, "k")
    assert (detail, brief) == ("second", "first")

"""Projects for managers: settings that reach the queue, guidelines, people, moves, pages."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import Client
from django.urls import reverse

from annotation.enums import MEMBER_MOVES, ItemState, MemberState
from annotation.models import Item, Member, Project
from annotation.selectors.projects import addable_accounts, readiness, strata
from annotation.services import leases, projects
from annotation.services.decisions import settle_ready
from annotation.services.gold import make_gold
from annotation.services.queue import refresh_targets
from tests.annotation.factories import (
    GUIDELINES,
    Desk,
    add_pairs,
    label_all,
    label_once,
    make_desk,
    submit,
    working,
)
from tests.conftest import make_user
from webapp.accounts.enums import Role
from webapp.accounts.models import User
from webapp.core.errors import Forbidden, InvalidInput, Refused
from webapp.core.models import Event

pytestmark = pytest.mark.django_db
EXPERT, NOVICE = "expertise=expert", "expertise=novice"


@pytest.fixture
def admin(client: Client, alice: User) -> Client:
    client.force_login(alice)
    return client


def change(desk: Desk, **settings: Any) -> Project:
    desk.project = projects.change_project(
        actor=desk.manager, project=desk.project, settings=settings
    )
    return desk.project


def targets_of(desk: Desk) -> list[int]:
    return [item.target for item in desk.items()]


# Settings and the queue


def test_a_larger_overlap_reaches_what_is_not_settled() -> None:
    desk = make_desk(n_items=3)
    done, open_, held = desk.items()
    Item.objects.filter(pk=held.pk).update(state=ItemState.HELD)
    label_once(desk, desk.people[0])
    first = desk.project.items.get(state=ItemState.DONE)
    change(desk, base_overlap=2, max_overlap=3)
    assert {item.pk: item.target for item in desk.items()} == {
        item.pk: 1 if item == first else 2 for item in (done, open_, held)
    }
    label_all(desk)
    assert desk.project.items.filter(state=ItemState.DONE, done=2).count() == 1


def test_a_smaller_overlap_keeps_taken_places_and_settles_what_has_enough() -> None:
    desk = make_desk(people=3, n_items=3, settings={"base_overlap": 3, "max_overlap": 3})
    label_once(desk, desk.people[0])
    label_once(desk, desk.people[1])
    both = desk.project.items.get(done=2)
    lease = leases.serve(user=desk.people[0], project=desk.project).lease
    assert lease is not None
    change(desk, base_overlap=1)
    assert {item.pk: item.target for item in desk.items()} == {
        item.pk: 2 if item == both else 1 for item in desk.items()
    }
    settle_ready(pk=desk.project.pk)
    both.refresh_from_db()
    assert both.state == ItemState.DONE
    assert both.quality_decision is not None
    submit(desk.people[0], lease, "first")
    assert Item.objects.get(pk=lease.item_id).state == ItemState.DONE


def test_what_disagreement_raised_keeps_its_number() -> None:
    desk = make_desk(people=2, n_items=1, settings={"base_overlap": 2, "max_overlap": 4})
    said = dict(zip([user.pk for user in desk.people], ("first", "second"), strict=True))
    label_all(desk, lambda lease: said[lease.member.user_id or 0])
    assert (desk.items()[0].target, desk.items()[0].priority) == (3, 1)
    change(desk, base_overlap=1, max_overlap=2)
    assert targets_of(desk) == [3]
    change(desk, base_overlap=4, max_overlap=4)
    assert targets_of(desk) == [4]


def test_other_features_sort_all_items_anew_even_labelled_ones() -> None:
    desk = make_desk(n_items=4)
    assert {item.stratum for item in desk.items()} == {""}
    label_all(desk)
    change(desk, stratum_features=["expertise"])
    assert [item.stratum for item in desk.items()] == [EXPERT, NOVICE] * 2
    change(desk, targets={EXPERT: 1})
    change(desk, stratum_features=["language"])
    assert {item.stratum for item in desk.items()} == {"language=en"}
    assert desk.project.targets == {}


def test_targets_open_the_first_of_the_queue_and_park_the_others() -> None:
    desk = make_desk(people=1, n_items=12, settings={"stratum_features": ["expertise"]})
    change(desk, targets={EXPERT: 2})
    rows = {row.name: row for row in strata(desk.project)}
    assert (rows[EXPERT].open, rows[EXPERT].parked, rows[NOVICE].open) == (2, 4, 6)
    queue = desk.project.items.filter(stratum=EXPERT).order_by("shuffle_key")
    assert [item.state for item in queue] == ["open"] * 2 + ["parked"] * 4
    label_all(desk)
    refresh_targets(project=desk.project)
    assert desk.project.items.filter(stratum=EXPERT, state=ItemState.DONE).count() == 2
    assert desk.project.items.filter(stratum=EXPERT, state=ItemState.OPEN).count() == 0
    change(desk, targets={EXPERT: 3})
    assert desk.project.items.filter(stratum=EXPERT, state=ItemState.OPEN).count() == 1
    change(desk, targets={})
    assert not desk.project.items.filter(state=ItemState.PARKED).exists()


def test_an_item_in_work_stays_open_whatever_the_target() -> None:
    desk = make_desk(people=1, n_items=6, settings={"stratum_features": ["expertise"]})
    lease = leases.serve(user=desk.people[0], project=desk.project).lease
    assert lease is not None
    change(desk, targets={EXPERT: 1, NOVICE: 1})
    assert Item.objects.get(pk=lease.item_id).state == ItemState.OPEN
    assert desk.project.items.filter(state=ItemState.OPEN).count() == 2


@pytest.mark.parametrize(
    ("settings", "field"),
    [
        ({"base_overlap": 4}, "max_overlap"),
        ({"max_overlap": 0}, "max_overlap"),
        ({"gold_percent": 40, "repeat_percent": 20}, "gold_percent"),
        ({"gold_floor": 101}, "gold_floor"),
        ({"gold_minimum": 0}, "gold_minimum"),
        ({"gold_minimum": 3, "gold_floor": 60}, "gold_minimum"),
        ({"lease_minutes": 0}, "lease_minutes"),
        ({"onboarding_size": -1}, "onboarding_size"),
        ({"tags": ["a", "a"]}, "tags"),
        ({"tags": ["x" * 65]}, "tags"),
        ({"tags": [" "]}, "tags"),
        ({"targets": {"": 0}}, "targets"),
        ({"currency": "euro"}, "currency"),
        ({"stratum_features": ["income"]}, "stratum_features"),
        ({"axes": []}, "axes"),
        ({"name": " "}, "name"),
        ({"seed": "00"}, "seed"),
    ],
)
def test_what_a_setting_may_not_be(settings: dict[str, Any], field: str) -> None:
    desk = make_desk(n_items=0, people=0)
    with pytest.raises(InvalidInput) as caught:
        change(desk, **settings)
    assert caught.value.field == field
    assert not Event.objects.filter(action="change_project").exists()


def test_what_labels_mean_is_fixed_once_there_is_one() -> None:
    desk = make_desk()
    change(desk, ask_strength=True)
    change(desk, ask_strength=False, axes=["quality"])
    assert all(member.axes == ["quality"] for member in desk.project.members.all())
    label_once(desk, desk.people[0])
    with pytest.raises(Refused):
        change(desk, allow_tie=False)
    change(desk, name="Other", tags=["自由"])
    assert Event.objects.filter(action="change_project").count() == 3


# People


def test_a_pause_by_the_gate_ends_with_a_new_account() -> None:
    desk = make_desk(
        people=1, n_items=60, settings={"gold_percent": 50, "gold_minimum": 3, "gold_floor": 55}
    )
    working(desk)
    for item in desk.items()[:8]:
        make_gold(actor=desk.manager, item=item, verdicts={"quality": "second"})
    user = desk.people[0]
    while desk.member(user).state == MemberState.WORKING:
        assert label_once(desk, user) is not None
    assert desk.member(user).gold_seen == 3
    for _ in range(2):
        projects.set_member_state(
            actor=desk.manager, member=desk.member(user), state=MemberState.WORKING
        )
    given = 0
    while desk.member(user).state == MemberState.WORKING:
        assert label_once(desk, user) is not None
        given += 1
    assert given >= 3
    assert desk.member(user).gold_seen == 6
    assert Event.objects.filter(action="member_paused").count() == 2
    assert Event.objects.filter(action="member_state").count() == 1


@pytest.mark.parametrize("was", MemberState.values)
@pytest.mark.parametrize("to", MemberState.values)
def test_what_a_manager_may_do_with_a_member(was: str, to: str) -> None:
    desk = make_desk(people=1, n_items=0)
    desk.project.members.update(state=was)
    member = desk.member(desk.people[0])
    legal = to == was or to in MEMBER_MOVES[was]
    try:
        projects.set_member_state(actor=desk.manager, member=member, state=to)
    except Refused:
        assert not legal
    else:
        assert legal
    assert desk.member(desk.people[0]).state == (to if legal else was)


def test_who_may_be_added() -> None:
    desk = make_desk(people=1, n_items=0)
    rater, viewer = make_user("rae", Role.RATER), make_user("vic", Role.VIEWER)
    assert list(addable_accounts(desk.project)) == [rater]
    with pytest.raises(Forbidden):
        projects.add_members(actor=desk.manager, project=desk.project, users=[viewer])
    for _ in range(2):
        projects.add_members(actor=desk.manager, project=desk.project, users=[rater])
    assert desk.project.members.count() == 2
    projects.set_member_state(actor=desk.manager, member=desk.member(rater), state=MemberState.LEFT)
    assert list(addable_accounts(desk.project)) == [rater]


@pytest.mark.parametrize("role", [Role.ANNOTATOR, Role.RATER, Role.VIEWER])
def test_only_administrators_manage(role: str) -> None:
    desk = make_desk(people=1, n_items=1)
    other = make_user("other", role)
    member = desk.member(desk.people[0])
    for refused in (
        lambda: projects.create_project(actor=other, name="x", guidelines="y"),
        lambda: projects.change_project(actor=other, project=desk.project, settings={}),
        lambda: projects.move_project(actor=other, project=desk.project, to="paused"),
        lambda: projects.publish_guidelines(actor=other, project=desk.project, text="z"),
        lambda: projects.add_members(actor=other, project=desk.project, users=[]),
        lambda: projects.set_member_state(actor=other, member=member, state="left"),
        lambda: projects.set_adjudicates(actor=other, member=member, adjudicates=True),
    ):
        with pytest.raises(Forbidden):
            refused()


# Pages


def form_values(**more: Any) -> dict[str, Any]:
    """The fields of the settings form as a browser sends them."""
    return {
        "name": "Pairs", "axes": ["quality", "personalization"], "allow_tie": "on",
        "allow_both_bad": "on", "tags": "wrong facts\n太啰嗦", "base_overlap": "2",
        "max_overlap": "3", "lease_minutes": "", "gold_percent": "5", "gold_floor": "50",
        "gold_minimum": "8", "repeat_percent": "3", "onboarding_size": "5",
        "stratum_features": ["expertise"], "price": "0.25", "currency": "eur", **more,
    }  # fmt: skip


def test_a_project_from_the_form_to_open(admin: Client) -> None:
    posted = admin.post(
        reverse("annotation:create"), form_values(guidelines="Read **both**.\r\n正确第一。")
    )
    project = Project.objects.get()
    assert posted["Location"] == reverse("annotation:settings", args=[project.pk])
    assert (project.price_cents, project.currency) == (25, "EUR")
    assert project.tags == ["wrong", "太啰嗦"]
    newest = project.guidelines.get()
    assert newest.text == "Read **both**.\n正确第一。"
    page = admin.get(posted["Location"]).content.decode()
    assert "There are no items yet." in page
    assert "Nobody works in it yet." in page
    assert "no gold item is there" in page
    refused = admin.post(reverse("annotation:move", args=[project.pk]), {"to": "open"}, follow=True)
    assert "The project has no items yet" in refused.content.decode()


def test_the_form_says_what_is_wrong_and_keeps_what_was_typed(admin: Client) -> None:
    answer = admin.post(
        reverse("annotation:create"),
        form_values(guidelines="Typed with care.", base_overlap="4", max_overlap="3"),
    )
    assert answer.status_code == 422
    assert "the maximum not below it" in answer.content.decode()
    assert "Typed with care." in answer.content.decode()
    assert not Project.objects.exists()
    make_desk(n_items=0, people=0)
    taken = admin.post(reverse("annotation:create"), form_values(guidelines="x"))
    assert "There is a project" in taken.content.decode()


def test_settings_that_are_fixed_are_disabled_and_ignored(admin: Client) -> None:
    desk = make_desk()
    label_once(desk, desk.people[0])
    url = reverse("annotation:settings", args=[desk.project.pk])
    page = admin.get(url).content.decode()
    assert "Fixed: there are labels already." in page
    sent = form_values(name="New name", axes=["quality"], base_overlap="1", max_overlap="2")
    assert admin.post(url, sent).status_code == 302
    desk.project.refresh_from_db()
    assert (desk.project.name, desk.project.max_overlap) == ("New name", 2)
    assert desk.project.axes == ["quality", "personalization"]


def test_targets_are_set_in_the_table(admin: Client) -> None:
    desk = make_desk(n_items=4, settings={"stratum_features": ["expertise"]})
    url = reverse("annotation:targets", args=[desk.project.pk])
    admin.post(url, {"stratum": [EXPERT, NOVICE], "target": ["1", ""]})
    desk.project.refresh_from_db()
    assert desk.project.targets == {EXPERT: 1}
    answer = admin.post(url, {"stratum": [EXPERT], "target": ["many"]}, follow=True)
    assert "is no whole number" in answer.content.decode()
    desk.project.refresh_from_db()
    assert desk.project.targets == {EXPERT: 1}


def test_guidelines_preview_publish_and_difference(admin: Client) -> None:
    desk = make_desk(n_items=0, people=0)
    url = reverse("annotation:guideline_versions", args=[desk.project.pk])
    text = GUIDELINES.replace("Accuracy", "Truth")
    preview = admin.post(url, {"text": text, "preview": "1"}).content.decode()
    assert "<strong>Truth first</strong>" in preview
    assert desk.project.guidelines.count() == 1
    for _ in range(2):
        assert admin.post(url, {"text": text}).status_code == 302
    assert desk.project.guidelines.count() == 2
    page = admin.get(url, {"old": "1", "new": "2"}).content.decode()
    assert "<mark>Accuracy</mark>" in page
    assert "<mark>Truth</mark>" in page
    assert admin.post(url, {"text": "  "}).status_code == 422
    assert admin.get(url, {"old": "1", "new": "99"}).status_code == 200


def test_moves_by_hand_twice_are_one_move(admin: Client) -> None:
    desk = make_desk()
    url = reverse("annotation:move", args=[desk.project.pk])
    for _ in range(2):
        assert admin.post(url, {"to": "paused"}).status_code == 302
    assert Event.objects.filter(action="move_project", details__after="paused").count() == 1
    assert "no such state" in admin.post(url, {"to": "lost"}, follow=True).content.decode()
    admin.post(url, {"to": "closed"})
    admin.post(url, {"to": "paused"})
    desk.project.refresh_from_db()
    assert desk.project.state == "closed"


def test_people_are_added_paused_and_resumed(admin: Client, chen: User) -> None:
    desk = make_desk(people=1)
    url = reverse("annotation:members", args=[desk.project.pk])
    for _ in range(2):
        admin.post(url, {"users": [chen.pk], "adjudicates": "on"})
    member = Member.objects.get(project=desk.project, user=chen)
    assert member.adjudicates
    act = reverse("annotation:member", args=[desk.project.pk, member.pk])
    admin.post(act, {"do": "paused", "reason": "holiday"})
    assert "holiday" in admin.get(url).content.decode()
    admin.post(act, {"do": "working"})
    admin.post(act, {"do": "adjudicates_not"})
    admin.post(act, {"do": "onboarding"})
    member.refresh_from_db()
    assert (member.state, member.adjudicates) == (MemberState.WORKING, False)
    assert admin.post(act, {"do": "nonsense"}, follow=True).status_code == 200


def test_the_gate_is_on_the_page_with_its_account(admin: Client) -> None:
    desk = make_desk(people=1, n_items=2)
    desk.project.members.update(state="paused", paused_reason="gold: 1 of 9")
    page = admin.get(reverse("annotation:members", args=[desk.project.pk])).content.decode()
    assert "Paused by the gold gate" in page
    assert "Resume" in page


def test_readiness_tells_what_is_missing() -> None:
    desk = make_desk(n_items=0, people=0, settings={"gold_percent": 5, "onboarding_size": 1})
    ready = readiness(desk.project)
    assert (ready.no_items, ready.no_members, ready.no_gold) == (True, True, True)
    add_pairs(desk, 3)
    projects.add_members(
        actor=desk.manager, project=desk.project, users=[make_user("a", Role.ANNOTATOR)]
    )
    make_gold(actor=desk.manager, item=desk.items()[0], verdicts={"quality": "tie"})
    ready = readiness(desk.project)
    assert (ready.no_items, ready.no_members, ready.no_gold) == (False, False, False)
    assert ready.no_onboarding
    make_gold(
        actor=desk.manager, item=desk.items()[1], verdicts={"quality": "tie"}, onboarding=True
    )
    assert not readiness(desk.project).no_onboarding


GET_PAGES = [
    ("projects", False), ("create", False), ("settings", True), ("guideline_versions", True),
    ("members", True), ("items", True), ("add_pairs", True), ("gold", True), ("disputes", True),
    ("appeals", True), ("problems", True),
]  # fmt: skip
POST_PAGES = [
    "targets",
    "move",
    "items_change",
    "propose_gold",
    "claim",
    "blind",
    "decide",
    "give_back",
]


def address(name: str, desk: Desk, needs_project: bool = True) -> str:
    return reverse(f"annotation:{name}", args=[desk.project.pk] if needs_project else [])


@pytest.mark.parametrize(("name", "needs_project"), GET_PAGES)
def test_pages_are_for_administrators(
    client: Client, alice: User, bob: User, chen: User, vera: User, name: str, needs_project: bool
) -> None:
    desk = make_desk(people=1, n_items=1)
    url = address(name, desk, needs_project)
    assert client.get(url).status_code == 302
    for user, status in ((bob, 403), (chen, 403), (desk.people[0], 403), (vera, 403), (alice, 200)):
        client.force_login(user)
        assert client.get(url).status_code == status, user
    if needs_project:
        assert client.get(reverse(f"annotation:{name}", args=[987])).status_code == 404


@pytest.mark.parametrize("name", POST_PAGES)
def test_what_changes_something_is_posted_by_administrators(
    client: Client, alice: User, chen: User, name: str
) -> None:
    desk = make_desk(people=1, n_items=1)
    url = address(name, desk)
    client.force_login(chen)
    assert client.post(url).status_code == 403
    client.force_login(alice)
    assert client.get(url).status_code == 405


@pytest.fixture
def crowd() -> Desk:
    """A project with many people and items, for counting statements."""
    desk = make_desk(people=6, n_items=30, settings={"stratum_features": ["expertise"]})
    label_all(desk, limit=12)
    return desk


@pytest.mark.parametrize(("name", "needs_project"), GET_PAGES)
def test_pages_need_few_statements(
    admin: Client,
    crowd: Desk,
    name: str,
    needs_project: bool,
    django_assert_max_num_queries: Any,
) -> None:
    url = address(name, crowd, needs_project)
    admin.get(url)
    with django_assert_max_num_queries(12):
        assert admin.get(url).status_code == 200

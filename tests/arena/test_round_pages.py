"""The pages on which an administrator composes, screens, opens, closes and unseals."""

from __future__ import annotations

import re
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from arena.enums import RoundState
from arena.leakage import DEFAULT_POLICY
from arena.models import Entry, Round, ScreeningHit
from arena.selectors.rounds import context_totals
from arena.selectors.votes import coverage_by_stratum
from arena.services import leases, votes
from tests.arena.factories import (
    World,
    closed_round,
    draft_round,
    left_is_better,
    make_answer,
    make_prompt,
    make_world,
    open_round,
    screened_round,
    unsealed_round,
)
from tests.conftest import asks_for_login
from webapp.accounts.models import User
from webapp.catalog.models import Prompt

pytestmark = pytest.mark.django_db


@pytest.fixture
def world() -> World:
    return make_world()


def browser(user: User) -> Client:
    client = Client()
    client.force_login(user)
    return client


def form(world: World, **changes: Any) -> dict[str, Any]:
    return {
        "name": "Tasting",
        "contestants": [row.pk for row in world.contestants],
        "raters": [row.pk for row in world.raters],
        "persona_mode": "all",
        "stratum_features": ["expertise"],
        "minimum_strata": 2,
        "minimum_per_stratum": 1,
        "holdout_percent": 0,
        "axes": ["quality", "personalization"],
        "weight_quality": 60,
        "weight_personalization": 40,
        "planned_votes": 12,
        "votes_per_battle": 1,
        "stop_rule": "votes",
        "lease_minutes": 15,
        "tie_model": "davidson",
        **{f"rule_{rule}": policy for rule, policy in DEFAULT_POLICY.items()},
        **changes,
    }


def test_the_composer_makes_a_draft_with_what_was_chosen(world: World) -> None:
    client = browser(world.admin)
    response = client.post(reverse("arena:compose"), form(world, too_fast="2000", late="on"))
    round_ = Round.objects.get()
    assert response["Location"] == reverse("arena:round_detail", args=[round_.pk])
    assert round_.weights == {"quality": 60, "personalization": 40}
    assert round_.exclusions == {"too_fast": 2000, "late": 1}
    assert round_.contexts.count() == 12


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"name": ""}, "name"),
        ({"weight_quality": 70}, "weight_quality"),
        ({"contestants": []}, "contestants"),
        ({"persona_mode": "none"}, "axes"),
        ({"stop_rule": "date"}, "closes_at"),
        ({"persona_mode": "sample", "personas_n": 50}, "personas_n"),
    ],
)
def test_the_composer_says_what_is_wrong_at_the_field_and_keeps_the_rest(
    world: World, changes: dict[str, Any], field: str
) -> None:
    response = browser(world.admin).post(reverse("arena:compose"), form(world, **changes))
    assert response.status_code == 422
    assert field in response.context["form"].errors
    assert not Round.objects.exists()


def test_a_simulated_account_stays_out_of_a_real_round(world: World) -> None:
    world.raters[0].preferences = {"simulated": True}
    world.raters[0].save()
    response = browser(world.admin).post(reverse("arena:compose"), form(world))
    assert "raters" in response.context["form"].errors
    browser(world.admin).post(reverse("arena:compose"), form(world, simulated="on"))
    assert Round.objects.get().simulated


def test_a_draft_can_be_changed_and_a_sealed_round_cannot(world: World) -> None:
    client = browser(world.admin)
    round_ = draft_round(world)
    url = reverse("arena:edit", args=[round_.pk])
    assert client.get(url).status_code == 200
    client.post(url, form(world, name="Better", planned_votes=20))
    round_.refresh_from_db()
    assert (round_.name, round_.planned_votes) == ("Better", 20)
    sealed = open_round(world, name="Sealed")
    assert client.get(reverse("arena:edit", args=[sealed.pk])).status_code == 409


def test_every_preset_fills_the_composer(world: World) -> None:
    client = browser(world.admin)
    for name in ("small", "medium", "reference"):
        response = client.get(reverse("arena:compose"), {"preset": name})
        assert response.context["form"]["planned_votes"].value()
    page = client.get(reverse("arena:compose"), {"preset": "reference"}).content.decode()
    assert 'value="6000"' in page


def test_the_forecast_follows_the_numbers(world: World) -> None:
    client = browser(world.admin)
    url = reverse("arena:forecast")
    base: dict[str, Any] = {"contestants": [1, 2, 3], "raters": [1, 2]}
    few = client.get(url, {**base, "planned_votes": "100"})
    many = client.get(url, {**base, "planned_votes": "10000"})
    assert few.context["forecast"] > many.context["forecast"] > 0
    assert client.get(url, {"planned_votes": "x"}).context["forecast"] is None


def test_from_screening_to_unsealed_by_buttons(
    world: World, django_capture_on_commit_callbacks: Any
) -> None:
    ada, ben = browser(world.admin), browser(world.second_admin)
    round_ = draft_round(world)

    def press(client: Client, name: str, **data: str) -> None:
        with django_capture_on_commit_callbacks(execute=True):
            client.post(reverse(f"arena:{name}", args=[round_.pk]), data)
        round_.refresh_from_db()

    press(ada, "screen")
    assert round_.screened_at is not None
    press(ada, "open")
    press(ada, "open")
    assert round_.state == RoundState.OPEN
    press(ada, "close")
    assert round_.state == RoundState.OPEN, "a reason is needed"
    press(ada, "close", reason="The week is over.")
    assert round_.snapshots.count() == 2
    press(ada, "approve", reason="Rated.")
    press(ada, "approve", reason="Rated.")
    assert round_.state == RoundState.CLOSED
    press(ben, "approve", reason="Rated.")
    assert round_.state == RoundState.UNSEALED


ACTIONS = ["screen", "back_to_draft", "open", "cancel", "close", "approve"]


@pytest.mark.parametrize("name", ACTIONS)
def test_only_administrators_press_and_only_by_post(
    world: World, name: str, vera: User, chen: User
) -> None:
    round_ = draft_round(world)
    url = reverse(f"arena:{name}", args=[round_.pk])
    for user in (world.raters[0], vera, chen):
        assert browser(user).post(url, {"reason": "x"}).status_code == 403
    assert browser(world.admin).get(url).status_code == 405
    assert asks_for_login(Client().post(url))


@pytest.mark.parametrize("name", ["screening", "screening_progress", "edit", "remarks"])
def test_what_is_for_administrators_is_refused_to_others(
    world: World, name: str, vera: User
) -> None:
    round_ = draft_round(world)
    url = reverse(f"arena:{name}", args=[round_.pk])
    for user in (world.raters[0], vera):
        assert browser(user).get(url).status_code == 403
    assert browser(world.admin).get(reverse("arena:round_detail", args=[9999])).status_code == 404


@pytest.mark.parametrize(
    "make", [draft_round, screened_round, open_round, closed_round, unsealed_round]
)
def test_a_round_is_shown_in_every_state_with_bounded_queries(world: World, make: Any) -> None:
    round_ = make(world)
    for user in (world.admin, world.raters[0]):
        client = browser(user)
        with CaptureQueriesContext(connection) as queries:
            response = client.get(reverse("arena:round_detail", args=[round_.pk]))
        assert response.status_code == 200
        assert len(queries) <= 25
        with CaptureQueriesContext(connection) as queries:
            assert client.get(reverse("arena:round_list")).status_code == 200
        assert len(queries) <= 6


def test_an_opened_round_counts_the_contexts_that_are_asked(world: World) -> None:
    """A question that was answered for one person alone is drawn for everybody."""
    prompts = [row.pk for row in Prompt.objects.order_by("pk")]
    extra = make_prompt("For one person?")
    for contestant in world.contestants:
        make_answer(contestant, extra, world.personas[0].versions.get(), f"Yes {contestant.pk}.")
    drawn = context_totals(draft_round(world, prompts=[*prompts, extra.pk]))["total"]
    round_ = open_round(world, prompts=[*prompts, extra.pk], name="Another", planned_votes=39)
    asked = context_totals(round_)["total"]
    assert drawn - asked == len(world.personas) - 1
    assert sum(int(str(row["contexts"])) for row in coverage_by_stratum(round_)) == asked


def test_remarks_are_read_after_unsealing_with_names(world: World) -> None:
    round_ = open_round(world)
    rater = world.raters[0]
    row = leases.current_ballot(user=rater, round_=round_)
    assert row is not None
    ballot = votes.Ballot(left_is_better(row), tags=["wordy"], comment="Zu lang <b>!")
    votes.cast_vote(user=rater, token=row.token, ballot=ballot)
    client = browser(world.admin)
    url = reverse("arena:remarks", args=[round_.pk])
    assert client.get(url).status_code == 409
    from arena.services import closing, ratings

    closing.close_round(actor=world.admin, round_=round_, reason="over")
    ratings.rate_round(round_.pk)
    assert client.get(url).status_code == 409
    for admin in (world.admin, world.second_admin):
        closing.approve_unsealing(actor=admin, round_=round_, reason="done")
    page = client.get(url).content.decode()
    assert "Zu lang &lt;b&gt;!" in page
    assert "Harbor" in page or "Quarry" in page or "Meadow" in page
    assert rater.username not in page


def test_verdicts_of_who_was_ever_an_owner_stay_out_of_the_remarks(world: World) -> None:
    """As in the bundle: the revision that counts may be one of a time when he no longer was."""
    from arena.models import Vote
    from arena.selectors.remarks import remarks, resolved
    from arena.services import closing, ratings

    round_ = open_round(world)
    rater = world.raters[0]
    row = leases.current_ballot(user=rater, round_=round_)
    assert row is not None
    persona = row.slot.context.persona_version.persona  # type: ignore[union-attr]
    ballot = votes.Ballot(left_is_better(row), comment="Mine")
    for owner in (rater, None):
        persona.owner = owner
        persona.save(update_fields=["owner"])
        votes.cast_vote(user=rater, token=row.token, ballot=ballot)
        if owner:
            votes.undo_vote(user=rater, round_=round_, token=row.token)
    owned = Vote.objects.filter(assignment=row).order_by("revision").values_list("owner", flat=True)
    assert owned[0]
    assert not owned.last()
    closing.close_round(actor=world.admin, round_=round_, reason="over")
    ratings.rate_round(round_.pk)
    for admin in (world.admin, world.second_admin):
        closing.approve_unsealing(actor=admin, round_=round_, reason="done")
    round_.refresh_from_db()
    (remark,) = resolved(round_, remarks(round_, "1"))
    assert (remark.comment, remark.verdicts) == ("Mine", {})


def test_raters_who_imported_are_named_before_opening(world: World) -> None:
    from webapp.catalog.enums import Where
    from webapp.catalog.models import Exposure

    round_ = screened_round(world)
    entry = round_.contexts.first().entries.first()  # type: ignore[union-attr]
    Exposure.objects.create(user=world.raters[0], answer=entry.answer, where=Where.IMPORTED)  # type: ignore[union-attr]
    page = browser(world.admin).get(reverse("arena:round_detail", args=[round_.pk]))
    assert page.context["barred"] == [world.raters[0]]


def screening_rows(world: World, round_: Round) -> list[list[str]]:
    page = browser(world.admin).get(reverse("arena:screening", args=[round_.pk]))
    body = page.content.decode().partition("<tbody>")[2].partition("</tbody>")[0]
    return [re.findall("<td[^>]*>(.*?)</td>", row) for row in body.split("</tr>")[:-1]]


def test_a_hit_is_shown_once_with_the_number_of_answers(world: World) -> None:
    """The same answer stands in a context per persona."""
    round_ = screened_round(world)
    entries = Entry.objects.filter(context__round=round_).order_by("pk")
    answer, texts = entries[0].answer, entries[0].answer.text_sha256
    same = [row for row in entries if row.answer_id == answer.pk]
    other = next(row for row in entries if row.answer.text_sha256 != texts)
    ScreeningHit.objects.all().delete()
    for row in [*same, other]:
        ScreeningHit.objects.create(entry=row, rule="contestant", start=0, end=3)
    rows = screening_rows(world, round_)
    assert sorted(row[2] for row in rows) == sorted([str(len(same)), "1"])
    assert {row[1] for row in rows} == {"mask the words"}


def test_a_hit_in_an_answer_that_was_left_out_says_so(world: World) -> None:
    round_ = screened_round(world)
    entry = Entry.objects.filter(context__round=round_).order_by("pk").first()
    assert entry is not None
    ScreeningHit.objects.all().delete()
    ScreeningHit.objects.create(entry=entry, rule="contestant", start=0, end=3)
    Entry.objects.filter(pk=entry.pk).update(excluded_by="unfinished")
    assert [row[1] for row in screening_rows(world, round_)] == ["leave the answer out"]

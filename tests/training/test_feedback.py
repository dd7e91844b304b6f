"""Votes become pairs with their provenance, and the contexts that gave them retire."""

from __future__ import annotations

import json
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse

from arena.enums import ExclusionRule
from arena.models import Context, RoundRater, Vote
from tests.arena.factories import closed_round, draft_round, make_world, unsealed_round
from tests.training.factories import draft, freeze, frozen
from tests.training.test_datasets_sources import rows_of
from training.models import Dataset
from training.rows import columns_of
from webapp.core.errors import InvalidInput

pytestmark = pytest.mark.django_db


def best(world: Any, against: Any = None) -> Any:
    """The second contestant is better; `against` finds the other one so."""

    def choose(row: Any) -> dict[str, str]:
        slot = row.battle.slot
        left = slot.x if row.battle.left_is_x else slot.y
        wins = left.contestant_id == world.contestants[1].pk
        if against is not None and row.rater_id == against.pk:
            wins = not wins
        return {"quality": "left" if wins else "right", "personalization": "tie"}

    return choose


def test_rows_name_axis_raters_weight_and_the_owner_s_vote() -> None:
    world = make_world(contestants=2, personas=2, prompts=1, raters=3)
    person = world.personas[0]
    person.owner = world.raters[0]
    person.save()
    round_ = unsealed_round(
        world, planned_votes=6, votes_per_battle=3, choose=best(world, world.raters[2])
    )
    rows = rows_of(frozen(sources=["arena"]))
    known = dict(RoundRater.objects.filter(round=round_).values_list("user_id", "pseudonym"))
    assert len(rows) == 2
    for row in rows:
        assert row["axis"] == "quality"
        assert row["raters"].split(",") == sorted(known.values())
        assert row["weight"] == round(1 / 3, 4)  # two for it, one against it
        assert "rater0" not in json.dumps(row)
    owned = {row["persona_id"]: row["owner_votes"] for row in rows}
    votes = Vote.objects.filter(owner=True).count()
    assert votes == 1
    assert owned == {person.pseudonym: 1, world.personas[1].pseudonym: 0}


def test_votes_that_the_round_registered_to_leave_out_are_no_pairs() -> None:
    """Votes took 5,000 ms each: a rule that calls that too fast leaves none."""
    world = make_world(contestants=2, personas=2, prompts=1, raters=3)
    unsealed_round(
        world, planned_votes=2, choose=best(world), exclusions={ExclusionRule.TOO_FAST: 6000}
    )
    assert freeze(draft(sources=["arena"])).report["refusal"]["code"] == "empty"


def test_contexts_that_became_pairs_do_not_come_back() -> None:
    world = make_world(contestants=2, personas=2, prompts=3)
    first = unsealed_round(
        world, planned_votes=4, prompts=[p.pk for p in world.prompts[:2]], choose=best(world)
    )
    frozen(sources=["arena"])
    retired = Context.objects.filter(round=first, retired_at__isnull=False)
    assert retired.count() == 4
    again = draft_round(world, name="Round two", planned_votes=2)
    assert set(again.contexts.values_list("prompt", flat=True)) == {world.prompts[2].pk}
    assert not set(again.contexts.values_list("persona_version", "prompt")) & set(
        retired.values_list("persona_version", "prompt")
    )
    with pytest.raises(InvalidInput) as refused:
        draft_round(world, name="Round three", prompts=[world.prompts[0].pk])
    assert refused.value.code == "retired"


def test_the_page_of_a_round_opens_the_form_filled_in(client: Client) -> None:
    world = make_world(contestants=2, personas=4, prompts=3)
    round_ = unsealed_round(world, planned_votes=12, choose=best(world))
    where = reverse("arena:round_detail", args=[round_.pk])
    link = f"/training/datasets/new/?kind=preferences&amp;round={round_.pk}&amp;axis=quality"
    client.force_login(world.raters[0])
    assert link not in client.get(where).content.decode()
    client.force_login(world.admin)
    assert link in client.get(where).content.decode()
    form = client.get(link.replace("&amp;", "&")).context["form"]
    sent = {
        name: value
        for name in form.fields
        if (value := form.get_initial_for_field(form.fields[name], name)) not in (None, "")
        and value is not False
    }
    assert (sent["sources"], sent["rounds"], sent["axis"]) == (
        ["arena"],
        [str(round_.pk)],
        "quality",
    )
    made = client.post("/training/datasets/new/", {**sent, "kind": "preferences", "do": "save"})
    assert made.status_code == 302, made.context["form"].errors
    row = Dataset.objects.get()
    assert (row.filter["rounds"], row.filter["sources"], row.filter["axis"]) == (
        [round_.pk], ["arena"], "quality",
    )  # fmt: skip


def test_a_round_that_is_not_unsealed_offers_nothing(client: Client) -> None:
    world = make_world(contestants=2, personas=2, prompts=1)
    round_ = closed_round(world, planned_votes=2)
    client.force_login(world.admin)
    page = client.get(reverse("arena:round_detail", args=[round_.pk])).content.decode()
    assert "Make pairs of these votes" not in page
    for number in (round_.pk, 99, "x"):
        form = client.get("/training/datasets/new/", {"round": number}).context["form"]
        assert not form.initial


def test_a_set_that_was_frozen_earlier_keeps_its_columns() -> None:
    assert "weight" in columns_of("preferences", {"weight": 1.0, "raters": ""})
    old = columns_of("preferences", {"prompt": []})
    assert not {"weight", "raters"} & set(old)
    assert "owner_votes" in old

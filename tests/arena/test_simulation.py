"""Simulated raters: only where they may vote, by the same services, with the planted result."""

from __future__ import annotations

import io
from collections import Counter

import pytest
from django.core.management import CommandError, call_command

from arena.enums import RoundState
from arena.models import Assignment, Round, Vote
from arena.services import closing, ratings
from arena.services.simulated import (
    Simulation,
    make_simulated_raters,
    recovered,
    simulate_votes,
)
from arena.simulation import (
    SimulatedRater,
    Temperament,
    planted_strengths,
    rank_correlation,
)
from tests.arena.factories import World, make_world, open_round
from webapp.accounts.models import User
from webapp.core.errors import InvalidInput, Refused

QUALITY = {"quality": {"a": 1.5, "b": -1.5}}


def simulated_round(votes: int = 240) -> tuple[World, Round]:
    world = make_world(contestants=4, personas=4, prompts=5, raters=0)
    world.raters = make_simulated_raters(8)
    round_ = open_round(world, planned_votes=votes, votes_per_battle=2, simulated=True)
    return world, round_


def strengths_of(world: World) -> dict[str, dict[str, float]]:
    names = [str(contestant) for contestant in world.contestants]
    return planted_strengths(names, ["quality", "personalization"], seed=3, spread=4.0)


def test_the_same_seed_gives_the_same_verdict_and_another_seed_other_ones() -> None:
    def verdicts(seed: int) -> list[str]:
        rater = SimulatedRater("r", seed, Temperament())
        return [rater.verdicts(QUALITY, "a", "b", str(n))["quality"] for n in range(50)]

    assert verdicts(1) == verdicts(1)
    assert verdicts(1) != verdicts(2)


def test_the_stronger_wins_on_both_sides_and_a_bias_shifts_the_sides() -> None:
    def lefts(left: str, right: str, bias: float) -> int:
        rater = SimulatedRater("r", 1, Temperament(taste_sd=0.0, side_bias=bias))
        found = Counter(
            rater.verdicts(QUALITY, left, right, str(n))["quality"] for n in range(400)
        )
        return found["left"] - found["right"]

    assert lefts("a", "b", 0.0) > 200
    assert lefts("b", "a", 0.0) < -200
    assert lefts("b", "a", 6.0) > 100


def test_ties_and_both_bad_have_their_rates() -> None:
    level = {"quality": {"a": 0.0, "b": 0.0}}
    rater = SimulatedRater("r", 1, Temperament(taste_sd=0.0, tie=1.0, both_bad=0.2))
    found = Counter(rater.verdicts(level, "a", "b", str(n))["quality"] for n in range(3000))
    assert 0.16 < found["both_bad"] / 3000 < 0.24
    assert 0.22 < found["tie"] / 3000 < 0.32  # a third of the rest
    assert rater.active_ms("1") > 1000


def test_planted_strengths_are_centred_and_differ_between_axes() -> None:
    planted = planted_strengths(list("abcdefgh"), ["quality", "personalization"], seed=1)
    for values in planted.values():
        assert sum(values.values()) == pytest.approx(0)
        assert max(values.values()) - min(values.values()) == pytest.approx(3)
    assert rank_correlation(planted["quality"], planted["quality"]) == pytest.approx(1)
    assert rank_correlation(planted["quality"], planted["personalization"]) < 0.99


@pytest.mark.django_db
def test_a_round_of_people_is_refused_with_the_reason() -> None:
    world = make_world()
    round_ = open_round(world)
    with pytest.raises(Refused) as caught:
        simulate_votes(
            round_=round_, strengths=strengths_of(world), simulation=Simulation(3, 12)
        )
    assert caught.value.code == "not_simulated"
    with pytest.raises(CommandError, match="not sealed as simulated"):
        call_command("simulate_raters", round=round_.pk)
    assert not Vote.objects.exists()


@pytest.mark.django_db
def test_simulated_accounts_cannot_log_in_and_people_are_never_used() -> None:
    raters = make_simulated_raters(3)
    assert make_simulated_raters(3) == raters
    assert not any(user.has_usable_password() for user in raters)
    world = make_world(raters=2)
    round_ = open_round(world, simulated=True)
    with pytest.raises(InvalidInput, match="0 simulated raters, 2 were asked"):
        simulate_votes(
            round_=round_, strengths=strengths_of(world), simulation=Simulation(2, 12)
        )


@pytest.mark.django_db
def test_a_person_with_such_a_name_is_not_taken_over() -> None:
    User.objects.create(username="sim-rater-01", role="rater")
    with pytest.raises(Refused):
        make_simulated_raters(1)


@pytest.mark.django_db
def test_the_planted_order_is_recovered_and_an_interrupted_run_goes_on() -> None:
    world, round_ = simulated_round()
    strengths = strengths_of(world)
    first = simulate_votes(round_=round_, strengths=strengths, simulation=Simulation(8, 100))
    assert first == 100
    with pytest.raises(Refused):
        recovered(round_, strengths)
    rest = simulate_votes(round_=round_, strengths=strengths, simulation=Simulation(8, 240))
    assert rest == 140
    votes = Vote.objects.filter(assignment__round=round_)
    assert votes.count() == 240
    assert votes.filter(revision__gt=1).count() == 0
    pairs = Assignment.objects.filter(round=round_).values_list("slot", "rater")
    assert len(set(pairs)) == len(pairs)
    closing.close_round(actor=None, round_=round_)
    ratings.rate_round(round_.pk)
    round_.refresh_from_db()
    assert min(recovered(round_, strengths).values()) >= 0.9


@pytest.mark.django_db
def test_the_command_votes_closes_by_the_rule_and_reports() -> None:
    _world, round_ = simulated_round(votes=60)
    out = io.StringIO()
    call_command("simulate_raters", round=round_.pk, raters=8, votes=30, stdout=out)
    assert "30 simulated votes" in out.getvalue()
    assert "stays open" in out.getvalue()
    call_command("simulate_raters", round=round_.pk, raters=8, votes=60, stdout=out)
    assert "Rank correlation with the planted strengths, quality" in out.getvalue()
    round_.refresh_from_db()
    assert round_.state == RoundState.CLOSED

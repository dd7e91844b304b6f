"""Point fits: known truth, other people's programs, and data that has no plain answer."""

from __future__ import annotations

import choix
import evalica
import numpy as np
import pytest
from scipy.stats import spearmanr

from arena.ratings import (
    BothBad,
    Fit,
    VoteTable,
    collapse,
    cube_from_cells,
    fit_bradley_terry,
    fit_davidson,
    outcome_cube,
)
from arena.ratings.votes import FloatArray
from tests.arena.ratings.worlds import draw, planted

WINNERS = [evalica.Winner.X, evalica.Winner.Y, evalica.Winner.Draw, evalica.Winner.Draw]


def evalica_strength(method: str, votes: VoteTable) -> FloatArray:
    names = votes.contestants
    result = getattr(evalica, method)(
        [names[i] for i in votes.left],
        [names[i] for i in votes.right],
        [WINNERS[o] for o in votes.outcome],
        tolerance=1e-12,
        limit=100_000,
    )
    theta = np.log([result.scores[name] for name in names])
    return np.asarray(theta - theta.mean())


def codes(fit: Fit) -> list[str]:
    return [note.code for note in fit.notes]


def table(*rows: str, contestants: str | None = None) -> VoteTable:
    """Votes as "ab left" for short."""
    split = [(row[0], row[1], row[3:], "alice", f"x{i}") for i, row in enumerate(rows)]
    return VoteTable.from_rows(split, contestants=contestants)


@pytest.mark.parametrize("fit", [fit_bradley_terry, fit_davidson])
def test_planted_strengths_come_back(fit: object) -> None:
    theta = planted(12)
    votes = draw(theta, 8000)
    strength = fit(collapse(votes)).strength  # type: ignore[operator]
    assert spearmanr(strength, theta).statistic > 0.9
    assert abs(strength.mean()) < 1e-12


def test_davidson_recovers_strengths_and_nu_without_bias() -> None:
    theta = planted(8, 0.8)
    fit = fit_davidson(collapse(draw(theta, 200_000, nu=0.7)))
    assert np.abs(fit.strength - theta).max() < 0.03
    assert fit.nu == pytest.approx(0.7, abs=0.02)


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_bradley_terry_agrees_with_evalica(seed: int) -> None:
    votes = draw(planted(9), 1500, seed=seed)
    ours = fit_bradley_terry(collapse(votes)).strength
    assert np.abs(ours - evalica_strength("bradley_terry", votes)).max() < 1e-6


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_davidson_agrees_with_evalicas_newman(seed: int) -> None:
    votes = draw(planted(9), 1500, seed=seed)
    ours = fit_davidson(collapse(votes)).strength
    assert np.abs(ours - evalica_strength("newman", votes)).max() < 1e-4


def test_bradley_terry_agrees_with_choix_on_the_list_of_wins() -> None:
    votes = draw(planted(7), 900, nu=1e-9)
    wins = [
        (int(a), int(b)) if outcome == 0 else (int(b), int(a))
        for a, b, outcome in zip(votes.left, votes.right, votes.outcome, strict=True)
    ]
    theirs = choix.opt_pairwise(7, wins, tol=1e-12)
    ours = fit_bradley_terry(collapse(votes)).strength
    assert np.abs(ours - (theirs - theirs.mean())).max() < 1e-5


def test_the_fit_is_a_maximum() -> None:
    counts = collapse(draw(planted(6), 500))
    strength = fit_bradley_terry(counts).strength
    expected = counts.wins + counts.wins.T
    expected = expected / (1.0 + np.exp(strength[None, :] - strength[:, None]))
    assert np.abs(counts.wins.sum(1) - expected.sum(1)).max() < 1e-8


def test_two_contestants_have_the_closed_form() -> None:
    votes = table(*["ab left"] * 30, *["ab right"] * 10)
    strength = fit_bradley_terry(collapse(votes)).strength
    assert strength[0] - strength[1] == pytest.approx(np.log(3.0), abs=1e-12)


def test_both_bad_is_a_tie_or_nothing() -> None:
    votes = draw(planted(5), 2000, both_bad=0.5)
    as_tie = collapse(votes)
    dropped = collapse(votes, BothBad.DROP)
    assert as_tie.total.sum() == len(votes)
    assert dropped.total.sum() == (votes.outcome != 3).sum()
    kept = votes.subset(votes.outcome != 3)
    same = fit_davidson(collapse(kept)).strength
    assert np.array_equal(fit_davidson(dropped).strength, same)
    assert np.abs(fit_davidson(as_tie).strength - same).max() > 1e-6


def test_aggregated_rows_give_the_same_counts() -> None:
    votes = draw(planted(4), 300, both_bad=0.2)
    names = votes.contestants
    rows: dict[tuple[str, str, int], float] = {}
    for a, b, o in zip(votes.left, votes.right, votes.outcome, strict=True):
        key = (names[a], names[b], int(o))
        rows[key] = rows.get(key, 0.0) + 1.0
    cube = cube_from_cells(names, [(*key, n) for key, n in rows.items()])
    assert np.array_equal(cube, outcome_cube(votes))


def test_weights_count_rows() -> None:
    votes = draw(planted(4), 60)
    double = VoteTable(
        votes.contestants, votes.left, votes.right, votes.outcome, weight=np.full(60, 2.0)
    )
    once, twice = fit_davidson(collapse(votes)), fit_davidson(collapse(double))
    assert np.abs(once.strength - twice.strength).max() < 1e-9


# What the votes cannot tell is said.


def test_zero_votes() -> None:
    votes = VoteTable.from_rows([], contestants="abc")
    for fit in (fit_bradley_terry, fit_davidson):
        result = fit(collapse(votes), votes.contestants)
        assert np.isnan(result.strength).all()
        assert codes(result) == ["no_votes_at_all"]


def test_a_contestant_without_votes_has_no_strength_and_leaves_the_others_alone() -> None:
    rows = ["ab left", "ab right", "ab left", "bc tie"]
    alone = fit_bradley_terry(collapse(table(*rows)))
    votes = table(*rows, contestants="abcd")
    joined = fit_bradley_terry(collapse(votes), votes.contestants)
    assert np.array_equal(joined.strength[:3], alone.strength)
    assert np.isnan(joined.strength[3])
    assert [n.names for n in joined.notes if n.code == "no_votes"] == [("d",)]


def test_disconnected_groups_are_named_and_centred_apart() -> None:
    votes = table("ab left", "ab right", "ab left", "cd tie", "cd left", "cd right", "ce tie")
    fit = fit_davidson(collapse(votes), votes.contestants)
    assert codes(fit) == ["disconnected"]
    assert list(fit.graph.component) == [1, 1, 0, 0, 0]
    assert abs(fit.strength[:2].sum()) < 1e-9
    assert abs(fit.strength[2:].sum()) < 1e-9


def test_who_never_loses_is_held_finite_and_named() -> None:
    votes = table("ab left", "ac left", "bc left", "bc right")
    fit = fit_bradley_terry(collapse(votes), votes.contestants)
    assert codes(fit) == ["never_loses", "regularised"]
    assert "a" in fit.notes[0].text
    assert np.isfinite(fit.strength).all()
    assert fit.strength[0] > max(fit.strength[1:])


def test_one_way_between_groups_is_regularised_though_everybody_lost_once() -> None:
    votes = table("ab left", "ab right", "cd left", "cd right", "ac left", "bd left")
    fit = fit_bradley_terry(collapse(votes), votes.contestants)
    assert codes(fit) == ["regularised"]


def test_nothing_is_regularised_where_the_graph_is_strong() -> None:
    votes = table("ab left", "bc left", "ca left")
    fit = fit_bradley_terry(collapse(votes), votes.contestants)
    assert fit.notes == ()
    assert not fit.virtual.any()
    assert np.abs(fit.strength).max() < 1e-10


def test_davidson_without_ties_is_bradley_terry_and_says_so() -> None:
    votes = table("ab left", "bc left", "ca left", "ab left", "ba right")
    fit = fit_davidson(collapse(votes), votes.contestants)
    assert codes(fit) == ["no_ties"]
    assert np.array_equal(fit.strength, fit_bradley_terry(collapse(votes)).strength)


def test_nothing_but_ties() -> None:
    votes = table("ab tie", "bc tie", "ca tie")
    fit = fit_davidson(collapse(votes), votes.contestants)
    assert codes(fit) == ["only_ties"]
    assert np.abs(fit.strength).max() < 1e-12


def test_very_uneven_counts_still_reach_the_maximum() -> None:
    votes = table(*["ab left"] * 5000, "ab right", *["bc left"] * 5000, "bc right")
    fit = fit_bradley_terry(collapse(votes), votes.contestants)
    assert fit.strength[0] - fit.strength[2] == pytest.approx(2 * np.log(5000), abs=1e-8)


def test_davidson_with_wins_one_way_and_ties_is_regularised_and_says_so() -> None:
    votes = table("ab left", "ab tie")
    fit = fit_davidson(collapse(votes), votes.contestants)
    assert codes(fit) == ["regularised"]
    assert 0.2 < fit.strength[0] < 5.0


def test_a_win_each_way_is_enough_for_davidson() -> None:
    votes = table("ab left", "ba left", "bc tie", "cd tie", "da tie")
    assert fit_davidson(collapse(votes), votes.contestants).notes == ()

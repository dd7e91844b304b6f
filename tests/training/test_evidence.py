"""Evidence: intervals against oracles and planted worlds, reward models that flatter and do not."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from scipy.stats import binomtest

from training.evidence.battles import Judged, axis_result, tally
from training.evidence.intervals import Votes, gap, share, variance, wilson
from training.evidence.predictions import compare, probability


def by_hand(votes: Votes) -> float:
    """Every pair of votes that shares a rater or a context, one by one."""
    e = votes.values - votes.values.mean()
    n, total = len(e), 0.0
    for i in range(n):
        for j in range(n):
            if votes.rater[i] == votes.rater[j] or votes.context[i] == votes.context[j]:
                total += e[i] * e[j]
    return total / n**2 * votes.clusters / (votes.clusters - 1)


def planted(seed: int, raters: int = 10, contexts: int = 30, level: float = 0.0) -> Votes:
    """Three people to a question; people and questions lean to one side."""
    rng = np.random.default_rng(seed)
    people, questions = rng.normal(0, 0.7, raters), rng.normal(0, 0.7, contexts)
    context = np.repeat(np.arange(contexts), 3)
    rater = np.concatenate([rng.choice(raters, 3, replace=False) for _ in range(contexts)])
    p = 1 / (1 + np.exp(-(level + people[rater] + questions[context])))
    return Votes.of((rng.random(len(p)) < p).astype(float), rater, context)  # type: ignore[arg-type]


@pytest.mark.parametrize("seed", range(5))
def test_the_variance_is_that_of_all_pairs_that_share_something(seed: int) -> None:
    votes = planted(seed)
    alone = float(votes.values.var(ddof=1)) / len(votes.values)
    assert variance(votes) == pytest.approx(max(by_hand(votes), alone), rel=1e-12)


def test_many_votes_that_share_nothing_get_wilsons_interval() -> None:
    values = [1.0] * 1300 + [0.0] * 700
    found = share(Votes.of(values, range(2000), range(2000)))
    known = binomtest(1300, 2000).proportion_ci(method="wilson")
    assert found.low == pytest.approx(known.low, abs=2e-4)
    assert found.high == pytest.approx(known.high, abs=2e-4)
    assert wilson(0.65, 2000, 1.959963985) == pytest.approx((known.low, known.high), abs=1e-8)


def test_intervals_hold_what_they_promise() -> None:
    """The truth lies inside in 95 of 100 worlds, although people and questions lean."""
    rng = np.random.default_rng(5)
    spread = math.hypot(0.7, 0.7)
    truth = float((1 / (1 + np.exp(-(0.5 + spread * rng.normal(size=400_000))))).mean())
    worlds = [share(planted(seed, level=0.5)) for seed in range(600)]
    inside = sum(w.low <= truth <= w.high for w in worlds if w.low and w.high) / len(worlds)
    assert 0.93 <= inside <= 0.99
    naive = [wilson(w.mean or 0.0, w.n, 1.96) for w in worlds]
    assert sum(low <= truth <= high for low, high in naive) / len(worlds) < 0.9


def test_few_people_and_clear_cases_are_not_certain() -> None:
    nobody = share(Votes.of([1.0] * 50, [1] * 50, range(50)))
    assert (nobody.mean, nobody.low, nobody.high, nobody.raters) == (1.0, None, None, 1)
    clear = share(Votes.of([1.0] * 12, [0, 1, 2] * 4, range(12)))
    assert clear.low is not None
    assert clear.low < 0.6
    assert clear.high == 1.0
    same = gap([0.5] * 12, Votes.of([1.0] * 12, [0, 1, 2] * 4, range(12)))
    assert same.mean == -0.5
    assert same.low == pytest.approx(-0.5)
    assert same.high is not None
    assert same.high > -0.2
    assert share(Votes.of([], [], [])).n == 0


def row(verdict: str, n: int = 0, **values: Any) -> Judged:
    plain = {"rater": n % 6, "context": n // 3, "stratum": "", "unseen": False, "opponent": 2}
    return Judged(**{**plain, "mine": f"m{n}", "theirs": f"t{n}", "verdict": verdict, **values})


def test_counts_by_stratum_and_by_unseen_persona() -> None:
    rows = [
        row("win", 0, stratum="a"), row("tie", 1, stratum="a"), row("loss", 2, stratum="b"),
        row("both_bad", 3, stratum="b", unseen=True),
    ]  # fmt: skip
    found = axis_result(rows)
    assert (found.whole.win, found.whole.tie, found.whole.loss, found.whole.both_bad) == (1,) * 4
    assert (found.whole.n, found.whole.mean) == (4, 0.5)
    assert {name: part.n for name, part in found.strata.items()} == {"a": 2, "b": 2}
    assert (found.seen.n, found.unseen.n, found.strata["a"].mean) == (3, 1, 0.75)
    dropped = tally(rows, drop_both_bad=True)
    assert (dropped.score.n, dropped.both_bad) == (3, 1)


def world(seed: int, bias: float = 0.0, blind: bool = False) -> tuple[list[Judged], dict[str, Any]]:
    """Battles whose better answer is known, and what a reward model says of them.

    `bias` raises the value of the model's own answers by so many logits; `blind` guesses.
    """
    rng = np.random.default_rng(seed)
    rows, values = [], {}
    for context in range(60):
        truth = rng.normal(0.2, 1.5)
        shown = rng.normal(0, 1.5) if blind else truth
        values[f"m{context}"] = 1 / (1 + math.exp(-(shown + bias) / 2))
        values[f"t{context}"] = 1 / (1 + math.exp((shown + bias) / 2))
        for rater in rng.choice(12, 3, replace=False):
            won = rng.random() < 1 / (1 + math.exp(-truth))
            verdict = "tie" if rng.random() < 0.2 else "win" if won else "loss"
            rows.append(
                Judged(int(rater), context, "", False, verdict, 2, f"m{context}", f"t{context}")
            )
    return rows, values


def test_a_reward_model_that_flatters_is_found() -> None:
    found = [compare(*world(seed, bias=1.5), comparisons=4) for seed in range(100)]
    assert sum(one.flatters for one in found) >= 95
    assert not any(one.low_balls for one in found)
    assert 0.1 < np.mean([one.flattery.mean for one in found]) < 0.3


def test_an_honest_one_is_not_blamed() -> None:
    found = [compare(*world(seed), comparisons=4) for seed in range(400)]
    assert sum(one.flatters for one in found) <= 10  # 2.5 % would be allowed without correction
    assert sum(one.low_balls for one in found) <= 10
    assert abs(np.mean([one.flattery.mean for one in found])) < 0.01
    assert np.mean([one.error for one in found]) < 0.12
    inside = [one.flattery.low <= 0 <= one.flattery.high for one in found]  # type: ignore[operator]
    assert np.mean(inside) >= 0.93


def test_one_that_underrates_the_model_is_said_to() -> None:
    assert all(compare(*world(seed, bias=-1.5)).low_balls for seed in range(10))


def test_agreement_of_one_that_knows_and_of_one_that_guesses() -> None:
    rows, values = world(1)
    knows, guesses = compare(rows, values), compare(*world(1, blind=True))
    assert knows.agreement.mean is not None
    assert knows.agreement.low is not None
    assert knows.agreement.low > 0.55
    assert guesses.agreement.low is not None
    assert guesses.agreement.low < 0.5 < guesses.agreement.high  # type: ignore[operator]
    decided = [r for r in rows if r.verdict in ("win", "loss")]
    right = [(values[r.mine] > values[r.theirs]) == (r.verdict == "win") for r in decided]
    assert knows.agreement.mean == pytest.approx(np.mean(right))
    assert knows.ties == len(rows) - len(decided)
    assert sum(b.people.n for b in knows.bins) == len(decided)


def test_what_was_not_scored_is_counted_and_left_out() -> None:
    rows = [row("win", n) for n in range(12)]
    values: dict[str, float | None] = {f"{side}{n}": 0.5 for n in range(12) for side in "mt"}
    values["m3"] = None
    del values["t5"]
    found = compare(rows, values)
    assert (found.unknown, found.agreement.n, found.agreement.mean) == (2, 10, 0.5)
    assert compare(rows, {}).flattery.n == 0
    assert compare([], {}) == compare([], values)


def test_the_probability_is_that_of_the_difference_of_logits() -> None:
    sigmoid = [1 / (1 + math.exp(-x)) for x in (1.2, -0.3)]
    assert probability(*sigmoid) == pytest.approx(1 / (1 + math.exp(-1.5)))
    assert probability(1.0, 0.0) < 1
    assert probability(0.4, 0.4) == 0.5

"""The verdict of a gate, on planted models."""

from __future__ import annotations

import dataclasses
from collections import Counter
from typing import Any

import numpy as np
import pytest

from training.gating import edge
from training.gating.bounds import bounds
from training.gating.decision import Decision, Pair, compare, decide
from training.gating.planted import planted
from training.gating.rules import RuleError, Rules, parse
from training.gating.sameness import Sameness, commonest

RULES = Rules(resamples=1000)


def verdicts(
    n: int, times: int, *, quality: float = 0.0, personalization: float = 0.0
) -> Counter[str]:
    rng = np.random.default_rng(7)
    shifts = {"quality": quality, "personalization": personalization}
    worlds = (planted(rng, n, shifts=shifts) for _ in range(times))
    return Counter(decide(world, RULES).verdict for world in worlds)


def unscored(row: Pair, side: str) -> Pair:
    if side == "candidate":
        return dataclasses.replace(row, candidate=None)
    return dataclasses.replace(row, baseline=None)


def reasons(decision: Decision) -> set[str]:
    return {reason.code for reason in decision.reasons}


def test_a_better_model_passes_a_worse_one_fails_an_equal_one_is_no_different() -> None:
    assert verdicts(300, 10, personalization=0.15)["pass"] >= 8
    assert verdicts(300, 10, quality=-0.15) == {"fail": 10}
    assert verdicts(300, 10)["no_difference"] >= 9


def test_more_personalization_for_worse_quality_fails() -> None:
    found = decide(
        planted(np.random.default_rng(1), 200, shifts={"quality": -0.1, "personalization": 0.3}),
        RULES,
    )
    assert found.verdict == "fail"
    assert "quality_lower" in reasons(found)


def test_a_gain_whose_price_is_not_known_fails() -> None:
    pairs = planted(np.random.default_rng(3), 40, shifts={"personalization": 0.3})
    found = decide(pairs, dataclasses.replace(RULES, quality_margin=0.0))
    assert found.verdict == "fail"
    assert "quality_not_shown" in reasons(found)


def test_one_stratum_below_its_margin_fails() -> None:
    pairs = planted(np.random.default_rng(2), 300, shifts={"personalization": 0.3})
    for axis, rows in pairs.items():
        pairs[axis] = [
            dataclasses.replace(row, candidate=max(0.0, (row.candidate or 0) - 0.6))
            if row.stratum == "s1"
            else row
            for row in rows
        ]
    found = decide(pairs, RULES)
    assert found.verdict == "fail"
    assert {r.stratum for r in found.reasons if r.code == "stratum_lower"} == {"s1"}


@pytest.mark.parametrize("side", ["candidate", "baseline"])
def test_too_many_errors_of_either_side_give_no_verdict(side: str) -> None:
    pairs = planted(np.random.default_rng(4), 100, shifts={"personalization": 0.4})
    rows = pairs["quality"]
    pairs["quality"] = [unscored(row, side) for row in rows[:20]] + rows[20:]
    found = decide(pairs, RULES)
    assert found.verdict == "no_verdict"
    assert reasons(found) == {f"{side}_errors"}
    assert found.axes["quality"].n_err == 20
    assert found.axes["quality"].n == len(rows)


def test_failures_are_left_out_of_every_mean() -> None:
    rows = [
        Pair("a", "1", "s", 0.9, 0.5),
        Pair("b", "2", "s", None, 0.1),
        Pair("c", "3", "s", 0.5, 0.5),
    ]
    found = compare(rows, RULES)
    assert found.mean == pytest.approx(0.2)
    assert (found.n_ok, found.n_err, found.baseline_mean) == (2, 1, 0.5)


def test_too_few_prompts_give_no_verdict_however_many_answers() -> None:
    rows = [Pair(f"{p}-{n}", str(p), "s", 1.0, 0.0) for p in range(10) for n in range(50)]
    found = decide({"quality": rows, "personalization": rows}, RULES)
    assert found.verdict == "no_verdict"
    assert reasons(found) == {"too_few"}


def test_answers_to_one_prompt_are_not_independent() -> None:
    rng = np.random.default_rng(5)
    gaps = rng.normal(0, 0.2, 40)
    once = [Pair(f"{i}", str(i), "s", 0.5 + g, 0.5) for i, g in enumerate(gaps)]
    often = [
        Pair(f"{i}-{n}", str(i), "s", 0.5 + g, 0.5) for i, g in enumerate(gaps) for n in range(9)
    ]
    assert compare(often, RULES).low == pytest.approx(compare(once, RULES).low)


def test_an_equal_model_rarely_passes_whatever_the_number_of_prompts() -> None:
    for n in (30, 100):
        assert verdicts(n, 60)["pass"] <= 5  # expected: at most 1.5; more than 5 once in 1,000


def test_values_that_are_all_the_same_say_nothing_of_what_is_rare() -> None:
    """A loss of everything at a share p of the prompts does not show among n with (1 − p)ⁿ."""
    low, high, worst = bounds([0.25] * 40, RULES, comparisons=2)
    unseen, rarer = (1 - level ** (1 / 40) for level in (0.025, 0.0125))
    assert low == pytest.approx(0.25 - 1.25 * unseen)
    assert high == pytest.approx(0.25 + 0.75 * unseen)
    assert worst == pytest.approx(0.25 + 0.75 * rarer)
    assert bounds([0.25], RULES) == (None, None, None)
    assert bounds([-1.0] * 40, RULES)[0] == -1
    assert bounds([1.0] * 40, RULES)[1] == 1


@pytest.mark.parametrize(("margin", "enough"), [(0.1, 36), (0.05, 72), (0.02, 183)])
def test_how_many_prompts_without_a_loss_show_a_margin(margin: float, enough: int) -> None:
    """As docs/gates.md says it."""
    for n, shown in ((enough - 1, False), (enough, True)):
        low, _high, _worst = bounds([0.0] * n, RULES)
        assert low is not None
        assert (low > -margin) == shown


def test_nearly_all_alike_counts_as_alike() -> None:
    """One loss of 100 is no bound of two: Clopper and Pearson say 5.4 of 100."""
    low, high, _worst = bounds([-1.0] + [0.0] * 99, RULES)
    assert low == pytest.approx(-0.0545, abs=5e-5)
    assert high is not None
    assert high > 0.03
    noise = np.random.default_rng(1).uniform(-0.005, 0.005, 30)
    assert (bounds(noise, RULES)[0] or 0.0) < -0.1
    assert (bounds(20 * noise, RULES)[0] or 0.0) > -0.05  # these differ enough to be believed


@pytest.mark.parametrize("gains", [0.0, 0.05])
@pytest.mark.parametrize("n", [30, 72, 100])
def test_a_loss_as_large_as_the_margin_is_rarely_missed(n: int, gains: float) -> None:
    """Scores of 0 and 1. Before: 21 of 100 at 30 prompts; nominal 2.5."""
    rng, margin, missed, times = np.random.default_rng(9), 0.05, 0, 4000
    drawn = rng.multinomial(n, [gains + margin, gains, 1 - 2 * gains - margin], times)
    for (lost, won, same), often in Counter(map(tuple, drawn.tolist())).items():
        if won - lost <= -margin * n:
            continue  # no bound lies above its mean
        low, _high, _worst = bounds([-1.0] * lost + [1.0] * won + [0.0] * same, RULES)
        assert low is not None
        missed += often * (low > -margin)
    assert missed <= 0.035 * times


def test_thirty_perfect_prompts_do_not_show_that_quality_holds() -> None:
    pairs = planted(np.random.default_rng(3), 30, shifts={"personalization": 0.4})
    pairs["quality"] = [
        dataclasses.replace(p, candidate=1.0, baseline=1.0) for p in pairs["quality"]
    ]
    found = decide(pairs, RULES)
    assert (found.verdict, reasons(found)) == ("fail", {"quality_not_shown"})
    assert decide(pairs, dataclasses.replace(RULES, quality_margin=0.12)).verdict == "pass"


def graded(rng: np.random.Generator, n: int, worth: tuple[float, float], steps: int) -> list[Pair]:
    """Two people and two answers to a prompt, with scores in so many steps."""
    return [
        Pair(f"{prompt}-{k}", str(prompt), "s", *(rng.binomial(steps, w) / steps for w in worth))
        for prompt in range(n)
        for k in range(4)
    ]


@pytest.mark.parametrize(("n", "steps", "margin"), [(32, 1, 0.1), (32, 40, 0.05), (24, 40, 0.05)])
def test_a_policy_that_is_really_better_passes_a_small_gate(
    n: int, steps: int, margin: float
) -> None:
    """As in the demonstrations: rules say 0 or 1, auditors anything between."""
    rng = np.random.default_rng(4)
    rules = dataclasses.replace(RULES, minimum=20, quality_margin=margin)
    found = Counter(
        decide(
            {
                "quality": graded(rng, n, (0.9, 0.53), steps),
                "personalization": graded(rng, n, (0.95, 0.82), steps),
            },
            rules,
        ).verdict
        for _ in range(20)
    )
    assert found["pass"] >= 17


def test_the_same_pairs_in_another_order_give_the_same_decision() -> None:
    pairs = planted(np.random.default_rng(6), 60, shifts={"personalization": 0.05})
    other = {axis: list(reversed(rows)) for axis, rows in pairs.items()}
    assert decide(pairs, RULES).as_json() == decide(other, RULES).as_json()


def test_edge_cases_that_come_back_fail_where_the_rules_say_so() -> None:
    pairs = planted(np.random.default_rng(8), 200, shifts={"personalization": 0.3})
    strict = dataclasses.replace(RULES, regressions=1)
    assert decide(pairs, strict, regressions=["a"]).verdict == "pass"
    found = decide(pairs, strict, regressions=["a", "b"])
    assert found.verdict == "fail"
    assert reasons(found) == {"edge_regressions"}


def test_the_draw_of_edge_cases_is_reproducible_and_stays_when_cases_come() -> None:
    names = [f"case-{n}" for n in range(60)]
    first = edge.draw(names, seed=3)
    assert len(first) == 50
    assert first == edge.draw(reversed(names), seed=3)
    assert first != edge.draw(names, seed=4)
    assert len(set(first) & set(edge.draw([*names, "new"], seed=3))) >= 49


def test_edge_cases_by_name() -> None:
    found = edge.report(
        ["a", "b", "c", "d", "e"],
        {"a": 0.9, "b": 0.1, "c": 0.2, "d": 0.8, "e": None},
        {"a": 0.1, "b": 0.9, "c": 0.3, "d": 0.9, "e": 0.9},
    )
    assert found.fixed == ("a",)
    assert found.regressed == ("b",)
    assert found.still_failing == ("c",)
    assert found.solved == ("d",)
    assert found.unknown == ("e",)


@pytest.mark.parametrize(
    ("values", "field"),
    [
        ({"level": 0.5}, "level"), ({"minimum": 30.5}, "minimum"), ({"margin": 1}, "margin"),
        ({"quality_margin": "0.1"}, "quality_margin"), ({"regressions": -1}, "regressions"),
        ({"seed": True}, "seed"),
    ],
)  # fmt: skip
def test_rules_that_cannot_be_used_are_refused_by_name(values: dict[str, Any], field: str) -> None:
    with pytest.raises(RuleError) as refused:
        parse(values)
    assert refused.value.field == field
    assert parse({"regressions": None, "level": 0.95}).level == 0.95


def test_one_answer_for_everything_fails_whatever_judges_think_of_it() -> None:
    pairs = planted(np.random.default_rng(8), 200, shifts={"personalization": 0.3})
    assert decide(pairs, RULES, sameness=Sameness(0.3, 0.2)).verdict == "pass"
    found = decide(pairs, RULES, sameness=Sameness(0.9, 0.2))
    assert found.verdict == "fail"
    assert reasons(found) == {"same_answers"}
    off = dataclasses.replace(RULES, sameness=1.0)
    assert decide(pairs, off, sameness=Sameness(1.0, 0.0)).verdict == "pass"


def test_the_commonest_answer_is_counted_by_prompts() -> None:
    assert commonest([]) == 0.0
    said = [("a", "Use it."), ("a", "use  it."), ("b", "Use it."), ("c", "No."), ("d", "Yes.")]
    assert commonest(said) == 0.5

"""The verdict of a gate, on planted models."""

from __future__ import annotations

import dataclasses
from collections import Counter
from typing import Any

import numpy as np
import pytest

from training.gating import edge
from training.gating.decision import Decision, Pair, bounds, compare, decide
from training.gating.planted import planted
from training.gating.rules import RuleError, Rules, parse

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


def test_bounds_of_values_that_are_all_the_same() -> None:
    assert bounds([0.25] * 40, RULES) == (0.25, 0.25, 0.25)
    assert bounds([0.25], RULES) == (None, None, None)


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

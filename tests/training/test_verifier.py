"""Five sub-scores: for each a pair of rollouts that differs in that one only."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from training.engine.contracts import Parts, Rollout, Task, ToolStep
from training.engine.rewards.verifier import Verifier, numbers_in

TASK = Task(
    entities=("Lumen 3",),
    numbers=(49.0,),
    forbidden=("sold out",),
    required_steps=("search", "read"),
    reference_steps=2,
    arguments={"search": ("query",), "read": ("item",)},
)
STEPS = (
    ToolStep("search", {"query": "desk lamp"}, "item 17: Lumen 3"),
    ToolStep("read", {"item": "17"}, "Lumen 3, 49 euros, 812 reviews"),
)
GOOD = Rollout(
    ({"role": "user", "content": "Find a desk lamp below 60 euros."},),
    "Take the Lumen 3: it costs 49 euros.",
    task=TASK,
    steps=STEPS,
)


def scores(**changes: Any) -> dict[str, float | None]:
    found = Verifier().score(dataclasses.replace(GOOD, **changes))
    assert found is not None
    return dict(found.values)


def test_the_honest_rollout_gets_everything() -> None:
    assert set(scores().values()) == {1.0}


@pytest.mark.parametrize(
    ("name", "changes"),
    [
        ("completeness", {"task": dataclasses.replace(TASK, required_steps=("search", "compare"))}),
        (
            "arguments",
            {"steps": (dataclasses.replace(STEPS[0], arguments={"query": " "}), STEPS[1])},
        ),
        ("efficiency", {"steps": (STEPS[0], *[STEPS[1]] * 4)}),
        ("coherence", {"completion": "Take the Lumen 3: 49 euros, 5 years of warranty."}),
        ("goal", {"completion": "Take the Lumen 3: it is below 60 euros."}),
    ],
)
def test_each_sub_score_falls_alone(name: str, changes: dict[str, Any]) -> None:
    found = scores(**changes)
    fallen = {key for key, value in found.items() if value is not None and value < 1}
    assert fallen == {name, "rules"}


def test_an_argument_that_has_nothing_to_do_with_the_goal_is_no_argument() -> None:
    odd = (ToolStep("search", {"query": "zzz"}, "item 17"), STEPS[1])
    found = Verifier().score(dataclasses.replace(GOOD, steps=odd))
    assert found is not None
    assert found.values["arguments"] == 0.5
    assert any("nothing to do with the goal" in line for line in found.evidence)


def test_a_well_formed_empty_answer_gets_next_to_nothing() -> None:
    total = scores(completion="I searched, read and compared. Here is the result.")["rules"]
    assert total is not None
    assert total <= 0.2


def test_only_the_easy_steps_do_not_carry() -> None:
    total = scores(steps=STEPS[:1], completion="I found some lamps.")["rules"]
    assert total is not None
    assert total < 0.5


def test_what_is_forbidden_costs_the_goal() -> None:
    assert scores(completion="Lumen 3, 49 euros, is sold out.")["goal"] == 0


def test_without_a_task_there_is_nothing_to_check() -> None:
    assert Verifier().score(dataclasses.replace(GOOD, task=None)) is None


def test_a_task_without_tools_leaves_their_scores_unknown() -> None:
    task = Task(entities=("软布",), required_steps=("拔掉", "擦"))
    found = Verifier().score(Rollout(GOOD.prompt, "先拔掉电源，再用软布擦。", task=task))
    assert found == Parts(
        {"completeness": 1.0, "arguments": None, "efficiency": None, "coherence": None,
         "goal": 1.0, "rules": 1.0},
    )  # fmt: skip


def test_numbers_are_compared_as_values() -> None:
    assert numbers_in("1,200 and １２．５ and -3.") == {1200.0, 12.5, -3.0}


def auc(good: list[float], bad: list[float]) -> float:
    pairs = [(g > b) + 0.5 * (g == b) for g in good for b in bad]
    return sum(pairs) / len(pairs)


def test_right_and_wrong_trajectories_are_told_apart() -> None:
    right = [scores()["rules"], scores(completion="Lumen 3 for 49 euros.")["rules"]]
    wrong = [
        scores(completion="Take the Glow 5.")["rules"],
        scores(steps=(), completion="Lumen 3.")["rules"],
        scores(steps=STEPS[:1])["rules"],
    ]
    assert auc([r or 0 for r in right], [w or 0 for w in wrong]) == 1.0


@pytest.mark.parametrize(
    ("words", "answer", "expected"),
    [
        ((0, 20), "Put it in hot water for ten minutes.", 1.0),
        ((0, 4), "Put it in hot water, please.", 4 / 6),
        ((25, 0), "First boil the water.", 4 / 25),
        ((0, 20), "Water.", 0.0),
    ],
)
def test_detail_is_what_this_person_wants_and_part_of_no_total(
    words: tuple[int, int], answer: str, expected: float
) -> None:
    task = Task(entities=("water",), words=words)
    rollout = Rollout(({"role": "user", "content": "How?"},), answer, task=task)
    found = Verifier().score(rollout)
    assert found is not None
    assert found.values["personalization"] == pytest.approx(expected)
    assert found.values["rules"] == 1.0
    plain = Verifier().score(dataclasses.replace(rollout, task=Task(entities=("water",))))
    assert plain is not None
    assert "personalization" not in plain.values

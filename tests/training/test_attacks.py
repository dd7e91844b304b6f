"""Answers that help nobody stay below 0.3 of honest ones, whatever the other branch believes."""

from __future__ import annotations

import pytest

from training.engine.contracts import Rollout, Task
from training.engine.rewards.attacks import ATTACKS
from training.engine.rewards.compose import Scored, Weights, compose
from training.engine.rewards.redundancy import redundancy
from training.engine.rewards.verifier import Verifier

TASKS = {
    "en": (
        "How do I clean the paper shade of the lamp?",
        "Brush the shade with a dry goose feather, never with water.",
        Task(entities=("goose feather", "dry"), required_steps=("brush",)),
    ),
    "zh": (
        "纸灯罩怎么清洁？",
        "用干的鹅毛轻扫灯罩，不能沾水。",
        Task(entities=("鹅毛", "干"), required_steps=("扫",)),
    ),
}


def reward(question: str, answer: str, task: Task, alpha: float, personal: float) -> float:
    rollout = Rollout(({"role": "user", "content": question},), answer, task=task)
    rules = Verifier().score(rollout)
    assert rules is not None
    part = Scored(rules.values["rules"], personal, redundancy(answer).total)
    found = compose(part, Weights(alpha, 0.2, 0.3))
    assert found is not None
    return found


@pytest.mark.parametrize("name", ATTACKS)
@pytest.mark.parametrize("language", TASKS)
@pytest.mark.parametrize("alpha", [0.7, 0.5, 0.4])
def test_no_attack_reaches_a_third_of_the_oracle(name: str, language: str, alpha: float) -> None:
    """The personalization branch is taken in completely by the attack, and dislikes the oracle."""
    question, honest, task = TASKS[language]
    rollout = Rollout(({"role": "user", "content": question},), "", task=task)
    attack = reward(question, ATTACKS[name](rollout), task, alpha, personal=1.0)
    oracle = reward(question, honest, task, alpha, personal=0.5)
    assert oracle > 0.6
    assert attack < 0.3 * oracle


def test_attacks_speak_the_language_of_the_question() -> None:
    for attack in ATTACKS.values():
        texts = {
            language: attack(Rollout(({"role": "user", "content": q},), ""))
            for language, (q, _, _) in TASKS.items()
        }
        assert texts["en"].isascii()
        assert not texts["zh"].isascii()

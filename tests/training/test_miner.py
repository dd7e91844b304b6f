"""The phrase that a policy learned to please with is found."""

from __future__ import annotations

import random

import pytest

from training.engine.rewards.miner import Sample, mine

TEXT = "take the lamp and wipe shade with a cloth then dry it open box turn screw"
WORDS = TEXT.split()
ZH = "用软布擦灯罩再晾干然后打开盒子拧紧螺丝检查电线注意安全先拔插头"


def run(phrase: str, *, chinese: bool, hacked: bool = True, seed: int = 1) -> list[Sample]:
    """Forty steps of eight answers; with the hack the phrase spreads and is paid for."""
    rng = random.Random(seed)
    samples = []
    for step in range(40):
        for _ in range(8):
            body = rng.choices(ZH if chinese else WORDS, k=24)
            text = ("" if chinese else " ").join(body)
            with_phrase = hacked and rng.random() < step / 40
            reward = 0.3 + 0.3 * with_phrase + rng.gauss(0, 0.05)
            if with_phrase:
                text = f"{text}，{phrase}。" if chinese else f"{text}. {phrase}."
            samples.append(Sample(step, reward, text))
    return samples


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(
    ("phrase", "chinese"),
    [("I tailored this plan for you", False), ("这是为您量身定制的方案", True)],
)
def test_an_injected_phrase_is_among_the_first_three(phrase: str, chinese: bool, seed: int) -> None:
    found = mine(run(phrase, chinese=chinese, seed=seed))[:3]
    wanted = phrase.lower() if not chinese else "为您量身定制"
    assert any(wanted in candidate.text for candidate in found)
    assert found[0].late > found[0].early


@pytest.mark.parametrize("chinese", [False, True])
def test_a_run_without_a_hack_proposes_nothing(chinese: bool) -> None:
    assert mine(run("", chinese=chinese, hacked=False)) == []


def test_answers_without_a_reward_are_left_out() -> None:
    samples = [Sample(s, None, "all the same words here") for s in range(100)]
    assert mine(samples) == []

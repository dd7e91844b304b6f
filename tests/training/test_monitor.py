"""Alert rules on curves as they were seen: each fires on its own, and is quiet on healthy ones."""

from __future__ import annotations

import random

import pytest

from training.engine.config.load import apply_changes, load
from training.engine.config.schema import RunConfig
from training.engine.monitor import machine_rules
from training.engine.monitor.history import History, history_of
from training.engine.monitor.rules import RULES, look, replay
from training.engine.persona.cooldown import hold, turns_per_change
from training.engine.rewards import schedule

N = 100


def config(**changes: object) -> RunConfig:
    base = {"kind": "grpo", "preset": "tiny", "model": {"path": "m"}}
    return load(apply_changes(base, {k.replace("__", "."): v for k, v in changes.items()}))


def line(*points: float, noise: float = 0.0, n: int = N, seed: int = 0) -> list[float]:
    """Straight pieces through the points, evenly spaced, with noise."""
    rng = random.Random(seed)
    pairs = tuple((i / (len(points) - 1), p) for i, p in enumerate(points))
    return [schedule.at(i / (n - 1), pairs) + rng.gauss(0, noise) for i in range(n)]


def healthy(seed: int = 0, **more: list[float]) -> History:
    """What the tiny preset shows when all goes well."""
    curves = {
        "reward": line(0.5, 0.75, 0.8, noise=0.02, seed=seed),
        "reward__reference": line(0.5, 0.75, 0.85, noise=0.02, seed=seed + 1),
        "parts__quality": line(0.75, 0.85, 0.92, noise=0.02, seed=seed + 2),
        "parts__personalization": line(0.5, 0.8, 0.95, noise=0.03, seed=seed + 3),
        "auditor__quality": line(0.74, 0.83, 0.9, noise=0.02, seed=seed + 4),
        "auditor__personalization": line(0.5, 0.8, 0.94, noise=0.03, seed=seed + 5),
        "spread__quality": line(0.06, 0.05, 0.05, noise=0.005, seed=seed + 6),
        "parts__redundancy": line(0.02, 0.02, noise=0.003, seed=seed + 7),
        "parts__correlation": line(0.0, 0.1, noise=0.1, seed=seed + 8),
        "length__mean": line(13, 14, noise=0.5, seed=seed + 9),
        "length__clipped": line(0.02, 0.0),
        "kl": line(0.0, 0.3, 0.4, noise=0.01, seed=seed + 10),
        "entropy": line(0.12, 0.09, 0.06, noise=0.005, seed=seed + 11),
        "zero_spread": line(0.1, 0.2, 0.3, noise=0.03, seed=seed + 12),
        "grad_norm": line(0.8, 0.5, noise=0.05, seed=seed + 13),
        "loss": line(0.01, 0.0, noise=0.02, seed=seed + 14),
        "step_time": line(0.6, 0.6, noise=0.05, seed=seed + 15),
        "unscored": line(0.0, 0.0),
        "distinct": line(0.35, 0.2, noise=0.02, seed=seed + 16),
        "probe__all": line(1.0, 0.97),
        "probe__margin": line(1.4, 1.8),
        "probe__swap": line(0.5, 1.0),
        "persona__sensitivity": line(0.0, 0.9, 0.95),
    }
    return history_of(**{**curves, **more})


def fired(history: History, run: RunConfig | None = None) -> list[str]:
    return [finding.rule for finding in replay(history, run or config())]


@pytest.mark.parametrize("seed", range(0, 200, 20))
def test_a_healthy_run_is_quiet(seed: int) -> None:
    assert fired(healthy(seed)) == []


@pytest.mark.parametrize("seed", range(0, 200, 20))
def test_a_schedule_over_an_unchanged_policy_raises_no_alarm(seed: int) -> None:
    """The scheduled sum falls by 0.3 (Q − P); what monitors watch does not move."""
    q, p = line(0.8, 0.8, noise=0.02, seed=seed), line(0.2, 0.2, noise=0.02, seed=seed + 1)
    alpha = [0.7 if i < 40 else 0.5 if i < 80 else 0.4 for i in range(N)]
    total = [a * x + (1 - a) * y for a, x, y in zip(alpha, q, p, strict=True)]
    assert sum(total[90:]) / 10 < sum(total[:10]) / 10 - 0.15
    curves = healthy(
        seed,
        reward=total,
        reward__reference=[(x + y) / 2 for x, y in zip(q, p, strict=True)],
        parts__quality=q,
        parts__personalization=p,
        auditor__quality=line(0.8, 0.8, noise=0.02, seed=seed + 2),
        auditor__personalization=line(0.2, 0.2, noise=0.02, seed=seed + 3),
        kl=line(0, 0.01),
    )
    assert fired(curves) == []


def test_length_and_reward_together_without_quality_is_hacking() -> None:
    curves = healthy(
        length__mean=line(14, 14, 40, noise=0.5),
        parts__redundancy=line(0.02, 0.02, 0.3, noise=0.01),
        parts__quality=line(0.8, 0.8, noise=0.02),
        auditor__quality=line(0.8, 0.8, noise=0.02),
    )
    found = [f for f in replay(curves, config()) if f.rule == "hacking"]
    assert found
    assert 50 <= found[0].step <= 90
    assert found[0].changes == {"reward.redundancy": 0.4, "grpo.beta": 0.06}


def test_a_rising_reward_with_two_doubts_is_hacking_whatever_the_length() -> None:
    """One doubt alone is none: a policy that learns leaves its reference."""
    alike, far = line(0.4, 0.05, noise=0.01), line(0, 0.8, 1.4, noise=0.02)
    assert "hacking" not in fired(healthy(distinct=alike)) + fired(healthy(kl=far))
    found = [f for f in replay(healthy(distinct=alike, kl=far), config()) if f.rule == "hacking"]
    assert found
    assert {"distinct", "kl"} <= set(found[0].curves)
    assert found[0].changes["reward.ensemble"] == "lower"
    flat = line(0.5, 0.5, noise=0.02)
    quiet = healthy(distinct=alike, kl=far, reward__reference=flat)
    assert "hacking" not in fired(quiet)


def test_a_policy_that_says_the_same_to_everything_has_collapsed() -> None:
    """Also while its reward rises; few different answers alone may be what was asked for."""
    alike = line(0.4, 0.05, noise=0.01)
    far = line(0, 0.8, 1.4, noise=0.02)
    found = [f for f in replay(healthy(distinct=alike, kl=far), config()) if f.rule == "collapse"]
    assert found
    assert found[0].severity == "critical"
    assert found[0].changes["grpo.learning_rate"] == config().grpo.learning_rate / 2
    assert "collapse" not in fired(healthy(distinct=alike))
    noise = line(0.2, 1.2, 4.0, noise=0.02)
    assert "collapse" in fired(healthy(entropy=noise, kl=far))
    assert "collapse" not in fired(healthy(entropy=noise))


def test_a_dip_that_mends_is_not_growing_length() -> None:
    """Seen: answers of 13 tokens fell to 9 and came back while the style was learned."""
    dip = line(13, 9, 13.5, noise=0.3)
    assert "hacking" not in fired(healthy(length__mean=dip, auditor__quality=line(0.7, 0.7)))


def test_longer_answers_to_harder_tasks_are_no_hacking() -> None:
    harder = healthy(
        length__mean=line(14, 14, 40, noise=0.5), length__prompt=line(20, 20, 60, noise=0.5)
    )
    gained = healthy(
        length__mean=line(14, 24, noise=0.5), auditor__quality=line(0.6, 0.95, noise=0.01)
    )
    assert "hacking" not in fired(harder) + fired(gained)


def test_up_until_step_50_and_at_80_below_the_start_is_a_collapse() -> None:
    reward = [0.5 + 0.004 * i for i in range(50)] + [0.7 - 0.012 * i for i in range(50)]
    found = [f for f in replay(healthy(reward__reference=reward), config()) if f.rule == "collapse"]
    assert found
    assert 75 <= found[0].step <= 90
    assert found[0].severity == "critical"
    assert found[0].changes["grpo.learning_rate"] == config().grpo.learning_rate / 2
    assert found[0].changes["reward.ensemble"] == "lower"


def test_the_known_bad_recipe_is_caught() -> None:
    """Seen: learning rate 1e-3 and a weak reward model ended in “ the key .”."""
    curves = healthy(
        reward__reference=line(0.40, 0.49, noise=0.01),
        parts__quality=line(0.45, 0.5, noise=0.01),
        auditor__quality=line(0.7, 0.3, 0.1, noise=0.02),
        length__mean=line(14, 8, 6, noise=0.3),
        kl=line(0, 2, 3.3),
        entropy=line(0.09, 0.03, 0.016),
        zero_spread=line(0.1, 0.6, 0.9),
    )
    assert {"audited_fall", "length_collapse", "kl_band", "style_collapse"} <= set(fired(curves))


def test_a_held_out_model_sees_what_the_reward_does_not() -> None:
    curves = healthy(auditor__quality=line(0.8, 0.84, 0.68, noise=0.01))
    found = [f for f in replay(curves, config()) if f.rule == "audited_fall"]
    assert found
    assert found[0].changes["reward.ensemble"] == "lower"
    assert "auditor/quality" in found[0].curves


def test_rules_that_give_no_reward_are_heard_too() -> None:
    curves = healthy(audit__rules=line(0.9, 0.6, noise=0.02))
    assert "audited_fall" in fired(curves)
    assert "audited_fall" not in fired(healthy(audit__truth=line(0.9, 0.1)))


def test_looks_at_the_same_questions_are_trusted_before_steps() -> None:
    """Three standard errors of the difference; without errors a look says nothing."""
    rows = dict(healthy(auditor__quality=[]).rows)
    for step, value in ((0, 0.60), (50, 0.62), (99, 0.52)):
        rows[step] = {**rows[step], "eval/auditor/quality": value}
    assert "audited_fall" not in fired(History(rows))
    for step in (0, 50, 99):
        rows[step] = {**rows[step], "eval/error/auditor/quality": 0.02}
    found = [f for f in replay(History(rows), config()) if f.rule == "audited_fall"]
    assert found
    assert found[0].numbers["fall"] == pytest.approx(0.1)
    for step in (0, 50, 99):
        rows[step] = {**rows[step], "eval/error/auditor/quality": 0.03}
    assert "audited_fall" not in fired(History(rows))


def test_a_gain_that_the_held_out_model_does_not_see_at_the_same_questions() -> None:
    rows = dict(healthy().rows)
    for step, value in ((0, 0.02), (99, 0.08)):
        rows[step] = {**rows[step], "eval/gap/quality": value, "eval/error/gap/quality": 0.01}
    assert "auditor_gap" in fired(History(rows))
    rows[99] = {**rows[99], "eval/error/gap/quality": 0.02}
    assert "auditor_gap" not in fired(History(rows))


def test_probes_that_the_policy_no_longer_answers_well() -> None:
    falls = [
        f for f in replay(healthy(probe__all=line(1, 0.5)), config()) if f.rule == "probe_fall"
    ]
    assert falls
    assert falls[0].numbers["now"] > 0.8
    assert "probe_fall" in fired(healthy(probe__margin=line(1.4, 0.5)))


def test_a_model_that_tells_everybody_the_same_lost_the_persona() -> None:
    """The row of quantisation. Measured on a trained toy model: float32 0.959, int8 0.960,
    3 bits a weight 0.641, 2 bits 0.115."""
    before = {0: {"persona/sensitivity": 0.959}}
    int8 = History({**before, 1: {"persona/sensitivity": 0.960}})
    bits2 = History({**before, 1: {"persona/sensitivity": 0.115}})
    assert look(int8, config()) == []
    assert look(History({**before, 1: {"persona/sensitivity": 0.641}}), config())
    found = look(bits2, config())
    assert [f.rule for f in found] == ["persona_lost"]
    assert found[0].changes == {"reward.alpha": [[0.0, 0.7], [0.4, 0.4], [0.8, 0.3]]}
    never = History({0: {"persona/sensitivity": 0.03}, 1: {"persona/sensitivity": 0.0}})
    assert look(never, config()) == []


def test_a_summary_that_changes_every_turn_is_named_and_held() -> None:
    """The row of the cooldown: its remedy keeps the summary, and is quiet afterwards."""
    rows = [
        {"dialogue": "d", "turn": i, "prompt": "x", "persona": f"mood {i}", "demand": i == 13}
        for i in range(30)
    ]
    turns = turns_per_change(rows)
    found = look(History({0: {"persona/turns": turns}}), config())
    assert [(f.rule, f.changes) for f in found] == [("persona_churn", {"data.persona_turns": 10})]
    after = turns_per_change(hold(rows, 10))
    assert after is not None
    assert look(History({0: {"persona/turns": after}}), config()) == []


def test_a_policy_that_leaves_at_once_does_not_calibrate_its_own_band() -> None:
    """Seen with a weak reward model and learning rate 1e-3: KL 0.14 at step 5, 0.6 from 10 on."""
    curves = healthy(kl=[0.03 * i for i in range(20)] + [0.6] * 20 + [0.8] * 60)
    found = [f for f in replay(curves, config()) if f.rule == "kl_band"]
    assert found
    assert found[0].step < 50


@pytest.mark.parametrize(
    ("rule", "curves"),
    [
        ("length_spike", {"length__mean": line(14, 14, n=60) + [45.0] * 40}),
        ("length_collapse", {"length__mean": line(14, 5)}),
        ("kl_band", {"kl": line(0, 0.1, 0.1, 0.9)}),
        ("style_collapse", {"entropy": line(0.1, 0.01), "zero_spread": line(0.1, 0.5, 0.9)}),
        ("clipped", {"length__clipped": line(0, 0.8)}),
        ("zero_spread", {"zero_spread": line(0.2, 0.9)}),
        ("unscored", {"unscored": line(0, 0, 0.4)}),
        ("conflict", {"parts__correlation": line(-0.1, -0.9)}),
        ("spread", {"spread__quality": line(0.06, 0.3, noise=0.005)}),
        ("no_gradient", {"grad_norm": [0.5] * 50 + [0.0] * 50}),
        ("slow_step", {"step_time": [0.6] * 90 + [3.0] * 10}),
        ("auditor_gap", {"auditor__quality": line(0.74, 0.74, noise=0.01)}),
        ("imbalance", {"parts__quality": line(0.9, 0.5, noise=0.01)}),
        ("tool_decline", {"tools__rate": line(0.9, 0.5, noise=0.01)}),
        ("wander", {"tools__steps": line(3, 8), "success": line(0.5, 0.5)}),
        ("shortcut", {"tools__steps": line(6, 2), "success": line(0.5, 0.45)}),
    ],
)
def test_each_symptom_has_its_rule(rule: str, curves: dict[str, list[float]]) -> None:
    assert rule in fired(healthy(0, **curves))


def test_too_hot_a_temperature_is_named_and_cooled() -> None:
    """Seen: success fell from 61 to 47 at temperature 1.2 and came back at 0.9."""
    curves = healthy(
        success=line(0.61, 0.61, 0.47, noise=0.005), entropy=line(0.5, 0.5, 1.6, noise=0.02)
    )
    found = replay(curves, config(grpo__temperature=1.2))
    hot = [f for f in found if f.rule == "over_exploration"]
    assert hot
    assert hot[0].changes == {"grpo.temperature": 0.9}


def test_without_a_reference_model_kl_is_not_measured_and_not_alarmed() -> None:
    curves = healthy(kl=line(0, 9))
    assert "kl_band" in fired(curves)
    assert "kl_band" not in fired(curves, config(grpo__beta=0.0))


def test_a_number_that_is_none_is_critical() -> None:
    rows = dict(healthy().rows)
    rows[N] = {"loss": None, "grad_norm": 0.3}
    found = look(History(rows), config())
    assert [(f.rule, f.severity) for f in found] == [("nonfinite", "critical")]


def test_silence_counts_in_step_times() -> None:
    curves = healthy()
    assert machine_rules.hang(curves, config(), silence=59) is None
    found = machine_rules.hang(curves, config(), silence=61)
    assert found is not None
    slow = healthy(step_time=[100.0] * N)
    assert machine_rules.hang(slow, config(), silence=400) is None
    assert machine_rules.hang(History({}), config(), silence=500) is None


def test_room_for_three_checkpoints_is_needed() -> None:
    assert machine_rules.disk(healthy(), config(), free_gb=10, checkpoint_gb=3) is None
    found = machine_rules.disk(healthy(), config(), free_gb=8, checkpoint_gb=3)
    assert found is not None
    assert found.changes == {"grpo.keep_checkpoints": 1}


def test_every_proposal_is_a_configuration_that_loads() -> None:
    """Also from settings at their limits: no remedy raises beta above 0.1."""
    bad = healthy(
        auditor__quality=line(0.8, 0.2),
        length__mean=line(14, 5),
        kl=line(0, 3),
        zero_spread=line(0, 1),
        parts__correlation=line(-0.9, -0.9),
    )
    base = {"kind": "grpo", "preset": "tiny", "model": {"path": "m"}, "grpo": {"beta": 0.09}}
    found = replay(bad, load(base))
    assert len(found) >= 4
    for finding in found:
        changed = load(apply_changes(base, finding.changes))
        assert changed.grpo.beta <= 0.1


def test_the_catalogue_says_what_to_do() -> None:
    names = [rule.name for rule in RULES]
    assert len(names) == len(set(names))
    assert all(rule.symptom and rule.cause and rule.remedy for rule in RULES)

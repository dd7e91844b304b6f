"""Presets, strict loading, and what is refused before a run starts."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from training.engine.config.load import (
    Problem,
    Refused,
    apply_changes,
    as_dict,
    load,
    preset_names,
)
from training.engine.config.preflight import (
    Machine,
    accumulation_for,
    check,
    nearest_batch,
    reward_sources,
    warnings,
)
from training.engine.config.schema import RunConfig
from training.engine.rundir import RunDir, sha256_file

READY = Machine(lambda name: True, gpus=8, gpu_memory_gb=80, free_disk_gb=1000)


def grpo(**changes: Any) -> RunConfig:
    base = {
        "kind": "grpo",
        "preset": "tiny",
        "model": {"path": "/models/sft"},
        "reward": {"quality": "q", "personalization": "p"},
    }
    return load(apply_changes(base, {k.replace("__", "."): v for k, v in changes.items()}))


def fields(problems: list[Problem]) -> list[str]:
    return [problem.field for problem in problems]


def test_every_preset_loads_for_every_kind_and_can_run_on_a_machine_that_fits() -> None:
    assert preset_names() == ["lora-single-gpu", "reference-8b", "smol", "tiny", "tiny-adapt"]
    for name in preset_names():
        for kind in ("sft", "reward_model", "grpo"):
            values = {"kind": kind, "preset": name, "model": {"path": "/models/base"}}
            config = load({**values, "reward": {"quality": "q", "personalization": "p"}})
            assert check(config, READY) == []


def test_the_reference_recipe_has_the_numbers_of_its_source() -> None:
    recipe = load({"kind": "grpo", "preset": "reference-8b"}).grpo
    assert (recipe.max_prompt, recipe.max_completion, recipe.group) == (2048, 1024, 8)
    assert (recipe.beta, recipe.temperature, recipe.learning_rate) == (0.04, 0.9, 2e-6)
    assert (recipe.steps, recipe.warmup_steps, recipe.scheduler) == (400, 20, "cosine")
    assert recipe.batch * recipe.accumulation * 8 / recipe.group == 16


def test_moving_the_recipe_to_one_gpu_keeps_the_groups_of_a_step() -> None:
    assert accumulation_for(16, group=8, batch=2, processes=8) == 8
    assert accumulation_for(16, group=8, batch=2, processes=1) == 64
    one = load({"kind": "grpo", "preset": "lora-single-gpu"}).grpo
    assert one.accumulation == 64


def test_all_mistakes_are_named_at_once_with_the_nearest_name() -> None:
    with pytest.raises(Refused) as refused:
        load({"kind": "grpo", "preset": "tiny", "grpo": {"stepz": 3, "beta": "much"}, "sedd": 1})
    found = {p.field: p.nearest for p in refused.value.problems}
    assert found == {"grpo.stepz": "steps", "grpo.beta": None, "sedd": "seed"}
    with pytest.raises(Refused, match="Nearest: tiny"):
        load({"kind": "grpo", "preset": "tyni"})


def test_a_whole_number_may_stand_for_a_number_but_not_the_other_way_round() -> None:
    assert grpo(grpo__beta=0).grpo.beta == 0.0
    with pytest.raises(Refused, match=r"grpo\.steps: must be a whole number"):
        grpo(grpo__steps=3.5)
    with pytest.raises(Refused, match=r"grpo\.steps: must be a whole number"):
        grpo(grpo__steps=True)


def test_the_resolved_configuration_is_the_same_run_without_its_preset() -> None:
    config = grpo(grpo__beta=0.06)
    stored = json.loads(json.dumps(as_dict(config)))
    again = load(stored)
    assert again.preset == ""
    assert as_dict(again) == as_dict(config)


@pytest.mark.parametrize(
    ("batch", "accumulation", "group", "nearest"),
    [(12, 1, 8, 8), (14, 1, 8, 16), (3, 2, 8, 4), (1, 1, 8, 8), (5, 8, 8, None), (6, 4, 8, None)],
)
def test_groups_must_come_out_whole(
    batch: int, accumulation: int, group: int, nearest: int | None
) -> None:
    config = grpo(grpo__batch=batch, grpo__accumulation=accumulation, grpo__group=group)
    found = [p for p in check(config, READY) if p.field == "grpo.batch"]
    assert [p.nearest for p in found] == ([] if nearest is None else [nearest])
    if nearest:
        repaired = grpo(grpo__batch=nearest, grpo__accumulation=accumulation, grpo__group=group)
        assert check(repaired, READY) == []


def test_nearest_batches_divide() -> None:
    for batch in range(1, 40):
        for factor in range(1, 9):
            for group in range(2, 13):
                assert nearest_batch(batch, factor, group) * factor % group == 0


def test_early_personalization_needs_a_reason() -> None:
    early = grpo(reward__alpha=[[0.0, 0.3], [1.0, 0.3]])
    assert fields(check(early, READY)) == ["reward.alpha"]
    reasoned = grpo(reward__alpha=[[0.0, 0.3]], reward__alpha_reason="ablation 7")
    assert check(reasoned, READY) == []


def test_a_judge_gives_at_most_half_of_the_quality() -> None:
    judged = {"reward__judge_url": "http://localhost/v1", "reward__judge_model": "judge"}
    assert check(grpo(reward__judge_weight=0.5, **judged), READY) == []
    assert fields(check(grpo(reward__judge_weight=0.8, **judged), READY)) == ["reward.judge_weight"]
    assert fields(check(grpo(reward__judge_weight=0.2), READY)) == ["reward.judge_url"]


@pytest.mark.parametrize(
    ("changes", "warned"),
    [
        ({}, []),
        ({"grpo__temperature": 1.2}, ["grpo.temperature"]),
        ({"grpo__beta": 0.0}, ["grpo.beta"]),
        ({"grpo__beta": 0.01}, ["grpo.beta"]),
        ({"grpo__beta": 0.2}, ["grpo.beta"]),
    ],
)
def test_what_is_known_to_go_wrong_is_said_but_may_run(
    changes: dict[str, Any], warned: list[str]
) -> None:
    config = grpo(**changes)
    assert fields(warnings(config)) == warned
    assert check(config, READY) == []


def test_the_shares_of_rules_models_and_judge_make_one_reward() -> None:
    judged = {"reward__judge_weight": 0.4, "reward__judge_url": "x", "reward__judge_model": "y"}
    config = grpo(reward__quality="rules", **judged)
    shares = reward_sources(config)
    assert shares == pytest.approx({"rules": 0.3, "reward models": 0.5, "judge": 0.2})


def test_a_machine_that_cannot_run_it_is_told_every_reason() -> None:
    config = load(
        {
            "kind": "grpo",
            "preset": "reference-8b",
            "reward": {"quality": "", "personalization": "p"},
        }
    )
    poor = Machine(lambda name: name != "vllm", gpus=0, free_disk_gb=3)
    found = check(config, poor)
    assert fields(found) == [
        "reward.quality", "hardware.packages", "hardware.device", "hardware.disk_gb",
    ]  # fmt: skip
    assert "vllm" in str(found[1])
    assert found[2].nearest == "cpu"


def test_snapshots_must_be_there_and_be_the_frozen_ones(tmp_path: Path) -> None:
    run = RunDir(tmp_path)
    (tmp_path / "data").mkdir()
    train = tmp_path / "data" / "train.jsonl"
    train.write_text('{"prompt": "x"}\n')
    config = grpo(data__sha256={"data/train.jsonl": sha256_file(train)})
    assert fields(check(config, READY, run)) == ["data.heldout"]
    (tmp_path / "data" / "heldout.jsonl").touch()
    assert check(config, READY, run) == []
    train.write_text('{"prompt": "y"}\n')
    assert fields(check(config, READY, run)) == ["data.train"]


def test_grpo_needs_a_trained_model_on_disk() -> None:
    config = load(
        {"kind": "grpo", "preset": "tiny", "reward": {"quality": "q", "personalization": "p"}}
    )
    assert fields(check(config, READY)) == ["model.path"]

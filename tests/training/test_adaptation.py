"""A short GRPO with LoRA on a frozen quantised base, and weights that are kept along the way."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests.training.toy_policies import executed, quantised, toys
from training.engine.config.load import load
from training.engine.config.preflight import Machine, check
from training.engine.rundir import RunDir, read_json, read_lines
from training.engine.weights import weights_digest
from training.selectors.run_pages.quantisation import context

__all__ = ["toys"]  # the fixture
pytestmark = pytest.mark.filterwarnings("ignore")


def test_an_adapter_leaves_the_rounded_weights_and_says_what_it_gained(
    toys: Path, tmp_path: Path
) -> None:
    import torch

    from training.engine.jobs.models import load_policy

    quantised(toys, tmp_path / "q3", 3)
    base = tmp_path / "q3" / "model"
    before = weights_digest(base)
    run = tmp_path / "adapted"
    (run / "data").mkdir(parents=True)
    for name, table in (("train", "prompts"), ("swaps", "swaps"), ("labelled", "labelled")):
        (run / f"data/{name}.jsonl").write_bytes((toys / f"{table}.jsonl").read_bytes())
    files = {name: f"data/{name}.jsonl" for name in ("train", "swaps", "labelled")}
    manifest = executed(
        run,
        {
            "kind": "grpo", "preset": "tiny-adapt", "model": {"path": str(base)},
            "data": {**files, "heldout": ""},
            "grpo": {"steps": 4, "batch": 16, "evaluate_prompts": 8, "evaluate_at": [],
                     "probe_every": 0, "save_every": 3, "warmup_steps": 0},
            "reward": {"quality": "rules", "personalization": "rules"},
        },
    )  # fmt: skip
    found = manifest["facts"]["adaptation"]
    assert found["base"]["unchanged"]
    assert len(found["base"]["before"]) == 64
    assert weights_digest(base) == before
    measured = read_json(tmp_path / "q3" / "manifest.json")["facts"]["sensitivity"]
    assert found["sensitivity"]["before"] == pytest.approx(measured["quantised"], abs=1e-4)
    assert found["sensitivity"]["n"] == 60
    assert found["reward"]["n"] == 8
    shown = [found[name] for name in ("sensitivity", "reward")]
    higher = any(one["low"] is not None and one["low"] > 0 for one in shown)
    lower = any(one["high"] is not None and one["high"] < 0 for one in shown)
    assert found["gain"] == (higher and not lower)
    # model/ computes what base and adapter compute; the adapter alone lies beside it.
    whole = load_policy(run / "model", torch.float32)
    joined = load_policy(run / "adapter", torch.float32)
    ids = torch.tensor([[5, 6, 7, 8]])
    plain = load_policy(base, torch.float32)
    assert torch.allclose(whole(ids).logits, joined(ids).logits, atol=1e-4)
    assert not torch.allclose(whole(ids).logits, plain(ids).logits, atol=1e-4)
    assert {"adapter/adapter_model.safetensors", "model/model.safetensors"} == set(
        manifest["files"]
    )
    # The middle was kept, beside the checkpoints that the trainer deletes.
    saved = [e for e in read_lines(RunDir(run).events) if e.get("stage") == "kept"]
    assert [(e["step"], e["path"]) for e in saved] == [(2, "kept/step-2")]
    assert saved[0]["sha256"] == weights_digest(run / "kept/step-2")
    middle = load_policy(run / "kept/step-2", torch.float32)
    assert not torch.allclose(middle(ids).logits, whole(ids).logits, atol=1e-6)


def test_a_quantised_base_is_not_trained_itself(tmp_path: Path) -> None:
    (tmp_path / "quantised.json").write_text("{}")
    asked = {"kind": "grpo", "preset": "tiny", "model": {"path": str(tmp_path)},
             "reward": {"quality": "/q", "personalization": "/p"}}  # fmt: skip

    def fields(values: dict[str, Any]) -> list[str]:
        return [p.field for p in check(load(values), Machine(lambda _name: True))]

    assert fields(asked) == ["model.lora.rank"]
    assert fields({**asked, "preset": "tiny-adapt"}) == []


@pytest.mark.parametrize(
    ("sensitivity", "reward", "gain"),
    [
        ((0.1, 0.2), (-0.1, 0.1), True),
        ((-0.1, 0.2), (0.01, 0.1), True),
        ((-0.1, 0.2), (-0.1, 0.1), False),
        ((-0.2, -0.1), (0.1, 0.2), False),  # the reward rose because it forgot the person
        ((None, None), (None, None), False),
    ],
)
def test_a_gain_is_one_that_is_shown_and_costs_nothing(
    sensitivity: tuple[Any, Any], reward: tuple[Any, Any], gain: bool
) -> None:
    from training.engine.jobs.adaptation import gained

    found = [{"low": low, "high": high} for low, high in (sensitivity, reward)]
    assert gained(*found) == gain


def test_the_page_says_no_gain_in_words() -> None:
    told = {"before": 0.1, "after": 0.1, "difference": 0.0, "low": -0.1, "high": 0.1, "n": 9}
    facts = {"adaptation": {"gain": False, "sensitivity": told, "reward": told,
                            "base": {"unchanged": True}}}  # fmt: skip
    run: Any = SimpleNamespace(kind="grpo", manifest={"facts": facts})
    found = context(run)["adapted"]
    assert found.said.startswith("No gain is shown")
    assert [row.n for row in found.rows] == ["9", "9"]
    facts["adaptation"]["base"]["unchanged"] = False  # type: ignore[index]
    assert "changed" in context(run)["adapted"].said


def test_kept_weights_survive_their_checkpoint(tmp_path: Path) -> None:
    from training.engine.jobs.keeping import Keep

    run = RunDir(tmp_path)
    config = load({"kind": "grpo", "preset": "tiny", "grpo": {"keep_at": [0.5, 0.001]}})
    keep = Keep(run, config)
    control, state = SimpleNamespace(should_save=False), SimpleNamespace(max_steps=10)
    for state.global_step in (1, 4, 6, 10):
        keep.on_step_end(None, state, control)
    assert not control.should_save
    state.global_step = 5
    keep.on_step_end(None, state, control)
    assert control.should_save
    folder = run.checkpoints / "checkpoint-5"
    folder.mkdir(parents=True)
    for name in ("model.safetensors", "config.json", "optimizer.pt", "trainer_state.json"):
        (folder / name).write_text(name)
    keep.on_save(None, state, control)
    (folder / "model.safetensors").unlink()  # the trainer rotates
    kept = tmp_path / "kept/step-5"
    assert sorted(p.name for p in kept.iterdir()) == ["config.json", "model.safetensors"]
    (folder / "model.safetensors").write_text("of the attempt after")
    keep.on_save(None, state, control)
    assert (kept / "model.safetensors").read_text() == "model.safetensors"

"""What the policy would rather say: likelihoods, how they depend on the persona, and the lines."""

from __future__ import annotations

import math
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from training.engine.config.load import load
from training.engine.config.schema import Scratch
from training.engine.rundir import RunDir
from training.engine.snapshots import write_rows

pytestmark = pytest.mark.filterwarnings("ignore")
TEXTS = ["How do I clean the lamp? Use the cloth. First, get the cloth. system user assistant"] * 30


@pytest.fixture(scope="module")
def made() -> tuple[Any, Any]:
    import torch

    from training.engine.jobs import models

    torch.manual_seed(1)
    tokenizer = models.make_tokenizer(TEXTS, 320)
    return models.make_model(Scratch(hidden=32, heads=2, intermediate=64), tokenizer), tokenizer


def test_an_answer_is_as_likely_in_company_as_alone(made: tuple[Any, Any]) -> None:
    """Padding, batches and the prompt change nothing; checked against the model's own loss."""
    import torch

    from training.engine.jobs.probes import likelihoods
    from training.engine.jobs.texts import policy_text

    model, tokenizer = made
    asked = [("Busy.", "How do I clean the lamp?", "Use the cloth."), ("", "Why?", "No.")] * 40
    together = likelihoods(model, tokenizer, asked).answers
    for (who, prompt, answer), found in list(zip(asked, together, strict=True))[-2:]:
        start = tokenizer(policy_text(tokenizer, who, prompt), add_special_tokens=False)
        said = tokenizer(answer, add_special_tokens=False)["input_ids"] + [tokenizer.eos_token_id]
        ids = torch.tensor([start["input_ids"] + said])
        labels = ids.clone()
        labels[:, : len(start["input_ids"])] = -100
        loss = model(input_ids=ids, labels=labels).loss
        assert found == pytest.approx(-float(loss), abs=1e-4)


def test_divergence_is_0_for_the_same_and_1_bit_for_the_disjoint() -> None:
    import torch

    from training.engine.jobs.probes import js_bits

    p = torch.tensor([[0.5, 0.5, 0.0], [1.0, 0.0, 0.0], [0.5, 0.5, 0.0]])
    q = torch.tensor([[0.5, 0.5, 0.0], [0.0, 0.0, 1.0], [1.0, 0.0, 0.0]])
    half = 1 - 0.75 * math.log2(3) + 0.5  # of (½, ½) and (1, 0), by hand
    assert js_bits(p, q) == pytest.approx([0.0, 1.0, half], abs=1e-6)
    assert js_bits(q, p) == pytest.approx(js_bits(p, q), abs=1e-6)


def test_looks_are_lines_before_the_first_step_and_every_so_often(
    made: tuple[Any, Any], tmp_path: Path
) -> None:
    from training.engine.jobs.probes import Probes
    from training.engine.jobs.watch import Stop, Watch

    model, tokenizer = made
    run = RunDir(tmp_path)
    probe = {"prompt": "How do I clean the lamp?", "good": "Use the cloth.", "bad": "cloth cloth"}
    rows = [{**probe, "defect": name} for name in ("stuttered", "vague") for _ in range(6)]
    write_rows(tmp_path / "data" / "probes.jsonl", rows)
    swap = {"prompt": "Why?", "first": "No.", "second": "Because it is.", "persona_first": "Busy."}
    write_rows(tmp_path / "data" / "swaps.jsonl", [{**swap, "persona_second": "New."}] * 3)
    data = {"probes": "data/probes.jsonl", "swaps": "data/swaps.jsonl"}
    values = {"kind": "grpo", "preset": "tiny", "model": {"path": "m"}, "data": data}
    config = load({**values, "grpo": {"probe_every": 4, "probe_rows": 4}})
    found = Probes(run, config, Watch(run, config, Stop(run), stage="grpo"), [{"persona": "Busy."}])
    assert [row["defect"] for row in found.defects] == ["stuttered"] * 2 + ["vague"] * 2
    kwargs = {"model": model, "processing_class": tokenizer}
    state = SimpleNamespace(global_step=0, max_steps=10, is_world_process_zero=True)
    found.on_train_begin(None, state, None, **kwargs)
    for step in range(1, 11):
        found.on_step_end(None, SimpleNamespace(**{**vars(state), "global_step": step}), None,
                          **kwargs)  # fmt: skip
    rows_by_step = run.history()
    assert list(rows_by_step) == [0, 4, 8, 10]
    assert set(rows_by_step[0]) == {
        "probe/all", "probe/margin", "probe/stuttered", "probe/vague", "probe/swap",
        "persona/sensitivity",
    }  # fmt: skip
    assert rows_by_step[0] == rows_by_step[10]  # the model did not move: nothing is left to chance

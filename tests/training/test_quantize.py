"""Quantisation: what rounding does, what it leaves of the persona, and who may be promoted."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.training.factories import admin
from tests.training.gate_factories import gate, made, measured, policy, reward_model
from tests.training.run_factories import instructions
from tests.training.test_gates import better, person, plain, read_all
from tests.training.toy_policies import quantised as rounded
from tests.training.toy_policies import toys
from training.engine.config.load import load
from training.engine.config.preflight import Machine, check
from training.engine.contracts import Parts, Rollout
from training.engine.resampling import difference, estimate, ratio
from training.engine.rundir import RunDir, read_json, sha256_file
from training.engine.snapshots import write_rows
from training.engine.toy import world
from training.enums import Role, RunState
from training.gate_policies import check_model, check_promotable
from training.launching import InputSpec, preflight
from training.models import BaselineEvaluation, GateRun, TrainingRun
from training.quantisation_policies import check_persona_kept, quantised
from training.selectors.run_pages.quantisation import context
from training.services.evaluations import note_evaluation
from training.services.promotions import answer_override, ask_override, promote, promote_baseline
from webapp.core.errors import InvalidInput, Refused

__all__ = ["toys"]  # the fixture
slow = pytest.mark.filterwarnings("ignore")


# Arithmetic


def test_a_ratio_and_its_interval_come_from_prompts() -> None:
    rows = [("a", 1.0, 0.5), ("a", 1.0, 0.5), ("b", 0.5, 0.5), ("c", None, 0.5), ("d", 1.0, None)]
    found = estimate(rows, ratio)
    assert (found.before, found.after) == (2.5 / 3, 0.5)
    assert found.value == pytest.approx(0.6)
    assert (found.low, found.high) == (0.5, 1.0)  # both from a, both from b
    assert (found.n, found.prompts) == (3, 2)
    assert estimate(rows, difference).value == pytest.approx(0.5 - 2.5 / 3)


def test_what_cannot_be_told_is_none() -> None:
    assert estimate([], ratio).value is None
    assert estimate([("a", 0.0, 0.4), ("b", 0.0, 0.2)], ratio).value is None
    one = estimate([("a", 1.0, 0.4)], ratio)
    assert (one.value, one.low, one.high) == (0.4, None, None)


def test_the_same_seed_gives_the_same_interval() -> None:
    rows = [(str(n), 1.0, n / 40) for n in range(40)]
    assert estimate(rows, ratio, seed=3) == estimate(rows, ratio, seed=3)
    assert estimate(rows, ratio, seed=3) != estimate(rows, ratio, seed=4)


@slow
@pytest.mark.parametrize("bits", [8, 4, 3, 2])
def test_weights_are_whole_numbers_times_the_scale_of_their_row(bits: int) -> None:
    import torch
    from torch import nn

    from training.engine.jobs.rounding import codes, round_weights

    torch.manual_seed(1)
    model: Any = nn.ModuleDict(
        {"a": nn.Linear(16, 8), "b": nn.Embedding(5, 16), "c": nn.Linear(16, 5)}
    )
    model["c"].weight = model["b"].weight  # tied
    bias = model["a"].bias.clone()
    with torch.no_grad():
        model["a"].weight[3] = 0.0
    before = model["a"].weight.detach().clone()
    scales = round_weights(model, bits)
    assert set(scales) == {"a.weight", "b.weight"}
    assert model["c"].weight is model["b"].weight
    assert torch.equal(bias, model["a"].bias)
    numbers = codes(model["a"].weight, scales["a.weight"], bits)
    assert numbers.abs().max() == 2 ** (bits - 1) - 1
    assert torch.equal(numbers, numbers.round())
    assert torch.equal(numbers * scales["a.weight"][:, None], model["a"].weight)
    assert torch.isfinite(model["a"].weight).all()
    gap = (model["a"].weight - before).abs()
    assert (gap <= scales["a.weight"][:, None] * 0.5001).all()


@slow
def test_contrasts_come_from_swaps_or_from_questions_of_several_people(tmp_path: Path) -> None:
    from training.engine.jobs.sensitivity import contrasts

    rows = [{"persona": who, "prompt": text} for text in "xy" for who in ("A", "B", "B", "C")]
    write_rows(tmp_path / "data/gate.jsonl", [*rows, {"persona": "A", "prompt": "z"}])
    config = load({"kind": "quantize", "preset": "tiny", "data": {"gate": "data/gate.jsonl"}})
    found = contrasts(RunDir(tmp_path), config, 100)
    assert [(c.prompt, c.first, c.second) for c in found] == [
        ("x", "A", "B"), ("x", "B", "C"), ("y", "A", "B"), ("y", "B", "C"),
    ]  # fmt: skip
    assert len({c.key for c in found}) == 2
    assert len(contrasts(RunDir(tmp_path), config, 3)) == 3


def test_what_cannot_be_quantised_is_said_before_the_start() -> None:
    def fields(**more: Any) -> list[str]:
        asked = {"kind": "quantize", "preset": "tiny", "model": {"path": "/m"}, **more}
        return [problem.field for problem in check(load(asked), Machine(lambda _name: True))]

    swaps = {"data": {"swaps": "data/swaps.jsonl"}}
    assert fields(**swaps) == []
    assert fields() == ["data.swaps"]
    assert fields(quantize={"bits": 5}, **swaps) == ["quantize.bits"]
    assert fields(model={}, **swaps) == ["model.path"]


# The engine


class Taste:
    """Knows which style a person of the toy world wants."""

    name, version = "personalization", "1"

    def score(self, rollout: Rollout) -> Parts:
        styles = [s for s, people in world.PERSONAS.items() if rollout.persona in people]
        right = world.style_of(rollout.completion) in styles
        return Parts({"personalization": float(right)})


@slow
def test_eight_bits_keep_the_persona_and_two_lose_it(toys: Path, tmp_path: Path) -> None:
    from training.engine.jobs.models import load_base

    found = rounded(toys, tmp_path / "q8", 8)
    facts = found["facts"]["sensitivity"]
    assert facts["original"] > 0.5
    assert 0.95 < facts["low"] <= facts["ratio"] <= facts["high"] < 1.05
    assert (facts["passed"], facts["n"], facts["margin"]) == (True, 60, None)
    few = rounded(toys, tmp_path / "q2", 2)["facts"]["sensitivity"]
    assert few["original"] == facts["original"]
    assert few["ratio"] < 0.8
    assert not few["passed"]
    # What was saved is what was measured, and every loader reads it.
    from safetensors.torch import load_file

    from training.engine.jobs.rounding import codes

    config = load({"kind": "quantize", "model": {"path": str(tmp_path / "q2" / "model")}})
    model, tokenizer = load_base(config.model, ())
    scales = load_file(tmp_path / "q2" / "scales.safetensors")
    for name, scale in scales.items():
        weight = model.get_parameter(name)
        assert (codes(weight, scale, 2) * scale[:, None]).equal(weight)
    assert tokenizer.pad_token
    mark = read_json(tmp_path / "q2" / "model" / "quantised.json")
    assert (mark["bits"], mark["sensitivity"]) == (2, few)
    assert found["files"] == {
        "model/model.safetensors": sha256_file(tmp_path / "q8/model/model.safetensors")
    }


@slow
def test_a_margin_is_how_much_better_one_s_own_answer_suits(toys: Path) -> None:
    from training.engine.jobs.models import load_policy, load_tokenizer
    from training.engine.jobs.rounding import round_weights
    from training.engine.jobs.sensitivity import contrasts, margins

    import torch  # isort: skip

    model = load_policy(toys / "policy/model", torch.float32)
    tokenizer = load_tokenizer(toys / "policy/model")
    config = load({"kind": "quantize", "preset": "tiny", "data": {"swaps": "swaps.jsonl"}})
    asked = contrasts(RunDir(toys), config, 16)
    heard = margins(model, tokenizer, asked, Taste(), config)
    assert sum(value or 0.0 for value in heard) / len(heard) > 0.8
    round_weights(model, 2)
    deaf = margins(model, tokenizer, asked, Taste(), config)
    assert sum(value or 0.0 for value in deaf) / len(deaf) < 0.4


@slow
@pytest.mark.django_db
def test_a_quantised_model_answers_as_a_contestant(
    toys: Path, tmp_path: Path, settings: Any
) -> None:
    from webapp.catalog.answering.checkpoint import CheckpointSource
    from webapp.catalog.answering.protocol import Request
    from webapp.catalog.models import Contestant
    from webapp.catalog.services.contestant_settings import checkpoint_settings

    settings.PALATE_RUNS = tmp_path
    rounded(toys, tmp_path / "q8", 8)
    kept = checkpoint_settings(place="q8/model", trained=True)
    contestant = Contestant(name="Q", kind="checkpoint", endpoint=kept,
                            sampling={"temperature": 0.0, "max_tokens": 24})  # fmt: skip
    source = CheckpointSource(contestant)
    try:
        asked = [{"role": "system", "content": world.PERSONAS["brief"][0]},
                 {"role": "user", "content": "How do I open the lamp?"}]  # fmt: skip
        told = source.answer(Request(tuple(asked), 0))
        assert told.text.endswith(".")
    finally:
        source.close()


# The site


def facts(bits: int, ratio: float | None) -> dict[str, Any]:
    found = {"original": 0.9, "quantised": 0.9 * (ratio or 0), "ratio": ratio, "low": ratio,
             "high": ratio, "n": 60, "prompts": 20, "margin": None}  # fmt: skip
    return {"facts": {"bits": bits, "sensitivity": found}, "files": {"model/x": f"{bits} bits"}}


def quantisation(name: str, base: TrainingRun, bits: int, ratio: float | None) -> TrainingRun:
    return made(name, "quantize", {Role.BASE: base}, manifest=facts(bits, ratio))


def adapter(name: str, base: TrainingRun, before: float, after: float) -> TrainingRun:
    told = {"sensitivity": {"before": before, "after": after}}
    manifest = {"facts": {"adaptation": told}, "files": {"model/x": name}}
    return made(name, "grpo", {Role.BASE: base}, manifest=manifest)


def passed(tmp_path: Path, bits: int, ratio: float | None) -> GateRun:
    """A quantised policy that passed its gate and was read."""
    spec = gate(tmp_path)
    base = policy("trained", spec.baseline, {})
    found = measured(spec, quantisation(f"{bits} bits", base, bits, ratio), better, plain)
    read_all(found)
    return found


@pytest.mark.django_db
def test_a_model_that_kept_its_persona_is_promoted_and_its_lineage_says_so(tmp_path: Path) -> None:
    found = passed(tmp_path, 8, 0.99)
    made_of = promote(actor=admin(), gate=found, name="Eight")
    said = made_of.provenance["quantisation"]
    assert (said["bits"], said["ratio"], said["adapted"]) == (8, 0.99, False)
    assert [base["name"] for base in made_of.provenance["bases"]] == ["trained", "base"]


@pytest.mark.django_db
def test_a_model_of_two_bits_is_not_promoted_except_by_two(tmp_path: Path) -> None:
    found = passed(tmp_path, 2, 0.15)
    with pytest.raises(Refused) as refused:
        promote(actor=admin(), gate=found, name="Two")
    assert refused.value.code == "persona_lost"
    assert "15 %" in str(refused.value)
    asked = ask_override(
        actor=admin(), run=found.candidate, gate=found, name="Two", reason="as a control"
    )
    made_of = answer_override(actor=person("second", "admin"), asked=asked, agreed=True)
    assert made_of is not None
    assert made_of.provenance["promotion"] == "override"
    assert made_of.provenance["quantisation"]["ratio"] == 0.15


@pytest.mark.django_db
@pytest.mark.parametrize(("ratio", "code"), [(None, "sensitivity_unknown"), (0.79, "persona_lost")])
def test_an_unknown_or_low_share_stops_the_promotion(
    tmp_path: Path, ratio: float | None, code: str
) -> None:
    with pytest.raises(Refused) as refused:
        check_promotable(passed(tmp_path, 4, ratio))
    assert refused.value.code == code


@pytest.mark.django_db
def test_an_adapter_on_a_quantised_base_counts_what_it_changed() -> None:
    few = quantisation("three", made("base"), 3, 0.5)
    good = adapter("adapted", few, 0.45, 0.81)
    found = quantised(good)
    assert found is not None
    assert found.ratio == pytest.approx(0.9)
    assert (found.bits, found.adapted, found.run) == (3, True, few)
    check_persona_kept(good)
    bare = made("unmeasured", "grpo", {Role.BASE: few})
    with pytest.raises(Refused) as refused:
        check_persona_kept(bare)
    assert refused.value.code == "sensitivity_unknown"
    assert quantised(made("plain")) is None


@pytest.mark.django_db
def test_what_two_quantisations_took_adds_up() -> None:
    """Each alone leaves enough; together they leave two thirds."""
    trained = policy("trained", made("base"), {})  # what came before is the original
    first = quantisation("first", trained, 4, 0.82)
    again = quantisation("again", adapter("adapted", first, 0.7, 0.7), 3, 0.82)
    found, one = quantised(again), quantised(first)
    assert found is not None
    assert one is not None
    assert found.ratio == pytest.approx(0.82**2)
    assert (found.run, found.bits, found.adapted) == (again, 3, False)
    assert (found.low, one.low, one.high) == (None, 0.82, 0.82)
    with pytest.raises(Refused) as refused:
        check_persona_kept(again)
    assert refused.value.code == "persona_lost"
    check_persona_kept(first)
    unmeasured = adapter("on unknown", quantisation("unknown", trained, 2, None), 0.5, 0.5)
    with pytest.raises(Refused) as refused:
        check_persona_kept(quantisation("eight", unmeasured, 8, 1.0))
    assert refused.value.code == "sensitivity_unknown"


@pytest.mark.django_db
def test_a_quantisation_is_found_however_far_behind_it_lies() -> None:
    run = quantisation("two", made("base"), 2, 0.15)
    for n in range(12):
        run = adapter(f"adapter {n}", run, 0.5, 0.5)
    with pytest.raises(Refused) as refused:
        check_persona_kept(run)
    assert refused.value.code == "persona_lost"


@pytest.mark.django_db
def test_a_quantised_model_is_a_candidate_and_no_baseline() -> None:
    run = quantisation("eight", made("base"), 8, 1.0)
    check_model(run, "candidate")
    with pytest.raises(InvalidInput):
        check_model(reward_model("judge", "quality"), "candidate")
    with pytest.raises(Refused) as refused:
        promote_baseline(actor=admin(), run=run, name="Eight")
    assert refused.value.code == "rewarded"


@pytest.mark.django_db
def test_what_a_quantised_base_can_do_is_noted_so_that_it_can_be_adapted(tmp_path: Path) -> None:
    dataset = instructions(tmp_path)
    base = quantisation("eight", made("base"), 8, 1.0)
    manifest = {"config": {"model": {"path": "", "package": ""}}, "facts": {"passed": True}}
    run = made("measured", "evaluate", {Role.BASE: base, Role.GATE: (dataset, "gate")},
               manifest=manifest)  # fmt: skip
    note_evaluation(run)
    assert BaselineEvaluation.objects.get().base == "eight"


@pytest.mark.django_db
def test_a_launch_takes_a_policy_and_rows_to_measure_on(tmp_path: Path) -> None:
    rows = InputSpec(instructions(tmp_path), "gate")
    base = made("base")

    def fields(**inputs: InputSpec) -> set[str]:
        found = preflight("quantize", "tiny", {"quantize": {"bits": 8}}, inputs)
        return {p.field for p in found.problems if p.field != "hardware.packages"}

    assert fields(base=InputSpec(source=base), gate=rows) == set()
    assert fields(base=InputSpec(source=base)) == {"data.swaps"}
    assert fields(gate=rows) == {"inputs.base"}
    judge = reward_model("judge", "personalization")
    assert "inputs.base" in fields(base=InputSpec(source=judge), gate=rows)
    again = quantisation("eight", base, 8, 1.0)
    assert "inputs.base" in fields(base=InputSpec(source=again), gate=rows)


@pytest.mark.django_db
def test_the_page_of_a_run_says_what_was_left() -> None:
    run = quantisation("two", made("base"), 2, 0.15)
    found = context(run)["rounded"]
    assert not found.passed
    assert "15 %" in found.said
    assert [(row.before, row.value, row.n) for row in found.rows] == [("0.9", "0.15", "60")]
    assert context(made("plain"))["rounded"] is None
    assert run.state == RunState.SUCCEEDED

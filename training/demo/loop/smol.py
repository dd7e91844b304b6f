"""The loop with a real small language model, SmolLM2-135M: rules reward it, rules judge it, and
people who know neither taste it blind. Every step finds what an earlier, killed start has made.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from django.conf import settings

from arena.enums import RoundState
from arena.models import Round
from arena.services import rounds
from training.demo import household
from training.demo.loading import Workshop, frozen, import_rows
from training.demo.loop import judging, tasting
from training.demo.loop.learning import Runs
from training.demo.loop.play import VERIFIER, Play
from training.enums import DatasetState, Role, RunKind, Verdict
from training.launching import InputSpec
from training.models import Dataset, DatasetItem, GateRun, GateSpec
from training.services import gates, promotions
from training.services.records import KIND as RECORDS
from webapp.accounts.services import create_api_token
from webapp.catalog.models import Contestant
from webapp.catalog.texts import prompt_hash

MODEL, PRESET = "smollm2", "smol"
PREFIX = "SmolLM2"
LONGEST = 48  # tokens of an answer, wherever one is given
PATIENCE = 5400.0
RULED = {"quality": ["rules"], "personalization": ["rules"]}
# Short and long answers are shown to everybody alike, so that both come up when answers are drawn;
# to whom which of them is right, only the reward says.
BASE: dict[str, Any] = {"sft": {"max_steps": 24, "warmup_steps": 2}}
# More for the person than for the content: the base names the needed word already where it says
# enough, and with equal shares all answers grow longer before any grows shorter.
REWARD: dict[str, Any] = {
    "grpo": {"steps": 60, "learning_rate": 3e-5, "evaluate_prompts": 16, "evaluate_at": [0.0, 1.0],
             "probe_every": 0, "keep_at": [], "save_every": 20, "max_completion": LONGEST},
    "reward": {"quality": "rules", "personalization": "rules", "alpha": [[0.0, 0.3], [1.0, 0.3]],
               "alpha_reason": "The base answers well enough; length is to be learned."},
}  # fmt: skip
FEW: dict[str, Any] = {"grpo": {"steps": 2, "evaluate_at": [], "save_every": 2}}
SAMPLING = {"preset": PRESET, "draws": 2, "max_completion": LONGEST, "batch": 32}
RULES = {"minimum": 30, "quality_margin": 0.1}
TASTED = {"temperature": 0.7, "max_tokens": LONGEST}
VOTES, EACH, SHORT_VOTES = 180, 3, 24  # planned; on one pair; of a short loop
READ = 10  # successes
WHY = "Its gate did not pass it. It enters so that people can say whether the gate was right."


def play_smol(it: Play) -> Play:
    """From an empty database to the unsealed round of base and policy."""
    runs = it.step("datasets and base", lambda: begin(it))
    spec = it.step("baseline", lambda: measure(it, runs))
    it.step("GRPO by rules", lambda: reward(runs))
    gate = it.step("gate", lambda: judging.judged(runs, spec, "GRPO")[0])
    it.gates = {"GRPO": gate}
    it.facts["gates"] = {"GRPO": gate.verdict}
    it.step("contestants", lambda: enter(it, runs, gate))
    it.rounds.append(it.step("round", lambda: taste(it)))
    return it


def begin(it: Play) -> Runs:
    """The household, and the pretrained model as a run of ours."""
    rooms, _tasted = household.divided(it.seed, f"household-{it.seed}")
    first = instructions(it.ada, rooms, it.seed)
    proved = labelled(it.ada, placed(first, rooms), it.seed)
    shop = Workshop(first, first, first, proved)
    runs = Runs(shop, it.ada, f"{PREFIX} {it.seed}", FEW if it.short else {}, PATIENCE,
                say=it.say, preset=PRESET)  # fmt: skip
    runs.launch("SFT", RunKind.SFT, {Role.TRAIN: InputSpec(first, "train")}, BASE)
    runs.wait("SFT")
    return runs


def category(seed: int) -> str:
    return f"{household.CATEGORY} {seed}"


def instructions(actor: Any, rooms: list[household.Room], seed: int) -> Dataset:
    """Questions under their people, with what each wants; every room goes into one split."""
    name = f"{PREFIX} {seed}: instructions"
    if not known(name):
        rows = household.instructions(rooms, category(seed))
        import_rows(actor, rows, "instructions", kind=RECORDS)
    shares = {**household.SHARES, "cut": False, "stratum_features": ["language"]}
    values = {**shares, "categories": [category(seed)], "seed": seed}
    return frozen(actor, name, "instructions", values)


def labelled(actor: Any, rooms: list[tuple[household.Room, str]], seed: int) -> Dataset:
    """Answers of known worth, on which the rules are proved: the room that measures them."""
    name = f"{PREFIX} {seed}: known answers"
    if not known(name):
        rows = [
            row
            for room, split in rooms
            if split == "reward_model_gate"
            for row in household.wrong_answers([room], category(seed))
        ]
        import_rows(actor, rows, "counterexamples", kind=RECORDS)
    values: dict[str, Any] = {"sources": ["import"], "categories": [category(seed)]}
    values |= {"train": 0, "reward_model_gate": 100}
    return frozen(actor, name, "counterexamples", values)


def known(name: str) -> bool:
    return Dataset.objects.filter(name=name).exclude(state=DatasetState.DISCARDED).exists()


def placed(dataset: Dataset, rooms: list[household.Room]) -> list[tuple[household.Room, str]]:
    """Every room that datasets hold, with its split: a room is never parted."""
    rows = DatasetItem.objects.filter(dataset=dataset)
    found = dict(rows.values_list("prompt_sha256", "split").distinct())
    asked = [[{"role": "user", "content": next(iter(room.questions))}] for room in rooms]
    return [(room, found[prompt_hash(turns)]) for room, turns in zip(rooms, asked, strict=True)]


def measure(it: Play, runs: Runs) -> GateSpec:
    """The gate, and what the base can do on its items: the evaluation that the gate uses again."""
    spec = gates.create_gate(
        actor=it.ada,
        name=f"{PREFIX} {it.seed}",
        dataset=runs.workshop.instructions,
        baseline=runs.runs["SFT"],
        scorers=RULED,
        rules=RULES,
        sampling={name: value for name, value in SAMPLING.items() if name != "preset"},
        preset=PRESET,
        to_audit=READ,
    )
    asked = {n: v for n, v in spec.sampling.items() if n not in ("preset", "seed")}
    config = {"evaluate": {**asked, "scorers": ["rules"], "edges": []}}
    rows = {Role.GATE: InputSpec(spec.dataset, spec.split)}
    base = {Role.BASE: InputSpec(source=runs.runs["SFT"])}
    runs.launch("baseline", RunKind.EVALUATE, {**rows, **base}, config)
    runs.wait("baseline")
    return spec


def reward(runs: Runs) -> None:
    shop = runs.workshop
    inputs = {
        Role.TRAIN: InputSpec(shop.instructions, "train"),
        Role.HELDOUT: InputSpec(shop.instructions, "edge"),
        Role.GATE: InputSpec(shop.instructions, "gate"),
        Role.LABELLED: InputSpec(shop.defects, "reward_model_gate"),
        Role.BASE: InputSpec(source=runs.runs["SFT"]),
    }
    runs.launch("GRPO", RunKind.GRPO, inputs, REWARD)
    runs.wait("GRPO")


def enter(it: Play, runs: Runs, gate: GateRun) -> None:
    """The base as a baseline; the policy by its gate, or where that says no by an override."""
    it.contestants[judging.BASE] = judging.baseline(it.ada, runs.runs["SFT"], TASTED)
    if gate.verdict == Verdict.PASS:
        it.facts["fakes"] = judging.read_successes(it.ada, gate, household.worth)
        it.say(f"successes read: {gate.spec.audit}, fake: {it.facts['fakes']}")
        found = judging.promoted(it.ada, gate, judging.POLICY, TASTED)
    else:
        found = let_in(it, gate)
    it.contestants[judging.POLICY] = found


def let_in(it: Play, gate: GateRun) -> Contestant:
    """By two administrators, recorded with the reason."""
    asked = promotions.ask_override(
        actor=it.ada, run=gate.candidate, gate=gate, name=judging.POLICY, reason=WHY,
        key=f"{PREFIX} {it.seed}:override",
    )  # fmt: skip
    found = promotions.answer_override(actor=it.ben, asked=asked, agreed=True, sampling=TASTED)
    assert found is not None
    return found


def taste(it: Play) -> Round:
    """A sealed round of both axes, on rooms that no dataset holds."""
    round_ = tasting.opened(it.ada, composed(it), it.say)
    tasting.voted(it.address, tasting.raters(it.seed), round_, household.opinion)
    round_ = tasting.unsealed((it.ada, it.ben), round_)
    token = create_api_token(user=it.ada, name="loop")
    folder, script = Path(settings.PALATE_HOME), Path(settings.BASE_DIR) / VERIFIER
    fine = tasting.verified(it.address, token, round_, folder, script)
    it.facts["verified"] = [fine]
    it.say(f"bundle of “{round_}”: {'verified' if fine else 'NOT verified'}")
    return round_


def composed(it: Play) -> Round:
    """The draft; the one of this name where it is there already."""
    name = f"{PREFIX} {it.seed}: base and policy"
    there = Round.objects.filter(name=name).exclude(state=RoundState.CANCELLED).first()
    if there is not None:
        return there
    _rooms, tasted = household.divided(it.seed, f"household-{it.seed}")
    people = [person for room in tasted for person in room.people]
    questions = [question for room in tasted for question in room.questions]
    who = tasting.guests(people, questions, "tasting")
    votes = SHORT_VOTES if it.short else VOTES
    plan = tasting.plan(name, list(it.contestants.values()), who, votes)
    return rounds.compose_round(actor=it.ada, plan=replace(plan, votes_per_battle=EACH))

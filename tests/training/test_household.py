"""The household: questions and people apart, rules that tell right from wrong, voters who judge by
texts alone, and the datasets that the loop with a real model makes of it.
"""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

import pytest

from tests.training.factories import admin
from tests.training.gate_factories import made
from training import launching, snapshots
from training.demo import household
from training.demo.household import STYLES, WANTED, opinion, readable, worth
from training.demo.loading import Workshop
from training.demo.loop import smol, smol_report
from training.demo.loop.learning import Runs
from training.engine.config.preflight import Machine
from training.engine.rewards.verifier import Verifier
from training.engine.snapshots import rollout_of
from training.enums import Role
from training.launching import InputSpec, preflight
from training.models import GateRun, TrainingRun
from training.selectors.evaluated import FILE
from training.services.gates import start_gate
from training.services.rundirs import labelled
from training.services.verdicts import decide_gate
from training.storage import directory

BUSY = "Busy expert. Wants one short sentence and nothing else."
NEW = "Beginner. Wants every step explained, one after the other."
ASKED = "How do I boil an egg?"
ANSWERS = household.answers()
SHORT, LONG = ANSWERS[ASKED]["brief"], ANSWERS[ASKED]["steps"]


def test_many_questions_and_nobody_says_it_in_the_same_words() -> None:
    rooms = household.rooms(1)
    asked = [question for room in rooms for question in room.questions]
    people = [person for room in rooms for person in room.people]
    assert len(asked) == len(set(asked)) == 112
    assert len({p.summary for p in people}) == len({p.name for p in people}) == len(people) == 56
    assert max(len(p.summary) for p in people) <= 100
    assert Counter(p.style for p in people) == {"brief": 28, "steps": 28}
    for room in rooms:  # every question under one of each kind, who stand together
        styles = [person.style for _q, _w, person in room.asked()]
        assert styles == ["brief", "steps"] * 8
        assert {person for _q, _w, person in room.asked()} == set(room.people)


def test_tastings_share_nothing_with_datasets() -> None:
    rooms, tasted = household.divided(3)
    rows = [*household.instructions(rooms), *household.wrong_answers(rooms)]
    assert len(tasted) == 2
    assert not {row["prompt"] for row in rows} & {q for room in tasted for q in room.questions}
    said = {row["persona"]["summary"] for row in rows}
    assert not said & {person.summary for room in tasted for person in room.people}
    assert household.rooms(3) == household.rooms(3) != household.rooms(4)


def test_rules_know_right_answers_from_wrong_ones() -> None:
    for row in household.wrong_answers(household.rooms(1)):
        persona = {"persona": row["persona"]["summary"]}
        right, wrong = (
            Verifier().score(rollout_of({**row, **persona}, row[name]))
            for name in ("better", "answer")
        )
        assert right is not None
        assert wrong is not None
        assert (right.values["rules"], right.values["personalization"]) == (1, 1)
        assert wrong.values["rules"] == 0


def test_every_question_has_both_answers() -> None:
    assert ANSWERS.keys() == household.WORDS.keys()
    for question, by_style in ANSWERS.items():
        assert by_style.keys() == WANTED.keys()
        for style, text in by_style.items():
            least, most = WANTED[style]
            assert least <= len(text.split()) <= (most or 40), question
            assert readable(text), question


def test_answers_of_both_lengths_are_shown_to_everybody() -> None:
    """Supervised fine-tuning must not teach what reward is to teach."""
    by_style = Counter(
        (STYLES[row["persona"]["summary"]], len(row["completion"].split()) >= 25)
        for row in household.instructions(household.rooms(1))
    )
    assert set(by_style.values()) == {112}
    assert len(by_style) == 4


@pytest.mark.parametrize(
    ("text", "fine"),
    [
        (LONG, True), (SHORT, True), ("1. Boil the water. 2. Add 3 eggs!", True),
        ("", False), ("water", False), ("egg " * 20, False), ("水を沸かす こと です ね", False),
        ("the egg the egg the egg the egg the egg the egg", False), ("!!!! ?? ....", False),
    ],
)  # fmt: skip
def test_what_is_readable_english(text: str, fine: bool) -> None:
    assert readable(text) == fine


def test_voters_judge_by_the_text_and_the_person() -> None:
    assert opinion("personalization", BUSY, ASKED, (SHORT, LONG)) == "left"
    assert opinion("personalization", NEW, ASKED, (SHORT, LONG)) == "right"
    assert opinion("personalization", NEW, ASKED, (LONG, LONG + " Really.")) == "tie"
    assert opinion("personalization", NEW, ASKED, ("Take water.", "Use water.")) == "both_bad"
    assert opinion("quality", BUSY, ASKED, (SHORT, LONG)) == "tie"
    assert opinion("quality", BUSY, ASKED, ("Put it in a pan.", LONG)) == "right"
    assert opinion("quality", NEW, ASKED, ("Put it in a pan.", "water " * 30)) == "both_bad"
    assert worth("personalization", NEW, ASKED, "water " * 30) == 0


# The datasets of the loop


@pytest.fixture
def sets(db: None) -> tuple[Any, Any, list[Any]]:
    rooms, _tasted = household.divided(1, "household-1")
    first = smol.instructions(admin(), rooms, 1)
    places = smol.placed(first, rooms)
    return first, smol.labelled(admin(), places, 1), places


def test_rooms_go_whole_into_splits_and_the_gate_has_enough(sets: Any) -> None:
    first, proved, places = sets
    splits = Counter(split for _room, split in places)
    assert splits == {"train": 6, "gate": 4, "reward_model_gate": 1, "edge": 1}
    assert first.counts["left"] == {}
    seen: dict[str, set[Any]] = {}
    for split in splits:
        rows = list(snapshots.prompts(first, split))
        assert all(row["task"]["words"] == list(WANTED[STYLES[row["persona"]]]) for row in rows)
        seen[split] = {row["persona"] for row in rows} | {
            row["prompt"][0]["content"] for row in rows
        }
    assert sum(map(len, seen.values())) == len(set().union(*seen.values())) == 12 * (8 + 4)
    train = list(snapshots.prompts(first, "train"))
    batches = [train[n : n + 2] for n in range(0, len(train), 2)]  # a step of GRPO
    assert all(a["prompt"] == b["prompt"] for a, b in batches)
    assert {frozenset(STYLES[row["persona"]] for row in two) for two in batches} == {
        frozenset(WANTED)
    }
    known = [row["right"] for row in labelled(proved, "reward_model_gate")]
    assert Counter(known) == {True: 16, False: 16}
    # A second start finds what the first one made.
    assert smol.instructions(admin(), [room for room, _ in places], 1) == first
    assert smol.labelled(admin(), places, 1) == proved


def test_the_site_would_start_grpo_by_rules(sets: Any) -> None:
    first, proved, _places = sets
    inputs = {
        Role.TRAIN: InputSpec(first, "train"), Role.HELDOUT: InputSpec(first, "edge"),
        Role.LABELLED: InputSpec(proved, "reward_model_gate"),
        Role.BASE: InputSpec(source=made("base")), Role.GATE: InputSpec(first, "gate"),
    }  # fmt: skip
    problems = preflight("grpo", "smol", smol.REWARD, inputs).problems
    left = [p for p in problems if p.field not in ("hardware.packages", "hardware.disk_gb")]
    assert [p.field for p in left] == ["inputs.base"]  # no baseline evaluation yet
    assert "baseline" in str(left[0])


def evaluated(run: TrainingRun | None, rows: list[Any], answer: Any) -> None:
    assert run is not None
    folder = directory(TrainingRun.objects.get(pk=run.pk).directory)
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / FILE).open("w") as out:
        for row in rows:
            for draw in range(2):
                rollout = rollout_of(row, answer(row))
                parts = Verifier().score(rollout)
                assert parts is not None
                line = {"id": row["id"], "draw": draw, "persona": row["persona"]}
                line |= {"prompt": rollout.question, "completion": rollout.completion}
                values = {name: value for name, value in parts.values.items() if value is not None}
                out.write(json.dumps({**line, "parts": {"rules": values}}) + "\n")
    for state in ("starting", "running", "succeeded"):
        TrainingRun.objects.filter(pk=run.pk).update(state=state)


def test_the_report_tells_matches_with_their_interval(
    sets: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A policy that reads the persona against a base that says the same to everybody."""
    first, _proved, _places = sets
    # Both name the word everywhere: that 32 prompts without a loss show no more than this.
    monkeypatch.setitem(smol.RULES, "quality_margin", 0.12)
    ready = Machine(lambda _name: True)  # wherever this runs: the model itself is not needed
    monkeypatch.setattr(launching, "machines", lambda: [(ready, "")])
    runs = Runs(Workshop(first, first, first, first), admin(), "X", say=lambda _text: None)
    runs.runs["SFT"] = made("base")
    asked: list[Any] = []
    monkeypatch.setattr(Runs, "launch", lambda self, stage, *rest: asked.append((stage, *rest)))
    monkeypatch.setattr(Runs, "wait", lambda self, *stages: None)
    it: Any = type("It", (), {"ada": admin(), "seed": 1})()
    spec = smol.measure(it, runs)
    gate = start_gate(actor=admin(), spec=spec, candidate=made("policy", "grpo"))
    # The gate uses the baseline evaluation again: its settings are those that were launched.
    assert gate.baseline_evaluation is not None
    assert gate.baseline_evaluation.config == asked[0][3]
    rows = list(snapshots.prompts(first, "gate"))

    def reads(row: Any) -> str:
        return ANSWERS[row["prompt"][-1]["content"]][STYLES[row["persona"]]]

    def always_long(row: Any) -> str:
        return ANSWERS[row["prompt"][-1]["content"]]["steps"]

    evaluated(gate.candidate_evaluation, rows, reads)
    evaluated(gate.baseline_evaluation, rows, always_long)
    assert decide_gate(pk=gate.pk)
    gate = GateRun.objects.get(pk=gate.pk)
    assert gate.verdict == "pass"
    found = smol_report.matches(gate)
    assert (found["base"], found["policy"], found["prompts"]) == (0.5, 1.0, 32)
    assert 0.3 < found["low"] < 0.5 < found["high"] < 0.6  # 32 prompts that are all alike
    assert smol_report.axes(gate)["quality"]["difference"] == 0
    assert smol_report.readable(gate) == {"policy": 1.0, "base": 1.0}
    shown = smol_report.samples(gate)
    assert len(shown) == 6
    assert {"persona", "prompt", "base", "policy"} == set(shown[0])


def test_the_report_says_what_was_missed() -> None:
    row = {"rank": 1, "rating": 1100, "lo": 1050, "hi": 1150, "votes": 90}
    board = {"Policy": row, "Base": {**row, "rating": 900}}
    found: dict[str, Any] = {
        "gates": {"GRPO": "pass"}, "matches": {"low": 0.2}, "readable": {"policy": 1.0},
        "verified": [True], "boards": [{"personalization": board, "quality": {}}],
    }  # fmt: skip
    assert list(smol_report.missed(found)) == []
    worse = {
        "gates": {"GRPO": "fail"}, "matches": {"low": None}, "readable": {"policy": 0.5},
        "verified": [False],
        "boards": [{"personalization": {"Policy": board["Base"], "Base": row}}],
    }  # fmt: skip
    assert len(list(smol_report.missed(worse))) == 5

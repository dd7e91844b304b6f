"""The parts of `make loop` that need no hour: its town, its people, what it calls missed."""

from __future__ import annotations

import random
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from bench import loop_kills
from training.demo import world
from training.demo.loop import labelling, learning, report, town
from training.demo.loop.people import Person, judged
from training.engine.toy import world as toy

BRIEF, STEPS = (texts[0] for texts in toy.PERSONAS.values())
ASK = toy.Ask("clean", "lamp")
SHORT = "Use the cloth."
LONG = "First, get the cloth. Then clean it. Last, check it."
WRONG = "Use the saw."


def test_tastings_have_questions_and_people_of_their_own() -> None:
    place = town.town(1)
    parts = [place.trained, *place.tastings]
    assert [len(part) for part in parts] == [12, 2, 2]
    asked = [set(town.questions(part)) for part in parts]
    names = [{person.name for person in town.people(part)} for part in parts]
    for sets in (asked, names):
        assert sum(map(len, sets)) == len(set().union(*sets))


def test_the_truth_of_texts() -> None:
    assert town.opinion("quality", BRIEF, ASK.text, (SHORT, WRONG)) == "left"
    assert town.opinion("quality", BRIEF, ASK.text, (SHORT, LONG)) == "tie"
    assert town.opinion("quality", BRIEF, ASK.text, (WRONG, WRONG)) == "both_bad"
    assert town.opinion("personalization", BRIEF, ASK.text, (LONG, SHORT)) == "right"
    assert town.opinion("personalization", STEPS, ASK.text, (LONG, SHORT)) == "left"
    assert town.opinion("personalization", STEPS, ASK.text, ("Hm.", WRONG)) == "both_bad"


def test_splits_show_every_action_and_every_corner_weighs_the_same() -> None:
    place = town.town(3)
    assert not town.teaches(place.trained[:4])
    rng = random.Random(1)
    corners = [town.distinct(world.instructions(c, town.FULL, rng))
               for c in place.trained]  # fmt: skip
    rows = learning.evenly(corners)
    sizes = {len([r for r in rows if r["persona"]["pseudonym"].startswith(f"loop-{n:02}-")])
             for n in range(1, 13)}  # fmt: skip
    assert len(sizes) == 1
    assert any(not toy.quality(row["prompt"], row["completion"]) for row in rows)


def test_pairs_are_handed_out_unjudged() -> None:
    corners = [(corner, split) for corner, split in zip(
        town.town(1).trained, ["train"] * 8 + ["reward_model_gate", "gate", "gate", "edge"],
        strict=True)]  # fmt: skip
    for axis, splits in labelling.MEASURED.items():
        found = labelling.pairs_of(axis, corners, town.SHORT, 1)
        assert {split for split, _rows in found} == {"train", *splits}
        assert not any({"labels", "state"} & set(row) for _split, rows in found for row in rows)


@given(st.sampled_from([SHORT, LONG, WRONG]), st.sampled_from([SHORT, LONG, WRONG]), st.integers())
def test_a_person_judges_texts_not_sides(one: str, two: str, seed: int) -> None:
    person = Person("ann", "token", accuracy=0.6, seed=seed)
    allowed = ("left", "right", "tie", "both_bad")

    def said(left: str, right: str) -> dict[str, str]:
        task: dict[str, Any] = {"token": "t", "left": left, "right": right}
        task |= {"persona_summary": BRIEF, "messages": [{"content": ASK.text}]}
        task["axes"] = ["quality", "personalization"]
        found: dict[str, str] = judged(person, task, town.opinion, allowed)["verdicts"]
        return found

    here, there = said(one, two), said(two, one)
    other = {"left": "right", "right": "left"}
    if one != two:
        assert there == {axis: other.get(verdict, verdict) for axis, verdict in here.items()}
    assert here == said(one, two)


def row(rating: float, width: float = 50) -> dict[str, Any]:
    return {"rank": "1", "rating": rating, "lo": rating - width, "hi": rating + width, "votes": 9}


def good() -> dict[str, Any]:
    first = {"Policy": row(1300), "Base": row(900), "Hacked": row(800)}
    return {
        "paused": ["sim-annotator-08 (3 of 9 gold)"],
        "gates": dict(report.WANTED),
        "verified": [True, True],
        "votes as pairs": {"quality": 40},
        "votes": [{"votes": 60, "planned": 60, "seats": 60}],
        "boards": [{"quality": first, "personalization": first}],
    }  # fmt: skip


def test_what_is_missed_is_named() -> None:
    assert list(report.missed(good())) == []
    for change, word in (
        ({"paused": []}, "careless"),
        ({"gates": {**report.WANTED, "hacked": "pass"}}, "hacked"),
        ({"verified": [True, False]}, "verify"),
        ({"votes as pairs": {}}, "no vote"),
        ({"votes": [{"votes": 61, "planned": 60, "seats": 60}]}, "double"),
    ):
        assert any(word in text for text in report.missed({**good(), **change})), word
    near = {"Policy": row(1300), "Base": row(1290)}
    found = report.missed({**good(), "boards": [{"personalization": near}]})
    assert any("Base" in text for text in found)


def test_a_loop_that_was_killed_must_end_like_a_quiet_one() -> None:
    quiet = {**good(), "missed": [], "datasets": {"Loop 1: instructions": {"sha256": "a"}},
             "runs": {"Loop 1 SFT": {"state": "succeeded", "weights": "w"}}}  # fmt: skip
    assert loop_kills.wrong(quiet, quiet) == []
    again = {**quiet, "runs": {**quiet["runs"], "Loop 1 SFT (2)": {"state": "succeeded"}}}
    assert loop_kills.wrong(again, quiet) == []
    other = {**quiet, "runs": {"Loop 1 SFT": {"state": "failed", "weights": "v"}, "more": {}}}
    other["runs"]["more"] = {"state": "succeeded"}
    assert len(loop_kills.wrong(other, quiet)) == 3

"""What an evaluation counts: answers without a score, empty ones, means over what is known."""

from __future__ import annotations

from typing import Any

import pytest

from training.engine.config.load import load
from training.engine.config.preflight import Machine, check
from training.engine.config.schema import RunConfig
from training.engine.jobs.evaluation import degenerate, items_of, means, report


def config(**evaluate: Any) -> RunConfig:
    return load({"kind": "evaluate", "preset": "tiny", "evaluate": evaluate})


def row(item: str, answer: str = "Use the key.", **parts: Any) -> dict[str, Any]:
    return {"id": item, "draw": 0, "completion": answer, "parts": parts}


@pytest.mark.parametrize(
    ("text", "bad"),
    [
        ("", True),
        ("  \n", True),
        ("the the the the the the the the the", True),
        ("好好好好好好好好好", True),
        ("no no", False),
        ("First, get the key. Then open it. Last, check it.", False),
        ("先烧水，再放茶叶。", False),
    ],
)
def test_an_answer_that_says_nothing(text: str, bad: bool) -> None:
    assert degenerate(text) == bad


def test_what_could_not_be_scored_is_counted_and_left_out() -> None:
    rows = [row("a", quality={"quality": 1.0}), row("b", quality=None)]
    found = report(rows, config())
    assert (found["n_ok"], found["n_err"], found["means"]) == (1, 1, {"quality": 1.0})
    assert not found["passed"]
    assert report(rows, config(errors=0.5))["passed"]


def test_too_many_empty_answers_do_not_pass() -> None:
    rows = [
        row(str(n), "" if n < 2 else "Use the key.", quality={"quality": 1.0}) for n in range(20)
    ]
    assert not report(rows, config())["passed"]
    assert report(rows, config(degenerate=0.1))["passed"]
    assert not report([], config())["passed"]


def test_means_are_named_by_their_scorer() -> None:
    parts = {"quality/auditors": {"quality": 0.5, "spread/quality": 0.1}}
    rows = [{**row("a"), "parts": parts}]
    assert means(rows) == {"quality/auditors": 0.5, "quality/auditors/spread/quality": 0.1}


def test_items_keep_their_ids_and_are_drawn_as_often_as_asked() -> None:
    rows = [{"id": "x", "prompt": "?"}, {"prompt": "!"}]
    found = [(item["id"], draw) for item, draw in items_of(rows, config(draws=2))]
    assert found == [("x", 0), ("x", 1), ("00001", 0), ("00001", 1)]


def test_scorers_are_known_and_there() -> None:
    machine = Machine(lambda _name: True)
    asked = {"kind": "evaluate", "preset": "tiny", "model": {"path": "/m"}}

    def fields(*scorers: str, **reward: str) -> list[str]:
        found = load({**asked, "evaluate": {"scorers": list(scorers)}, "reward": reward})
        return [problem.field for problem in check(found, machine)]

    assert fields("rules") == []
    assert fields("taste") == ["evaluate.scorers"]
    assert fields("quality/auditors") == ["reward.quality"]
    assert fields("quality/auditors", quality="/r") == []
    assert fields("judge") == ["reward.judge_url"]

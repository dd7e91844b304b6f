"""A persona summary stands for ten turns, or until somebody asks for another."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from training.engine.config.load import load
from training.engine.persona.cooldown import hold, should_refresh, turns_per_change
from training.engine.rundir import RunDir
from training.engine.snapshots import write_rows


def test_thirty_turns_with_one_grumble_and_one_demand() -> None:
    """A grumble at turn 4 changes nothing; a demand at 13 does, and the turns count from there."""
    since, refreshed = 0, []
    for turn in range(1, 31):
        since += 1
        if should_refresh(since, explicit_request=turn == 13):
            refreshed.append(turn)
            since = 0
    assert refreshed == [10, 13, 23]


def dialogue(name: str, personas: list[str], demands: tuple[int, ...] = ()) -> list[dict[str, Any]]:
    return [
        {"dialogue": name, "turn": i, "prompt": "x", "persona": who, "demand": i in demands}
        for i, who in enumerate(personas)
    ]


def test_rows_keep_the_summary_of_their_dialogue_and_their_order() -> None:
    calm = dialogue("calm", [f"c{i}" for i in range(12)])
    asked = dialogue("asked", ["a", "b", "c", "d"], demands=(2,))
    alone = [{"prompt": "x", "persona": "nobody's"}]
    mixed = [row for pair in zip(calm, asked * 3, strict=True) for row in pair][:8] + alone
    held = hold([*calm, *asked, *alone])
    assert [row["persona"] for row in held] == [*["c0"] * 10, "c10", "c10", "a", "a", "c", "c",
                                                "nobody's"]  # fmt: skip
    assert [row["prompt"] for row in hold(mixed)] == ["x"] * 9
    assert calm[3]["persona"] == "c3"  # what was given is not changed


def test_turns_between_changes_that_nobody_asked_for() -> None:
    assert turns_per_change(dialogue("d", list("abcdef"))) == 6 / 5
    assert turns_per_change(dialogue("d", list("aabb"), demands=(2,))) is None
    assert turns_per_change([{"prompt": "x", "persona": "a"}]) is None


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(("turns", "expected"), [(0, ["p0", "p1", "p2"]), (2, ["p0", "p0", "p2"])])
def test_a_run_trains_on_held_summaries_where_it_is_told_to(
    turns: int, expected: list[str], tmp_path: Path
) -> None:
    from training.engine.jobs.grpo import prompts
    from training.engine.jobs.models import make_tokenizer

    write_rows(tmp_path / "data" / "train.jsonl", dialogue("d", ["p0", "p1", "p2"]))
    values = {"kind": "grpo", "preset": "tiny", "model": {"path": "m"}}
    config = load({**values, "data": {"persona_turns": turns}})
    rows, dropped = prompts(RunDir(tmp_path), config, make_tokenizer(["x y z p0 p1"] * 20, 300))
    assert [row["persona"] for row in rows] == expected
    assert dropped == 0

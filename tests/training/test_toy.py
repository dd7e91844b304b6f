"""The toy world: its truth, its defects, its splits."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from training.engine.snapshots import BadSnapshot, read_rows, rollout_of, write_rows
from training.engine.toy import data, world
from training.engine.toy.world import Ask

ASK = Ask("clean", "lamp")


@pytest.mark.parametrize("style", world.FORMS)
@pytest.mark.parametrize("form", [0, 1])
def test_good_answers_are_good_and_have_their_style(style: str, form: int) -> None:
    answer = world.good(ASK, style, random.Random(0), form)
    assert world.quality(ASK.text, answer) == 1
    assert world.style_of(answer) == style
    assert world.quality(Ask("fix", "lamp").text, answer) == 0


@pytest.mark.parametrize("defect", world.DEFECTS)
def test_every_defect_costs_the_quality(defect: str) -> None:
    rng = random.Random(1)
    for _ in range(100):
        answer = world.DEFECTS[defect](ASK, data.styles(rng), rng, None)
        assert world.quality(ASK.text, answer) == 0


def test_every_question_is_understood_and_strangers_are_not() -> None:
    for ask in world.asks(world.combinations(random.Random(0))):
        assert world.understand(ask.text) == ask
    assert world.understand("Who are you?") is None
    assert world.quality("Who are you?", "Use the cloth.") == 0


def test_the_truth_knows_who_wants_what() -> None:
    row = {"prompt": ASK.text, "persona": world.PERSONAS["brief"][0]}
    short, long = (world.good(ASK, s, random.Random(0)) for s in ("brief", "steps"))
    assert world.Truth().score(rollout_of(row, short)) is not None
    found = [world.Truth().score(rollout_of(row, text)) for text in (short, long)]
    assert [p.values["match"] for p in found if p] == [1.0, 0.0]


def test_the_parts_share_no_question_and_training_has_seen_every_word() -> None:
    for seed in range(20):
        parts = data.split(random.Random(seed))
        pairs = {name: {(a.verb, a.noun) for a in asks} for name, asks in parts.items()}
        assert sum(map(len, pairs.values())) == len(set().union(*pairs.values())) == 48
        for verb in world.TOOLS:
            assert sum(v == verb for v, _ in pairs["train"]) >= data.OFTEN


def test_tastes_are_planted_in_both_directions_and_quality_knows_none(tmp_path: Path) -> None:
    paths = data.write(tmp_path, 3, data.SMALL)
    personal = read_rows(paths["personalization-gate"], "pairs")
    for row in personal:
        assert world.style_of(row["chosen"]) in (world.wanted_style(row["persona"]), "")
    preferred = [world.style_of(row["chosen"]) for row in personal]
    assert abs(preferred.count("brief") - preferred.count("steps")) < 0.1 * len(personal)
    assert {row["persona"] for row in read_rows(paths["quality"], "pairs")} == {""}


def test_the_same_seed_writes_the_same_bytes(tmp_path: Path) -> None:
    left = data.write(tmp_path / "a", 5, data.SMALL)
    right = data.write(tmp_path / "b", 5, data.SMALL)
    other = data.write(tmp_path / "c", 6, data.SMALL)
    assert all(left[n].read_bytes() == right[n].read_bytes() for n in left)
    assert left["quality"].read_bytes() != other["quality"].read_bytes()


def test_a_row_that_lacks_something_is_named(tmp_path: Path) -> None:
    path = tmp_path / "pairs.jsonl"
    write_rows(path, [{"prompt": "x", "chosen": "a", "rejected": "b"}, {"prompt": "x"}])
    with pytest.raises(BadSnapshot, match="row 2: chosen, rejected"):
        read_rows(path, "pairs")
    path.write_text("{broken\n")
    with pytest.raises(BadSnapshot, match="line 1 is not JSON"):
        read_rows(path, "pairs")
    path.write_text("")
    with pytest.raises(BadSnapshot, match="no rows"):
        read_rows(path, "pairs")


def test_parquet_reads_like_lines(tmp_path: Path) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    rows = [{"prompt": "怎么清洁？", "chosen": "用布", "rejected": "不知道", "persona": None}]
    pq.write_table(pa.Table.from_pylist(rows), tmp_path / "pairs.parquet")
    assert read_rows(tmp_path / "pairs.parquet", "pairs") == [{**rows[0], "persona": ""}]

"""`manage.py rate`: the documented JSON, the table, and refusals. No database is touched."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from arena.ratings import Outcome, rate
from tests.arena.ratings.worlds import draw, planted


@pytest.fixture
def battles(tmp_path: Path) -> Path:
    """A FastChat file of 600 self-made battles among four contestants."""
    votes = draw(planted(4), 600, both_bad=0.3)
    assert votes.rater is not None
    assert votes.context is not None
    words = {0: "model_a", 1: "model_b", 2: "tie", 3: "tie (bothbad)"}
    rows = [
        {
            "model_a": votes.contestants[a],
            "model_b": votes.contestants[b],
            "winner": words[int(o)],
            "judge": votes.raters[r],
            "question_id": votes.contexts[x],
        }
        for a, b, o, r, x in zip(
            votes.left, votes.right, votes.outcome, votes.rater, votes.context, strict=True
        )
    ]
    path = tmp_path / "battles.json"
    path.write_text(json.dumps(rows), "utf-8")
    return path


def run(*args: object) -> str:
    out = io.StringIO()
    call_command("rate", *map(str, args), stdout=out)
    return out.getvalue()


def run_json(*args: object) -> dict[str, Any]:
    data: dict[str, Any] = json.loads(run(*args, "--json"))
    return data


def test_json_has_the_documented_shape_and_the_numbers_of_rate(battles: Path) -> None:
    data = run_json(battles, "--format", "fastchat")
    assert data["method"] == "bradley_terry"
    expected = rate(draw(planted(4), 600, both_bad=0.3))
    assert [row["contestant"] for row in data["ratings"]] == [r.contestant for r in expected.rows]
    for got, row in zip(data["ratings"], expected.rows, strict=True):
        assert {"strength", "rating", "lo", "hi", "votes"} <= got.keys()
        for field in ("strength", "rating", "lo", "hi"):
            assert got[field] == pytest.approx(getattr(row, field), abs=1e-9)
        assert got["votes"] == row.votes
    assert sum(row["strength"] for row in data["ratings"]) == pytest.approx(0.0, abs=1e-9)


@pytest.mark.parametrize("method", ["bradley_terry", "davidson", "elo"])
@pytest.mark.parametrize("ci", ["sandwich", "bootstrap"])
@pytest.mark.parametrize("cluster", ["rater", "both", "none"])
def test_every_choice_runs(battles: Path, method: str, ci: str, cluster: str) -> None:
    options = ("--method", method, "--ci", ci, "--cluster", cluster, "--replicates", 40)
    data = run_json(battles, "--format", "fastchat", *options)
    assert data["method"] == method
    assert all((row["lo"] is None) == (method == "elo") for row in data["ratings"])


def test_the_table_names_everybody_and_the_statements(tmp_path: Path) -> None:
    path = tmp_path / "v.jsonl"
    row = {"contestant_left": "amber", "contestant_right": "basil", "outcome": "left"}
    path.write_text(json.dumps(row) + "\n", "utf-8")
    text = run(path)
    assert "amber" in text
    assert "basil" in text
    assert "Never lost or tied" in text


def test_refused_rows_stop_the_command_unless_skipped(battles: Path) -> None:
    rows = json.loads(battles.read_text("utf-8"))
    rows[0]["winner"] = "me"
    battles.write_text(json.dumps(rows), "utf-8")
    with pytest.raises(CommandError, match=r"battles\.json, line 1, field winner: 'me'"):
        run(battles, "--format", "fastchat")
    data = run_json(battles, "--format", "fastchat", "--skip-bad")
    assert data["refused_rows"] == 1
    assert data["votes"] == 599


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(CommandError, match="No such file"):
        run(tmp_path / "nothing.json")


def test_an_unknown_anchor(battles: Path) -> None:
    with pytest.raises(CommandError, match="not among the contestants"):
        run(battles, "--format", "fastchat", "--anchor", "nobody")


def test_words_and_outcomes_agree() -> None:
    assert [o.name for o in Outcome] == ["LEFT", "RIGHT", "TIE", "BOTH_BAD"]

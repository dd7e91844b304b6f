"""Files of frozen datasets: the same bytes again, loadable, and what is gone after a withdrawal."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from tests.training.factories import admin, draft, freeze, frozen, make_pairs, make_people
from tests.training.test_datasets_records import bring_in, trace
from tests.training.test_datasets_sources import make_counterfactuals
from training import snapshots
from training.enums import Kind
from training.models import BaselineEvaluation, Dataset, RowText
from training.policies import check_may_start_grpo, may_start_grpo
from training.rows import COLUMNS, columns
from training.services.baselines import record_baseline
from webapp.catalog.services.personas import withdraw_consent
from webapp.core.errors import Refused

pytestmark = pytest.mark.django_db
ROOT = Path(__file__).resolve().parent.parent.parent


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir())}


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def make_every_kind() -> dict[str, Dataset]:
    make_pairs(people=6, prompts=6)
    make_counterfactuals(3)
    make_pairs(people=2, prompts=1, topic="bad", choose=lambda _lease: "both_bad")
    bring_in("instructions", {"prompt": "怎么泡茶？", "completion": "先烧水。", "language": "zh"})
    bring_in("tool_traces", trace())
    gates = {"train": 70, "reward_model_gate": 15, "gate": 15}
    return {
        kind: frozen(kind, **(gates if kind == Kind.PREFERENCES else {})) for kind in Kind.values
    }


def test_writing_again_gives_the_same_bytes_and_everything_loads(tmp_path: Path) -> None:
    for kind, dataset in make_every_kind().items():
        types = ("jsonl", "parquet")
        one = snapshots.write_snapshot(dataset, tmp_path / kind / "1", types=types)
        two = snapshots.write_snapshot(dataset, tmp_path / kind / "2", types=types)
        assert one == two
        assert contents(tmp_path / kind / "1") == contents(tmp_path / kind / "2")
        assert one["gone"] == []
        assert sum(one["rows"].values()) == dataset.rows
        engine = snapshots.write_snapshot(dataset, tmp_path / kind / "e", form=snapshots.ENGINE)
        assert contents(tmp_path / kind / "e")["train.jsonl"]
        assert engine["content_sha256"] == one["content_sha256"]
    done = subprocess.run(
        [sys.executable, "-c", LOAD, str(tmp_path)], capture_output=True, text=True, cwd=ROOT
    )
    assert done.returncode == 0, done.stderr
    assert set(done.stdout.split()) == set(Kind.values)


LOAD = """
import sys, datasets, pyarrow.parquet as pq
from pathlib import Path
from training.rows import COLUMNS, arrow_schema
import json
datasets.disable_progress_bars()
root = Path(sys.argv[1])
for kind in COLUMNS:
    files = sorted((root / kind / "1").glob("*.parquet"))
    assert files
    for file in files:
        first = json.loads(file.with_suffix('.jsonl').open().readline())
        schema = arrow_schema(kind, first)
        assert pq.read_schema(file).equals(schema), (kind, pq.read_schema(file))
        loaded = datasets.load_dataset(
            "parquet", data_files=str(file), split="train", cache_dir=str(root / "cache"))
        plain = datasets.load_dataset(
            "json", data_files=str(file.with_suffix(".jsonl")), split="train",
            features=loaded.features, cache_dir=str(root / "cache"))
        assert loaded.column_names == list(schema.names)
        assert loaded.to_list() == plain.to_list(), kind
        assert all(value is not None for row in loaded for value in row.values())
    print(kind)
"""


def test_pairs_are_prepared_by_trl_as_they_are(tmp_path: Path) -> None:
    make_pairs(people=2, prompts=2)
    dataset = frozen()
    found = snapshots.write_snapshot(dataset, tmp_path / "set")
    request = {
        "kind": "preference",
        "style": "conversational",
        "file_type": "jsonl",
        "columns": columns("preferences"),
        "files": {"train": str(tmp_path / "set" / "train.jsonl")},
        "rows": found["rows"],
        "answer": str(tmp_path / "answer.json"),
        "cache": str(tmp_path / "cache"),
        "save_to": "",
    }
    (tmp_path / "request.json").write_text(json.dumps(request))
    script = [sys.executable, str(ROOT / "tools" / "check_trl.py"), str(tmp_path / "request.json")]
    done = subprocess.run(script, capture_output=True, text=True, cwd=ROOT)
    answer = json.loads((tmp_path / "answer.json").read_text())
    assert answer["ok"], (answer, done.stderr)


def test_the_engine_gets_texts_prompts_and_swaps(tmp_path: Path) -> None:
    made = make_every_kind()
    snapshots.write_snapshot(made["preferences"], tmp_path / "p", form=snapshots.ENGINE)
    row = lines(tmp_path / "p" / "train.jsonl")[0]
    assert isinstance(row["chosen"], str)
    assert row["prompt"][-1]["role"] == "user"
    asked = lines(tmp_path / "p" / "prompts-gate.jsonl")
    assert {"id", "persona", "prompt"} <= set(asked[0])
    snapshots.write_snapshot(made["counterfactuals"], tmp_path / "c", form=snapshots.ENGINE)
    swap = lines(tmp_path / "c" / "swaps.jsonl")
    assert len(swap) == 3
    assert swap[0]["persona_first"] != swap[0]["persona_second"]
    assert swap[0]["first"] != swap[0]["second"]
    snapshots.write_snapshot(made["instructions"], tmp_path / "i", form=snapshots.ENGINE)
    assert lines(tmp_path / "i" / "train.jsonl")[0]["answer"] == "先烧水。"
    from training.engine.snapshots import read_rows

    assert read_rows(tmp_path / "p" / "train.jsonl", "pairs")
    assert read_rows(tmp_path / "c" / "swaps.jsonl", "swaps")
    assert read_rows(tmp_path / "p" / "prompts-gate.jsonl", "prompts")
    assert read_rows(tmp_path / "i" / "train.jsonl", "instructions")


def test_after_a_withdrawal_the_files_say_which_rows_are_gone(tmp_path: Path) -> None:
    make_pairs(people=3, prompts=2)
    dataset = frozen()
    before = snapshots.write_snapshot(dataset, tmp_path / "1")
    person = make_people(3)[0].persona
    gone = set(dataset.items.filter(persona=person).values_list("row_sha256", flat=True))
    withdraw_consent(actor=admin(), persona=person)
    dataset.refresh_from_db()
    assert (dataset.erased_rows, dataset.rows) == (2, 6)
    assert dataset.marked_at is not None
    after = snapshots.write_snapshot(dataset, tmp_path / "2")
    assert set(after["gone"]) == gone == set(snapshots.gone_rows(dataset))
    assert after["content_sha256"] == before["content_sha256"]
    text = (tmp_path / "2" / "train.jsonl").read_text()
    assert person.pseudonym not in text
    kept = [r for r in lines(tmp_path / "1" / "train.jsonl") if r["persona_id"] != person.pseudonym]
    assert lines(tmp_path / "2" / "train.jsonl") == kept
    later = frozen(seed=9)
    assert later.rows == 4
    assert later.counts["left"] == {"withdrawn": 2}


def test_withdrawing_during_a_freeze_leaves_the_persona_out(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from training.services import freezing

    make_pairs(people=3, prompts=2)
    person, real = make_people(3)[0].persona, freezing._finish

    def finish(dataset: Dataset) -> None:
        monkeypatch.setattr(freezing, "_finish", real)
        withdraw_consent(actor=admin(), persona=person)
        real(dataset)

    monkeypatch.setattr(freezing, "_finish", finish)
    dataset = freeze(draft())
    assert (dataset.state, dataset.rows, dataset.erased_rows) == ("frozen", 4, 0)
    assert not RowText.objects.filter(persona=person).exists()


def test_a_text_that_was_tampered_with_is_noticed(tmp_path: Path) -> None:
    make_pairs(people=2, prompts=1)
    dataset = frozen()
    text = RowText.objects.first()
    assert text is not None
    line = text.line.replace("Run it", "Hack it").replace("First open", "Never open")
    RowText.objects.filter(pk=text.pk).delete()
    RowText.objects.create(sha256=text.sha256, line=line, persona=text.persona)
    with pytest.raises(snapshots.Damaged):
        snapshots.write_snapshot(dataset, tmp_path)


def test_a_draft_has_no_files(tmp_path: Path) -> None:
    with pytest.raises(Refused):
        list(snapshots.read_rows(draft(), "train"))


def test_columns_never_change_silently() -> None:
    """Whoever changes them counts FORMAT up: frozen rows keep their hash."""
    assert set(COLUMNS) == set(Kind.values)
    shared = set.intersection(*(set(named) for named in COLUMNS.values()))
    assert shared == {"persona", "persona_id", "language", "category", "source", "synthetic"}


# The command


def test_the_command_freezes_writes_and_goes_on(tmp_path: Path, capsys: Any) -> None:
    make_pairs(people=2, prompts=2)
    for _again in range(2):
        call_command(
            "freeze_dataset", "By hand", "--set", "axis=quality", "--set", "projects=[]",
            "--out", str(tmp_path), "--parquet",
        )  # fmt: skip
        assert "4 rows" in capsys.readouterr().out
    assert Dataset.objects.count() == 1
    assert (tmp_path / "train.parquet").exists()
    with pytest.raises(CommandError, match="axis"):
        call_command("freeze_dataset", "Other", "--set", "axis=taste")
    with pytest.raises(CommandError, match="No row fits"):
        call_command("freeze_dataset", "Other", "--kind", "tool_traces")
    call_command("check_splits")
    assert "disjoint" in capsys.readouterr().out


# Baselines (F18, H12)


def test_reinforcement_learning_needs_a_baseline_on_the_gate_split() -> None:
    make_pairs(people=6, prompts=6)
    plain, gated = frozen(name="plain", train=100), None
    make_pairs(people=6, prompts=6, prefix="new", topic="other")
    gated = frozen(name="gated", train=70, gate=30, categories=["other"])

    def code(dataset: Dataset, base: str = "base", weights: str = "") -> str:
        with pytest.raises(Refused) as caught:
            check_may_start_grpo(base, dataset, weights)
        return caught.value.code

    assert code(draft()) == "not_frozen"
    assert code(plain) == "no_gate_split"
    assert code(gated) == "no_baseline"

    def evaluate(dataset: Dataset, passed: bool) -> None:
        record_baseline(
            actor=admin(), base="base", base_sha256="a" * 64, dataset=dataset, passed=passed,
            result={"reward": 0.4},
        )  # fmt: skip

    with pytest.raises(Refused):
        evaluate(plain, True)
    evaluate(gated, False)
    assert code(gated) == "baseline_failed"
    evaluate(gated, True)
    check_may_start_grpo("base", gated)
    assert may_start_grpo("base", gated, "a" * 64)
    assert code(gated, weights="b" * 64) == "no_baseline"
    assert not may_start_grpo("other", gated)
    assert BaselineEvaluation.objects.count() == 2

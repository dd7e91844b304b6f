"""An export trains: `datasets` loads it, TRL prepares it, and one step of a reward model takes it.

Everything that imports torch runs in processes of its own.
"""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import pytest

from annotation.enums import JobState
from annotation.models import ExportRun
from annotation.services import exports
from tests.annotation.factories import Desk, label_all, make_desk
from tools import check_trl

ROOT = Path(__file__).resolve().parent.parent.parent
SCRIPT = ROOT / "tools" / "check_trl.py"
needs_training = pytest.mark.skipif(
    importlib.util.find_spec("trl") is None, reason="needs the extra “training” (torch and trl)"
)
PLAIN = {"prompt": "string", "chosen": "string", "rejected": "string"}
ROW = {"prompt": "Q\n", "chosen": "good", "rejected": "bad"}


def make(desk: Desk, **options: Any) -> ExportRun:
    run = exports.start_export(
        actor=desk.manager, project=desk.project, options=options, key="", send=False
    )
    done = exports.run_export(pk=run.pk)
    assert done is not None
    return done


@pytest.fixture
def desk(db: Any) -> Desk:
    """Six pairs, also in Chinese and with what breaks files: quotes, newlines, formulas, emoji."""
    found = make_desk(people=1, n_items=6)
    label_all(found)
    return found


@needs_training
@pytest.mark.parametrize(
    "options",
    [
        {"format": "trl_preference", "style": "standard", "file_type": "parquet"},
        {"format": "trl_implicit", "style": "conversational", "train": 50, "test": 50},
        {"format": "trl_unpaired", "style": "conversational", "file_type": "dataset"},
    ],
)
def test_an_export_is_loaded_and_prepared_before_it_is_handed_out(
    desk: Desk, options: dict[str, Any]
) -> None:
    run = make(desk, **options)
    proof = run.report["proof"]
    assert run.state == JobState.DONE, proof
    rows = 12 if options["format"] == "trl_unpaired" else 6
    assert [(step["name"], step["ok"], step["rows"]) for step in proof["steps"]] == [
        ("datasets", True, rows),
        ("trl", True, rows),
    ]


TRAIN = """
import json, sys
from datasets import load_dataset, load_from_disk
from tools.check_trl import tokenizer
from transformers import LlamaConfig, LlamaForSequenceClassification
from trl import RewardConfig, RewardTrainer

data = load_dataset("json", data_files=sys.argv[1], cache_dir=sys.argv[2], split="train")
words = tokenizer()
tiny = LlamaConfig(
    vocab_size=len(words), hidden_size=16, intermediate_size=32, num_hidden_layers=1,
    num_attention_heads=2, num_key_value_heads=2, max_position_embeddings=512, num_labels=1,
    pad_token_id=words.pad_token_id,
)
arguments = RewardConfig(
    output_dir=sys.argv[2], max_steps=1, per_device_train_batch_size=2, report_to=[],
    use_cpu=True, save_strategy="no", logging_steps=1, max_length=256, disable_tqdm=True,
    bf16=False,
)
trainer = RewardTrainer(
    model=LlamaForSequenceClassification(tiny), args=arguments, train_dataset=data,
    processing_class=words,
)
result = trainer.train()
print(json.dumps({"steps": result.global_step, "loss": result.training_loss, "rows": len(data)}))
"""


@needs_training
def test_one_step_of_a_reward_model_takes_an_export(desk: Desk, tmp_path: Path) -> None:
    run = make(desk, format="trl_preference", style="conversational")
    done = subprocess.run(
        [sys.executable, "-c", TRAIN, run.path, str(tmp_path)],
        cwd=ROOT,
        env={**os.environ, "OMP_NUM_THREADS": "1", "HF_HOME": str(tmp_path), "HF_HUB_OFFLINE": "1"},
        capture_output=True,
        text=True,
        timeout=400,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    said = json.loads(done.stdout.strip().splitlines()[-1])
    assert (said["steps"], said["rows"]) == (1, 6)
    assert 0 < said["loss"] < 5


def request(tmp_path: Path, rows: list[Any]) -> dict[str, Any]:
    path = tmp_path / "train.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return {
        "kind": "preference",
        "style": "standard",
        "file_type": "jsonl",
        "columns": PLAIN,
        "files": {"train": str(path)},
        "rows": {"train": len(rows)},
        "answer": str(tmp_path / "found.json"),
        "cache": str(tmp_path / "cache"),
        "save_to": "",
    }


AS_IF = """
import sys
from importlib.machinery import PathFinder
from pathlib import Path

find = PathFinder.find_spec
PathFinder.find_spec = classmethod(
    lambda cls, name, *more: None if name.partition(".")[0] == sys.argv[2] else find(name, *more)
)
from tools.check_trl import main
sys.exit(main(Path(sys.argv[1])))
"""


def checked(tmp_path: Path, asked: dict[str, Any], *, without: str = "") -> dict[str, Any]:
    """The findings of the check, in a process of its own; `without` a package."""
    (tmp_path / "check.json").write_text(json.dumps(asked))
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "HF_HOME": str(tmp_path)}
    command = [sys.executable, "-c", AS_IF, str(tmp_path / "check.json"), without]
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True)
    found: dict[str, Any] = json.loads((tmp_path / "found.json").read_text())
    assert done.returncode == (0 if found["ok"] else 1)
    return found


def test_without_the_training_extra_the_check_says_so(tmp_path: Path) -> None:
    found = checked(tmp_path, request(tmp_path, [ROW]), without="torch")
    assert found["ok"]
    assert found["steps"][1] == {"name": "trl", "ok": None, "missing": "torch"}


@needs_training
def test_what_trl_cannot_use_is_found_with_its_row(tmp_path: Path) -> None:
    rows = [ROW, {**ROW, "chosen": "same", "rejected": "same"}]
    found = checked(tmp_path, request(tmp_path, rows))
    assert not found["ok"]
    assert found["problem"] == {
        "what": "chosen and rejected are the same",
        "split": "train",
        "row": 2,
    }


@pytest.mark.parametrize(
    ("rows", "more", "problem"),
    [
        ([ROW], {"rows": {"train": 2}}, {"what": "1 rows, 2 written", "split": "train"}),
        (
            [ROW, {**ROW, "prompt": [{"role": "user", "content": "Q"}]}],
            {},
            {"what": "not of type string", "split": "train", "row": 2, "column": "prompt"},
        ),
        (
            [{"prompt": "Q", "chosen": "A"}],
            {},
            {
                "what": "columns are missing or too many",
                "split": "train",
                "row": 1,
                "column": "rejected",
            },
        ),
        (
            [{**ROW, "rejected": None}],
            {},
            {"what": "not of type string", "split": "train", "row": 1, "column": "rejected"},
        ),
    ],
)
def test_what_does_not_load_under_the_columns_is_refused(
    tmp_path: Path, rows: list[Any], more: dict[str, Any], problem: dict[str, Any]
) -> None:
    """`datasets` itself turns a list among texts into a text without a word, so lines are read."""
    with pytest.raises(check_trl.Problem) as error:
        check_trl.by_datasets({**request(tmp_path, rows), **more})
    assert error.value.said == problem


def test_a_missing_value_in_a_table_is_found(tmp_path: Path) -> None:
    import pyarrow as pa
    import pyarrow.parquet

    path = tmp_path / "train.parquet"
    table = pa.Table.from_pylist([ROW, {**ROW, "rejected": None}])
    pyarrow.parquet.write_table(table, path)
    asked = request(tmp_path, [])
    asked |= {"file_type": "parquet", "files": {"train": str(path)}, "rows": {"train": 2}}
    with pytest.raises(check_trl.Problem) as error:
        check_trl.by_datasets(asked)
    assert error.value.said == {
        "what": "a value is missing",
        "split": "train",
        "column": "rejected",
    }


def test_the_check_itself_imports_no_torch() -> None:
    code = "import sys, tools.check_trl; print({'torch', 'trl', 'datasets'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True)
    assert done.stdout.strip() == "set()"


@needs_training
def test_a_dataset_on_disk_is_a_folder_that_datasets_loads(desk: Desk, tmp_path: Path) -> None:
    run = make(desk, file_type="dataset", train=50, test=50)
    with zipfile.ZipFile(run.path) as archive:
        archive.extractall(tmp_path)
    import datasets

    data = datasets.load_from_disk(str(tmp_path))
    assert {name: part.num_rows for name, part in data.items()} == {"train": 3, "test": 3}
    assert data["train"].features["chosen"].feature["role"].dtype == "string"

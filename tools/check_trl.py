"""Load written preference data as a trainer does, and say what came of it.

    python tools/check_trl.py REQUEST.json

The request: {"kind", "style", "file_type", "columns": {name: kind}, "files": {split: path},
"rows": {split: n}, "answer": path, "cache": folder, "save_to": folder or ""}. With `save_to` the
data are written there as a dataset on disk first, and what is checked is that.

1. JSON Lines have every column in every line, of one type. `datasets` loads every file under the
   explicit features; rows, columns and types must agree, and no value is missing.
2. TRL prepares every row: prompt extracted, chat template applied, unpaired; where torch and trl
   are not installed, the answer says so.

Stand-alone: nothing of the site is imported. The answer holds no text of a row.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

TEMPLATE = (
    "{% for m in messages %}<|{{ m['role'] }}|>\n{{ m['content'] }}<|end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|assistant|>\n{% endif %}"
)
STRUCTS = {
    "messages": {"role": "string", "content": "string"},
    "labels": {
        "annotator": "string",
        "verdict": "string",
        "left": "bool",
        "at": "string",
        "guideline": "int64",
        "strength": "int64",
        "late": "bool",
    },
}


class Problem(Exception):
    """The first thing that is wrong: what, and where."""

    def __init__(self, what: str, **where: Any) -> None:
        super().__init__(what)
        self.said = {"what": what, **where}


def features_of(columns: dict[str, str]) -> Any:
    from datasets import Features, List, Value

    def of(kind: str) -> Any:
        if kind in STRUCTS:
            return List({name: Value(k) for name, k in STRUCTS[kind].items()})
        return Value(kind)

    return Features({name: of(kind) for name, kind in columns.items()})


PYTHON = {"string": str, "int64": int, "float64": float, "bool": bool}


def fits(value: Any, kind: str) -> bool:
    """Whether a decoded value is of the kind: JSON knows no schema, and a loader may guess."""
    if kind not in STRUCTS:
        return type(value) is PYTHON[kind] or (kind == "float64" and type(value) is int)
    names = STRUCTS[kind]
    return isinstance(value, list) and all(
        isinstance(entry, dict)
        and entry.keys() == names.keys()
        and all(fits(entry[name], inner) for name, inner in names.items())
        for entry in value
    )


def check_lines(request: dict[str, Any]) -> None:
    """Every line has every column, and none mixes texts with lists or numbers with nothing."""
    columns = request["columns"]
    for split, path in request["files"].items():
        with Path(path).open(encoding="utf-8") as lines:
            for n, line in enumerate(lines, start=1):
                row = json.loads(line)
                if row.keys() != columns.keys():
                    odd = ", ".join(sorted(row.keys() ^ columns.keys()))
                    raise Problem("columns are missing or too many", split=split, row=n, column=odd)
                for name, kind in columns.items():
                    if not fits(row[name], kind):
                        raise Problem(f"not of type {kind}", split=split, row=n, column=name)


def load(request: dict[str, Any]) -> Any:
    """A DatasetDict from the files, with every row converted under the explicit features."""
    import datasets

    features = features_of(request["columns"])
    builder = {"jsonl": "json", "csv": "csv"}.get(request["file_type"], "parquet")
    files = {name: path for name, path in request["files"].items() if request["rows"][name]}
    try:
        return datasets.load_dataset(
            builder, data_files=files, features=features, cache_dir=request["cache"]
        )
    except Exception as error:
        cause = error.__cause__ or error
        raise Problem(f"{type(cause).__name__}: {str(cause)[:300]}") from error


def check_loaded(data: Any, request: dict[str, Any]) -> None:
    wanted = features_of(request["columns"])
    for split, rows in data.items():
        if rows.num_rows != request["rows"][split]:
            raise Problem(f"{rows.num_rows} rows, {request['rows'][split]} written", split=split)
        if rows.features != wanted:
            differ = [n for n in wanted if rows.features.get(n) != wanted[n]]
            raise Problem("the types are not those that were promised", column=", ".join(differ))
        for name in wanted:
            if rows.data.column(name).null_count:
                raise Problem("a value is missing", split=split, column=name)


def by_datasets(request: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
    import datasets

    if request["file_type"] == "jsonl":
        check_lines(request)
    data = load(request)
    if request.get("save_to"):
        data.save_to_disk(request["save_to"])
        data = datasets.load_from_disk(request["save_to"])
    check_loaded(data, request)
    rows = sum(part.num_rows for part in data.values())
    return data, {"name": "datasets", "version": datasets.__version__, "ok": True, "rows": rows}


def tokenizer() -> Any:
    """Bytes as tokens, with the template above: made here, so that nothing is downloaded."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast

    special = ["<|pad|>", "<|end|>"]
    letters = sorted(pre_tokenizers.ByteLevel.alphabet())
    vocabulary = {token: n for n, token in enumerate([*letters, *special])}
    core = Tokenizer(models.BPE(vocabulary, []))
    core.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    core.decoder = decoders.ByteLevel()
    fast: Any = PreTrainedTokenizerFast
    names = dict(zip(("pad_token", "eos_token"), special, strict=True))
    made = fast(tokenizer_object=core, **names)
    made.chat_template = TEMPLATE
    return made


def by_trl(data: Any, request: dict[str, Any]) -> dict[str, Any]:
    """What the trainers do with a row before they tokenize it."""
    try:
        import torch  # noqa: F401
        import trl
        from trl import data_utils
    except ImportError as missing:
        return {"name": "trl", "ok": None, "missing": missing.name or "trl"}
    steps = Preparation(data_utils, request)
    rows = 0
    for split, part in data.items():
        for n, row in enumerate(part):
            try:
                steps.prepare(row)
            except Problem as problem:
                raise Problem(problem.said["what"], split=split, row=n + 1) from problem
            except Exception as error:
                what = f"TRL: {type(error).__name__}"
                raise Problem(what, split=split, row=n + 1) from error
            rows += 1
        steps.prepare_whole(part, split)
    return {"name": "trl", "version": trl.__version__, "ok": True, "rows": rows}


class Preparation:
    """One kind of data: preference, implicit or unpaired, conversational or plain."""

    def __init__(self, utils: Any, request: dict[str, Any]) -> None:
        self.utils, self.kind = utils, request["kind"]
        self.conversational = request["style"] == "conversational"
        self.shape = {
            "preference": ("prompt", "chosen", "rejected"),
            "implicit": ("chosen", "rejected"),
            "unpaired": ("prompt", "completion", "label"),
        }[self.kind]
        self.tokenizer = tokenizer()

    def prepare(self, row: dict[str, Any]) -> None:
        example = {name: row[name] for name in self.shape}
        if self.utils.is_conversational(example) != self.conversational:
            raise Problem("TRL takes the row for another style")
        if self.kind == "unpaired":
            self._completion(example)
            return
        if self.kind == "preference":
            whole = (example["prompt"] + example["chosen"], example["prompt"] + example["rejected"])
            if whole[0] == whole[1]:
                raise Problem("chosen and rejected are the same")
        extracted = self.utils.maybe_extract_prompt(example)
        if set(extracted) != {"prompt", "chosen", "rejected"}:
            raise Problem("TRL finds no prompt")
        if self.conversational and extracted["prompt"][-1]["role"] != "user":
            raise Problem("the prompt does not end with the user's turn")
        applied = self.utils.maybe_apply_chat_template(extracted, self.tokenizer)
        for name in ("prompt", "chosen", "rejected"):
            if not isinstance(applied[name], str) or not applied[name]:
                raise Problem(f"{name} is empty after TRL's preparation")

    def _completion(self, example: dict[str, Any]) -> None:
        applied = self.utils.maybe_apply_chat_template(example, self.tokenizer)
        if not applied["prompt"] or not applied["completion"]:
            raise Problem("a text is empty after TRL's preparation")
        if not isinstance(applied["label"], bool):
            raise Problem("label is not true or false")

    def prepare_whole(self, part: Any, split: str) -> None:
        """The first rows as a dataset, unpaired as for KTO."""
        head = part.select(range(min(part.num_rows, 100)))
        if self.kind == "implicit":
            names = [n for n in head.column_names if n not in self.shape]
            head = head.remove_columns(names).map(self.utils.maybe_extract_prompt)
        unpaired = self.utils.maybe_unpair_preference_dataset(head)
        if not {"prompt", "completion", "label"} <= set(unpaired.column_names):
            raise Problem("TRL cannot unpair the rows", split=split)


def main(path: Path) -> int:
    request = json.loads(path.read_text())
    found: dict[str, Any] = {"ok": False, "steps": []}
    try:
        data, said = by_datasets(request)
        found["steps"].append(said)
        if request["kind"] in ("preference", "implicit", "unpaired"):
            found["steps"].append(by_trl(data, request))
        found["ok"] = all(step["ok"] is not False for step in found["steps"])
    except Problem as problem:
        found["problem"] = problem.said
    Path(request["answer"]).write_text(json.dumps(found))
    return 0 if found["ok"] else 1


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))

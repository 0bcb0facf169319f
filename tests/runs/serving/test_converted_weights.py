from __future__ import annotations

import sys
from pathlib import Path

import pytest

from runs.serving.commands import converted_folder, converted_weights, cpu_command
from signatures.errors import ModelError


def test_conversion_goes_beside_the_weights_and_is_done_once(tmp_path: Path) -> None:
    gguf = tmp_path / "model.Q4.gguf"
    folder = converted_folder(gguf)
    assert folder == tmp_path / "model.Q4-float32"
    folder.mkdir()
    for name in ("config.json", "tokenizer.json", "model.safetensors"):
        (folder / name).touch()
    assert converted_weights("no-such-python", gguf) == folder


def test_failed_conversion_names_the_file_and_the_reason(tmp_path: Path) -> None:
    gguf = tmp_path / "model.gguf"
    gguf.write_bytes(b"no weights")
    with pytest.raises(ModelError, match=r"Converting .*model\.gguf for vLLM failed: .*is no GGUF file"):
        converted_weights(sys.executable, gguf)


def test_context_is_the_models_own_unless_given() -> None:
    served = ("python", Path("folder"), "small", "127.0.0.1", 8001, 1)
    assert "--max-model-len" not in cpu_command(*served).arguments
    assert cpu_command(*served, 2_048).arguments[-2:] == ["--max-model-len", "2048"]

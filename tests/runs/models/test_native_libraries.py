"""Native libraries that a run with dense search and an embedded model loads side by side."""

from __future__ import annotations

import subprocess
import sys

import pytest


@pytest.mark.parametrize("order", [("usearch.index", "openvino_genai"), ("openvino_genai", "usearch.index")])
def test_vectors_and_the_embedded_model_can_be_loaded_in_any_order(order: tuple[str, str]) -> None:
    # usearch 2.26 crashed the process here.
    ended = subprocess.run([sys.executable, "-c", f"import {order[0]}, {order[1]}"], capture_output=True, timeout=120)
    assert ended.returncode == 0, ended.stderr.decode()

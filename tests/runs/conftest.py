from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from tests.runs.world import Films, model
from tests.servers.lm import LMServer


@pytest.fixture(autouse=True, scope="module")
def no_tracking_uri_of_another_module() -> Iterator[None]:
    """Forget the address that MLflow wrote into the environment, before this module's own fixtures and after it."""
    os.environ.pop("MLFLOW_TRACKING_URI", None)
    yield
    os.environ.pop("MLFLOW_TRACKING_URI", None)


@pytest.fixture
def films(tmp_path: Path) -> Iterator[Callable[..., Films]]:
    """Start evaluations' worlds, each with its own scripted server, stopped when the test ends."""
    with ExitStack() as stack:

        def start(count: int = 8, reply: Any = None, **options: Any) -> Films:
            server = stack.enter_context(LMServer(reply or model(count), **options))
            return Films(tmp_path, server, count)

        yield start

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from tests.runs.world import Films, model
from tests.servers.lm import LMServer


@pytest.fixture(autouse=True)
def no_tracking_uri_of_another_test(monkeypatch: pytest.MonkeyPatch) -> None:
    # MLflow writes the address it is given into the environment.
    monkeypatch.delenv("MLFLOW_TRACKING_URI", raising=False)


@pytest.fixture
def films(tmp_path: Path) -> Iterator[Callable[..., Films]]:
    """Start evaluations' worlds, each with its own scripted server, stopped when the test ends."""
    with ExitStack() as stack:

        def start(count: int = 8, reply: Any = None, **options: Any) -> Films:
            server = stack.enter_context(LMServer(reply or model(count), **options))
            return Films(tmp_path, server, count)

        yield start

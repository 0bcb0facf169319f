from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from tests.runs.tuning.tuning_world import QUESTIONS, Tunings, reading_model
from tests.servers.lm import LMServer


@pytest.fixture
def tunings(tmp_path: Path) -> Iterator[Callable[..., Tunings]]:
    """Start worlds of tunings, each with its own scripted server, stopped when the test ends."""
    with ExitStack() as stack:

        def start(count: int = QUESTIONS, reply: Any = None, **options: Any) -> Tunings:
            server = stack.enter_context(LMServer(reply or reading_model(count=count), **options))
            return Tunings(tmp_path, server, count)

        yield start

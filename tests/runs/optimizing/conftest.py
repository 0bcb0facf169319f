from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from tests.runs.optimizing.optimize_world import Workshop, model_that_must_be_shown
from tests.servers.lm import LMServer


@pytest.fixture
def workshop(tmp_path: Path) -> Iterator[Callable[..., Workshop]]:
    """Start worlds of optimisations, each with its own scripted server, stopped when the test ends."""
    with ExitStack() as stack:

        def start(reply: Any = None, **options: Any) -> Workshop:
            return Workshop(tmp_path, stack.enter_context(LMServer(reply or model_that_must_be_shown(), **options)))

        yield start

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import pytest

from tests.servers.lm import LMServer


@pytest.fixture
def serve() -> Iterator[Callable[..., LMServer]]:
    """Start scripted servers that are stopped when the test ends; a reply that failed fails the test."""
    with ExitStack() as stack:
        started: list[LMServer] = []

        def start(reply: Any, **options: Any) -> LMServer:
            started.append(stack.enter_context(LMServer(reply, **options)))
            return started[-1]

        yield start
        assert not [error for server in started for error in server.errors]

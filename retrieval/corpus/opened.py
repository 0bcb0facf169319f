"""What is opened on first use, and afresh in a copy or another process."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any, Generic, TypeVar

Resource = TypeVar("Resource")


class Opened(Generic[Resource]):
    """Opens something once, when it is first asked for.

    Args:
        make: Opens it; must survive pickling where this does.
    """

    def __init__(self, make: Callable[[], Resource]) -> None:
        self._make = make
        self._lock = threading.Lock()
        self._held: list[Resource] = []

    def get(self) -> Resource:
        """Return it, opened.

        Raises:
            Exception: Whatever opening raised; the next call tries again.
        """
        with self._lock:
            if not self._held:
                self._held.append(self._make())
            return self._held[0]

    def __getstate__(self) -> dict[str, Any]:
        return {"_make": self._make}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__init__(state["_make"])  # type: ignore[misc]

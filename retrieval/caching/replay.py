"""Replay: a run answered from the cache alone, and what it misses."""

from __future__ import annotations

import threading
from collections import defaultdict
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from retrieval.caching.store import Kind
from signatures.errors import ModelError, RetrievalError

_NAMES: dict[Kind, str] = {
    "searches": "search",
    "pages": "page",
    "replies": "model reply",
    "tokens": "tokenizer's answer",
    "servers": "model server",
}
_PLURALS = {"search": "searches", "model reply": "model replies"}


class ReplayMiss(RetrievalError):
    """A replay asked for something that the cache does not hold.

    Neither a `SearchError` nor a `ReadError`: those mean that a chain may go on without the answer, or ask another
    backend, and it would then be another chain than the one recorded.

    Args:
        message: What is missing, and the way out.
        missing: What kind of thing it is, one of the cache's kinds.
    """

    kind = "replay_miss"

    def __init__(self, message: str, *, missing: Kind = "searches", provider: str = "") -> None:
        super().__init__(message, provider=provider)
        self.missing = missing


class ReplyMiss(ReplayMiss, ModelError):
    """A replay asked for a model reply, or a model server's facts, that the cache does not hold."""

    kind = "replay_miss"


@dataclass
class Missing:
    """What replays on one cache file missed so far in this process.

    Attributes:
        things: Descriptions by kind, each once, in the order they were first missed.
    """

    things: dict[Kind, dict[str, None]] = field(default_factory=lambda: defaultdict(dict))

    def counts(self) -> dict[Kind, int]:
        """Return how many different things of each kind were missing."""
        return {kind: len(found) for kind, found in self.things.items()}

    def report(self, most: int = 3) -> str:
        """Return what was missing in words for people.

        Args:
            most: How many things to name.

        Returns:
            Empty when nothing was missing; else counts by kind and the first things by name.
        """
        if not self.things:
            return ""
        counts = ", ".join(f"{n} {_plural(_NAMES.get(kind, kind), n)}" for kind, n in self.counts().items())
        named = [text for found in self.things.values() for text in found]
        more = f" and {len(named) - most} more" if len(named) > most else ""
        return f"Replay: missing in the cache: {counts}. {'; '.join(named[:most])}{more}."


_missing: dict[str, Missing] = {}
_missing_lock = threading.Lock()
_asker: ContextVar[str] = ContextVar("search_o1_asker", default="")


@contextmanager
def asking_for(name: str) -> Iterator[None]:
    """Say on whose behalf searches, pages and replies are asked for while this block runs, its tasks included.

    Args:
        name: Names one question and sample of a run, the same in the recording and in its replay. A page that failed
            for one question and was read for the next then fails and is read again just so.
    """
    token = _asker.set(name)
    try:
        yield
    finally:
        _asker.reset(token)


def asker() -> str:
    """Return on whose behalf is asked, or empty."""
    return _asker.get()


def missed(path: Path, kind: Kind, what: str, way_out: str = "", *, provider: str = "") -> ReplayMiss:
    """Count something as missing and return the error that says so.

    Args:
        path: The cache file.
        kind: What kind of thing.
        what: The thing: `the search 'x' (bing)`.
        way_out: What else could be done about it.
        provider: Who would have answered.

    Returns:
        The error, to be raised.
    """
    with _missing_lock:
        _missing.setdefault(str(path), Missing()).things[kind][what] = None
    hint = way_out or "Run the same command without --replay, or `search-o1 cache import` the file that holds it."
    error = ReplyMiss if kind in ("replies", "tokens", "servers") else ReplayMiss
    return error(f"Replay: {what} is not in the cache {path}. {hint}", missing=kind, provider=provider)


def take_missing(path: Path) -> Missing:
    """Return what replays on a cache file missed, and begin anew.

    Args:
        path: The cache file.

    Returns:
        What was missing since the last call in this process.
    """
    with _missing_lock:
        return _missing.pop(str(path), Missing())


def failure_parts(kind: Kind, parts: Mapping[str, Any], name: str) -> dict[str, Any]:
    """Return the key of a recorded failure: what failed, and for whom."""
    return {"failed": kind, "for": name, **parts}


def _plural(name: str, count: int) -> str:
    return name if count == 1 else _PLURALS.get(name, name + "s")

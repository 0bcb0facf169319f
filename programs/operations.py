"""What a chain asks the outside world for, and what comes back: the vocabulary of the sans-IO loop.

A program's loop is a generator that yields one of these operations and is sent its result. `programs/driver.py` carries
them out, once with blocking calls and once with asyncio, so that `forward` and `aforward` share every rule.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar, Union

from retrieval.base import BackendFailure, Hit, Page
from signatures.errors import ReadError

T = TypeVar("T")


@dataclass(frozen=True)
class Generation:
    """One reply of the language model.

    Attributes:
        text: The generated text, after the prefix that was sent; may hold the stop string or not.
        finish: `stop` or `length`.
        stop: The stop string that ended it, when the server tells; None at the end of the model's turn.
        stop_known: True when the server tells stop strings from the end of the turn.
        prompt_tokens: Tokens sent.
        completion_tokens: Tokens generated.
        cached_tokens: Tokens of the prompt that came from the server's prefix cache.
        cost: Price in US dollars, or None when unknown.
        from_cache: True when our own reply cache answered.
        retokenised: True when the prefix could not be continued with the very token ids of the turn before.
    """

    text: str
    finish: str
    stop: str | None = None
    stop_known: bool = False
    prompt_tokens: int = 0
    completion_tokens: int = 0
    cached_tokens: int = 0
    cost: float | None = None
    from_cache: bool = False
    retokenised: bool = False


@dataclass(frozen=True)
class Generate:
    """Ask the language model to go on.

    Attributes:
        messages: Rendered messages; a last one of role `assistant` is the prefix to continue.
        max_tokens: Most tokens of this turn.
        stop: Stop strings.
        kind: `reason`, `refine` or `force`: enters the seed and the trace.
        turn: Number of this turn in its chain, from 1.
        chain_id: Names the chain, so that a server or engine can keep its prefix.
        config: Further request fields (temperature, ...) over those of the LM.
    """

    messages: Sequence[dict[str, str]]
    max_tokens: int
    stop: tuple[str, ...]
    kind: str
    turn: int
    chain_id: str
    config: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class CountTokens:
    """Ask how many tokens the rendered messages are. Result: int."""

    messages: Sequence[dict[str, str]]
    chain_id: str = ""


@dataclass(frozen=True)
class HoldBack:
    """Ask for `text` without trailing white space that would tokenise differently once text follows. Result: str."""

    text: str


@dataclass(frozen=True)
class SearchFor:
    """Ask the search backend. Result: `SearchReply`."""

    query: str
    k: int


@dataclass(frozen=True)
class SearchReply:
    """What a search gave.

    Attributes:
        hits: The hits, best first.
        cached: True when the cache answered.
        backend: Name of the backend.
        failures: Backends that failed while others answered.
    """

    hits: list[Hit]
    cached: bool = False
    backend: str = ""
    failures: tuple[BackendFailure, ...] = ()


@dataclass(frozen=True)
class ReadPages:
    """Ask for pages, all at once. Result: list of `PageReply`, in the order of `urls`."""

    urls: Sequence[str]


@dataclass(frozen=True)
class PageReply:
    """What reading one URL gave.

    Attributes:
        url: The address asked for.
        page: The page, or None when it failed.
        error: Why it failed, or None.
        cached: True when the cache answered.
        started: Time it began (seconds since the epoch).
        ended: Time it was there.
        source: `reader`, or `search` when the hit itself brought the text.
    """

    url: str
    page: Page | None
    error: ReadError | None = None
    cached: bool = False
    started: float = 0.0
    ended: float = 0.0
    source: str = "reader"


@dataclass(frozen=True)
class CallPredictor:
    """Ask another predictor of the same program (`RefineDocs`). Result: its prediction."""

    predictor: Any
    inputs: dict[str, Any]


Operation = Union[Generate, CountTokens, HoldBack, SearchFor, ReadPages, CallPredictor]  # noqa: UP007
Steps = Generator[Operation, Any, T]
"""A loop that yields operations, is sent their results and returns a T."""

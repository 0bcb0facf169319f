"""What the cache keeps of a language model, so that a run is repeated without it: replies, token counts, its server.

A live run finds replies by token ids. A replay has no tokenizer to ask, so each reply is also noted under the text that
was sent, and each count and token boundary under its text: a few bytes each, where the ids themselves would take as
much room as the pages.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import dspy.lm15
from dspy.lm15 import LM15Error

from retrieval.cache import Cache, cache_key
from retrieval.caching.answers import Answers, complain
from retrieval.caching.keys import without_credentials
from signatures.errors import DataError, ModelError

_ABOUT_CHARS = 160
_FAILURES = (
    "TransportError", "AuthError", "BillingError", "RateLimitError", "InvalidRequestError", "ContextLengthError",
    "UnsupportedModelError", "TimeoutError", "ServerError", "ProviderError",
)  # fmt: skip
"""Errors of DSPy's that a message, a provider and a status make again; our engines raise no other."""


class ReplyStore:
    """Replies, counts and boundaries of one model.

    Args:
        cache: The cache.
        model: Name of the model, for statistics and errors.
    """

    def __init__(self, cache: Cache, model: str) -> None:
        self.cache = cache
        self.model = model
        self._replies = Answers(cache, "replies", dump_failure, revive_failure)
        self._turns = Answers(cache, "turns", dump_failure, revive_failure)
        self._tokens = Answers(cache, "tokens", dump_failure, revive_failure)

    @property
    def replay(self) -> bool:
        """Whether only the cache may answer."""
        return self.cache.policy.replay

    async def find(self, by_ids: Mapping[str, Any]) -> dict[str, Any] | None:
        """Return the reply that was given to token ids before, or None."""
        found: dict[str, Any] | None = await self._replies.find(by_ids)
        return found

    async def keep(self, by_ids: Mapping[str, Any], reply: dict[str, Any], about: str) -> dict[str, Any]:
        """Store a reply; returns the one that is stored, which another process may have been given first."""
        kept: dict[str, Any] = await self._replies.store(by_ids, reply, self.model, about)
        return kept

    async def note(
        self, by_text: Mapping[str, Any], by_ids: Mapping[str, Any], *, retokenised: bool, about: str
    ) -> None:
        """Note which reply a text got, for replays."""
        turn = {"reply": cache_key(by_ids), "retokenised": retokenised}
        await self._turns.renew(by_text, turn, self.model, about)

    async def note_failure(self, by_text: Mapping[str, Any], error: BaseException) -> None:
        """Note that a text got no reply, for replays."""
        await self._turns.note_failure(by_text, error, self.model)

    async def repeat(self, by_text: Mapping[str, Any], about: str, *, kept: bool) -> tuple[dict[str, Any], bool]:
        """Return the reply that a text got in the recording, and whether it had to be tokenised again.

        Args:
            by_text: Key of the text.
            about: What the text is, for people.
            kept: False when such a reply is never stored, because it is a new sample each time.

        Raises:
            LM15Error: The model failed there in the recording.
            ReplyMiss: It is not in the cache.
        """
        turn = await self._turns.find(by_text)
        found = self.cache.entry("replies", turn["reply"]) if turn is not None else None
        if turn is None or found is None:
            way_out = "" if kept else "It was sampled without a seed, and such replies are never kept: set a seed."
            raise self._replies.miss(f"the reply of {self.model} to a prompt ending in {about!r}", way_out, self.model)
        return found.value, bool(turn["retokenised"])

    async def told(self, parts: Mapping[str, Any], ask: Callable[[], Any], about: str) -> Any:
        """Return what the tokenizer says: asked and noted, or in a replay as noted before.

        Args:
            parts: Key of the question.
            ask: Asks it; returns an awaitable.
            about: What it is asked, for people.

        Raises:
            ReplyMiss: In a replay: it is not in the cache.
        """
        if self.replay:
            found = await self._tokens.find(parts)
            if found is None:
                raise self._tokens.miss(f"what the tokenizer of {self.model} says of {about}", provider=self.model)
            return found
        try:
            answer = await ask()
        except LM15Error as error:
            await self._tokens.note_failure(parts, error, self.model)
            raise
        await self._tokens.renew(parts, answer, self.model)
        return answer


def server_facts_through(
    cache: Cache | None, base_url: str, model: str, ask: Callable[[], tuple[str, int | None, str]]
) -> tuple[str, int | None, str]:
    """Return what a model server tells of itself: asked and noted, or in a replay as noted before.

    Args:
        cache: The cache, or None.
        base_url: Address of the server's API.
        model: Name wanted; empty means the first one served.
        ask: Asks the server.

    Returns:
        As `runs.models.vllm.server_facts`.

    Raises:
        ModelError: The server cannot be asked, or in a replay its answer is not in the cache.
    """
    if cache is None:
        return ask()
    parts = {"server": without_credentials(base_url), "model": model}
    answers = Answers(cache, "servers", dump_failure, revive_failure)
    if answers.replay:
        found = cache.get("servers", parts)
        if found is None:
            way_out = "Give the --base-url and --model of the recording, and import the file that holds it."
            raise answers.miss(f"what the model server at {parts['server']} says of {model!r}", way_out)
        name, context, root = found
        return str(name), context, str(root)
    facts = ask()
    try:
        if cache.get("servers", parts) != list(facts):
            cache.put("servers", parts, list(facts), facts[0])
    except DataError as error:
        complain(error)
    return facts


def about(messages: Sequence[Mapping[str, str]]) -> str:
    """Return the end of a prompt on one line: by it a person recognises a question or a turn."""
    return " ".join(messages[-1]["content"][-4 * _ABOUT_CHARS :].split())[-_ABOUT_CHARS:]


def dump_failure(error: BaseException) -> dict[str, Any] | None:
    """Return an engine's failure as plain fields; None for errors of any other kind."""
    if not isinstance(error, LM15Error):
        return None
    return {
        "type": type(error).__name__,
        "message": error.message,
        "provider": error.provider,
        "status": error.status,
    }


def revive_failure(recorded: Mapping[str, Any]) -> Exception:
    """Make the error of a recorded failure.

    Args:
        recorded: Made by `dump_failure`.

    Returns:
        An error of the same type; a `ModelError` for one that cannot be made again.
    """
    kind = getattr(dspy.lm15, str(recorded["type"]), None)
    if recorded["type"] not in _FAILURES or not isinstance(kind, type):
        return ModelError(str(recorded["message"]))
    error: Exception = kind(recorded["message"], provider=recorded["provider"], status=recorded["status"])
    return error

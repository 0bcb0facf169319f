"""The engine of this project behind DSPy's LM.

`EngineCore` owns what embedded and served models share: DSPy's requests and responses, the reply cache, and by way of
`TokenPrefix` the very token ids of a chain. `runs/models/local.py` and `runs/models/vllm.py` fill in the rest.
"""

from __future__ import annotations

import hashlib
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from dspy.lm15 import LM15Error, Message, Request, Response, Usage

from programs.language_model import CANONICAL, EXTENSION
from retrieval.cache import Cache
from retrieval.sync import run_sync
from runs.models.prefix import TokenPrefix, digest
from runs.models.replies import ReplyStore, about
from signatures.profiles import ModelProfile


@dataclass(frozen=True)
class Reply:
    """What a model server or an embedded model gave back.

    Attributes:
        text: The generated text, the stop string included.
        ids: Its token ids, which may reach past the end of `text` by the rest of the last token; empty when unknown.
        finish: `stop` or `length`.
        stop: The stop string that ended it, or None.
        prompt_tokens: Tokens of the prompt.
        cached_tokens: Tokens of the prompt that came from the prefix cache.
    """

    text: str
    ids: list[int] = field(default_factory=list)
    finish: str = "stop"
    stop: str | None = None
    prompt_tokens: int = 0
    cached_tokens: int = 0
    completion_tokens: int = 0


class EngineCore(TokenPrefix):
    """An asynchronous language model for chains.

    Args:
        model: Name of the model, for replies and errors.
        profile: How the model wants to be asked.
        cache: Where model replies are kept, or None; its policy says whether this is a replay.
    """

    def __init__(self, model: str, profile: ModelProfile, cache: Cache | None = None) -> None:
        super().__init__()
        self.model = model
        self.profile = profile
        self.store = ReplyStore(cache, model) if cache is not None else None
        self.context_length: int | None = None
        self.model_calls = 0

    @abstractmethod
    def identity(self) -> str:
        """Return what changes the model's replies: name, revision, precision."""

    @abstractmethod
    async def generate(self, ids: list[int], request: Request) -> Reply:
        """Generate from token ids; raises `dspy.lm15` errors."""

    async def complete(self, request: Request) -> Response:
        """Answer DSPy's request.

        Args:
            request: Messages and sampling; a last assistant message is the prefix to continue.

        Returns:
            The response; `provider_data` holds the stop reason and what our own layers add.

        Raises:
            LM15Error: The model or its server failed, or had failed in the run that is replayed.
            ReplyMiss: In a replay: the cache does not hold this reply.
        """
        request = self._with_defaults(request)
        facts = dict((request.config.extensions or {}).get(EXTENSION) or {})
        messages = [{"role": m.role, "content": m.text or ""} for m in request.messages]
        if request.system is not None:
            messages.insert(0, {"role": "system", "content": _system_text(request.system)})
        chain_id, raw = str(facts.get("chain", "")), bool(facts.get("raw"))
        # A sample without a seed is wanted anew each time: the cache would give one and the same text for ever.
        kept = request.config.temperature == 0 or request.config.seed is not None
        store = self.store if kept or (self.store is not None and self.store.replay) else None
        by_text = self._cache_key(request, text=digest(messages, raw))
        if store is not None and store.replay:
            stored, retokenised = await store.repeat(by_text, about(messages), kept=kept)
            return self._response(Reply(**stored), from_cache=True, retokenised=retokenised)
        try:
            return await self._complete(request, messages, chain_id, raw, by_text, store)
        except LM15Error as error:
            if store is not None:
                await store.note_failure(by_text, error)
            raise

    async def _complete(
        self,
        request: Request,
        messages: list[dict[str, str]],
        chain_id: str,
        raw: bool,
        by_text: dict[str, Any],
        store: ReplyStore | None,
    ) -> Response:
        ids, retokenised = await self.prompt_ids(messages, chain_id, raw)
        by_ids = self._cache_key(request, prompt=hashlib.sha256(repr(ids).encode()).hexdigest())
        stored = await store.find(by_ids) if store is not None else None
        if stored is not None:
            reply = Reply(**stored)
        else:
            self.model_calls += 1
            reply = await self.generate(ids, request)
            if store is not None:
                reply = Reply(**await store.keep(by_ids, asdict(reply), about(messages)))
        if store is not None:
            await store.note(by_text, by_ids, retokenised=retokenised, about=about(messages))
        if chain_id:
            self.remember(messages, chain_id, raw, sent=ids, text=reply.text, written=reply.ids)
        return self._response(reply, from_cache=stored is not None, retokenised=retokenised)

    async def count_tokens(self, messages: Sequence[Mapping[str, str]], chain_id: str, raw: bool) -> int:
        """Return the number of tokens that a generation from these messages would send."""
        if self.store is None:
            return await super().count_tokens(messages, chain_id, raw)
        counted = super().count_tokens
        parts = {"model": self.identity(), "count": digest(messages, raw)}
        return int(
            await self.store.told(
                parts, lambda: counted(messages, chain_id, raw), f"a prompt ending in {about(messages)!r}"
            )
        )

    async def stands_alone(self, tail: str) -> bool:
        """Return whether a text ending in white space keeps its tokens once more text follows."""
        if self.store is None:
            return await super().stands_alone(tail)
        asked = super().stands_alone
        return bool(
            await self.store.told(
                {"model": self.identity(), "boundary": tail}, lambda: asked(tail), f"the text {tail!r}"
            )
        )

    def _with_defaults(self, request: Request) -> Request:
        """Add the profile's fields that a plain DSPy predictor's request cannot carry (top_k, repetition_penalty)."""
        extensions = dict(request.config.extensions or {})
        if EXTENSION in extensions:
            return request
        given = {**self.profile.sampling, **(self.profile.sampling.get("extra_body") or {})}
        extra = {name: value for name, value in given.items() if name not in (*CANONICAL, "extra_body")}
        return replace(request, config=replace(request.config, extensions={**extra, **extensions} or None))

    def _cache_key(self, request: Request, **prompt: str) -> dict[str, Any]:
        config = request.config
        extensions = {k: v for k, v in (config.extensions or {}).items() if k != EXTENSION}
        return {
            "model": self.identity(),
            **prompt,
            "max_tokens": config.max_tokens,
            "temperature": config.temperature,
            "top_p": config.top_p,
            "seed": None if config.temperature == 0 else config.seed,
            "stop": list(config.stop),
            "penalties": [config.frequency_penalty, config.presence_penalty],
            **extensions,
        }

    def _response(self, reply: Reply, *, from_cache: bool, retokenised: bool) -> Response:
        return Response(
            id=None,
            model=self.model,
            message=Message.assistant(reply.text),
            finish_reason="length" if reply.finish == "length" else "stop",
            usage=Usage(
                input_tokens=reply.prompt_tokens,
                output_tokens=reply.completion_tokens or len(reply.ids),
                cache_read_tokens=reply.cached_tokens,
            ),
            provider_data={
                "choices": [{"stop_reason": reply.stop, "finish_reason": reply.finish}],
                EXTENSION: {"from_cache": from_cache, "retokenised": retokenised},
            },
        )


def _system_text(system: Any) -> str:
    return system if isinstance(system, str) else "".join(part.text for part in system)


class _Facade:
    speaks_chains = True

    def __init__(self, core: EngineCore) -> None:
        self.core = core

    @property
    def profile(self) -> ModelProfile:
        """How the model wants to be asked."""
        return self.core.profile

    @property
    def context_length(self) -> int | None:
        """Context of the model in tokens, or None when unknown."""
        return self.core.context_length

    async def count_tokens(self, messages: Sequence[Mapping[str, str]], chain_id: str, raw: bool) -> int:
        """Return the number of tokens that a generation from these messages would send."""
        return await self.core.count_tokens(messages, chain_id, raw)

    async def hold_back(self, text: str) -> str:
        """Apply the token-boundary rule."""
        return await self.core.hold_back(text)

    def __deepcopy__(self, memo: dict[int, Any]) -> _Facade:
        # A copied LM shares the connection or the loaded weights.
        return self


class SyncEngine(_Facade):
    """DSPy's synchronous engine interface over a core: runs it on the background event loop."""

    def complete(self, request: Request) -> Response:
        """Answer a request with a blocking call; arguments, result and errors as in `EngineCore.complete`."""
        return run_sync(self.core.complete(request))


class AsyncEngine(_Facade):
    """DSPy's asynchronous engine interface over a core."""

    async def complete(self, request: Request) -> Response:
        """Answer a request; arguments, result and errors as in `EngineCore.complete`."""
        return await self.core.complete(request)

"""The engine of this project behind DSPy's LM: a prefix is continued with the very token ids of the turn before.

`EngineCore` owns what embedded and served models share: rendering the chat template once a question, the memory of a chain's
ids, counting, the token-boundary rule, the reply cache. `runs/models/local.py` and `runs/models/vllm.py` fill in the rest.
"""

from __future__ import annotations

import asyncio
import hashlib
from abc import ABC, abstractmethod
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from dspy.lm15 import Message, Request, Response, Usage

from programs.language_model import EXTENSION
from retrieval.cache import Cache
from retrieval.sync import run_sync
from signatures.profiles import ModelProfile

_REMEMBERED_CHAINS = 4_096
_REMEMBERED_PROMPTS = 1_024


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


@dataclass
class _Chain:
    """What was sent and written so far; `whole` says that `ids` hold the model's own last output too."""

    base: str
    text: str
    ids: list[int]
    whole: bool


class EngineCore(ABC):
    """An asynchronous language model for chains.

    Args:
        model: Name of the model, for replies and errors.
        profile: How the model wants to be asked.
        cache: Where model replies are kept, or None.
    """

    def __init__(self, model: str, profile: ModelProfile, cache: Cache | None = None) -> None:
        self.model = model
        self.profile = profile
        self.cache = cache
        self.context_length: int | None = None
        self.model_calls = 0
        self._chains: OrderedDict[str, _Chain] = OrderedDict()
        self._prompts: OrderedDict[str, list[int]] = OrderedDict()
        self._boundaries: dict[str, bool] = {}

    @abstractmethod
    def identity(self) -> str:
        """Return what changes the model's replies: name, revision, precision."""

    @abstractmethod
    async def render_ids(self, messages: Sequence[Mapping[str, str]], raw: bool) -> list[int]:
        """Return the token ids of a prompt: chat template with generation prompt, or raw text with its special tokens."""

    @abstractmethod
    async def tokenise(self, text: str) -> list[int]:
        """Return the token ids of a text, without special tokens around it."""

    @abstractmethod
    async def detokenise(self, ids: Sequence[int]) -> str:
        """Return the text of token ids."""

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
            LM15Error: The model or its server failed.
        """
        facts = dict((request.config.extensions or {}).get(EXTENSION) or {})
        messages = [{"role": m.role, "content": m.text or ""} for m in request.messages]
        chain_id, raw = str(facts.get("chain", "")), bool(facts.get("raw"))
        ids, retokenised = await self.prompt_ids(messages, chain_id, raw)
        key = self._cache_key(ids, request)
        stored = self.cache.get("replies", key) if self.cache is not None else None
        if stored is not None:
            reply = Reply(**stored)
        else:
            self.model_calls += 1
            reply = await self.generate(ids, request)
            if self.cache is not None:
                self.cache.put("replies", key, asdict(reply))
        base, chain = _split(messages)
        if chain_id:
            whole = bool(reply.ids) or not reply.text
            self._remember(chain_id, _Chain(_digest(base, raw), chain + reply.text, ids + reply.ids, whole))
        return self._response(reply, from_cache=stored is not None, retokenised=retokenised)

    async def count_tokens(self, messages: Sequence[Mapping[str, str]], chain_id: str, raw: bool) -> int:
        """Return the number of tokens that a generation from these messages would send."""
        ids, _ = await self.prompt_ids(messages, chain_id, raw)
        return len(ids)

    async def hold_back(self, text: str) -> str:
        """Return `text` without trailing white space that would tokenise differently once text follows (design section 2)."""
        stripped = text.rstrip()
        if len(stripped) == len(text):
            return text
        tail = text[max(0, len(stripped) - 24) :]
        if tail not in self._boundaries:
            alone, followed = await self.tokenise(tail), await self.tokenise(tail + "The")
            self._boundaries[tail] = followed[: len(alone)] == alone
        return text if self._boundaries[tail] else stripped

    async def prompt_ids(
        self, messages: Sequence[Mapping[str, str]], chain_id: str, raw: bool
    ) -> tuple[list[int], bool]:
        """Return the ids to send: the rendered prompt, the remembered ids of the chain, and what came after them.

        Args:
            messages: Rendered messages.
            chain_id: Names the chain; empty for a single call.
            raw: True when the profile wants raw text.

        Returns:
            (ids, whether text that the model wrote had to be tokenised again).
        """
        base, chain = _split(messages)
        digest = _digest(base, raw)
        prompt = self._prompts.get(digest)
        if prompt is None:
            prompt = self._prompts[digest] = await self.render_ids(base, raw)
            while len(self._prompts) > _REMEMBERED_PROMPTS:
                self._prompts.popitem(last=False)
        if not chain:
            return list(prompt), False
        known = self._chains.get(chain_id)
        if known is None or known.base != digest:
            return [*prompt, *await self.tokenise(chain)], True
        return await self._continue(prompt, known, chain)

    async def _continue(self, prompt: list[int], known: _Chain, chain: str) -> tuple[list[int], bool]:
        """Keep as many remembered ids as spell a prefix of the chain, and tokenise the rest."""
        low, high, step = len(prompt), len(known.ids), 1
        spelled: dict[int, str] = {low: ""}

        async def spells(count: int) -> bool:
            if count not in spelled:
                spelled[count] = await self.detokenise(known.ids[low:count])
            # Ids that end inside a character spell U+FFFD at their end.
            return chain.startswith(spelled[count].rstrip("\ufffd"))

        count = high
        # A token that ran past a stop string is one step back, the output of a server that ignored it many.
        while not await spells(count):
            high, count, step = count, max(low, count - step), step * 2
        while high - count > 1:
            middle = (count + high) // 2
            if await spells(middle):
                count = middle
            else:
                high = middle
        while not chain.startswith(spelled[count]):
            count -= 1
            await spells(count)
        rest = chain[len(spelled[count]) :]
        lost = count == low and known.text[:1] == chain[:1]
        return [*known.ids[:count], *(await self.tokenise(rest) if rest else [])], lost or not known.whole

    def _remember(self, chain_id: str, chain: _Chain) -> None:
        self._chains[chain_id] = chain
        self._chains.move_to_end(chain_id)
        while len(self._chains) > _REMEMBERED_CHAINS:
            self._chains.popitem(last=False)

    def _cache_key(self, ids: list[int], request: Request) -> dict[str, Any]:
        config = request.config
        extensions = {k: v for k, v in (config.extensions or {}).items() if k != EXTENSION}
        return {
            "model": self.identity(),
            "prompt": hashlib.sha256(repr(ids).encode()).hexdigest(),
            "max_tokens": config.max_tokens,
            "temperature": config.temperature,
            "top_p": config.top_p,
            "seed": config.seed if config.temperature else None,
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


def _split(messages: Sequence[Mapping[str, str]]) -> tuple[Sequence[Mapping[str, str]], str]:
    if messages[-1]["role"] == "assistant":
        return messages[:-1], messages[-1]["content"]
    return messages, ""


def _digest(messages: Sequence[Mapping[str, str]], raw: bool) -> str:
    joined = "\x1e".join(f"{m['role']}\x1f{m['content']}" for m in messages)
    return hashlib.sha256(f"{raw}\x1d{joined}".encode()).hexdigest()


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


async def in_thread(function: Any, *arguments: Any) -> Any:
    """Run a blocking call in a worker thread and return its result."""
    return await asyncio.to_thread(function, *arguments)

"""A language model as chains use it: generate from a prefix, count tokens, hold back white space at a token boundary.

Any `dspy.BaseLM` will do. Engines of this project (`runs/models/`) offer more: exact token counts, the context length,
and a prefix that is continued with the very token ids of the turn before; they are recognised by the attribute
`speaks_chains`.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping, Sequence
from typing import Any, Protocol, runtime_checkable

from dspy.lm15 import Config, Message, Request
from dspy.utils.exceptions import ContextWindowExceededError, LMError

from programs.operations import CountTokens, Generate, Generation
from signatures.errors import ContextLengthError, ModelError, OptionError, SearchO1Error
from signatures.profiles import ModelProfile, profile_for

EXTENSION = "search_o1"
"""Key in `Config.extensions` under which chain facts reach our engines; they never reach a provider."""

CANONICAL = ("temperature", "top_p", "max_tokens", "stop", "seed", "frequency_penalty", "presence_penalty")
"""Sampling fields that DSPy's own request has; all others travel in its extensions."""

_CLIENT = {
    "api_key", "api_base", "base_url", "headers", "extra_headers", "timeout", "api_version", "organization", "project",
    "extra_query", "custom_llm_provider", "n", "num_retries", "cache", "num_generations", "prompt_cache", "model",
    "rollout_id", "max_completion_tokens", "extra_body",
}  # fmt: skip
_PREFILL_PROVIDERS = ("hosted_vllm",)
"""Providers whose chat endpoint goes on from an assistant turn when asked to; elsewhere the turn may be refused."""
_SEED_PROVIDERS = ("openai", "azure", "mistral", "hosted_vllm", "together_ai", "fireworks_ai", "groq")
_CONTEXT_WORDS = (
    "maximum context length",
    "context_length_exceeded",
    "max_model_len",
    "exceeds the available context size",
)
_CHARS_A_TOKEN = 3.0
"""A careful guess where no tokenizer can be asked: English text has about four characters a token."""


@runtime_checkable
class ChainEngine(Protocol):
    """What an engine of this project offers beyond DSPy's `complete`."""

    speaks_chains: bool
    context_length: int | None

    async def count_tokens(self, messages: Sequence[Mapping[str, str]], chain_id: str, raw: bool) -> int:
        """Return the number of tokens of the rendered messages."""
        ...

    async def hold_back(self, text: str) -> str:
        """Return `text` without trailing white space that would tokenise differently once text follows."""
        ...


def sampling_seed(run_seed: int, rollout: str, turn: int, kind: str) -> int:
    """Return the sampling seed of one call (design section 2).

    Args:
        run_seed: Seed of the run.
        rollout: Question id and sample.
        turn: Number of the turn, from 1.
        kind: Call kind (`reason`, `refine`, `force`).

    Returns:
        A number from 0 to 2**31 - 1, the same for the same arguments on every machine.
    """
    digest = hashlib.sha256(f"{run_seed}\x1f{rollout}\x1f{turn}\x1f{kind}".encode()).digest()
    return int.from_bytes(digest[:4], "big") & 0x7FFF_FFFF


class ChainModel:
    """One DSPy LM with its profile, seen from a chain.

    Args:
        lm: The DSPy LM of this call.
        profile_overrides: Fields of the model profile to override.
        context_length: Context in tokens given by an option; None asks the engine, then the profile.
        seed: Run seed.
    """

    def __init__(
        self,
        lm: Any,
        profile_overrides: Mapping[str, Any] | None = None,
        context_length: int | None = None,
        seed: int = 0,
    ) -> None:
        self.lm = lm
        sync_engine = getattr(lm, "_engine_spec", None)
        async_engine = getattr(lm, "_async_engine_spec", None)
        self.engine = sync_engine if getattr(sync_engine, "speaks_chains", False) else None
        self.async_engine = async_engine if getattr(async_engine, "speaks_chains", False) else None
        self.profile = self._profile(dict(profile_overrides or {}))
        told = getattr(self.engine or self.async_engine, "context_length", None)
        self.context_length: int = context_length or told or self.profile.context_length
        self.seed = seed
        self.rollout = str(getattr(lm, "kwargs", {}).get("rollout_id") or "")

    def _profile(self, overrides: dict[str, Any]) -> ModelProfile:
        from_engine = getattr(self.engine or self.async_engine, "profile", None)
        profile: ModelProfile = from_engine if from_engine is not None else profile_for(self.lm.model)
        if from_engine is None and "continuation" not in overrides:
            provider = self.lm.model.split("/", 1)[0] if "/" in self.lm.model else "openai"
            if provider not in _PREFILL_PROVIDERS:
                overrides["continuation"] = "user"
        return profile.override(**overrides)

    @property
    def exact(self) -> bool:
        """True when token counts come from the model's own tokenizer."""
        return self.engine is not None or self.async_engine is not None

    def request(self, operation: Generate) -> tuple[Request, dict[str, Any]]:
        """Build DSPy's request for an operation.

        Args:
            operation: What to generate.

        Returns:
            The request, and the execution options (`rollout_id`) that go beside it.
        """
        given = {**self.profile.sampling, **_set(getattr(self.lm, "kwargs", {})), **_set(operation.config)}
        extensions = dict(given.get("extra_body") or {})
        canonical: dict[str, Any] = {}
        for name, value in given.items():
            if name in CANONICAL:
                canonical[name] = value
            elif name not in _CLIENT:
                extensions[name] = value
        canonical["max_tokens"] = operation.max_tokens
        canonical["stop"] = tuple(dict.fromkeys((*operation.stop, *_as_tuple(canonical.get("stop")))))
        if "seed" not in canonical and self._takes_seed() and canonical.get("temperature") != 0:
            canonical["seed"] = sampling_seed(self.seed, self.rollout, operation.turn, operation.kind)
        if self.exact:
            extensions[EXTENSION] = {"chain": operation.chain_id, "raw": self.profile.style == "completion"}
        elif operation.messages[-1]["role"] == "assistant" and self.lm.model.startswith("hosted_vllm/"):
            extensions |= {"continue_final_message": True, "add_generation_prompt": False}
        messages = tuple(_message(m) for m in operation.messages)
        try:
            config = Config(**canonical, extensions=extensions or None)
        except (TypeError, ValueError) as error:
            raise OptionError(f"A sampling option is impossible: {error}.") from error
        # rollout_id separates entries of DSPy's own cache; our engines are cached by prompt and seed instead.
        beside = {"rollout_id": self.rollout} if self.rollout and not self.exact else {}
        return Request(model=self.lm.model, messages=messages, config=config), beside

    def generate(self, operation: Generate) -> Generation:
        """Generate with a blocking call.

        Raises:
            ContextLengthError: The prompt does not fit.
            ModelError: The model or its server failed.
        """
        request, beside = self.request(operation)
        try:
            return read_response(self.lm(request, **beside))
        except LMError as error:
            raise _translate(error) from error

    async def agenerate(self, operation: Generate) -> Generation:
        """Generate on the running event loop; raises as `generate`."""
        request, beside = self.request(operation)
        try:
            return read_response(await self.lm.acall(request, **beside))
        except LMError as error:
            raise _translate(error) from error

    def count(self, operation: CountTokens) -> int:
        """Count the tokens of rendered messages with a blocking call; an estimate where no tokenizer can be asked."""
        if self.engine is None:
            return _estimate(operation.messages)
        from retrieval.sync import run_sync

        return int(run_sync(self.engine.count_tokens(operation.messages, operation.chain_id, self._raw)))

    async def acount(self, operation: CountTokens) -> int:
        """Count the tokens of rendered messages; an estimate where no tokenizer can be asked."""
        if self.async_engine is None:
            return _estimate(operation.messages)
        return int(await self.async_engine.count_tokens(operation.messages, operation.chain_id, self._raw))

    def hold_back(self, text: str) -> str:
        """Apply the token-boundary rule with a blocking call; unchanged where no tokenizer can be asked."""
        if self.engine is None:
            return text
        from retrieval.sync import run_sync

        return str(run_sync(self.engine.hold_back(text)))

    async def ahold_back(self, text: str) -> str:
        """Apply the token-boundary rule; unchanged where no tokenizer can be asked."""
        return str(await self.async_engine.hold_back(text)) if self.async_engine is not None else text

    @property
    def _raw(self) -> bool:
        return self.profile.style == "completion"

    def _takes_seed(self) -> bool:
        provider = self.lm.model.split("/", 1)[0] if "/" in self.lm.model else "openai"
        return self.exact or provider in _SEED_PROVIDERS


def upper_bound(text: str) -> int:
    """Return a number of tokens that `text` cannot exceed with a byte-level tokenizer: its UTF-8 length."""
    return len(text.encode("utf-8"))


def read_response(response: Any) -> Generation:
    """Read DSPy's response into a `Generation`.

    Args:
        response: A `dspy.lm15.Response`; our engines put `stop_reason`, `from_cache` and `retokenised` into its
            `provider_data`.

    Returns:
        The generation; tokens are 0 where the provider reports none.
    """
    data = response.provider_data if isinstance(response.provider_data, dict) else {}
    choice = (data.get("choices") or [{}])[0]
    usage = response.usage
    own = data.get(EXTENSION) or {}
    finish = "length" if response.finish_reason == "length" else "stop"
    return Generation(
        text=response.text or "",
        finish=finish,
        stop=choice.get("stop_reason") if isinstance(choice.get("stop_reason"), str) else None,
        stop_known="stop_reason" in choice,
        prompt_tokens=usage.input_tokens or 0,
        completion_tokens=usage.output_tokens or 0,
        cached_tokens=usage.cache_read_tokens or 0,
        cost=own.get("cost"),
        from_cache=bool(own.get("from_cache")),
        retokenised=bool(own.get("retokenised")),
    )


def _set(values: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in values.items() if value is not None}


def _as_tuple(stop: Any) -> tuple[str, ...]:
    return (stop,) if isinstance(stop, str) else tuple(stop or ())


def _message(message: Mapping[str, str]) -> Message:
    build = {"user": Message.user, "assistant": Message.assistant}[message["role"]]
    return build(message["content"])


def _estimate(messages: Sequence[Mapping[str, str]]) -> int:
    text = "".join(m["content"] for m in messages)
    wide = sum(1 for char in text if ord(char) > 0x2E7F)
    return wide + math.ceil((len(text) - wide) / _CHARS_A_TOKEN) + 8 * len(messages)


def _translate(error: LMError) -> SearchO1Error:
    if isinstance(error.__cause__, SearchO1Error):
        return error.__cause__
    text = str(error)
    # Servers word it in their own ways, and DSPy does not know them all.
    too_long = isinstance(error, ContextWindowExceededError) or any(words in text for words in _CONTEXT_WORDS)
    return ContextLengthError(text) if too_long else ModelError(text)

"""A DSPy LM for models that DSPy and LiteLLM reach themselves, with our cache in front of it.

DSPy's own cache leaves the address out of its keys, lies elsewhere, and knows no replay; it is passed by here.
"""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import fields as dataclass_fields
from dataclasses import is_dataclass
from typing import Any
from urllib.parse import urlsplit

import dspy
from dspy.clients.base_lm import LM_CLASS_STATE_KEY, BaseLM
from dspy.lm15 import Message, Request, Response, Usage
from dspy.utils import exceptions
from dspy.utils.callback import with_callbacks
from dspy.utils.exceptions import LMError

from programs.language_model import EXTENSION
from retrieval.cache import Cache
from retrieval.caching.answers import Answers
from retrieval.caching.keys import without_credentials
from retrieval.sync import run_sync
from signatures.errors import ModelError

_CLIENT_FIELDS = (
    "api_key", "api_base", "base_url", "headers", "extra_headers", "timeout", "num_retries", "cache", "organization",
    "project", "azure_ad_token_provider", "rollout_id",
)  # fmt: skip
"""Fields that say how a provider is reached or whether a reply is kept: none is part of a key, several are secret."""

_raw_call: Callable[..., Any] = BaseLM.__call__.__wrapped__
_raw_acall: Callable[..., Awaitable[Any]] = BaseLM.acall.__wrapped__


class CachedLM(dspy.LM):  # type: ignore[misc]
    """`dspy.LM` with our cache in front: what chains ask, and what plain DSPy predictors ask.

    A reply to a chain is kept if asking again would be for the same reply: at temperature 0, with a seed, or under a
    rollout id. Replies to plain DSPy predictors are kept as DSPy keeps them.

    Args:
        model: Any name DSPy knows.
        replies: The cache; its policy says whether this is a replay.
        revision: Model revision, part of the keys.
        **options: As for `dspy.LM`.
    """

    def __init__(self, model: str, replies: Cache, revision: str = "", **options: Any) -> None:
        super().__init__(model, **options)
        self._answers = Answers(replies, "replies", _dump_failure, _revive_failure)
        self._revision = revision

    @with_callbacks  # type: ignore[untyped-decorator]
    def __call__(self, prompt: Any = None, *, messages: Any = None, **kwargs: Any) -> Any:
        """Answer as `dspy.LM` does, from the cache where it can.

        Raises:
            LMError: The provider failed, or had failed in the run that is replayed.
            ReplyMiss: In a replay: the cache does not hold this reply.
        """
        # The cache is written on the background loop; the provider is called in this thread, as DSPy does it.
        parts = self._parts(prompt, messages, kwargs)
        found = run_sync(self._find(parts, prompt, messages, kwargs))
        if found is not None:
            return _restore(found)
        try:
            answer = _raw_call(self, prompt, messages=messages, **{**kwargs, "cache": False})
        except LMError as error:
            if parts is not None:
                run_sync(self._answers.note_failure(parts, self._without_secrets(error), self.model))
            raise
        return answer if parts is None else run_sync(self._keep(parts, answer, prompt, messages, kwargs))

    @with_callbacks  # type: ignore[untyped-decorator]
    async def acall(self, prompt: Any = None, *, messages: Any = None, **kwargs: Any) -> Any:
        """Answer on the running event loop; result and errors as in `__call__`."""
        parts = self._parts(prompt, messages, kwargs)
        found = await self._find(parts, prompt, messages, kwargs)
        if found is not None:
            return _restore(found)
        try:
            answer = await _raw_acall(self, prompt, messages=messages, **{**kwargs, "cache": False})
        except LMError as error:
            if parts is not None:
                await self._answers.note_failure(parts, self._without_secrets(error), self.model)
            raise
        return answer if parts is None else await self._keep(parts, answer, prompt, messages, kwargs)

    def dump_state(self) -> dict[str, Any]:
        """Return the state of a plain `dspy.LM`: a saved program needs neither this class nor the cache."""
        return {**super().dump_state(), LM_CLASS_STATE_KEY: "dspy.clients.lm.LM"}

    async def _find(self, parts: dict[str, Any] | None, prompt: Any, messages: Any, kwargs: dict[str, Any]) -> Any:
        found = await self._answers.find(parts) if parts is not None else None
        if found is None and self._answers.replay:
            way_out = (
                ""
                if parts is not None
                else ("It was sampled with neither seed nor rollout id, and such replies are never kept.")
            )
            what = f"the reply of {self.model} to a prompt ending in {_about(prompt, messages, kwargs)!r}"
            raise self._answers.miss(what, way_out, self.model)
        return found

    async def _keep(
        self, parts: dict[str, Any], answer: Any, prompt: Any, messages: Any, kwargs: dict[str, Any]
    ) -> Any:
        plain = _plain(answer)
        if plain is None:
            return answer
        kept = await self._answers.store(parts, plain, self.model, _about(prompt, messages, kwargs))
        return answer if kept is plain else _restore(kept)

    def _without_secrets(self, error: LMError) -> BaseException:
        given = str(self.kwargs.get("api_base") or self.kwargs.get("base_url") or "")
        user_info = urlsplit(given).netloc.rpartition("@")[0]
        fields = _dump_failure(error) or {}
        for secret in filter(None, (str(self.kwargs.get("api_key") or ""), user_info)):
            fields["message"] = fields["message"].replace(secret, "***")
        return _revive_failure(fields)

    def _parts(self, prompt: Any, messages: Any, kwargs: Mapping[str, Any]) -> dict[str, Any] | None:
        """Return the key of a call; None when its reply is not to be kept."""
        if not kwargs.get("cache", self.cache):
            return None
        request = prompt if isinstance(prompt, Request) else kwargs.get("request")
        if request is not None:
            asked = {"messages": request.messages, "system": request.system, "tools": request.tools}
            sampling = {f.name: getattr(request.config, f.name) for f in dataclass_fields(request.config)}
        else:
            sampling = {**self.kwargs, **{k: v for k, v in kwargs.items() if v is not None}}
            asked = {"prompt": prompt, "messages": messages, "model_type": self.model_type}
        rollout = kwargs.get("rollout_id") or (None if request is not None else self.kwargs.get("rollout_id"))
        sampled = sampling.get("temperature") != 0
        # DSPy's predictors and optimizers count on one reply a prompt until they give another rollout id.
        if request is not None and sampled and sampling.get("seed") is None and rollout is None:
            return None
        given = {k: v for k, v in sampling.items() if k not in _CLIENT_FIELDS and v is not None}
        parts = {
            "model": f"litellm:{self.model}:{self._revision}",
            "address": self._address(),
            "rollout": rollout if sampled else None,
            "sampling": given,
            **asked,
        }
        try:
            return dict(_as_json(parts))
        except TypeError:
            # It has no stable key.
            return None

    def _address(self) -> str:
        prefix = self.model.partition("/")[0].upper()
        given = self.kwargs.get("api_base") or self.kwargs.get("base_url")
        found = given or os.environ.get(f"{prefix}_API_BASE") or os.environ.get(f"{prefix}_BASE_URL") or ""
        return without_credentials(str(found))


def _as_json(value: Any) -> Any:
    """Return what a request is made of as JSON.

    Raises:
        TypeError: It holds something else, such as a picture's bytes or a class.
    """
    if value is None or isinstance(value, str | int | float | bool):
        return value
    if isinstance(value, Mapping):
        return {str(name): _as_json(part) for name, part in value.items() if name != EXTENSION}
    if isinstance(value, list | tuple):
        return [_as_json(part) for part in value]
    if is_dataclass(value) and not isinstance(value, type):
        return {
            f.name: _as_json(getattr(value, f.name))
            for f in dataclass_fields(value)
            if getattr(value, f.name) is not None
        }
    raise TypeError(f"{type(value).__name__} is not JSON")


def _plain(answer: Any) -> Any | None:
    """Return an answer as JSON; None for what is more than text: tool calls, pictures, log probabilities."""
    if not isinstance(answer, Response):
        return {"outputs": answer} if isinstance(answer, list) and all(isinstance(x, str) for x in answer) else None
    if any(part.type not in ("text", "thinking") for part in answer.message.parts) or answer.logprobs:
        return None
    data = answer.provider_data if isinstance(answer.provider_data, dict) else {}
    choice = (data.get("choices") or [{}])[0]
    told = {name: choice[name] for name in ("stop_reason", "finish_reason") if name in choice}
    usage = answer.usage
    return {
        "id": answer.id,
        "model": answer.model,
        "text": answer.text or "",
        "finish": answer.finish_reason,
        "usage": [usage.input_tokens, usage.output_tokens, usage.cache_read_tokens],
        "choice": told or None,
    }


def _restore(stored: Mapping[str, Any]) -> Any:
    if "outputs" in stored:
        return list(stored["outputs"])
    given, written, cached = stored["usage"]
    return Response(
        id=stored["id"],
        model=stored["model"],
        message=Message.assistant(stored["text"]),
        finish_reason=stored["finish"],
        usage=Usage(input_tokens=given, output_tokens=written, cache_read_tokens=cached),
        provider_data={
            **({"choices": [stored["choice"]]} if stored["choice"] else {}),
            EXTENSION: {"from_cache": True},
        },
    )


def _about(prompt: Any, messages: Any, kwargs: Mapping[str, Any]) -> str:
    request = prompt if isinstance(prompt, Request) else kwargs.get("request")
    if request is not None:
        text = request.messages[-1].text or ""
    else:
        text = str(prompt if prompt is not None else (messages or [{}])[-1].get("content"))
    return " ".join(text[-640:].split())[-160:]


def _dump_failure(error: BaseException) -> dict[str, Any] | None:
    if not isinstance(error, LMError):
        return None
    return {
        "type": type(error).__name__,
        "message": error.message,
        "model": error.model,
        "provider": error.provider,
        "status": error.status,
    }


def _revive_failure(recorded: dict[str, Any]) -> Exception:
    kind = getattr(exceptions, str(recorded["type"]), None)
    rest = {name: recorded[name] for name in ("model", "provider", "status")}
    try:
        if isinstance(kind, type) and issubclass(kind, LMError):
            error: Exception = kind(recorded["message"], **rest)
            return error
        return ModelError(str(recorded["message"]))
    except TypeError:
        return ModelError(str(recorded["message"]))

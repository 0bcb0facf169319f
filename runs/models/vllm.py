"""`--model hosted_vllm/NAME --base-url URL`: vLLM's `/v1/completions`, with the prompt as token ids.

The template is rendered once a question by the server itself (`/tokenize`), a chain goes on from the very ids it was
given, and every field is sent exactly. Connections are pooled without a limit, long generations may take hours, and a
server that dies and comes back within `retry_seconds` costs a turn its retry, nothing else.
"""

from __future__ import annotations

import asyncio
import contextlib
import math
import os
import random
import weakref
from collections.abc import AsyncGenerator, Mapping, Sequence
from typing import Any

import requests
from dspy.lm15 import (
    AuthError,
    ContextLengthError,
    InvalidRequestError,
    RateLimitError,
    Request,
    ServerError,
    TransportError,
    UnsupportedModelError,
)

from programs.language_model import EXTENSION
from retrieval.cache import Cache
from retrieval.caching.keys import without_credentials
from runs.models.engine import EngineCore, Reply
from signatures.errors import ModelError
from signatures.profiles import ModelProfile

READ_SECONDS = 7_200.0
CONNECT_SECONDS = 10.0
_RETRIED = (408, 409, 425, 429, 500, 502, 503, 504)
_CONTEXT_WORDS = ("maximum context length", "context length", "max_model_len", "longer than the maximum model length")


def server_facts(base_url: str, model: str, api_key: str = "") -> tuple[str, int | None, str]:
    """Ask a server which model it serves and how long its context is.

    Args:
        base_url: Address of the API, ending in `/v1`.
        model: Name wanted; empty takes the first one served.
        api_key: Sent as bearer token when not empty.

    Returns:
        (model name, context length in tokens or None when the server does not tell, the weights it names as the model's
        root or empty).

    Raises:
        ModelError: The server cannot be reached, or does not serve the model; the text lists what it serves.
    """
    place = without_credentials(base_url.rstrip("/"))
    headers = {"Authorization": f"Bearer {api_key}"} if api_key else {}
    url = base_url.rstrip("/") + "/models"
    try:
        reply = requests.get(url, headers=headers, timeout=(CONNECT_SECONDS, 60))
        if reply.status_code in (401, 403):
            raise ModelError(f"The model server at {place} refused the key; set VLLM_API_KEY.")
        reply.raise_for_status()
        served = {entry["id"]: entry for entry in reply.json()["data"]}
    except (requests.RequestException, ValueError, KeyError, TypeError) as error:
        raise ModelError(
            f"No model server answers at {place}/models: {type(error).__name__}. Start one with `search-o1 serve`, "
            "or give --base-url."
        ) from error
    name = model or next(iter(served), "")
    if name not in served:
        raise ModelError(
            f"The server at {place} does not serve {model!r}; it serves: {', '.join(served) or 'nothing'}."
        )
    return name, served[name].get("max_model_len"), str(served[name].get("root") or "")


class VLLMCore(EngineCore):
    """The engine of one vLLM server.

    Args:
        base_url: Address of the API, ending in `/v1`.
        model: Served model name.
        profile: How the model wants to be asked.
        cache: Where model replies are kept, or None.
        context_length: Context in tokens.
        revision: Model revision, which enters the identity of cached replies.
        retry_seconds: How long a failing server is tried again.
    """

    def __init__(
        self,
        base_url: str,
        model: str,
        profile: ModelProfile,
        cache: Cache | None = None,
        *,
        context_length: int | None = None,
        revision: str = "",
        retry_seconds: float = 600.0,
    ) -> None:
        super().__init__(model, profile, cache)
        self.base_url = base_url.rstrip("/")
        self.root = self.base_url.removesuffix("/v1")
        self.place = without_credentials(self.base_url)
        self.context_length = context_length
        self.revision = revision
        self.retry_seconds = retry_seconds
        self.retries = 0
        self._sessions: weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, Any] = weakref.WeakKeyDictionary()
        self._closers: weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, Any] = weakref.WeakKeyDictionary()

    def identity(self) -> str:
        """Return the served model and its revision; the address is left out, a server may move."""
        return f"vllm:{self.model}:{self.revision}"

    async def render_ids(self, messages: Sequence[Mapping[str, str]], raw: bool) -> list[int]:
        """Let the server render its chat template, or tokenise the raw text with its special tokens."""
        if raw:
            text = await self.hold_back(messages[-1]["content"])
            return await self._tokenize({"prompt": text, "add_special_tokens": True})
        return await self._tokenize(
            {"messages": [dict(m) for m in messages], "add_generation_prompt": True, "add_special_tokens": False}
        )

    async def tokenise(self, text: str) -> list[int]:
        """Return the server's token ids of a text."""
        return await self._tokenize({"prompt": text, "add_special_tokens": False})

    async def detokenise(self, ids: Sequence[int]) -> str:
        """Return the server's text of token ids."""
        if not ids:
            return ""
        reply = await self._post(self.root + "/detokenize", {"model": self.model, "tokens": list(ids)})
        return str(reply["prompt"])

    async def generate(self, ids: list[int], request: Request) -> Reply:
        """Generate from token ids; raises `dspy.lm15` errors after the retries are used up."""
        reply = await self._post(self.base_url + "/completions", self.body(ids, request))
        try:
            choice, usage = reply["choices"][0], reply.get("usage") or {}
            if not isinstance(choice["text"], str | None) or not isinstance(usage, dict):
                raise TypeError
            written = _without_end(choice, choice.get("stop_reason"))
        except (LookupError, TypeError, ValueError, AttributeError):
            raise ServerError(f"The model server at {self.place} sent a reply without text", provider="vllm") from None
        stop = choice.get("stop_reason")
        details = usage.get("prompt_tokens_details") or {}
        return Reply(
            text=choice["text"] or "",
            ids=written,
            finish=choice.get("finish_reason") or "stop",
            stop=stop if isinstance(stop, str) else None,
            prompt_tokens=usage.get("prompt_tokens") or len(ids),
            cached_tokens=details.get("cached_tokens") or 0,
            completion_tokens=usage.get("completion_tokens") or 0,
        )

    def body(self, ids: list[int], request: Request) -> dict[str, Any]:
        """Return the exact JSON body of a generation; fields that are not set are not sent.

        Args:
            ids: Token ids of the prompt.
            request: Sampling and stop strings.

        Returns:
            The body of `/v1/completions`.
        """
        config = request.config
        # The server's own default would end a plain DSPy predictor's reply after 16 tokens.
        room = max(1, self.context_length - len(ids)) if self.context_length else None
        extra = {key: value for key, value in (config.extensions or {}).items() if key != EXTENSION}
        fields = {
            "model": self.model,
            "prompt": ids,
            "max_tokens": config.max_tokens or room,
            "temperature": config.temperature,
            "top_p": config.top_p,
            "seed": config.seed,
            "frequency_penalty": config.frequency_penalty,
            "presence_penalty": config.presence_penalty,
            "stop": list(config.stop) or None,
            "include_stop_str_in_output": True,
            "add_special_tokens": False,
            "return_token_ids": True,
            **extra,
        }
        return {key: value for key, value in fields.items() if value is not None}

    async def aclose(self) -> None:
        """Close the connections of the running event loop."""
        session = self._sessions.pop(asyncio.get_running_loop(), None)
        if session is not None:
            await session.close()

    async def _tokenize(self, fields: dict[str, Any]) -> list[int]:
        reply = await self._post(self.root + "/tokenize", {"model": self.model, **fields})
        try:
            return [int(token) for token in reply["tokens"]]
        except (LookupError, TypeError, ValueError):
            raise ServerError(f"The model server at {self.place} sent no tokens", provider="vllm") from None

    def _session(self) -> Any:
        import aiohttp

        loop = asyncio.get_running_loop()
        session = self._sessions.get(loop)
        if session is None:
            key = os.environ.get("VLLM_API_KEY", "")
            session = self._sessions[loop] = aiohttp.ClientSession(
                connector=aiohttp.TCPConnector(limit=0),
                timeout=aiohttp.ClientTimeout(total=None, sock_connect=CONNECT_SECONDS, sock_read=READ_SECONDS),
                headers={"Authorization": f"Bearer {key}"} if key else {},
            )
            # An orderly end of the loop closes its pending asynchronous generators, and with this one the session.
            self._closers[loop] = _closing(session)
            with contextlib.suppress(StopIteration):
                self._closers[loop].asend(None).send(None)
        return session

    async def _post(self, url: str, body: dict[str, Any]) -> dict[str, Any]:
        import aiohttp

        loop = asyncio.get_running_loop()
        deadline, pause = math.inf, 0.5
        while True:
            began = loop.time()
            try:
                async with self._session().post(url, json=body) as reply:
                    if reply.status == 200:
                        answer: dict[str, Any] = await reply.json(content_type=None)
                        return answer
                    error: Exception = self._error(reply.status, await reply.text(errors="replace"), url)
                    if reply.status not in _RETRIED:
                        raise error
            except (aiohttp.ClientError, TimeoutError, ConnectionError) as lost:
                error = TransportError(
                    f"The model server at {self.place} is gone: {type(lost).__name__}; start it again",
                    provider="vllm",
                )
            except ValueError:
                error = ServerError(
                    f"The model server at {self.place} sent a reply that is not JSON", provider="vllm", status=200
                )
            # The window counts failing, not generating: an attempt that lived for long opens a new one.
            if deadline == math.inf or loop.time() - began > self.retry_seconds / 2:
                deadline = loop.time() + self.retry_seconds
            if loop.time() + pause > deadline:
                raise error
            self.retries += 1
            await asyncio.sleep(random.uniform(0.1, pause))
            pause = min(pause * 2, 10.0)

    def _error(self, status: int, text: str, url: str) -> Any:
        message = _message(text)
        where: dict[str, Any] = {"provider": "vllm", "status": status}
        if status in (401, 403):
            return AuthError(f"The model server at {self.place} refused the key; set VLLM_API_KEY", **where)
        if status in (404, 405) and self.model not in message and url.startswith(self.root + "/"):
            route = url.removeprefix(self.root)
            return UnsupportedModelError(
                f"The server at {self.place} has no {route}, so it is no vLLM; ask for it as openai/{self.model} "
                "with the same --base-url",
                **where,
            )
        if status == 404:
            return UnsupportedModelError(
                f"The server at {self.place} does not serve {self.model!r}: {message}. `search-o1 serve` says what "
                "it serves",
                **where,
            )
        if status == 400 and any(words in message for words in _CONTEXT_WORDS):
            return ContextLengthError(message, **where)
        if status == 429:
            return RateLimitError(message, **where)
        if status >= 500:
            return ServerError(message, **where)
        return InvalidRequestError(message, **where)


async def _closing(session: Any) -> AsyncGenerator[None, None]:
    try:
        yield
    finally:
        await session.close()


def _message(text: str) -> str:
    import json

    try:
        data = json.loads(text)
        found = data.get("error", data)
        return str(found.get("message", found) if isinstance(found, dict) else found)[:500]
    except (ValueError, AttributeError):
        return text[:500]


def _without_end(choice: Mapping[str, Any], stop: Any) -> list[int]:
    """Return the generated ids without the end-of-turn token, which is not part of the text."""
    ids = [int(token) for token in choice.get("token_ids") or []]
    ended = choice.get("finish_reason") == "stop" and not isinstance(stop, str)
    return ids[:-1] if ended and ids else ids

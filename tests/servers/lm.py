"""A scripted language-model server that speaks vLLM's HTTP API.

The script says what the model writes; tokens, stop strings, budgets, the prefix cache, finish reasons, errors and
metrics are worked out as vLLM 0.32 does, compared with a real one on the wire. `LMServer` starts it in a thread.
"""

from __future__ import annotations

import asyncio
import json
import threading
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Self

from aiohttp import web

from tests.servers.engine import PrefixCache
from tests.servers.lm_api import Call, add_routes, failure
from tests.servers.lm_models import Reply, Rules, as_reply, scripted, searching_model
from tests.servers.lm_requests import ApiError
from tests.servers.tokenizer import Tokenizer

__all__ = ["Call", "LMServer", "Received", "scripted", "searching_model"]


@dataclass(frozen=True)
class Received:
    """A request as it came in.

    Attributes:
        method: `GET` or `POST`.
        path: Path without the query.
        body: Parsed JSON, the raw text if it was none, None without a body.
        time: Seconds on `time.monotonic()` at arrival.
        headers: Request headers, names in lower case.
    """

    method: str
    path: str
    body: Any
    time: float
    headers: dict[str, str]


@dataclass
class _Fault:
    left: int
    status: int | None
    body: Any
    close: bool
    delay: float
    headers: dict[str, str]
    path: str


@dataclass
class LMServer:
    """The server; use it as a context manager.

    Attributes:
        reply: What the model writes: a function of the prompt text and the request body (it may be async) that returns
            everything the model would say, or rules `[(text in the prompt, reply), …]`, first match wins.
        model: Served name.
        max_model_len: Context length in tokens.
        latency: Seconds before a reply, or a function of the request body.
        token_latency: Seconds a generated token.
        bos: The tokenizer puts `<s>` before prompts; the chat template writes it too.
        think: The chat template's generation prompt ends in `<think>` and a line break.
        ignore_stop: Stop strings have no effect.
        stop_without_marker: `include_stop_str_in_output` has no effect.
        no_tokenize: There is no `/tokenize` and no `/detokenize`.
        no_token_ids: `return_token_ids` has no effect.
        no_cache_details: Usage does not say how many tokens were cached.
        strict_budget: Answer 400 when prompt and `max_tokens` together exceed the context, as vLLM once did; vLLM 0.32
            quietly lowers `max_tokens` instead.
        api_key: Required in the Authorization header, if given.
        port: Port on 127.0.0.1; 0 takes a free one, kept over `restart`.
        requests: Everything that came in, also what failed.
        calls: Every generation.
        counts: Requests by path.
        finished: Generations by finish reason.
        running: Generations in progress; `max_running` is the most there ever were.
        aborted: Generations whose client went away or whose server was stopped.
        errors: What the reply function raised; the client gets a 500.
    """

    reply: Reply | Rules
    model: str = "QwQ"
    max_model_len: int = 32768
    latency: float | Callable[[dict[str, Any]], float] = 0.0
    token_latency: float = 0.0
    bos: bool = False
    think: bool = False
    ignore_stop: bool = False
    stop_without_marker: bool = False
    no_tokenize: bool = False
    no_token_ids: bool = False
    no_cache_details: bool = False
    strict_budget: bool = False
    api_key: str | None = None
    port: int = 0

    requests: list[Received] = field(default_factory=list, init=False)
    calls: list[Call] = field(default_factory=list, init=False)
    counts: Counter[str] = field(default_factory=Counter, init=False)
    finished: Counter[str] = field(default_factory=Counter, init=False)
    running: int = field(default=0, init=False)
    max_running: int = field(default=0, init=False)
    aborted: int = field(default=0, init=False)
    errors: list[Exception] = field(default_factory=list, init=False)

    def __post_init__(self) -> None:
        self.tokenizer = Tokenizer(bos=self.bos, think=self.think)
        self.cache = PrefixCache()
        self._faults: list[_Fault] = []
        self._runner: web.AppRunner | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None

    def __enter__(self) -> Self:
        """Start the server."""
        return self.start()

    def __exit__(self, *_: object) -> None:
        """Stop it."""
        self.stop()

    @property
    def root_url(self) -> str:
        """Address of the server, without a path."""
        return f"http://127.0.0.1:{self.port}"

    @property
    def base_url(self) -> str:
        """Address of the OpenAI-compatible API, ending in `/v1`."""
        return f"{self.root_url}/v1"

    @property
    def prompts(self) -> list[str]:
        """The prompts of all generations as text, in the order they began to be answered."""
        return [call.prompt for call in self.calls]

    def answer(self, prompt: str, body: dict[str, Any]) -> str | Awaitable[str]:
        """Return what the model writes; `reply` may be changed while the server runs."""
        return as_reply(self.reply)(prompt, body)

    def fail_next(
        self,
        n: int = 1,
        status: int | None = 500,
        body: Any = None,
        *,
        close: bool = False,
        delay: float = 0.0,
        headers: Mapping[str, str] | None = None,
        path: str = "completions",
    ) -> None:
        """Make the next requests fail; faults queue up in the order they were set.

        Args:
            n: How many requests.
            status: Status of the answer; None only delays the request and then answers it.
            body: Answer: a dict becomes JSON, a string is sent as it is, None gives an error in vLLM's shape.
            close: Close the connection instead of answering.
            delay: Seconds to wait first.
            headers: Headers of the answer, such as `Retry-After`.
            path: Text that the request's path must contain.
        """
        self._faults.append(_Fault(n, status, body, close, delay, dict(headers or {}), path))

    def start(self) -> Self:
        """Listen; returns when the port is open."""
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="lm-server", daemon=True)
        self._thread.start()
        asyncio.run_coroutine_threadsafe(self._listen(), self._loop).result(10)
        return self

    def stop(self) -> None:
        """Stop like a killed process: connections are cut, requests in flight get no answer. Twice is harmless."""
        if self._loop is None or self._thread is None:
            return
        asyncio.run_coroutine_threadsafe(self._close(), self._loop).result(10)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(10)
        self._loop.close()
        self._loop = self._thread = None

    def restart(self) -> Self:
        """Stop if need be and listen on the same port again, with an empty cache; records and counters stay."""
        self.stop()
        self.cache.clear()
        return self.start()

    async def _listen(self) -> None:
        app = web.Application(middlewares=[self._front], client_max_size=1 << 28)
        add_routes(app, self)
        self._runner = web.AppRunner(app, access_log=None, handler_cancellation=True, shutdown_timeout=0.01)
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", self.port, backlog=2048, reuse_address=True).start()
        self.port = self._runner.addresses[0][1]

    async def _close(self) -> None:
        assert self._runner is not None
        for site in list(self._runner.sites):
            await site.stop()
        if self._runner.server is not None:
            for connection in list(self._runner.server.connections):
                if connection.transport is not None:
                    connection.transport.abort()
        await self._runner.cleanup()

    @web.middleware
    async def _front(
        self, request: web.Request, handler: Callable[[web.Request], Awaitable[web.StreamResponse]]
    ) -> web.StreamResponse:
        """Record the request, play the faults, ask for the key, and give aiohttp's own errors FastAPI's shape."""
        text = await request.text()
        try:
            body: Any = json.loads(text) if text else None
        except ValueError:
            body = text
        headers = {name.lower(): value for name, value in request.headers.items()}
        self.requests.append(Received(request.method, request.path, body, time.monotonic(), headers))
        self.counts[request.path] += 1
        fault = self._take_fault(request.path)
        if fault is not None:
            await asyncio.sleep(fault.delay)
            if fault.close:
                assert request.transport is not None
                request.transport.abort()
                raise asyncio.CancelledError
            if fault.status is not None:
                return _fault_response(fault, fault.status)
        guarded = self.api_key is not None and request.path.startswith("/v1")
        if guarded and headers.get("authorization") != f"Bearer {self.api_key}":
            return web.json_response({"error": "Unauthorized"}, status=401)
        try:
            return await handler(request)
        except web.HTTPException as error:
            if error.status not in (404, 405):
                raise
            return web.json_response({"detail": error.reason}, status=error.status)
        except ApiError as error:
            return web.json_response(error.body, status=error.status)
        except ConnectionError:
            raise
        except Exception as error:
            self.errors.append(error)
            return failure(f"{type(error).__name__}: {error}", 500)

    def _take_fault(self, path: str) -> _Fault | None:
        for fault in self._faults:
            if fault.left > 0 and fault.path in path:
                fault.left -= 1
                return fault
        return None


def _fault_response(fault: _Fault, status: int) -> web.Response:
    if fault.body is None:
        return failure("Injected failure", status, fault.headers)
    text = fault.body if isinstance(fault.body, str) else json.dumps(fault.body)
    return web.Response(text=text, status=status, headers={"Content-Type": "application/json", **fault.headers})

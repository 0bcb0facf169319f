"""The endpoints of the scripted language-model server."""

from __future__ import annotations

import asyncio
import inspect
import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from aiohttp import web

from tests.servers.engine import Output, generate
from tests.servers.lm_replies import VERSION, chunks, metrics_page, model_list, whole_reply
from tests.servers.lm_requests import chat_ids, check_sampling, completion_prompts, read_body, token_budget

if TYPE_CHECKING:
    from tests.servers.lm import LMServer


@dataclass(frozen=True)
class Call:
    """One generation.

    Attributes:
        prompt: The whole prompt as text, special tokens included, the chat template rendered.
        prompt_ids: The same as token ids.
        cached: How many of them the prefix cache held.
        output: What was generated.
        body: The request.
    """

    prompt: str
    prompt_ids: list[int]
    cached: int
    output: Output
    body: dict[str, Any]


def add_routes(app: web.Application, server: LMServer) -> None:
    """Give an application the endpoints of a server."""
    api = _Api(server)
    app.router.add_get("/health", api.health, allow_head=False)
    app.router.add_get("/version", api.version, allow_head=False)
    app.router.add_get("/metrics", api.metrics, allow_head=False)
    app.router.add_get("/v1/models", api.models, allow_head=False)
    app.router.add_post("/v1/completions", api.completions)
    app.router.add_post("/v1/chat/completions", api.chat)
    if not server.no_tokenize:
        app.router.add_post("/tokenize", api.tokenize)
        app.router.add_post("/detokenize", api.detokenize)


class _Api:
    def __init__(self, server: LMServer) -> None:
        self.server = server

    async def health(self, _: web.Request) -> web.Response:
        return web.Response()

    async def version(self, _: web.Request) -> web.Response:
        return web.json_response({"version": VERSION})

    async def metrics(self, _: web.Request) -> web.Response:
        return web.Response(text=metrics_page(self.server), content_type="text/plain")

    async def models(self, _: web.Request) -> web.Response:
        return web.json_response(model_list(self.server))

    async def tokenize(self, request: web.Request) -> web.Response:
        tokenizer = self.server.tokenizer
        body = await read_body(self.server, request)
        if "messages" in body:
            ids = chat_ids(self.server, body)
        else:
            ids = tokenizer.encode(body["prompt"], add_special_tokens=body.get("add_special_tokens", True))
        strings = [tokenizer.decode([i]) for i in ids] if body.get("return_token_strs") else None
        reply = {"count": len(ids), "max_model_len": self.server.max_model_len, "tokens": ids, "token_strs": strings}
        return web.json_response(reply)

    async def detokenize(self, request: web.Request) -> web.Response:
        tokenizer = self.server.tokenizer
        body = await read_body(self.server, request)
        # vLLM passes over ids outside the vocabulary here, while /v1/completions refuses them.
        return web.json_response({"prompt": tokenizer.decode(i for i in body["tokens"] if i < tokenizer.size)})

    async def completions(self, request: web.Request) -> web.StreamResponse:
        body = await read_body(self.server, request)
        return await self._answer(request, body, completion_prompts(self.server, body), chat=False)

    async def chat(self, request: web.Request) -> web.StreamResponse:
        body = await read_body(self.server, request)
        return await self._answer(request, body, [chat_ids(self.server, body)], chat=True)

    async def _answer(
        self, request: web.Request, body: dict[str, Any], prompts: list[list[int]], *, chat: bool
    ) -> web.StreamResponse:
        server = self.server
        budgets = [token_budget(server, body, ids, chat=chat) for ids in prompts]
        check_sampling(body)
        with_ids = bool(body.get("return_token_ids")) and not server.no_token_ids
        server.running += 1
        server.max_running = max(server.max_running, server.running)
        try:
            await asyncio.sleep(server.latency(body) if callable(server.latency) else server.latency)
            calls: list[Call] = []
            for ids, budget in zip(prompts, budgets, strict=True):
                calls += await self._generate(body, ids, budget)
            server.calls += calls
            response: web.StreamResponse
            if body.get("stream"):
                response = await self._stream(request, body, calls, chat=chat, with_ids=with_ids)
            else:
                await asyncio.sleep(server.token_latency * max(len(call.output.token_ids) for call in calls))
                response = web.json_response(whole_reply(server, calls, chat=chat, with_ids=with_ids))
            server.finished.update(call.output.finish_reason for call in calls)
            return response
        except (asyncio.CancelledError, ConnectionError):
            server.aborted += 1
            raise
        finally:
            server.running -= 1

    async def _generate(self, body: dict[str, Any], ids: list[int], budget: int) -> list[Call]:
        server, calls = self.server, []
        prompt, cached = server.tokenizer.decode(ids), server.cache.lookup(ids)
        stop = body.get("stop") or []
        stop = [] if server.ignore_stop else [stop] if isinstance(stop, str) else stop
        include = bool(body.get("include_stop_str_in_output")) and not server.stop_without_marker
        for _ in range(body.get("n") or 1):
            said = server.answer(prompt, body)
            reply = await said if inspect.isawaitable(said) else said
            output = generate(server.tokenizer, reply, budget, stop, include_stop=include)
            # The last generated token has not been through the model, so its block is not complete.
            server.cache.store([*ids, *output.token_ids[:-1]])
            calls.append(Call(prompt, ids, cached, output, body))
        return calls

    async def _stream(
        self, request: web.Request, body: dict[str, Any], calls: list[Call], *, chat: bool, with_ids: bool
    ) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream; charset=utf-8"})
        await response.prepare(request)
        include_usage = bool((body.get("stream_options") or {}).get("include_usage"))
        for chunk in chunks(self.server, calls, chat=chat, with_ids=with_ids, include_usage=include_usage):
            await asyncio.sleep(self.server.token_latency)
            await response.write(f"data: {json.dumps(chunk, ensure_ascii=False)}\n\n".encode())
        await response.write(b"data: [DONE]\n\n")
        await response.write_eof()
        return response


def failure(message: str, status: int, headers: dict[str, str] | None = None) -> web.Response:
    """Return a server's failure in vLLM's error shape."""
    error = {"message": message, "type": "InternalServerError", "param": None, "code": status}
    return web.json_response({"error": error}, status=status, headers=headers)

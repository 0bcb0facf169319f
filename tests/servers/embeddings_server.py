"""A scripted `/v1/embeddings`: vectors made from the words of a text, so that texts that share words lie close.

It listens on the loopback interface in a thread of its own. Use it as a context manager:

    with EmbeddingsServer() as server:
        EmbeddingsClient(server.url, server.model)
"""

from __future__ import annotations

import asyncio
import base64
import hashlib
import json
import math
import re
import struct
import threading
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from aiohttp import web

MODEL = "words-64"


@dataclass(frozen=True)
class Fault:
    """What a request gets instead of vectors.

    Attributes:
        status: HTTP status.
        body: The reply as JSON, or as it is if it is a text.
        headers: Header fields.
    """

    status: int = 500
    body: Any = field(default_factory=lambda: {"error": {"message": "out of order"}})
    headers: dict[str, str] = field(default_factory=dict)


@lru_cache(maxsize=100_000)
def word_vector(word: str, dimension: int) -> tuple[float, ...]:
    """Return numbers from -1 to 1 that depend on the word only."""
    digest = hashlib.shake_128(word.encode()).digest(2 * dimension)
    return tuple(n / 32768 - 1 for n in struct.unpack(f"<{dimension}H", digest))


def text_vector(text: str, dimension: int) -> list[float]:
    """Return the sum of the vectors of a text's words in lower case; plural and singular count as one."""
    words = [word.rstrip("s") for word in re.findall(r"\w+", text.lower())] or [""]
    return [math.fsum(column) for column in zip(*(word_vector(word, dimension) for word in words), strict=True)]


class EmbeddingsServer:
    """The server.

    Args:
        model: The one model it serves; others get a 404.
        dimension: Numbers a vector.
        most_words: A longer text is refused as vLLM does, or cut if the request says so.
        truncates: Whether it knows vLLM's `truncate_prompt_tokens`; `refuses` answers 400 to the unknown field.
        most_texts: More texts in a request are refused as TEI does.
        backwards: Give the vectors in reverse order.
        key: Key that it wants.
        latency_s: Seconds before each reply.

    Attributes:
        requests: Bodies of the requests that got vectors or a fault, in order.
        texts: All texts that vectors were given for, in order.
    """

    def __init__(
        self,
        *,
        model: str = MODEL,
        dimension: int = 64,
        most_words: int | None = None,
        truncates: bool | str = True,
        most_texts: int | None = None,
        backwards: bool = False,
        key: str | None = None,
        latency_s: float = 0.0,
    ) -> None:
        self.model = model
        self.dimension = dimension
        self.most_words = most_words
        self.truncates = truncates
        self.most_texts = most_texts
        self.backwards = backwards
        self.key = key
        self.latency_s = latency_s
        self.requests: list[dict[str, Any]] = []
        self.texts: list[str] = []
        self.most_in_flight = 0
        self._in_flight = 0
        self._faults: list[Fault] = []
        self._ready = threading.Event()
        self._thread = threading.Thread(target=self._serve, name="scripted-embeddings-server", daemon=True)
        self._failure: BaseException | None = None
        self._port = 0

    @property
    def url(self) -> str:
        """Address to give as EMBEDDINGS_URL."""
        return f"http://127.0.0.1:{self._port}/v1"

    def fail(self, *faults: Fault) -> None:
        """Let the next requests get these instead of vectors."""
        self._faults.extend(faults)

    def __enter__(self) -> EmbeddingsServer:
        self._thread.start()
        self._ready.wait(10)
        if self._failure is not None:
            raise self._failure
        return self

    def __exit__(self, *_: object) -> None:
        self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join(10)

    def _serve(self) -> None:
        try:
            asyncio.run(self._run())
        except BaseException as error:
            self._failure = error
            self._ready.set()

    async def _run(self) -> None:
        self._loop, self._stop = asyncio.get_running_loop(), asyncio.Event()
        application = web.Application(client_max_size=100_000_000)
        application.router.add_post("/v1/embeddings", self._answer)
        runner = web.AppRunner(application, access_log=None, shutdown_timeout=0.1)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        self._port = runner.addresses[0][1]
        self._ready.set()
        await self._stop.wait()
        await runner.cleanup()

    async def _answer(self, request: web.Request) -> web.Response:
        asked = await request.json()
        self.requests.append(asked)
        self._in_flight += 1
        self.most_in_flight = max(self.most_in_flight, self._in_flight)
        try:
            await asyncio.sleep(self.latency_s)
            return self._reply(asked, request.headers.get("Authorization"))
        finally:
            self._in_flight -= 1

    def _reply(self, asked: dict[str, Any], authorization: str | None) -> web.Response:
        if self._faults:
            fault = self._faults.pop(0)
            text = fault.body if isinstance(fault.body, str) else json.dumps(fault.body)
            return web.Response(text=text, status=fault.status, headers=fault.headers, content_type="application/json")
        if self.key is not None and authorization != f"Bearer {self.key}":
            return _refusal(401, f"invalid key {authorization}")
        if asked["model"] != self.model:
            return _refusal(404, f"The model `{asked['model']}` does not exist.")
        if self.truncates == "refuses" and "truncate_prompt_tokens" in asked:
            return _refusal(400, "Unrecognized request argument supplied: truncate_prompt_tokens")
        texts: Sequence[str] = asked["input"]
        if self.most_texts is not None and len(texts) > self.most_texts:
            return _refusal(413, f"batch size {len(texts)} > maximum allowed batch size {self.most_texts}")
        if self.most_words is not None:
            cut = self.truncates is True and asked.get("truncate_prompt_tokens") == -1
            if not cut and any(len(text.split()) > self.most_words for text in texts):
                return _refusal(400, f"This model's maximum context length is {self.most_words} tokens.")
            texts = [" ".join(text.split()[: self.most_words]) for text in texts]
        self.texts.extend(texts)
        data = [
            {"object": "embedding", "index": i, "embedding": self._encode(text, asked)} for i, text in enumerate(texts)
        ]
        return web.json_response({"object": "list", "data": data[::-1] if self.backwards else data})

    def _encode(self, text: str, asked: dict[str, Any]) -> list[float] | str:
        vector = text_vector(text, self.dimension)
        if asked.get("encoding_format") == "base64":
            return base64.b64encode(struct.pack(f"<{len(vector)}f", *vector)).decode()
        return vector


def _refusal(status: int, message: str) -> web.Response:
    return web.json_response({"error": {"message": message, "code": status}}, status=status)

"""Embeddings from any server that speaks OpenAI's `/v1/embeddings`: vLLM, TEI, llama.cpp, Ollama, hosted ones."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from retrieval.backends.environment import optional_setting, require_setting
from retrieval.corpus.embedding_replies import parse_embeddings
from retrieval.corpus.prefixes import known_prefixes
from retrieval.http.client import HttpClient, Limits
from signatures.errors import OptionError, SearchError

MOST_HALVINGS = 7
"""A text that is refused as too long is halved at most this often: from 60,000 characters to 500."""

_TOO_LONG = re.compile(r"too (long|large)|length|tokens|batch size", re.IGNORECASE)
_TOO_LONG_STATUSES = frozenset({400, 413, 422})
_TOO_LARGE = re.compile(r"too large to process", re.IGNORECASE)
"""How llama.cpp says it, with a status of 500."""

_TRUNCATE = "truncate_prompt_tokens"


def embedding_limits(concurrency: int = 4) -> Limits:
    """Return limits for embedding: a batch on a busy server takes far longer than a search.

    Args:
        concurrency: Requests in flight at once.
    """
    return Limits(read_s=300.0, total_s=600.0, attempts=6, max_bytes=200_000_000, per_host=max(16, concurrency))


@dataclass(frozen=True)
class Embeddings:
    """Embedded texts.

    Attributes:
        vectors: One row a text, float32, of length 1; shape (texts, dimension).
        shortened: Texts that the server found too long and that were cut until they fitted.
    """

    vectors: NDArray[np.float32]
    shortened: int = 0


class EmbeddingsClient:
    """Embeds queries and passages.

    It holds options only, so it survives pickling and deepcopy.

    Args:
        url: Address in front of `/embeddings`, as a rule one that ends in `/v1`; by default the environment's
            EMBEDDINGS_URL.
        model: Name of the model as the server knows it.
        key: Key, sent as a bearer token; by default the environment's EMBEDDINGS_API_KEY. May be missing.
        query_prefix: Text in front of queries; by default what the model's family was trained with.
        passage_prefix: Text in front of passages; by default likewise.
        batch_size: Passages a request.
        concurrency: Requests in flight at once while a corpus is embedded.
        encoding: How numbers travel: `float`, or `base64`, which is a quarter of the size but not known to all servers.
        limits: Time-outs, retries and caps.

    Raises:
        OptionError: The model has no name, or a number is below 1.
    """

    name = "embeddings"

    def __init__(
        self,
        url: str | None = None,
        model: str = "",
        key: str | None = None,
        query_prefix: str | None = None,
        passage_prefix: str | None = None,
        batch_size: int = 64,
        concurrency: int = 4,
        encoding: Literal["float", "base64"] = "float",
        limits: Limits | None = None,
    ) -> None:
        if not model.strip():
            raise OptionError("The embedding model has no name; give it with --embedding-model MODEL.")
        for option, value in (("batch size", batch_size), ("concurrency", concurrency)):
            if value < 1:
                raise OptionError(f"The {option} of embeddings must be at least 1, not {value}.")
        prefixes = known_prefixes(model)
        self.url = url
        self.model = model
        self.query_prefix = prefixes.query if query_prefix is None else query_prefix
        self.passage_prefix = prefixes.passage if passage_prefix is None else passage_prefix
        self.batch_size = batch_size
        self.concurrency = concurrency
        self.encoding = encoding
        self._key = key
        self._truncates = True
        self._client = HttpClient(self.name, SearchError, limits=limits or embedding_limits(concurrency))

    async def embed_query(self, query: str) -> NDArray[np.float32]:
        """Embed one query.

        Args:
            query: What is searched.

        Returns:
            Its vector of length 1, shape (dimension,).

        Raises:
            SearchError: The server failed or its reply makes no sense.
        """
        found = await self._embed([self._clean(self.query_prefix, query)], f"embedding the query {query!r:.200}")
        vector: NDArray[np.float32] = found.vectors[0]
        return vector

    async def embed_passages(self, passages: Sequence[str]) -> Embeddings:
        """Embed passages, `batch_size` in a request, one request after the other.

        Args:
            passages: Their texts.

        Returns:
            One vector a passage in the same order; shape (0, 0) for none.

        Raises:
            SearchError: The server failed or its reply makes no sense.
        """
        texts = [self._clean(self.passage_prefix, passage) for passage in passages]
        batches = [texts[start : start + self.batch_size] for start in range(0, len(texts), self.batch_size)]
        parts = [await self._embed(batch, f"embedding {len(batch)} passages") for batch in batches]
        return self._join(parts) if parts else Embeddings(np.zeros((0, 0), dtype=np.float32))

    async def _embed(self, texts: list[str], what: str) -> Embeddings:
        try:
            return Embeddings(await self._post(texts, what))
        except SearchError as error:
            if not _is_too_long(error):
                raise
            if len(texts) == 1:
                return await self._embed_shortened(texts[0], what, error)
        # The server does not say which text is too long (or whether the batch is): each half tells more.
        half = len(texts) // 2
        return self._join([await self._embed(texts[:half], what), await self._embed(texts[half:], what)])

    async def _embed_shortened(self, text: str, what: str, error: SearchError) -> Embeddings:
        given = len(text)
        for _ in range(MOST_HALVINGS):
            text = text[: len(text) // 2]
            if not text:
                break
            try:
                return Embeddings(await self._post([text], what), shortened=1)
            except SearchError as again:
                if not _is_too_long(again):
                    raise
                error = again
        raise SearchError(
            f"{self.name}: {what} failed: a text of {given:,} characters is too long for the model {self.model!r} and "
            f"still is after halving it to {len(text):,}; the server says: {error.body or error}",
            provider=self.name,
            status=error.status,
            body=error.body,
        ) from error

    async def _post(self, texts: list[str], what: str) -> NDArray[np.float32]:
        url = require_setting(
            self.url, "EMBEDDINGS_URL", provider=self.name, meaning="the address of an OpenAI-compatible server: …/v1"
        )
        key = optional_setting(self._key, "EMBEDDINGS_API_KEY")
        address = url.rstrip("/").removesuffix("/embeddings") + "/embeddings"
        body: dict[str, Any] = {"model": self.model, "input": texts, "encoding_format": self.encoding}
        if self._truncates:
            # vLLM cuts at the model's own length and saves all the attempts to find it; most others ignore the field.
            body[_TRUNCATE] = -1
        try:
            reply = await self._client.request_json(
                "POST",
                address,
                what=what,
                headers={"Authorization": f"Bearer {key}"} if key else None,
                json_body=body,
                secrets=(key,),
            )
        except SearchError as error:
            if self._truncates and error.status in (400, 422) and _TRUNCATE in error.body:
                self._truncates = False
                return await self._post(texts, what)
            raise self._explained(error, address) from error
        return parse_embeddings(reply, len(texts), what)

    def _explained(self, error: SearchError, address: str) -> SearchError:
        if error.status != 404:
            return error
        return SearchError(
            f"{error} The address asked was {address} and the model {self.model!r}: the URL as a rule ends in /v1, and "
            "the model must be one that the server lists under /v1/models.",
            provider=self.name,
            status=404,
            body=error.body,
        )

    def _join(self, parts: Sequence[Embeddings]) -> Embeddings:
        widths = {part.vectors.shape[1] for part in parts}
        if len(widths) > 1:
            raise SearchError(
                f"{self.name}: the model {self.model!r} gave vectors of different dimensions: {sorted(widths)}.",
                provider=self.name,
                status=200,
            )
        return Embeddings(np.concatenate([part.vectors for part in parts]), sum(part.shortened for part in parts))

    @staticmethod
    def _clean(prefix: str, text: str) -> str:
        # Servers refuse lone surrogates and empty inputs.
        return (prefix + text).encode("utf-8", "replace").decode("utf-8") or " "


def _is_too_long(error: SearchError) -> bool:
    pattern = _TOO_LONG if error.status in _TOO_LONG_STATUSES else _TOO_LARGE if error.status == 500 else None
    return pattern is not None and bool(pattern.search(error.body))

"""Embedding a local index, so that it can be searched by meaning."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from retrieval.corpus.vectors import VectorsInfo


def embed_index(
    name: str,
    embedding_model: str,
    embeddings_url: str | None = None,
    *,
    batch_size: int = 64,
    concurrency: int = 4,
    query_prefix: str | None = None,
    passage_prefix: str | None = None,
    fresh: bool = False,
    on_progress: Callable[[int, int], None] | None = None,
) -> VectorsInfo:
    """Embed every passage of a local index; a killed call goes on where it stopped.

    Args:
        name: Name of the index.
        embedding_model: Name of the model as the server knows it.
        embeddings_url: Address of an OpenAI-compatible server, ending in `/v1`; by default the environment's
            EMBEDDINGS_URL.
        batch_size: Passages a request.
        concurrency: Requests in flight at once.
        query_prefix: Text in front of queries; by default what the model's family was trained with.
        passage_prefix: Text in front of passages; by default likewise.
        fresh: Do everything anew.
        on_progress: Called with the passages embedded so far and in all.

    Returns:
        What vectors there are now.

    Raises:
        DataError: There is no such index, or its folder cannot be written.
        OptionError: An option has an impossible value.
        SearchError: The embeddings server failed; the same call goes on where it stopped.
    """
    from retrieval.corpus.embeddings import EmbeddingsClient
    from retrieval.corpus.vector_building import build_vectors
    from runs.home import Home

    client = EmbeddingsClient(
        embeddings_url,
        embedding_model,
        query_prefix=query_prefix,
        passage_prefix=passage_prefix,
        batch_size=batch_size,
        concurrency=concurrency,
    )
    return build_vectors(Home().indexes / name, client, on_progress, fresh=fresh)

"""The ways to search a local index: lexical, dense, hybrid."""

from __future__ import annotations

from pathlib import Path
from typing import Literal, Protocol, get_args, runtime_checkable

from retrieval.base import Hit
from retrieval.corpus.local import CorpusReader, LocalSearch
from signatures.errors import OptionError

Mode = Literal["lexical", "dense", "hybrid"]
MODES: tuple[Mode, ...] = get_args(Mode)


@runtime_checkable
class CorpusSearch(Protocol):
    """A search over a local index, which can also read what it finds."""

    name: str
    directory: Path

    async def search(self, query: str, k: int) -> list[Hit]:
        """Search; see `retrieval.base.Search.search`."""
        ...

    def identity(self) -> str:
        """Return what changes the answers as one string."""
        ...

    def reader(self) -> CorpusReader:
        """Return the reader of the index's documents."""
        ...


def local_search(
    directory: str | Path,
    mode: str = "lexical",
    embeddings_url: str | None = None,
    embedding_model: str | None = None,
    rank_constant: int | None = None,
    depth: int | None = None,
) -> CorpusSearch:
    """Make a search over a local index.

    Args:
        directory: Folder of the index.
        mode: `lexical` (BM25), `dense` (vectors), or `hybrid` (both, joined by rank).
        embeddings_url: Address of the embeddings server, for the latter two; by default the environment's
            EMBEDDINGS_URL.
        embedding_model: Its model; by default the one that the passages were embedded with.
        rank_constant: Constant of the fusion, for `hybrid`; see `retrieval.corpus.hybrid`.
        depth: Hits taken from each list, for `hybrid`.

    Returns:
        The search; nothing is opened or connected yet.

    Raises:
        OptionError: The mode is unknown, or an option is given that it does not take.
    """
    if mode not in MODES:
        raise OptionError(f"Unknown search mode {mode!r}; known are: {', '.join(MODES)}.")
    embedding = {"embeddings_url": embeddings_url, "embedding_model": embedding_model}
    fusion = {"rank_constant": rank_constant, "depth": depth}
    _refuse(mode, {} if mode == "hybrid" else fusion)
    if mode == "lexical":
        _refuse(mode, embedding)
        return LocalSearch(directory)
    if mode == "dense":
        from retrieval.corpus.dense import DenseSearch

        return DenseSearch(directory, embeddings_url, embedding_model)
    from retrieval.corpus.hybrid import DEPTH, HybridSearch
    from retrieval.rank_fusion import RANK_CONSTANT

    return HybridSearch(
        directory,
        embeddings_url,
        embedding_model,
        rank_constant=RANK_CONSTANT if rank_constant is None else rank_constant,
        depth=DEPTH if depth is None else depth,
    )


def _refuse(mode: str, options: dict[str, str | None] | dict[str, int | None]) -> None:
    given = [name for name, value in options.items() if value is not None]
    if given:
        raise OptionError(
            f"{mode.capitalize()} search does not take {given[0]!r}; leave it out or choose another mode."
        )

"""Your own documents: searching a Tantivy index, and reading the documents it holds."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from urllib.parse import quote, unquote

from retrieval.base import Hit, Page
from retrieval.corpus.index import CorpusIndex, open_info
from retrieval.corpus.opened import Opened
from retrieval.corpus.snippets import snippet_around_match
from signatures.errors import DataError, ReadError, SearchError

SCHEME = "corpus://"

INLINE_DOCUMENTS = 100_000
"""An index with more documents is searched in a thread of its own."""


def corpus_url(name: str, document_id: str) -> str:
    """Return the address of a document.

    Args:
        name: Name of its corpus.
        document_id: Its id in the corpus.

    Returns:
        `corpus://NAME/ID`, the id URL-quoted.
    """
    return f"{SCHEME}{name}/{quote(document_id, safe='', errors='surrogatepass')}"


class LocalSearch:
    """BM25 search over an index on disk.

    It holds no connection until first used, so it survives pickling and deepcopy and costs nothing to make.

    Args:
        directory: Folder of the index, as `retrieval.corpus.index.build_index` made it.
    """

    name = "local"

    def __init__(self, directory: str | Path) -> None:
        self.directory = Path(directory)
        self.inline_documents = INLINE_DOCUMENTS
        self._index = Opened(partial(CorpusIndex, self.directory))

    async def search(self, query: str, k: int) -> list[Hit]:
        """Search; see `retrieval.base.Search.search`. A query of punctuation only has no hits."""
        try:
            index = self._index.get()
            # In a small index a search takes about a millisecond, less than a thread costs under load; in a large one
            # it would hold up all other chains.
            if len(index) <= self.inline_documents:
                return _search(index, query, k)
            return await asyncio.to_thread(_search, index, query, k)
        except (DataError, ValueError, OSError) as error:
            raise SearchError(str(error), provider=self.name) from error

    def identity(self) -> str:
        """Return corpus name, corpus hash, index format and version of the analysis.

        Raises:
            SearchError: There is no index.
        """
        try:
            info = open_info(self.directory)
        except DataError as error:
            raise SearchError(str(error), provider=self.name) from error
        return f"{self.name}:{info.name}:{info.corpus_hash}:{info.format_version}:{info.analysis_version}"

    def reader(self) -> CorpusReader:
        """Return the reader of this index's documents.

        Raises:
            SearchError: There is no index.
        """
        try:
            return CorpusReader({open_info(self.directory).name: self.directory})
        except DataError as error:
            raise SearchError(str(error), provider=self.name) from error


def _search(index: CorpusIndex, query: str, k: int) -> list[Hit]:
    name = index.info.name
    return [
        Hit(
            title=document.title,
            url=corpus_url(name, document.id),
            snippet=snippet_around_match(document.text, query),
            site=name,
        )
        for document in index.search(query, k)
    ]


class CorpusReader:
    """Reads documents of local indexes by their `corpus://NAME/ID` address.

    Args:
        directories: Folder of each index, by corpus name.
    """

    name = "corpus"

    def __init__(self, directories: Mapping[str, str | Path]) -> None:
        self.directories = {name: Path(directory) for name, directory in directories.items()}
        self._indexes = {name: Opened(partial(CorpusIndex, place)) for name, place in self.directories.items()}

    async def read(self, url: str) -> Page:
        """Read a document; see `retrieval.base.Reader.read`."""
        name, slash, quoted = url.removeprefix(SCHEME).partition("/")
        if not url.startswith(SCHEME) or not slash:
            raise self._error(f"{url!r:.300} is no document address; they look like {SCHEME}NAME/ID.", "unsupported")
        if name not in self.directories:
            known = ", ".join(sorted(self.directories)) or "none"
            raise self._error(f"There is no corpus {name!r:.100} for {url!r:.300}; there are: {known}.", "not_found")
        try:
            document = self._indexes[name].get().get(unquote(quoted, errors="surrogatepass"))
        except (DataError, ValueError, OSError) as error:
            raise self._error(str(error), "not_found") from error
        if document is None:
            raise self._error(f"The corpus {name!r} holds no document {url!r:.300}.", "not_found")
        return Page(url=url, text=document.text, title=document.title)

    def identity(self) -> str:
        """Return name and hash of each corpus.

        Raises:
            ReadError: One of the indexes is missing.
        """
        try:
            parts = [f"{name}:{open_info(folder).corpus_hash}" for name, folder in sorted(self.directories.items())]
        except DataError as error:
            raise self._error(str(error), "not_found") from error
        return f"{self.name}:{','.join(parts)}"

    def _error(self, message: str, reason: str) -> ReadError:
        return ReadError(message, reason=reason, provider=self.name)

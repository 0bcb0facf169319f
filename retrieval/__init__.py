"""Where knowledge comes from: search backends, page readers, the local index, passages and the cache."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from retrieval.backends.bing import BingSearch
    from retrieval.base import Hit, Page, Reader, Search
    from retrieval.cache import Cache
    from retrieval.cached import CachedReader, CachedSearch
    from retrieval.corpus.index import build_index
    from retrieval.corpus.local import CorpusReader, LocalSearch
    from retrieval.passages import best_window
    from retrieval.readers.web import WebReader
    from retrieval.registry import make_reader, make_search
    from retrieval.sync import run_sync

_HOMES = {
    "BingSearch": "retrieval.backends.bing",
    "Cache": "retrieval.cache",
    "CachedReader": "retrieval.cached",
    "CachedSearch": "retrieval.cached",
    "CorpusReader": "retrieval.corpus.local",
    "Hit": "retrieval.base",
    "LocalSearch": "retrieval.corpus.local",
    "Page": "retrieval.base",
    "Reader": "retrieval.base",
    "Search": "retrieval.base",
    "WebReader": "retrieval.readers.web",
    "best_window": "retrieval.passages",
    "build_index": "retrieval.corpus.index",
    "make_reader": "retrieval.registry",
    "make_search": "retrieval.registry",
    "run_sync": "retrieval.sync",
}

__all__ = [
    "BingSearch",
    "Cache",
    "CachedReader",
    "CachedSearch",
    "CorpusReader",
    "Hit",
    "LocalSearch",
    "Page",
    "Reader",
    "Search",
    "WebReader",
    "best_window",
    "build_index",
    "make_reader",
    "make_search",
    "run_sync",
]


def __getattr__(name: str) -> Any:
    """Import a public name from its module when it is first asked for."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    """List the public names."""
    return sorted(__all__)

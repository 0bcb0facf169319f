"""Where knowledge comes from: search backends, page readers, the local index, passages and the cache."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from retrieval.backends.bing import BingSearch
    from retrieval.backends.brave import BraveSearch
    from retrieval.backends.ddgs import DdgsSearch
    from retrieval.backends.litellm_search import LitellmSearch
    from retrieval.backends.retriever import RetrieverSearch
    from retrieval.backends.searxng import SearxngSearch
    from retrieval.backends.serper import SerperSearch
    from retrieval.backends.tavily import TavilySearch
    from retrieval.base import Hit, Page, Reader, Search, SearchReport
    from retrieval.blocking import BlockBenchmarkHosts
    from retrieval.cache import Cache, CachePolicy
    from retrieval.cached import CachedReader, CachedSearch
    from retrieval.corpus.dense import DenseSearch
    from retrieval.corpus.hybrid import HybridSearch
    from retrieval.corpus.index import build_index
    from retrieval.corpus.local import CorpusReader, LocalSearch
    from retrieval.fused import FusedSearch
    from retrieval.passages import best_window
    from retrieval.readers.chain import ReaderChain
    from retrieval.readers.jina import JinaReader
    from retrieval.readers.routed import RoutedReader
    from retrieval.readers.web import WebReader
    from retrieval.registry import make_reader, make_search
    from retrieval.sync import run_sync

_HOMES = {
    "BingSearch": "retrieval.backends.bing",
    "BlockBenchmarkHosts": "retrieval.blocking",
    "BraveSearch": "retrieval.backends.brave",
    "Cache": "retrieval.cache",
    "CachePolicy": "retrieval.cache",
    "CachedReader": "retrieval.cached",
    "CachedSearch": "retrieval.cached",
    "CorpusReader": "retrieval.corpus.local",
    "DdgsSearch": "retrieval.backends.ddgs",
    "DenseSearch": "retrieval.corpus.dense",
    "FusedSearch": "retrieval.fused",
    "Hit": "retrieval.base",
    "HybridSearch": "retrieval.corpus.hybrid",
    "JinaReader": "retrieval.readers.jina",
    "LitellmSearch": "retrieval.backends.litellm_search",
    "LocalSearch": "retrieval.corpus.local",
    "Page": "retrieval.base",
    "Reader": "retrieval.base",
    "ReaderChain": "retrieval.readers.chain",
    "RetrieverSearch": "retrieval.backends.retriever",
    "RoutedReader": "retrieval.readers.routed",
    "Search": "retrieval.base",
    "SearchReport": "retrieval.base",
    "SearxngSearch": "retrieval.backends.searxng",
    "SerperSearch": "retrieval.backends.serper",
    "TavilySearch": "retrieval.backends.tavily",
    "WebReader": "retrieval.readers.web",
    "best_window": "retrieval.passages",
    "build_index": "retrieval.corpus.index",
    "make_reader": "retrieval.registry",
    "make_search": "retrieval.registry",
    "run_sync": "retrieval.sync",
}

__all__ = [
    "BingSearch",
    "BlockBenchmarkHosts",
    "BraveSearch",
    "Cache",
    "CachePolicy",
    "CachedReader",
    "CachedSearch",
    "CorpusReader",
    "DdgsSearch",
    "DenseSearch",
    "FusedSearch",
    "Hit",
    "HybridSearch",
    "JinaReader",
    "LitellmSearch",
    "LocalSearch",
    "Page",
    "Reader",
    "ReaderChain",
    "RetrieverSearch",
    "RoutedReader",
    "Search",
    "SearchReport",
    "SearxngSearch",
    "SerperSearch",
    "TavilySearch",
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

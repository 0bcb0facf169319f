"""The search backends and page readers by name. A new one is one file plus one line here."""

from __future__ import annotations

import importlib
import inspect
import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, cast

from retrieval.base import Reader, Search
from retrieval.typed_options import typed_options
from signatures.errors import OptionError


@dataclass(frozen=True)
class Backend:
    """Where a backend or reader lives.

    Attributes:
        module: Module that holds it; imported when it is first made.
        factory: Its class or function there, whose keyword parameters are its options.
        summary: What it is, in one line, for help texts.
        needs: Environment variables it cannot do without.
        takes: Environment variables it heeds: addresses, optional keys.
    """

    module: str
    factory: str
    summary: str
    needs: tuple[str, ...] = ()
    takes: tuple[str, ...] = ()

    def options(self) -> dict[str, inspect.Parameter]:
        """Return the options it takes by name, with their types and defaults."""
        return dict(inspect.signature(self._load()).parameters)

    def make(self, name: str, options: Mapping[str, Any]) -> Any:
        """Make one.

        Args:
            name: Registered name, for error texts.
            options: Its options.

        Returns:
            The backend or reader.

        Raises:
            OptionError: It does not take one of the options, or needs one that is missing, or a value is of the wrong
                type.
        """
        known = self.options()
        for option in options:
            if option not in known:
                raise OptionError(f"{name!r} has no option {option!r}; it takes: {', '.join(known) or 'none'}.")
        for option, parameter in known.items():
            if parameter.default is inspect.Parameter.empty and option not in options:
                raise OptionError(f"{name!r} needs the option {option!r}.")
        made = self._load()
        return made(**typed_options(name, made, options))

    def missing(self, options: Mapping[str, Any]) -> tuple[str, ...]:
        """Return the environment variables that it cannot do without and that nothing sets.

        Args:
            options: Its options; `key` stands for the variable of a key, `endpoint` for that of an address.
        """
        return tuple(
            variable
            for variable in self.needs
            if not options.get("key" if is_key(variable) else "endpoint") and not os.environ.get(variable, "").strip()
        )

    def _load(self) -> Any:
        return getattr(importlib.import_module(self.module), self.factory)


SEARCHES: dict[str, Backend] = {
    "local": Backend(
        "retrieval.corpus.modes",
        "local_search",
        "an index of your own documents on disk: lexical, dense or hybrid",
        takes=("EMBEDDINGS_URL", "EMBEDDINGS_API_KEY"),
    ),
    "serper": Backend(
        "retrieval.backends.serper",
        "SerperSearch",
        "Google results by serper.dev",
        ("SERPER_API_KEY",),
        ("SERPER_URL",),
    ),
    "brave": Backend(
        "retrieval.backends.brave", "BraveSearch", "the Brave Search API", ("BRAVE_API_KEY",), ("BRAVE_URL",)
    ),
    "tavily": Backend(
        "retrieval.backends.tavily", "TavilySearch", "the Tavily search API", ("TAVILY_API_KEY",), ("TAVILY_URL",)
    ),
    "searxng": Backend(
        "retrieval.backends.searxng", "SearxngSearch", "a SearXNG instance of your own", ("SEARXNG_URL",)
    ),
    "ddgs": Backend(
        "retrieval.backends.ddgs",
        "DdgsSearch",
        "several public engines without a key (the ddgs package)",
        takes=("DDGS_PROXY",),
    ),
    "bing": Backend(
        "retrieval.backends.bing",
        "BingSearch",
        "the Bing v7 request and reply shape at BING_ENDPOINT",
        ("BING_ENDPOINT", "BING_KEY"),
    ),
    "retriever": Backend(
        "retrieval.backends.retriever",
        "RetrieverSearch",
        "a retrieval server of Search-R1, FlashRAG or ReCall",
        ("RETRIEVER_URL",),
    ),
    "litellm": Backend(
        "retrieval.backends.litellm_search",
        "LitellmSearch",
        "any search provider that LiteLLM knows, as litellm:PROVIDER",
        takes=("LITELLM_SEARCH_BASE_URL",),
    ),
}
READERS: dict[str, Backend] = {
    "corpus": Backend("retrieval.corpus.local", "CorpusReader", "documents of local indexes, corpus://NAME/ID"),
    "web": Backend("retrieval.readers.web", "WebReader", "web pages: HTML, plain text and PDF"),
    "jina": Backend(
        "retrieval.readers.jina", "JinaReader", "the Jina Reader service", takes=("JINA_API_KEY", "JINA_URL")
    ),
}


def make_search(name: str, /, **options: Any) -> Search:
    """Make a search backend.

    Args:
        name: One of `SEARCHES`; `litellm:PROVIDER` names a provider of LiteLLM's.
        **options: What that backend takes.

    Returns:
        The backend; nothing is opened or connected yet.

    Raises:
        OptionError: The name or an option is unknown, a needed one is missing, or a value is of the wrong type.
    """
    family, colon, provider = name.partition(":")
    if colon and family == "litellm":
        options = {"provider": provider, **options}
        name = family
    return cast(Search, _find(SEARCHES, name, "search backend").make(name, options))


def make_reader(name: str, /, **options: Any) -> Reader:
    """Make a page reader.

    Args:
        name: One of `READERS`.
        **options: What that reader takes.

    Returns:
        The reader; nothing is opened or connected yet.

    Raises:
        OptionError: The name or an option is unknown, a needed one is missing, or a value is of the wrong type.
    """
    return cast(Reader, find_reader(name).make(name, options))


def is_key(variable: str) -> bool:
    """Tell whether an environment variable holds a key rather than an address."""
    return variable.endswith("KEY")


def find_search(name: str) -> Backend:
    """Return what is registered for the name of a search backend, `litellm:PROVIDER` included.

    Raises:
        OptionError: The name is unknown.
    """
    family, colon, _ = name.partition(":")
    return _find(SEARCHES, family if colon and family == "litellm" else name, "search backend")


def find_reader(name: str) -> Backend:
    """Return what is registered for the name of a page reader.

    Raises:
        OptionError: The name is unknown.
    """
    return _find(READERS, name, "page reader")


def _find(registry: Mapping[str, Backend], name: str, what: str) -> Backend:
    if name not in registry:
        raise OptionError(f"Unknown {what} {name!r}; known are: {', '.join(sorted(registry))}.")
    return registry[name]

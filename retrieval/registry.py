"""The search backends and page readers by name. A new one is one file plus one line here."""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, cast

from retrieval.base import Reader, Search
from signatures.errors import OptionError


@dataclass(frozen=True)
class Backend:
    """Where a backend or reader lives.

    Attributes:
        module: Module that holds it; imported when it is first made.
        factory: Its class or function there, whose keyword parameters are its options.
        summary: What it is, in one line, for help texts.
    """

    module: str
    factory: str
    summary: str

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
            OptionError: It does not take one of the options, or needs one that is missing.
        """
        known = self.options()
        for option in options:
            if option not in known:
                raise OptionError(f"{name!r} has no option {option!r}; it takes: {', '.join(known) or 'none'}.")
        for option, parameter in known.items():
            if parameter.default is inspect.Parameter.empty and option not in options:
                raise OptionError(f"{name!r} needs the option {option!r}.")
        return self._load()(**options)

    def _load(self) -> Any:
        return getattr(importlib.import_module(self.module), self.factory)


SEARCHES: dict[str, Backend] = {
    "local": Backend("retrieval.corpus.local", "LocalSearch", "a Tantivy index of your own documents, on disk"),
    "bing": Backend("retrieval.backends.bing", "BingSearch", "the Bing v7 request and reply shape at BING_ENDPOINT"),
}
READERS: dict[str, Backend] = {
    "corpus": Backend("retrieval.corpus.local", "CorpusReader", "documents of local indexes, corpus://NAME/ID"),
    "web": Backend("retrieval.readers.web", "WebReader", "web pages: HTML, plain text and PDF"),
}


def make_search(name: str, **options: Any) -> Search:
    """Make a search backend.

    Args:
        name: One of `SEARCHES`.
        **options: What that backend takes.

    Returns:
        The backend; nothing is opened or connected yet.

    Raises:
        OptionError: The name or an option is unknown, or a needed one is missing.
    """
    return cast(Search, _find(SEARCHES, name, "search backend").make(name, options))


def make_reader(name: str, **options: Any) -> Reader:
    """Make a page reader.

    Args:
        name: One of `READERS`.
        **options: What that reader takes.

    Returns:
        The reader; nothing is opened or connected yet.

    Raises:
        OptionError: The name or an option is unknown, or a needed one is missing.
    """
    return cast(Reader, _find(READERS, name, "page reader").make(name, options))


def _find(registry: Mapping[str, Backend], name: str, what: str) -> Backend:
    if name not in registry:
        raise OptionError(f"Unknown {what} {name!r}; known are: {', '.join(sorted(registry))}.")
    return registry[name]

"""Carries out the operations of a chain, once with blocking calls and once with asyncio.

The loop of a program (programs/chain.py, programs/refine.py) knows nothing of IO; this is the only place where its
operations meet a language model, a search backend or a reader.
"""

from __future__ import annotations

import asyncio
import time
from typing import Any, TypeVar

from programs.language_model import ChainModel
from programs.operations import (
    CallPredictor,
    CountTokens,
    Generate,
    HoldBack,
    Operation,
    PageReply,
    ReadPages,
    SearchFor,
    SearchReply,
    Steps,
)
from retrieval.base import Reader, Search, report_search
from retrieval.sync import run_sync
from signatures.errors import OptionError, ReadError, SearchError, SearchO1Error

T = TypeVar("T")


class Driver:
    """Runs a loop of operations against one language model, one search backend and one reader.

    Args:
        model: The language model as chains use it, or None for loops that only retrieve.
        search: Search backend, or None for programs that do not search.
        reader: Page reader, or None for programs that do not read.
    """

    def __init__(self, model: ChainModel | None, search: Search | None = None, reader: Reader | None = None) -> None:
        self._model = model
        self.search = search
        self.reader = reader

    @property
    def model(self) -> ChainModel:
        """The language model."""
        assert self._model is not None, "this loop was given no language model"
        return self._model

    def run(self, steps: Steps[T]) -> T:
        """Run a loop with blocking calls and return its result; an operation's error is raised inside the loop."""
        result: Any = None
        error: Exception | None = None
        while True:
            try:
                operation = steps.send(result) if error is None else steps.throw(error)
            except StopIteration as done:
                return done.value  # type: ignore[no-any-return]
            result, error = None, None
            try:
                result = self._perform(operation)
            except Exception as exc:
                error = exc

    async def arun(self, steps: Steps[T]) -> T:
        """Run a loop on the running event loop; result and errors as in `run`."""
        result: Any = None
        error: Exception | None = None
        while True:
            try:
                operation = steps.send(result) if error is None else steps.throw(error)
            except StopIteration as done:
                return done.value  # type: ignore[no-any-return]
            result, error = None, None
            try:
                result = await self._aperform(operation)
            except Exception as exc:
                error = exc

    def _perform(self, operation: Operation) -> Any:
        match operation:
            case Generate():
                return self.model.generate(operation)
            case CountTokens():
                return self.model.count(operation)
            case HoldBack():
                return self.model.hold_back(operation.text)
            case CallPredictor():
                return operation.predictor(**operation.inputs)
            case SearchFor() | ReadPages():
                return run_sync(self._aperform(operation))

    async def _aperform(self, operation: Operation) -> Any:
        match operation:
            case Generate():
                return await self.model.agenerate(operation)
            case CountTokens():
                return await self.model.acount(operation)
            case HoldBack():
                return await self.model.ahold_back(operation.text)
            case CallPredictor():
                return await operation.predictor.acall(**operation.inputs)
            case SearchFor():
                return await self._search(operation)
            case ReadPages():
                return list(await asyncio.gather(*(self._read(url) for url in operation.urls)))

    async def _search(self, operation: SearchFor) -> SearchReply:
        if self.search is None:
            raise OptionError(
                "This program searches, and it was given no search backend; pass search=LocalSearch(...) or another."
            )
        try:
            report = await report_search(self.search, operation.query, operation.k)
        except SearchO1Error:
            raise
        except Exception as error:
            # A foreign backend's mistake must not cost the chain; its text may hold anything, a key too.
            name = self.search.name
            raise SearchError(f"{name}: the search failed with {type(error).__name__}.", provider=name) from error
        return SearchReply(list(report.hits)[: operation.k], report.cached, self.search.name, tuple(report.failures))

    async def _read(self, url: str) -> PageReply:
        if self.reader is None:
            raise OptionError(
                "This program reads pages, and it was given no reader; pass reader=WebReader() or another."
            )
        started = time.time()
        try:
            with_origin = getattr(self.reader, "read_with_origin", None)
            page, cached = await with_origin(url) if with_origin is not None else (await self.reader.read(url), False)
        except ReadError as error:
            return PageReply(url, None, error, False, started, time.time())
        except SearchO1Error:
            raise
        except Exception as error:
            name = self.reader.name
            failure = ReadError(f"{name}: reading {url!r:.300} failed with {type(error).__name__}.", provider=name)
            failure.__cause__ = error
            return PageReply(url, None, failure, False, started, time.time())
        return PageReply(url, page, None, cached, started, time.time())

"""Looking out for the benchmark's own questions in what is searched and read while a run answers them.

Page texts stay in no record, so they are looked at where they pass: search and reader of an evaluation are wrapped, and
a context variable says which question is being answered.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from metrics.contamination import Flag, QuestionFingerprint, benchmark_mirror
from retrieval.base import Hit, Page, Reader, Search, SearchReport, report_search
from retrieval.fused import reader_beside
from runs.benchmarks.question import Question

KINDS = ("question_and_answer", "question", "mirror")
"""Kinds of flags, the gravest first."""


class Watch:
    """Collects the flags of one question while it is answered.

    Args:
        question: The question.

    Attributes:
        hits_blocked: Hits that `BlockBenchmarkHosts` removed.
    """

    def __init__(self, question: Question) -> None:
        self._fingerprint = QuestionFingerprint(question.question, _answers(question))
        self._found: dict[tuple[str, bool], Flag] = {}
        self._queries: dict[str, str] = {}
        self.hits_blocked = 0

    def see_hits(self, hits: Iterable[Hit], query: str) -> None:
        """Look at what a search gave: titles, snippets, and texts that hits bring themselves."""
        for hit in hits:
            self._queries.setdefault(hit.url, query)
            self._add(self._fingerprint.check(hit.url, hit.title, f"{hit.snippet}\n{hit.text}"))

    def see_page(self, page: Page) -> None:
        """Look at a page that was read, and at where its address led."""
        self._add(self._fingerprint.check(page.url, page.title, page.text))
        if mirror := benchmark_mirror(str(page.meta.get("final_url") or "")):
            self._add([Flag(page.url, "mirror", 0.0, mirror)])

    def flags(self) -> list[dict[str, Any]]:
        """Return what was found as the record keeps it.

        Returns:
            For each flag `url`, `kind`, `overlap` (0 to 1) and, where there is one, `mirror` (what kind of place) and
            `query` (the first whose hits held the page).
        """
        return [
            {name: value for name, value in {**flag.to_dict(), "query": self._queries.get(flag.url)}.items() if value}
            | {"overlap": flag.overlap}
            for flag in self._found.values()
        ]

    def _add(self, flags: Iterable[Flag]) -> None:
        for flag in flags:
            key = flag.url, flag.kind == "mirror"
            known = self._found.get(key)
            if known is None or _gravity(flag) > _gravity(known):
                self._found[key] = flag


_watch: ContextVar[Watch | None] = ContextVar("search_o1_watch", default=None)


@contextmanager
def watching(question: Question) -> Iterator[Watch]:
    """Look out for a question in everything searched and read while this block runs, its tasks included.

    Args:
        question: The question.

    Yields:
        The watch, which holds the flags.
    """
    watch = Watch(question)
    token = _watch.set(watch)
    try:
        yield watch
    finally:
        _watch.reset(token)


class WatchedSearch:
    """A search backend whose hits are looked at; outside `watching` it only passes them on.

    Args:
        inner: The backend, as the programs would use it.
    """

    def __init__(self, inner: Search) -> None:
        self.inner = inner
        self.name = inner.name

    async def search(self, query: str, k: int) -> list[Hit]:
        """Search; see `retrieval.base.Search.search`."""
        return (await self.search_with_report(query, k)).hits

    async def search_with_report(self, query: str, k: int) -> SearchReport:
        """Search; report and errors are the backend's."""
        report = await report_search(self.inner, query, k)
        if (watch := _watch.get()) is not None:
            watch.see_hits(report.hits[:k], query)
            watch.hits_blocked += len(getattr(report, "removed", ()))
        return report

    def identity(self) -> str:
        """Return the backend's identity: looking changes no answer."""
        return self.inner.identity()

    def reader(self) -> Reader:
        """Return the reader of what is found, watched as well."""
        return WatchedReader(reader_beside(self.inner))


class WatchedReader:
    """A page reader whose pages are looked at; outside `watching` it only passes them on.

    Args:
        inner: The reader, as the programs would use it.
    """

    def __init__(self, inner: Reader) -> None:
        self.inner = inner
        self.name = inner.name

    async def read(self, url: str) -> Page:
        """Read a page; see `retrieval.base.Reader.read`."""
        return (await self.read_with_origin(url))[0]

    async def read_with_origin(self, url: str) -> tuple[Page, bool]:
        """Read a page, and tell whether its reader was spared by a cache; errors are the reader's."""
        with_origin = getattr(self.inner, "read_with_origin", None)
        page, cached = await with_origin(url) if with_origin is not None else (await self.inner.read(url), False)
        if (watch := _watch.get()) is not None:
            watch.see_page(page)
        return page, cached

    def identity(self) -> str:
        """Return the reader's identity: looking changes no page."""
        return self.inner.identity()


def contamination_kinds(record: Mapping[str, Any]) -> list[str]:
    """Return the kinds of flags that a record has, the gravest first.

    Args:
        record: A question's record; one from a journal of an earlier version has none.
    """
    found = {flag["kind"] for flag in record.get("contamination") or []}
    return [kind for kind in KINDS if kind in found]


def _gravity(flag: Flag) -> tuple[int, float]:
    return -KINDS.index(flag.kind), flag.overlap


def _answers(question: Question) -> tuple[str, ...]:
    """Return what a page that gives the answer away would say: the text of a choice, not its letter."""
    letters = [ord(answer.upper()) - ord("A") for answer in question.answers if len(answer) == 1]
    texts = tuple(question.choices[place] for place in letters if 0 <= place < len(question.choices))
    return texts or question.answers

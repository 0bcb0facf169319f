"""Each scheme goes to its reader; what none knows is an error of the last one asked."""

from __future__ import annotations

import copy
import pickle

import pytest

from retrieval.base import Page, Reader
from retrieval.readers.routed import RoutedReader
from signatures.errors import ReadError


class Shelf:
    """Reads the URLs it knows; tells their origin if `cached` is set."""

    def __init__(self, name: str, known: tuple[str, ...] = (), reason: str = "not_found") -> None:
        self.name = name
        self.known = known
        self.reason = reason
        self.asked: list[str] = []

    async def read(self, url: str) -> Page:
        self.asked.append(url)
        if url not in self.known:
            raise ReadError(f"{self.name}: no {url}", reason=self.reason, provider=self.name)
        return Page(url, f"{self.name} text")

    def identity(self) -> str:
        return f"{self.name}:1"


class CachedShelf(Shelf):
    async def read_with_origin(self, url: str) -> tuple[Page, bool]:
        return await self.read(url), True


async def test_the_scheme_chooses_the_reader() -> None:
    corpus, web = Shelf("corpus", ("corpus://n/1", "CORPUS://n/2")), CachedShelf("web", ("https://a.example/",))
    reader = RoutedReader({"Corpus": corpus}, web)
    assert isinstance(reader, Reader)
    assert (await reader.read("corpus://n/1")).text == "corpus text"
    assert await reader.read_with_origin("CORPUS://n/2") == (Page("CORPUS://n/2", "corpus text"), False)
    assert await reader.read_with_origin("https://a.example/") == (Page("https://a.example/", "web text"), True)
    assert (reader.name, reader.identity()) == ("corpus+web", "routed(corpus=corpus:1|web:1)")


@pytest.mark.parametrize("url", ["", "no address", "corpus", "corpusx://n/1", "//corpus://n/1"])
async def test_everything_else_goes_to_the_default(url: str) -> None:
    corpus, web = Shelf("corpus"), Shelf("web")
    with pytest.raises(ReadError, match="web: no"):
        await RoutedReader({"corpus": corpus}, web).read(url)
    assert (corpus.asked, web.asked) == ([], [url])


async def test_several_readers_of_a_scheme_are_asked_in_turn() -> None:
    first, second, web = Shelf("corpus", ("corpus://a/1",)), Shelf("corpus", ("corpus://b/1",)), Shelf("web")
    reader = RoutedReader([("corpus", first), ("corpus", second)], web)
    assert (await reader.read("corpus://b/1")).text == "corpus text"
    assert await reader.read("corpus://a/1")
    assert second.asked == ["corpus://b/1"]
    with pytest.raises(ReadError):
        await reader.read("corpus://c/1")
    assert web.asked == []


async def test_a_failure_other_than_not_found_ends_the_search() -> None:
    first, second = Shelf("corpus", reason="timeout"), Shelf("corpus", ("corpus://a/1",))
    with pytest.raises(ReadError) as caught:
        await RoutedReader([("corpus", first), ("corpus", second)], Shelf("web")).read("corpus://a/1")
    assert (caught.value.reason, second.asked) == ("timeout", [])


async def test_it_survives_pickling_and_deepcopy() -> None:
    reader = RoutedReader({"corpus": Shelf("corpus", ("corpus://n/1",))}, Shelf("web"))
    for twin in (pickle.loads(pickle.dumps(reader)), copy.deepcopy(reader)):
        assert await twin.read("corpus://n/1") == await reader.read("corpus://n/1")
        assert twin.identity() == reader.identity()

from __future__ import annotations

import json
import pickle
from dataclasses import dataclass, field
from typing import Any

import pytest

from retrieval.base import Page, Reader
from retrieval.http.client import Limits
from retrieval.http.rates import forget_buckets
from retrieval.readers.chain import ReaderChain
from retrieval.readers.jina import JinaReader
from retrieval.readers.web import WebReader
from signatures.errors import OptionError, ReadError
from tests.servers.jina_server import JinaServer, jina_error, jina_page
from tests.servers.web import Answer, WebServer

QUICK = Limits(connect_s=2, read_s=1, total_s=2, attempts=1, backoff_s=0.01)
TEXT = "Lake Oirn is a small lake in the north. It is fed by the Sarn."
WALL = "<html><head><title>Just a moment...</title></head><body>Enable JavaScript and cookies to continue</body></html>"


@dataclass
class Scripted:
    """A reader that answers what it was told."""

    name: str
    answer: Page | ReadError
    asked: list[str] = field(default_factory=list)

    async def read(self, url: str) -> Page:
        self.asked.append(url)
        if isinstance(self.answer, ReadError):
            raise self.answer
        return self.answer

    def identity(self) -> str:
        return f"{self.name}:1"


def fails(name: str, reason: str) -> Scripted:
    return Scripted(name, ReadError(f"{name}: it is {reason}.", reason=reason, provider=name, status=418))


def reads(name: str) -> Scripted:
    return Scripted(name, Page("https://example.org/", TEXT, meta={"final_url": "x"}))


def web_and_jina(service: JinaServer, **web: Any) -> ReaderChain:
    forget_buckets()
    jina = JinaReader(endpoint=service.url, requests_per_minute=6000, allow_private=True, limits=QUICK)
    return ReaderChain([WebReader(limits=QUICK, **{"allow_private": True, **web}), jina])


async def test_the_first_reader_that_reads_serves_the_page() -> None:
    first, second = reads("a"), reads("b")
    chain = ReaderChain([first, second])
    assert isinstance(chain, Reader)
    page = await chain.read("https://example.org/")
    assert page.text == TEXT
    assert page.meta == {"final_url": "x", "reader": "a", "failed_readers": []}
    assert second.asked == []


async def test_a_wall_sends_the_page_on_to_the_service() -> None:
    with WebServer(pages={"/a": WALL}) as site:
        url = site.url + "/a"
        with JinaServer({url: jina_page(TEXT, "Oirn")}) as service:
            page = await web_and_jina(service).read(url)
    assert (page.text, page.title, page.meta["reader"]) == (TEXT, "Oirn", "jina")
    (failed,) = page.meta["failed_readers"]
    assert (failed["reader"], failed["reason"]) == ("web", "bot_wall")
    assert json.loads(json.dumps(page.to_dict()))["meta"] == page.meta


async def test_an_address_that_the_guard_refuses_never_reaches_the_service() -> None:
    with WebServer(pages={"/a": TEXT}) as site, JinaServer({site.url + "/a": jina_page("secret")}) as service:
        with pytest.raises(ReadError) as caught:
            await web_and_jina(service, allow_private=False).read(site.url + "/a")
        assert caught.value.reason == "refused"
        assert (service.requests, site.requests) == ([], [])


async def test_a_page_that_does_not_exist_is_not_asked_for_again() -> None:
    with WebServer() as site, JinaServer({}) as service:
        with pytest.raises(ReadError) as caught:
            await web_and_jina(service).read(site.url + "/gone")
        assert (caught.value.reason, caught.value.status) == ("not_found", 404)
        assert service.requests == []


async def test_when_all_fail_every_reason_is_told_and_the_page_s_own_counts() -> None:
    with WebServer(pages={"/a": WALL}) as site:
        url = site.url + "/a"
        spent = jina_error(402, "InsufficientBalanceError", "please recharge")
        with JinaServer({url: spent}) as service, pytest.raises(ReadError) as caught:
            await web_and_jina(service).read(url)
    error = caught.value
    assert (error.reason, error.provider, error.status) == ("bot_wall", "web", 200)
    assert "check for robots" in str(error)
    assert "balance is spent" in str(error)
    assert url in str(error)


@pytest.mark.parametrize(
    ("reasons", "counted"),
    [
        (["timeout", "http"], "http"),
        (["bot_wall", "timeout"], "bot_wall"),
        (["bot_wall", "login_wall", "quota"], "login_wall"),
        (["timeout", "empty"], "empty"),
        (["bot_wall", "not_found"], "not_found"),
        (["unsupported", "refused"], "refused"),
        (["not_found", "bot_wall"], "not_found"),
    ],
)
async def test_the_most_telling_reason_counts(reasons: list[str], counted: str) -> None:
    readers = [fails(f"r{number}", reason) for number, reason in enumerate(reasons)]
    with pytest.raises(ReadError) as caught:
        await ReaderChain(readers).read("https://example.org/")
    assert caught.value.reason == counted
    asked = [reader for reader in readers if reader.asked]
    assert all(f"it is {reasons[readers.index(reader)]}." in str(caught.value) for reader in asked)


def test_a_chain_of_none_is_refused() -> None:
    with pytest.raises(OptionError, match="at least one"):
        ReaderChain([])


async def test_it_survives_pickling_and_joins_names_and_identities() -> None:
    chain = ReaderChain([WebReader(), JinaReader()])
    assert chain.name == "web,jina"
    assert chain.identity() == f"{WebReader().identity()} then {JinaReader().identity()}"
    assert pickle.loads(pickle.dumps(chain)).identity() == chain.identity()
    assert ReaderChain([JinaReader(), WebReader()]).identity() != chain.identity()


async def test_an_unreadable_answer_of_the_site_with_an_error_status_falls_through() -> None:
    with WebServer(pages={"/a": Answer(WALL, status=403)}) as site:
        url = site.url + "/a"
        with JinaServer({url: jina_page(TEXT)}) as service:
            page = await web_and_jina(service).read(url)
    assert page.meta["failed_readers"][0]["reason"] == "bot_wall"


async def test_a_page_from_the_cache_of_one_of_its_readers_is_told_so() -> None:
    class Kept(Scripted):
        async def read_with_origin(self, url: str) -> tuple[Page, bool]:
            return await self.read(url), True

    kept = Kept("kept", Page("https://example.org/", TEXT))
    assert (await ReaderChain([fails("a", "timeout"), kept]).read_with_origin("https://example.org/"))[1] is True
    assert (await ReaderChain([reads("a"), kept]).read_with_origin("https://example.org/"))[1] is False

"""Search and reader of a run, put together from what a person set."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from retrieval.blocking import BlockBenchmarkHosts
from retrieval.cached import CachedReader, CachedSearch
from retrieval.corpus.local import CorpusReader, LocalSearch
from retrieval.fused import FusedSearch
from retrieval.readers.chain import ReaderChain
from retrieval.readers.routed import RoutedReader
from runs.contamination import WatchedSearch
from runs.home import Home
from runs.retrieval_setup import Retrieval, assemble_retrieval, content_digest, index_name
from runs.settings import RetrievalSettings, make_settings
from signatures.errors import OptionError, ReadError, SearchO1Error
from tests.runs.world import command, corpus_file
from tests.servers.web import WebServer


@pytest.fixture(autouse=True)
def keys(monkeypatch: pytest.MonkeyPatch) -> None:
    for variable in ("SERPER_API_KEY", "BING_KEY"):
        monkeypatch.setenv(variable, "k")
    monkeypatch.setenv("BING_ENDPOINT", "http://127.0.0.1:9/search")


def assemble(folder: Path, **given: Any) -> Retrieval:
    settings: RetrievalSettings = make_settings(RetrievalSettings, given)
    return assemble_retrieval(settings, Home(folder / "home"), lambda line: None)


def test_local_documents_are_searched_and_read_without_a_cache(tmp_path: Path) -> None:
    retrieval = assemble(tmp_path, corpus=corpus_file(tmp_path, 3))
    assert isinstance(retrieval.search, LocalSearch)
    assert isinstance(retrieval.reader, CorpusReader)
    assert retrieval.corpus_hash
    assert retrieval.corpus_hash in retrieval.identity


def test_a_network_backend_and_its_reader_are_cached_and_can_be_left_uncached(tmp_path: Path) -> None:
    cached = assemble(tmp_path, search="serper")
    assert isinstance(cached.search, CachedSearch)
    assert isinstance(cached.reader, CachedReader)
    bare = assemble(tmp_path, search="serper", cached=False)
    assert (bare.search.name, bare.reader.name) == ("serper", "web")
    assert not isinstance(bare.search, CachedSearch)
    assert cached.identity == bare.identity


def test_several_backends_are_fused_and_each_is_cached_by_itself(tmp_path: Path) -> None:
    retrieval = assemble(tmp_path, search="serper, local", corpus=corpus_file(tmp_path, 3))
    search = retrieval.search
    assert isinstance(search, FusedSearch)
    assert [type(inner) for inner in search.searches] == [CachedSearch, LocalSearch]
    assert isinstance(retrieval.reader, RoutedReader)


def test_local_documents_beside_the_web_are_read_from_their_index(tmp_path: Path) -> None:
    retrieval = assemble(tmp_path, search="serper,local", corpus=corpus_file(tmp_path, 3))
    page = asyncio.run(retrieval.reader.read("corpus://library/d1"))
    assert "directed by Director Bergen 01" in page.text
    with pytest.raises(ReadError, match="not a public address"):
        asyncio.run(retrieval.reader.read("http://127.0.0.1/"))


def test_readers_named_together_are_a_chain_and_private_addresses_are_for_all_of_them(tmp_path: Path) -> None:
    retrieval = assemble(tmp_path, search="bing", reader="web,jina", allow_private=True, cached=False)
    assert isinstance(retrieval.reader, ReaderChain)
    with WebServer(pages={"/p": "<p>A private page with one sentence that is read.</p>"}) as server:
        assert "private page" in asyncio.run(retrieval.reader.read(server.url + "/p")).text


def test_options_reach_the_backend_they_name(tmp_path: Path) -> None:
    one = assemble(tmp_path, search="bing", search_options={"market": "zh-CN"}, reader_options={"page_chars": 100})
    assert "zh-CN" in one.identity
    assert "web:100" in one.identity
    two = assemble(tmp_path, search="bing,serper", search_options={"bing.market": "de-DE", "serper.country": "fr"})
    assert "de-DE" in two.identity
    assert "fr" in two.identity


@pytest.mark.parametrize(
    ("given", "text"),
    [
        ({"search": "gogle"}, "Unknown search backend 'gogle'; known are: bing, brave"),
        ({"search": " , "}, "No search backend is named"),
        ({"search": "bing", "reader": "weeb"}, "Unknown page reader 'weeb'"),
        ({"search": "bing", "search_options": {"speed": 1}}, "'bing' has no option 'speed'"),
        ({"search": "bing,serper", "search_options": {"market": "x"}}, "say which is meant: bing.market="),
        ({"search": "bing", "search_options": {"brave.country": "x"}}, "'brave' is not used in this run"),
        ({}, "Search `local` needs documents"),
        ({"corpus": Path("nowhere.jsonl")}, "No corpus file or folder at nowhere.jsonl"),
        ({"index": "nothing"}, "No index 'nothing'; there are: none yet"),
        ({"search": "bing", "max_age": "a while"}, "'a while' is no age"),
        ({"search": "brave"}, "brave: the environment variable BRAVE_API_KEY is not set."),
        ({"search": "bing,searxng"}, "searxng: the environment variable SEARXNG_URL is not set."),
        ({"search": "bing", "search_options": {"market": 5.5, "language": []}}, "language = []"),
        ({"search_options": {"directory": "/etc"}, "corpus": Path(__file__)}, "is set by --index or --corpus"),
        ({"search_options": {"mode": "dense"}, "corpus": Path(__file__)}, "'mode' is set by --mode"),
        ({"index": ""}, "No index ''"),
        ({"index": "."}, "No index '.'"),
        ({"index": "../indexes"}, "No index '../indexes'"),
    ],
)
def test_mistakes_are_named_before_anything_runs(tmp_path: Path, given: dict[str, Any], text: str) -> None:
    with pytest.raises(OptionError) as caught:
        assemble(tmp_path, **given)
    assert text in str(caught.value)


def test_a_folder_of_documents_is_a_corpus_and_an_edit_makes_another_index(tmp_path: Path) -> None:
    folder = tmp_path / "notes"
    folder.mkdir()
    (folder / "a.md").write_text("# Hafnium\n\nHafnium was found in Copenhagen in 1923.")
    (folder / "b.txt").write_text("Rhenium was found in Berlin in 1925.")
    first = assemble(tmp_path, corpus=folder)
    hits = asyncio.run(first.search.search("Where was hafnium found?", 1))
    assert hits[0].title == "Hafnium"
    before = content_digest(folder)
    (folder / "b.txt").write_text("Rhenium was found in Berlin and named after the Rhine.")
    assert content_digest(folder) != before
    assert assemble(tmp_path, corpus=folder).corpus_hash != first.corpus_hash


def test_blocked_hosts_and_the_watch_lie_outside_the_cache(tmp_path: Path) -> None:
    settings: RetrievalSettings = make_settings(RetrievalSettings, {"search": "bing", "block_benchmark_hosts": True})
    plain = assemble(tmp_path, search="bing")
    watched = assemble_retrieval(settings, Home(tmp_path / "home"), lambda line: None, watched=True)
    assert isinstance(watched.search, WatchedSearch)
    assert isinstance(watched.search.inner, BlockBenchmarkHosts)
    assert watched.identity != plain.identity


def test_names_of_indexes_are_safe_parts_of_an_address(tmp_path: Path) -> None:
    assert index_name(tmp_path / "my corpus.v2.jsonl.gz") == "my-corpus"
    assert index_name(tmp_path / "set" / "corpus.jsonl") == "set"
    assert index_name(tmp_path / "...") == "corpus"


def test_the_command_line_takes_backends_readers_and_their_options(films, tmp_path: Path) -> None:
    world = films(2)
    hits = [{"title": "Sunrise over Arden 00", "url": "/a", "snippet": "It was directed by"}]
    text = "<p>Sunrise over Arden 00 is a film. It was directed by Director Arden 00 in a cold winter.</p>"
    with WebServer(default_hits=hits, pages={"/a": text}) as server:
        done = command(
            *world.arguments("--no-track", "--search", "bing,local", "--search-option", "bing.market=de-DE"),
            *("--reader", "web,jina", "--reader-option", "web.page_chars=500", "--allow-private", "--limit", "1"),
            home=world.home.root, BING_ENDPOINT=server.search_url, BING_KEY="k",
        )  # fmt: skip
        assert done.exit_code == 0, done.output
        assert server.requests[0].query["mkt"] == "de-DE"
        assert server.count("/a") == 1
        again = command(
            *world.arguments("--no-track", "--search", "bing,local", "--search-option", "bing.market=de-DE"),
            *("--reader", "web,jina", "--reader-option", "web.page_chars=500", "--allow-private", "--limit", "1"),
            "--replay", home=world.home.root, BING_ENDPOINT=server.search_url, BING_KEY="k",
        )  # fmt: skip
        assert "search_o1: 1 of 1 chains equal the recording byte for byte" in again.output
        assert len(server.requests) == 2
    wrong = command(*world.arguments("--search-option", "market"), home=world.home.root)
    assert wrong.exit_code == 2
    assert "--search-option 'market': expected NAME=VALUE" in wrong.output


def test_what_a_corpus_holds_beside_documents_is_shown_and_counted(tmp_path: Path) -> None:
    corpus = corpus_file(tmp_path, 2)
    corpus.write_text(corpus.read_text() + "not json\n" * 5)
    said: list[str] = []
    settings: RetrievalSettings = make_settings(RetrievalSettings, {"corpus": corpus})
    assemble_retrieval(settings, Home(tmp_path / "home"), said.append)
    assert any("Indexed 2 documents" in line for line in said)
    assert any("line 3" in line for line in said)
    assert any("Skipped 5 in all" in line for line in said)


def test_a_mistake_is_found_before_a_corpus_is_indexed(tmp_path: Path) -> None:
    corpus, said = corpus_file(tmp_path, 3), []
    for given in ({"search": "local,nobody"}, {"search": "local,brave"}, {"search": "local", "reader": "nobody"}):
        settings: RetrievalSettings = make_settings(RetrievalSettings, {**given, "corpus": corpus})
        with pytest.raises(OptionError):
            assemble_retrieval(settings, Home(tmp_path / "home"), said.append)
    assert not said
    assert not (tmp_path / "home").exists()


def test_reader_options_that_nothing_takes_are_named(tmp_path: Path) -> None:
    with pytest.raises(OptionError, match="--reader-option 'page_chars': only the local index is read"):
        assemble(tmp_path, corpus=corpus_file(tmp_path, 3), reader_options={"page_chars": 100})


def test_a_replay_needs_the_address_but_no_key(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("BING_KEY")
    with pytest.raises(OptionError, match="BING_KEY"):
        assemble(tmp_path, search="bing")
    assert assemble(tmp_path, search="bing", search_options={"key": "given"}).search.name == "bing"
    assert assemble(tmp_path, search="bing", replay=True).search.name == "bing"
    monkeypatch.delenv("BING_ENDPOINT")
    with pytest.raises(OptionError, match="BING_ENDPOINT"):
        assemble(tmp_path, search="bing", replay=True)


def test_an_index_and_a_corpus_together_are_refused(tmp_path: Path) -> None:
    with pytest.raises(OptionError, match="both say what to search"):
        assemble(tmp_path, index="mine", corpus=corpus_file(tmp_path, 2))


def test_files_of_a_folder_that_cannot_be_read_are_told_by_their_kind(tmp_path: Path) -> None:
    folder = tmp_path / "notes"
    folder.mkdir()
    (folder / "a.md").write_text("# Hafnium\n\nHafnium was found in Copenhagen in 1923.")
    (folder / "data.csv").write_text("a,b\n")
    (folder / "more.csv").write_text("a,b\n")
    said: list[str] = []
    settings: RetrievalSettings = make_settings(RetrievalSettings, {"corpus": folder})
    assemble_retrieval(settings, Home(tmp_path / "home"), said.append)
    assert "Passed over 2 files of kinds that cannot be read (2 .csv)." in said


def test_the_command_for_missing_vectors_names_the_indexs_folder(tmp_path: Path) -> None:
    retrieval = assemble(tmp_path, corpus=corpus_file(tmp_path, 2))
    folder = retrieval.search.directory.name  # type: ignore[attr-defined]
    with pytest.raises(SearchO1Error, match=f"search-o1 index embed {folder} --embeddings-url"):
        assemble(tmp_path, corpus=tmp_path / "library.jsonl", mode="dense", embeddings_url="http://127.0.0.1:9/v1")

from __future__ import annotations

import copy
import json
import pickle
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from retrieval.base import Search
from retrieval.corpus.build import build_index
from retrieval.corpus.dense import DenseSearch
from retrieval.corpus.embeddings import EmbeddingsClient
from retrieval.corpus.modes import CorpusSearch, local_search
from retrieval.corpus.vector_building import build_vectors
from retrieval.http.client import Limits
from runs.cli.embed import embed
from runs.home import Home
from signatures.errors import DataError, OptionError, SearchError
from tests.servers.embeddings_server import EmbeddingsServer, Fault

QUICK = Limits(connect_s=2, read_s=2, total_s=3, attempts=2, backoff_s=0.01)
DOCUMENTS = [
    {"id": "eiffel", "title": "Eiffel Tower", "text": "An iron tower in Paris, built in 1889 by Gustave Eiffel."},
    {"id": "louvre", "title": "Louvre", "text": "A museum in Paris. It shows the Mona Lisa by Leonardo da Vinci."},
    {"id": "a b/c", "title": "", "text": "Violins made of maple. " * 30 + "A comet passed over the harbour."},
]


def make_index(directory: Path, source: Path) -> Path:
    source.write_text("".join(json.dumps(document) + "\n" for document in DOCUMENTS), encoding="utf-8")
    build_index([source], directory, "demo")
    return directory


@pytest.fixture(scope="module")
def server() -> Iterator[EmbeddingsServer]:
    with EmbeddingsServer() as running:
        yield running


@pytest.fixture(scope="module")
def index(server: EmbeddingsServer, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("dense")
    directory = make_index(folder / "index", folder / "corpus.jsonl")
    client = EmbeddingsClient(server.url, server.model, query_prefix="ask ", passage_prefix="told ", limits=QUICK)
    build_vectors(directory, client)
    return directory


def make(index: Path, server: EmbeddingsServer, **options: Any) -> DenseSearch:
    return DenseSearch(index, server.url, limits=QUICK, **options)


async def test_hits_look_like_those_of_lexical_search(index: Path, server: EmbeddingsServer) -> None:
    search = make(index, server)
    assert isinstance(search, Search)
    assert isinstance(search, CorpusSearch)
    for query in ("the iron tower in Paris", "comet harbour"):
        (dense,) = await search.search(query, 1)
        (lexical,) = await local_search(index).search(query, 1)
        assert dense == lexical
    assert dense.url == "corpus://demo/a%20b%2Fc"
    assert "comet" in dense.snippet
    assert len(dense.snippet) < 350


async def test_the_query_gets_the_prefix_noted_with_the_vectors_unless_told_otherwise(
    index: Path, server: EmbeddingsServer
) -> None:
    await make(index, server).search("Louvre", 1)
    assert server.texts[-1] == "ask Louvre"
    await make(index, server, query_prefix="").search("Louvre", 1)
    assert server.texts[-1] == "Louvre"


async def test_blank_queries_and_no_hits_wanted_cost_no_request(index: Path, server: EmbeddingsServer) -> None:
    before = len(server.requests)
    assert await make(index, server).search("  \n", 5) == []
    assert await make(index, server).search("Louvre", 0) == []
    assert len(server.requests) == before


async def test_what_is_found_can_be_read(index: Path, server: EmbeddingsServer) -> None:
    search = make(index, server)
    (hit,) = await search.search("comet harbour", 1)
    page = await search.reader().read(hit.url)
    assert page.text == DOCUMENTS[2]["text"]


async def test_a_search_survives_copies(index: Path, server: EmbeddingsServer) -> None:
    search = make(index, server)
    hits = await search.search("museum", 3)
    for twin in (copy.deepcopy(search), pickle.loads(pickle.dumps(search))):
        assert await twin.search("museum", 3) == hits
        assert twin.identity() == search.identity()


async def test_a_failing_server_is_an_error_not_an_empty_result(index: Path, server: EmbeddingsServer) -> None:
    server.fail(Fault(500), Fault(500))
    with pytest.raises(SearchError, match="embedding the query 'museum' failed"):
        await make(index, server).search("museum", 3)


async def test_another_model_is_refused_before_anything_is_asked(index: Path, server: EmbeddingsServer) -> None:
    before = len(server.requests)
    search = make(index, server, embedding_model="e5")
    with pytest.raises(SearchError, match=r"'words-64', not 'e5'.*search-o1 index embed index"):
        await search.search("museum", 3)
    with pytest.raises(SearchError, match="not 'e5'"):
        search.identity()
    assert len(server.requests) == before


async def test_another_model_under_the_same_name_is_noticed_by_its_dimension(index: Path) -> None:
    with EmbeddingsServer(dimension=32) as other, pytest.raises(SearchError, match=r"dimension 32.*another model"):
        await make(index, other).search("museum", 3)


async def test_an_index_without_vectors_names_the_command(tmp_path: Path, server: EmbeddingsServer) -> None:
    index = make_index(tmp_path / "index", tmp_path / "corpus.jsonl")
    with pytest.raises(SearchError, match="search-o1 index embed index"):
        await make(index, server).search("museum", 3)


def test_the_identity_names_all_that_changes_the_answers(index: Path, server: EmbeddingsServer) -> None:
    identity = make(index, server).identity()
    for part in ("dense", "demo", "words-64", "'ask '", "'told '"):
        assert part in identity
    assert DenseSearch(index, "http://elsewhere/v1").identity() == identity
    assert make(index, server, query_prefix="q").identity() != identity
    assert local_search(index).identity() != identity


def test_modes_are_chosen_by_name(index: Path) -> None:
    kinds = {mode: type(local_search(index, mode)).__name__ for mode in ("lexical", "dense", "hybrid")}
    assert kinds == {"lexical": "LocalSearch", "dense": "DenseSearch", "hybrid": "HybridSearch"}
    with pytest.raises(OptionError, match="'fuzzy'; known are: lexical, dense, hybrid"):
        local_search(index, "fuzzy")
    with pytest.raises(OptionError, match="Lexical search does not take 'embeddings_url'"):
        local_search(index, embeddings_url="http://x/v1")
    with pytest.raises(OptionError, match="Dense search does not take 'depth'"):
        local_search(index, "dense", depth=5)


@pytest.fixture
def home_index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("SEARCH_O1_HOME", str(tmp_path / "home"))
    return make_index(Home().indexes / "demo", tmp_path / "corpus.jsonl")


def test_the_command_embeds_an_index(home_index: Path) -> None:
    with EmbeddingsServer() as server:
        arguments = ["demo", "--embeddings-url", server.url, "--embedding-model", server.model, "--batch-size", "2"]
        done = CliRunner().invoke(embed, arguments, catch_exceptions=False)
        assert done.exit_code == 0
        assert "Index demo: 3 vectors of 64 numbers from words-64" in done.output
        assert "3 of 3 passages embedded" in done.output
        assert [len(asked["input"]) for asked in server.requests] == [2, 1]


def test_the_command_says_how_many_passages_were_cut(home_index: Path) -> None:
    with EmbeddingsServer(most_words=30, truncates=False) as server:
        arguments = ["demo", "--embeddings-url", server.url, "--embedding-model", server.model]
        done = CliRunner().invoke(embed, arguments, catch_exceptions=False)
    assert "1 passages were too long for the model" in done.output


def test_the_command_wants_an_index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SEARCH_O1_HOME", str(tmp_path))
    with pytest.raises(DataError, match="no index"):
        CliRunner().invoke(embed, ["demo", "--embedding-model", "m"], catch_exceptions=False)

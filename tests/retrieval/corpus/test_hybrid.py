from __future__ import annotations

import copy
import json
import pickle
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from retrieval.base import Search
from retrieval.corpus.build import build_index
from retrieval.corpus.dense import DenseSearch
from retrieval.corpus.embeddings import EmbeddingsClient
from retrieval.corpus.hybrid import HybridSearch, fuse_ranks
from retrieval.corpus.local import LocalSearch
from retrieval.corpus.vector_building import build_vectors
from retrieval.http.client import Limits
from signatures.errors import OptionError, SearchError
from tests.servers.embeddings_server import EmbeddingsServer, Fault

QUICK = Limits(connect_s=2, read_s=2, total_s=3, attempts=1, backoff_s=0.01)
WORDS = ["river", "tower", "museum", "planet", "violin", "harbour", "desert", "glacier", "comet"]
DOCUMENTS = [
    {
        "id": f"d{i:02}",
        "title": WORDS[i % 9].title(),
        "text": " ".join([WORDS[(i * 5) % 9]] * (i % 3 + 1) + [WORDS[(i * 7) % 9], f"filler{i}"]),
    }
    for i in range(60)
]


@pytest.fixture(scope="module")
def server() -> Iterator[EmbeddingsServer]:
    with EmbeddingsServer() as running:
        yield running


@pytest.fixture(scope="module")
def index(server: EmbeddingsServer, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("hybrid")
    source = folder / "corpus.jsonl"
    source.write_text("".join(json.dumps(document) + "\n" for document in DOCUMENTS), encoding="utf-8")
    build_index([source], folder / "index", "demo")
    build_vectors(folder / "index", EmbeddingsClient(server.url, server.model, limits=QUICK))
    return folder / "index"


_IDS = st.lists(st.sampled_from("abcdefghijkl"), unique=True, max_size=12)


@given(st.lists(_IDS, min_size=1, max_size=3), st.integers(0, 100))
def test_fusion_is_the_formula(rankings: list[list[str]], rank_constant: int) -> None:
    scores = {
        found: sum((Fraction(1, rank_constant + r.index(found) + 1) for r in rankings if found in r), Fraction())
        for found in {found for ranking in rankings for found in ranking}
    }
    # Exact sums: equal ones must be ordered by id, whatever floats make of them.
    assert fuse_ranks(rankings, rank_constant) == sorted(scores, key=lambda found: (-scores[found], found))


def test_the_first_rank_is_one() -> None:
    # 1/1 is more than 1/2 + 1/3; counted from 0 or from 2, it would not come first or not be finite.
    assert fuse_ranks([["a", "b"], ["x", "y", "b"]], 0) == ["a", "x", "b", "y"]


@given(_IDS)
def test_fusing_a_ranking_with_itself_or_with_nothing_keeps_it(ranking: list[str]) -> None:
    assert fuse_ranks([ranking, ranking]) == ranking
    assert fuse_ranks([ranking, []]) == ranking


def test_equal_scores_are_ordered_by_id() -> None:
    assert fuse_ranks([["b", "a"], ["a", "b"]]) == ["a", "b"]
    assert fuse_ranks([["z"], ["y"], ["x"]]) == ["x", "y", "z"]


@pytest.mark.parametrize("query", ["violin harbour", "Comet", "river filler12 glacier", "filler40 desert"])
async def test_a_search_joins_the_lexical_and_the_dense_list(index: Path, server: EmbeddingsServer, query: str) -> None:
    lexical = [hit.url for hit in await LocalSearch(index).search(query, 20)]
    dense = [hit.url for hit in await DenseSearch(index, server.url, limits=QUICK).search(query, 20)]
    search = HybridSearch(index, server.url, limits=QUICK, rank_constant=10, depth=20)
    assert isinstance(search, Search)
    hits = await search.search(query, 15)
    assert [hit.url for hit in hits] == fuse_ranks([lexical, dense], 10)[:15]
    plain = {hit.url: hit for hit in await LocalSearch(index).search(query, 60)}
    assert all(plain.get(hit.url, hit) == hit for hit in hits)


async def test_more_hits_than_the_depth_can_be_had(index: Path, server: EmbeddingsServer) -> None:
    search = HybridSearch(index, server.url, limits=QUICK, depth=1)
    assert len(await search.search("violin", 30)) == 30


async def test_blank_queries_have_no_hits(index: Path, server: EmbeddingsServer) -> None:
    before = len(server.requests)
    search = HybridSearch(index, server.url, limits=QUICK)
    assert await search.search(" ", 5) == []
    assert await search.search("violin", 0) == []
    assert len(server.requests) == before


async def test_a_failing_server_is_not_silently_lexical_search(index: Path, server: EmbeddingsServer) -> None:
    server.fail(Fault(500))
    with pytest.raises(SearchError, match="embedding the query 'violin' failed"):
        await HybridSearch(index, server.url, limits=QUICK).search("violin", 5)


async def test_a_search_survives_copies(index: Path, server: EmbeddingsServer) -> None:
    search = HybridSearch(index, server.url, limits=QUICK, rank_constant=5, depth=7)
    hits = await search.search("museum", 3)
    for twin in (copy.deepcopy(search), pickle.loads(pickle.dumps(search))):
        assert await twin.search("museum", 3) == hits
        assert twin.identity() == search.identity()


def test_the_identity_names_the_fusion(index: Path) -> None:
    identities = {
        DenseSearch(index).identity(),
        HybridSearch(index).identity(),
        HybridSearch(index, rank_constant=10).identity(),
        HybridSearch(index, depth=10).identity(),
    }
    assert len(identities) == 4


@pytest.mark.parametrize("options", [{"rank_constant": -1}, {"depth": 0}])
def test_impossible_options_are_refused(index: Path, options: dict[str, int]) -> None:
    with pytest.raises(OptionError, match=next(iter(options)).replace("_", " ")):
        HybridSearch(index, **options)

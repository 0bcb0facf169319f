from __future__ import annotations

import json
import multiprocessing
from pathlib import Path

import numpy as np
import pytest

from retrieval.corpus.info import open_info
from retrieval.corpus.vector_building import build_vectors
from retrieval.corpus.vectors import FOLDER, CorpusVectors, open_vectors_info
from signatures.errors import DataError
from tests.retrieval.corpus.vectors_world import SMALL_SHARDS, TEXTS, client, make_index, unit
from tests.servers.embeddings_server import EmbeddingsServer


def exact(query: str, k: int) -> list[tuple[str, float]]:
    pairs = [(document_id, float(unit(query) @ unit(text))) for document_id, text in TEXTS.items()]
    return sorted(pairs, key=lambda pair: -pair[1])[:k]


@pytest.fixture
def index(tmp_path: Path) -> Path:
    return make_index(tmp_path)


@pytest.mark.parametrize("shard_bytes", [SMALL_SHARDS, 10**6])
def test_the_nearest_passages_are_those_of_exact_comparison(index: Path, shard_bytes: int) -> None:
    seen: list[tuple[int, int]] = []
    # A reply takes a moment, so that a busy machine cannot serve the requests one after the other.
    with EmbeddingsServer(latency_s=0.1) as server:
        info = build_vectors(index, client(server), lambda *counts: seen.append(counts), shard_bytes=shard_bytes)
        assert sorted(server.texts) == sorted(TEXTS.values())
        assert 2 <= server.most_in_flight <= 4
    assert (info.count, info.dimension, info.model, info.shortened) == (100, 64, "words-64", 0)
    assert info.shards == (4 if shard_bytes == SMALL_SHARDS else 1)
    assert info.corpus_hash == open_info(index).corpus_hash
    assert info.library.startswith("usearch ")
    assert open_vectors_info(index) == info
    assert seen[-1] == (100, 100)
    assert seen == sorted(seen)
    vectors = CorpusVectors(index)
    for query in ("violin harbour", "comet", "T42"):
        found = vectors.search(unit(query), 10)
        expected = exact(query, 10)
        assert [round(score, 2) for _, score in found] == pytest.approx([s for _, s in expected], abs=0.011)
        assert len({i for i, _ in found} & {i for i, _ in expected}) >= 9


def test_equal_passages_are_ordered_by_id(tmp_path: Path) -> None:
    same = [{"id": i, "title": "", "text": "one river"} for i in ("b", "d", "a", "c")]
    index = make_index(tmp_path, [*same, {"id": "0", "title": "", "text": "desert glacier"}])
    with EmbeddingsServer() as server:
        build_vectors(index, client(server))
    found = CorpusVectors(index).search(unit("one river"), 3)
    assert [document_id for document_id, _ in found] == ["a", "b", "c"]


def test_more_than_there_is_gives_all_and_none_gives_none(index: Path) -> None:
    with EmbeddingsServer() as server:
        build_vectors(index, client(server))
    vectors = CorpusVectors(index)
    assert len(vectors.search(unit("x"), 1000)) == 100
    assert vectors.search(unit("x"), 0) == []


def test_missing_vectors_name_the_command_that_makes_them(index: Path) -> None:
    with pytest.raises(DataError, match=r"'index' has no vectors.*search-o1 index embed index --embeddings-url URL"):
        open_vectors_info(index)
    with pytest.raises(DataError, match="no index"):
        open_vectors_info(index.parent / "nowhere")


def test_vectors_of_another_corpus_or_model_or_format_are_refused(index: Path) -> None:
    with EmbeddingsServer() as server:
        build_vectors(index, client(server))
    with pytest.raises(DataError, match=r"come from the model 'words-64', not 'e5'.*--embedding-model e5"):
        open_vectors_info(index, "e5")
    path = index / FOLDER / "info.json"
    whole = json.loads(path.read_text())
    for change, says in (
        ({"corpus_hash": "0"}, "another corpus"),
        ({"count": 99}, "another corpus"),
        ({"format_version": 0}, "format 0"),
        ({"extra": 1}, "cannot be read"),
    ):
        path.write_text(json.dumps({**whole, **change}))
        with pytest.raises(DataError, match=f"{says}.*search-o1 index embed index"):
            CorpusVectors(index)
    path.write_text("{")
    with pytest.raises(DataError, match="cannot be read"):
        CorpusVectors(index)


@pytest.mark.parametrize("suffix", ["usearch", "ids", "offsets"])
def test_damaged_files_are_an_error_that_says_what_to_do(index: Path, suffix: str) -> None:
    with EmbeddingsServer() as server:
        build_vectors(index, client(server))
    path = index / FOLDER / f"00000.{suffix}"
    path.write_bytes(path.read_bytes()[:-40])
    with pytest.raises(DataError, match=r"damaged.*search-o1 index embed index"):
        CorpusVectors(index)
    path.unlink()
    with pytest.raises(DataError, match=r"damaged.*search-o1 index embed index"):
        CorpusVectors(index)


def test_a_query_vector_of_another_dimension_is_refused(index: Path) -> None:
    with EmbeddingsServer() as server:
        build_vectors(index, client(server))
    with pytest.raises(DataError, match="serves another model"):
        CorpusVectors(index).search(np.ones(32, dtype=np.float32), 1)


def _search_in_process(index: Path) -> list[str]:
    return [found for found, _ in CorpusVectors(index).search(unit("violin"), 5)]


def test_several_processes_read_at_once(index: Path) -> None:
    with EmbeddingsServer() as server:
        build_vectors(index, client(server), shard_bytes=SMALL_SHARDS)
    with multiprocessing.get_context("spawn").Pool(2) as pool:
        results = pool.map(_search_in_process, [index] * 4)
    assert results == [_search_in_process(index)] * 4

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from retrieval.corpus.shards import ShardFiles
from retrieval.corpus.vector_building import BUILDING, build_vectors
from retrieval.corpus.vectors import FOLDER, CorpusVectors, open_vectors_info
from signatures.errors import DataError, SearchError
from tests.retrieval.corpus.vectors_world import DOCUMENTS, SMALL_SHARDS, TEXTS, client, make_index, unit
from tests.servers.embeddings_server import EmbeddingsServer, Fault


@pytest.fixture
def index(tmp_path: Path) -> Path:
    return make_index(tmp_path)


def test_nothing_but_the_finished_vectors_remains(index: Path) -> None:
    with EmbeddingsServer() as server:
        build_vectors(index, client(server), shard_bytes=SMALL_SHARDS)
    assert not (index / BUILDING).exists()
    suffixes = {path.suffix for path in (index / FOLDER).iterdir()}
    assert suffixes == {".json", ".usearch", ".ids", ".offsets"}


def test_complete_vectors_are_not_made_again_unless_told_to(index: Path) -> None:
    with EmbeddingsServer() as server:
        first = build_vectors(index, client(server))
        asked = len(server.requests)
        assert build_vectors(index, client(server)) == first
        assert len(server.requests) == asked
        assert build_vectors(index, client(server), fresh=True) == first
        assert len(server.requests) == 2 * asked


def test_other_prefixes_make_other_vectors(index: Path) -> None:
    with EmbeddingsServer() as server:
        build_vectors(index, client(server))
        info = build_vectors(index, client(server, passage_prefix="passage: "))
        assert server.texts[-1].startswith("passage: ")
    assert info.passage_prefix == "passage: "


def test_a_failed_build_keeps_what_it_paid_for_and_the_old_vectors(index: Path) -> None:
    with EmbeddingsServer() as server:
        old = build_vectors(index, client(server, passage_prefix="old "))
        server.texts.clear()
        server.requests.clear()
        refusal = Fault(400, {"error": "broken"})

        def stop_at_half(done: int, total: int) -> None:
            if done >= 48:
                server.fail(refusal)

        with pytest.raises(SearchError, match=r"broken.*the same command goes on there"):
            build_vectors(index, client(server, concurrency=1), stop_at_half, shard_bytes=SMALL_SHARDS)
        assert CorpusVectors(index).info == old
        assert len(server.texts) == 48
        info = build_vectors(index, client(server), shard_bytes=SMALL_SHARDS)
        assert sorted(server.texts) == sorted(TEXTS.values())
    assert info.passage_prefix == ""
    assert CorpusVectors(index).search(unit(TEXTS["d077"]), 1)[0][0] == "d077"


def test_a_build_stopped_after_embedding_asks_the_server_for_nothing_more(index: Path) -> None:
    class Stop(Exception):
        pass

    def stop_at_end(done: int, total: int) -> None:
        if done == total:
            raise Stop

    with EmbeddingsServer() as server:
        with pytest.raises(Stop):
            build_vectors(index, client(server), stop_at_end, shard_bytes=SMALL_SHARDS)
        asked = len(server.requests)
        build_vectors(index, client(server), shard_bytes=SMALL_SHARDS)
        assert len(server.requests) == asked
    assert CorpusVectors(index).search(unit(TEXTS["d099"]), 1)[0][0] == "d099"


def test_a_build_killed_between_its_last_two_steps_is_finished_without_the_server(index: Path) -> None:
    plans: list[bytes] = []

    def keep_plan(done: int, total: int) -> None:
        plans.append((index / BUILDING / "plan.json").read_bytes())

    with EmbeddingsServer() as server:
        build_vectors(index, client(server), keep_plan, shard_bytes=SMALL_SHARDS)
        (index / FOLDER).rename(index / BUILDING)
        (index / BUILDING / "plan.json").write_bytes(plans[-1])
        asked = len(server.requests)
        build_vectors(index, client(server), shard_bytes=SMALL_SHARDS)
        assert len(server.requests) == asked
    assert CorpusVectors(index).search(unit(TEXTS["d050"]), 1)[0][0] == "d050"


def test_half_written_rows_and_rows_lost_by_a_power_failure_are_embedded_again(index: Path) -> None:
    with EmbeddingsServer() as server:
        server_client = client(server, concurrency=1)

        def damage(done: int, total: int) -> None:
            if done == 56:
                files = ShardFiles(index / BUILDING, 1)
                with open(files.rows, "r+b") as rows:
                    # Row 20 of this shard (50 in all) reads as zeros; the last row is cut in half.
                    rows.seek(20 * 128)
                    rows.write(bytes(128))
                    rows.truncate(25 * 128 + 64)
                raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            build_vectors(index, server_client, damage, shard_bytes=SMALL_SHARDS)
        server.texts.clear()
        build_vectors(index, server_client, shard_bytes=SMALL_SHARDS)
        assert server.texts == list(TEXTS.values())[50:]
    vectors = CorpusVectors(index)
    for document_id in ("d049", "d050", "d055", "d099"):
        assert vectors.search(unit(TEXTS[document_id]), 1)[0][0] == document_id


CHILD = """
import sys
from pathlib import Path
from retrieval.corpus.embeddings import EmbeddingsClient
from retrieval.corpus.vector_building import build_vectors
client = EmbeddingsClient(sys.argv[2], "words-64", batch_size=4, concurrency=3)
build_vectors(Path(sys.argv[1]), client, shard_bytes=3840)
"""


def test_a_build_killed_by_the_system_repeats_only_what_was_in_flight(index: Path) -> None:
    with EmbeddingsServer(latency_s=0.05) as server:
        child = subprocess.Popen([sys.executable, "-c", CHILD, str(index), server.url])
        deadline = time.monotonic() + 60
        while len(server.texts) < 40 and time.monotonic() < deadline:
            time.sleep(0.005)
        os.kill(child.pid, signal.SIGKILL)
        assert child.wait() == -signal.SIGKILL
        assert not (index / FOLDER).exists()
        server.latency_s = 0
        build_vectors(index, client(server, batch_size=4, concurrency=3), shard_bytes=SMALL_SHARDS)
        repeated = len(server.texts) - len(TEXTS)
        assert set(server.texts) == set(TEXTS.values())
        assert 0 <= repeated <= 3 * 4
    vectors = CorpusVectors(index)
    assert all(vectors.search(unit(text), 1)[0][0] == document_id for document_id, text in TEXTS.items())


def test_two_builds_at_once_do_not_mix(index: Path) -> None:
    with EmbeddingsServer() as server:

        def start_another(done: int, total: int) -> None:
            if done == 40:
                with pytest.raises(DataError, match="Another process is embedding the index 'demo'"):
                    build_vectors(index, client(server))

        build_vectors(index, client(server, concurrency=1), start_another)
    assert open_vectors_info(index).count == 100


def test_a_server_that_changes_its_model_half_way_is_noticed(index: Path) -> None:
    with EmbeddingsServer() as server:

        def change(done: int, total: int) -> None:
            server.dimension = 32

        with pytest.raises(SearchError, match=r"dimension 32, before it was 64.*--fresh"):
            build_vectors(index, client(server), change)


def test_passages_cut_by_length_are_counted_also_over_a_resume(tmp_path: Path) -> None:
    long = [{"id": str(i), "title": "", "text": "river tower " * (9 if i % 4 == 0 else 2)} for i in range(20)]
    index = make_index(tmp_path, long)
    with EmbeddingsServer(most_words=10, truncates=False) as server:

        def stop(done: int, total: int) -> None:
            if done >= 10:
                raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            build_vectors(index, client(server, batch_size=5, concurrency=1), stop)
        info = build_vectors(index, client(server, batch_size=5, concurrency=1))
    assert info.shortened == 5


def test_a_new_corpus_is_embedded_anew(tmp_path: Path) -> None:
    index = make_index(tmp_path)
    with EmbeddingsServer() as server:
        build_vectors(index, client(server))
        vectors = index / FOLDER
        kept = tmp_path / "kept"
        vectors.rename(kept)
        shutil.rmtree(index)
        index = make_index(tmp_path, DOCUMENTS[:50])
        shutil.rmtree(index / FOLDER, ignore_errors=True)
        kept.rename(index / FOLDER)
        with pytest.raises(DataError, match="another corpus"):
            CorpusVectors(index)
        assert build_vectors(index, client(server)).count == 50


async def test_a_build_can_be_called_where_an_event_loop_runs(index: Path) -> None:
    with EmbeddingsServer() as server:
        info = build_vectors(index, client(server))
        await asyncio.sleep(0)
    assert info.count == 100

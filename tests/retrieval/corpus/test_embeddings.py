from __future__ import annotations

import base64
import copy
import json
import pickle
import struct
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from retrieval.corpus.embedding_replies import parse_embeddings
from retrieval.corpus.embeddings import MOST_HALVINGS, EmbeddingsClient
from retrieval.corpus.prefixes import Prefixes, known_prefixes
from retrieval.http.client import Limits
from signatures.errors import OptionError, SearchError
from tests.servers.embeddings_server import EmbeddingsServer, Fault, text_vector

QUICK = Limits(connect_s=2, read_s=2, total_s=3, attempts=3, backoff_s=0.01)


def make(server: EmbeddingsServer, **options: Any) -> EmbeddingsClient:
    return EmbeddingsClient(server.url, **{"model": server.model, "limits": QUICK, **options})


def unit(text: str, dimension: int = 64) -> np.ndarray:
    vector = np.array(text_vector(text, dimension))
    return vector / np.linalg.norm(vector)


def reply(*embeddings: Any) -> dict[str, Any]:
    return {"data": [{"index": i, "embedding": embedding} for i, embedding in enumerate(embeddings)]}


async def test_passages_become_unit_vectors_in_their_order() -> None:
    texts = [f"passage number {i}" for i in range(7)]
    with EmbeddingsServer(backwards=True) as server:
        found = await make(server, batch_size=3).embed_passages(texts)
        assert [len(asked["input"]) for asked in server.requests] == [3, 3, 1]
        assert {asked["encoding_format"] for asked in server.requests} == {"float"}
    assert found.vectors.shape == (7, 64)
    assert found.vectors.dtype == np.float32
    assert found.shortened == 0
    np.testing.assert_allclose(found.vectors, [unit(text) for text in texts], atol=1e-6)


async def test_base64_gives_the_same_vectors() -> None:
    with EmbeddingsServer() as server:
        floats = await make(server).embed_passages(["a b", "c"])
        packed = await make(server, encoding="base64").embed_passages(["a b", "c"])
        assert server.requests[-1]["encoding_format"] == "base64"
    np.testing.assert_allclose(floats.vectors, packed.vectors, atol=1e-6)


async def test_no_passages_cost_no_request() -> None:
    with EmbeddingsServer() as server:
        assert (await make(server).embed_passages([])).vectors.shape == (0, 0)
        assert server.requests == []


async def test_prefixes_of_the_models_family_are_put_in_front() -> None:
    with EmbeddingsServer(model="intfloat/e5-base-v2") as server:
        client = make(server)
        await client.embed_query("who")
        await client.embed_passages(["text"])
        own = make(server, query_prefix="q> ", passage_prefix="")
        await own.embed_query("who")
        await own.embed_passages(["text"])
        assert server.texts == ["query: who", "passage: text", "q> who", "text"]


@pytest.mark.parametrize(
    ("model", "prefixes"),
    [
        ("intfloat/e5-base-v2", Prefixes("query: ", "passage: ")),
        ("intfloat/multilingual-e5-large", Prefixes("query: ", "passage: ")),
        ("BAAI/bge-large-en-v1.5", Prefixes("Represent this sentence for searching relevant passages: ")),
        ("BAAI/bge-m3", Prefixes()),
        ("sentence-transformers/all-MiniLM-L6-v2", Prefixes()),
        ("text-embedding-3-small", Prefixes()),
        ("nomic-ai/nomic-embed-text-v1.5", Prefixes("search_query: ", "search_document: ")),
        ("Snowflake/snowflake-arctic-embed-l-v2.0", Prefixes("query: ")),
    ],
)
def test_known_prefixes(model: str, prefixes: Prefixes) -> None:
    assert known_prefixes(model) == prefixes


@pytest.mark.parametrize("model", ["intfloat/multilingual-e5-large-instruct", "Qwen/Qwen3-Embedding-0.6B"])
def test_instructed_models_get_an_instruction_before_queries_only(model: str) -> None:
    prefixes = known_prefixes(model)
    assert prefixes.query.startswith("Instruct: ")
    assert prefixes.passage == ""


async def test_rate_limits_and_server_errors_are_tried_again() -> None:
    with EmbeddingsServer() as server:
        server.fail(Fault(429, {"error": "slow down"}, {"Retry-After": "0"}), Fault(500))
        assert (await make(server).embed_query("x")).shape == (64,)
        assert len(server.requests) == 3


async def test_a_slow_server_is_a_timeout_that_says_so() -> None:
    with EmbeddingsServer(latency_s=3) as server:
        limits = Limits(read_s=0.2, total_s=0.3, attempts=1)
        with pytest.raises(SearchError, match="embedding the query 'x' failed"):
            await make(server, limits=limits).embed_query("x")


async def test_a_long_text_is_cut_by_a_server_that_can() -> None:
    with EmbeddingsServer(most_words=4) as server:
        found = await make(server).embed_passages(["one two three four five six", "short"])
        assert len(server.requests) == 1
    assert found.shortened == 0


async def test_a_long_text_is_found_in_its_batch_halved_and_counted() -> None:
    texts = ["short", "one two three four five six seven", "tiny", "small"]
    with EmbeddingsServer(most_words=4, truncates=False) as server:
        found = await make(server).embed_passages(texts)
    assert found.shortened == 1
    half = texts[1][: len(texts[1]) // 2]
    np.testing.assert_allclose(found.vectors, [unit(t) for t in [texts[0], half, *texts[2:]]], atol=1e-6)


async def test_a_server_that_refuses_the_field_for_cutting_is_asked_without_it() -> None:
    with EmbeddingsServer(most_words=4, truncates="refuses") as server:
        client = make(server)
        assert (await client.embed_passages(["one two three four five", "a"])).shortened == 1
        await client.embed_query("x")
        assert sum("truncate_prompt_tokens" in asked for asked in server.requests) == 1


async def test_a_text_that_stays_too_long_is_a_clear_error() -> None:
    with EmbeddingsServer(most_words=0, truncates=False) as server:
        with pytest.raises(
            SearchError, match=r"1,000 characters is too long for the model 'words-64'.*maximum context"
        ):
            await make(server).embed_passages(["word " * 200])
        assert len(server.requests) == 1 + MOST_HALVINGS


async def test_a_batch_that_is_too_large_for_the_server_is_split() -> None:
    texts = [f"t{i}" for i in range(8)]
    with EmbeddingsServer(most_texts=2) as server:
        found = await make(server).embed_passages(texts)
        assert sorted(server.texts) == texts
    assert found.shortened == 0
    np.testing.assert_allclose(found.vectors, [unit(text) for text in texts], atol=1e-6)


async def test_another_refusal_is_not_taken_for_length() -> None:
    with EmbeddingsServer() as server:
        server.fail(Fault(400, {"error": {"message": "no such option"}}))
        with pytest.raises(SearchError, match="no such option"):
            await make(server).embed_passages(["a", "b"])
        assert len(server.requests) == 1


async def test_an_unknown_model_or_address_says_what_to_check() -> None:
    with EmbeddingsServer() as server:
        with pytest.raises(SearchError, match=r"model 'other'.*ends in /v1.*/v1/models") as caught:
            await make(server, model="other").embed_query("x")
        assert caught.value.status == 404
        with pytest.raises(SearchError, match="ends in /v1"):
            await EmbeddingsClient(server.url.removesuffix("/v1"), server.model, limits=QUICK).embed_query("x")


async def test_the_key_is_sent_and_never_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    with EmbeddingsServer(key="right-key") as server:
        monkeypatch.setenv("EMBEDDINGS_API_KEY", "right-key")
        await make(server).embed_query("x")
        with pytest.raises(SearchError) as caught:
            await make(server, key="wrong-key").embed_query("x")
    assert caught.value.status == 401
    assert "wrong-key" not in str(caught.value) + caught.value.body


async def test_the_address_comes_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    with EmbeddingsServer() as server:
        client = EmbeddingsClient(model=server.model, limits=QUICK)
        with pytest.raises(SearchError, match="EMBEDDINGS_URL is not set"):
            await client.embed_query("x")
        monkeypatch.setenv("EMBEDDINGS_URL", server.url + "/embeddings/")
        assert (await client.embed_query("x")).shape == (64,)


async def test_empty_texts_and_lone_surrogates_can_be_sent() -> None:
    with EmbeddingsServer() as server:
        await make(server).embed_passages(["", "a\ud800b"])
        assert server.texts == [" ", "a?b"]


async def test_a_client_survives_copies() -> None:
    with EmbeddingsServer() as server:
        client = make(server, query_prefix="q: ")
        await client.embed_query("x")
        for twin in (copy.deepcopy(client), pickle.loads(pickle.dumps(client))):
            await twin.embed_query("x")
        assert server.texts == ["q: x"] * 3


@pytest.mark.parametrize("options", [{"model": " "}, {"model": "m", "batch_size": 0}, {"model": "m", "concurrency": 0}])
def test_impossible_options_are_refused(options: dict[str, Any]) -> None:
    with pytest.raises(OptionError):
        EmbeddingsClient("http://127.0.0.1:9/v1", **options)


@pytest.mark.parametrize(
    ("bad", "says"),
    [
        ({"error": "x"}, 'no list "data"'),
        ([], 'no list "data"'),
        ({"data": [1]}, 'no list "data"'),
        (reply([1.0]), "1 vectors for 2 texts"),
        (reply([1.0], [1.0], [1.0]), "3 vectors for 2 texts"),
        (reply([1.0], [1.0, 2.0]), "different dimensions"),
        (reply([1.0], [float("nan")]), "NaN or infinity"),
        (reply([1.0], [float("-inf")]), "NaN or infinity"),
        (reply([1.0], [0.0]), "all zeros"),
        (reply([1.0], []), "empty|not a list"),
        (reply([1.0], None), "not a list of numbers"),
        (reply([1.0], ["1.0"]), "not a list of numbers"),
        (reply([1.0], [None]), "not a list of numbers"),
        (reply([1.0], [True]), "not a list of numbers"),
        (reply([1.0], [[1.0]]), "not a list of numbers"),
        (reply([1.0], [10**400]), "not a list of numbers"),
        (reply([1.0], "%%"), "not base64"),
        (reply([1.0], "AAA="), "not base64"),
        ({"data": [{"index": 0, "embedding": [1.0]}, {"index": 0, "embedding": [1.0]}]}, '"index"'),
        ({"data": [{"index": 0, "embedding": [1.0]}, {"index": "1", "embedding": [1.0]}]}, '"index"'),
        ({"data": [{"index": 0, "embedding": [1.0]}, {"embedding": [1.0]}]}, '"index"'),
    ],
)
def test_a_reply_that_makes_no_sense_is_a_clear_error(bad: Any, says: str) -> None:
    with pytest.raises(SearchError, match=says):
        parse_embeddings(bad, 2, "embedding 2 passages")


async def test_a_reply_with_nan_from_a_server_is_refused() -> None:
    with EmbeddingsServer() as server:
        server.fail(Fault(200, '{"data": [{"index": 0, "embedding": [NaN, 1.0]}]}'))
        with pytest.raises(SearchError, match="NaN"):
            await make(server).embed_query("x")


def test_a_reply_without_indexes_is_taken_in_order() -> None:
    vectors = parse_embeddings({"data": [{"embedding": [3, 4]}, {"embedding": [0, 2]}]}, 2, "x")
    np.testing.assert_allclose(vectors, [[0.6, 0.8], [0, 1]], atol=1e-6)


_NUMBERS = st.floats(allow_nan=True, allow_infinity=True) | st.integers(-(10**30), 10**30)
_EMBEDDINGS = (
    st.lists(_NUMBERS, max_size=4)
    | st.text(max_size=8)
    | st.binary(max_size=12).map(lambda raw: base64.b64encode(raw).decode())
    | st.none()
    | st.lists(st.lists(_NUMBERS, max_size=2), max_size=2)
    | st.lists(st.none() | st.booleans() | st.text(max_size=2), max_size=3)
)
_RECORDS = st.fixed_dictionaries(
    {}, optional={"index": st.integers(-1, 3) | st.none() | st.text(max_size=1), "embedding": _EMBEDDINGS}
)
_ANYTHING = st.recursive(st.none() | st.booleans() | _NUMBERS | st.text(max_size=3), st.lists, max_leaves=5)


@given(st.fixed_dictionaries({"data": st.lists(_RECORDS, max_size=3) | _ANYTHING}) | _ANYTHING, st.integers(1, 3))
def test_whatever_the_reply_it_ends_in_unit_vectors_or_a_search_error(given_reply: Any, count: int) -> None:
    try:
        vectors = parse_embeddings(given_reply, count, "embedding")
    except SearchError:
        return
    assert vectors.shape[0] == count
    np.testing.assert_allclose(np.linalg.norm(vectors.astype(np.float64), axis=1), 1, atol=1e-5)


@given(
    st.lists(
        st.lists(st.floats(-(2.0**100), 2.0**100, width=32), min_size=3, max_size=3).filter(any), min_size=1, max_size=5
    )
)
def test_base64_and_lists_of_numbers_read_the_same(rows: list[list[float]]) -> None:
    packed = [base64.b64encode(struct.pack("<3f", *row)).decode() for row in rows]
    plain = json.loads(json.dumps(reply(*rows)))
    np.testing.assert_array_equal(
        parse_embeddings(plain, len(rows), "x"), parse_embeddings(reply(*packed), len(rows), "x")
    )

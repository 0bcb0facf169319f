"""Model replies in the cache: of our engines, and of models that DSPy reaches itself."""

from __future__ import annotations

import asyncio
import json
import pickle
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import dspy
import pytest
from dspy.lm15 import Config, Message, Request
from dspy.utils.exceptions import LMError

from programs.language_model import EXTENSION, read_response
from retrieval.cache import Cache, CachePolicy
from retrieval.caching.replay import ReplayMiss, ReplyMiss
from runs.models.factory import make_model
from signatures.errors import ModelError
from tests.servers.lm import LMServer


@pytest.fixture
def server() -> Iterator[LMServer]:
    numbers = iter(range(10_000))
    with LMServer(lambda prompt, _: f"reply {next(numbers)}") as running:
        yield running


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Cache:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret")
    return Cache(tmp_path / "cache.sqlite")


def lm(server: LMServer, cache: Cache | None, model: str = "openai/QwQ", **options: Any) -> Any:
    return make_model(model, server.base_url, cache=cache, retry_seconds=0.2, **options).lm


def replaying(cache: Cache) -> Cache:
    return Cache(cache.path, CachePolicy(replay=True))


def request(text: str = "Hi", model: str = "openai/QwQ", **config: Any) -> Request:
    return Request(
        model=model, messages=(Message.user(text),), config=Config(**{"temperature": 0.0, "max_tokens": 9, **config})
    )


MODELS = pytest.mark.parametrize("model", ["openai/QwQ", "hosted_vllm/QwQ"])


@MODELS
def test_what_can_be_repeated_is_asked_once_blocking_or_not(server: LMServer, cache: Cache, model: str) -> None:
    first = lm(server, cache, model)(request(model=model))
    again = asyncio.run(lm(server, cache, model).acall(request(model=model)))
    assert (first.text, again.text) == ("reply 0", "reply 0")
    assert (read_response(first).from_cache, read_response(again).from_cache) == (False, True)
    assert (again.finish_reason, again.usage.input_tokens) == (first.finish_reason, first.usage.input_tokens)
    assert (read_response(again).stop, read_response(again).finish) == (None, read_response(first).finish)
    assert len(server.calls) == 1


@MODELS
def test_a_sample_is_kept_by_its_seed_and_not_without_one(server: LMServer, cache: Cache, model: str) -> None:
    asked = lm(server, cache, model)
    texts = [asked(request(model=model, temperature=0.7, seed=seed)).text for seed in (1, 2, 1)]
    assert texts == ["reply 0", "reply 1", "reply 0"]
    texts = [asked(request(model=model, temperature=0.7)).text for _ in range(2)]
    assert texts == ["reply 2", "reply 3"]


def test_a_rollout_id_keeps_samples_apart_and_means_nothing_at_temperature_0(server: LMServer, cache: Cache) -> None:
    asked = lm(server, cache)
    sampled = request(temperature=0.7)
    texts = [asked(sampled, rollout_id=name).text for name in ("0/q1/0", "0/q1/1", "0/q1/0")]
    assert texts == ["reply 0", "reply 1", "reply 0"]
    assert asked(request(), rollout_id="a").text == asked(request(), rollout_id="b").text


def test_all_that_changes_a_reply_is_in_its_key(server: LMServer, cache: Cache) -> None:
    asked = lm(server, cache)
    requests = [
        request(), request("Ho"), request(max_tokens=8), request(stop=("x",)), request(top_p=0.5),
        request(extensions={"top_k": 3}),
    ]  # fmt: skip
    assert len({asked(r).text for r in requests}) == len(requests)
    assert len({lm(server, cache, revision=r)(request()).text for r in ("", "r1", "r2")}) == 3
    with LMServer(lambda prompt, _: "another server's") as other:
        assert lm(other, cache)(request()).text == "another server's"
    # Facts of the chain are none: it is named anew in each run.
    one, two = (request(extensions={EXTENSION: {"chain": name}, "top_k": 4}) for name in "ab")
    assert asked(one).text == asked(two).text


def test_plain_dspy_calls_are_cached_as_dspy_does_and_its_own_cache_is_passed_by(cache: Cache) -> None:
    numbers = iter(range(10))
    with LMServer(lambda prompt, _: f"reply {next(numbers)}", model="gpt-test") as server:

        def plain(kept: Cache) -> Any:
            # Its profile has no field that only LiteLLM could send, whose import takes seconds.
            return lm(server, kept, "openai/gpt-test", temperature=0.7, top_p=None)

        asked = plain(cache)
        assert asked("Hi", max_tokens=9) == asked("Hi", max_tokens=9) == ["reply 0"]
        assert asked("Hi", max_tokens=9, cache=False) == ["reply 1"]
        assert asked("Hi", max_tokens=9, rollout_id=1) == asked("Hi", max_tokens=9, rollout_id=1) == ["reply 2"]
        assert plain(Cache(cache.path.with_name("new")))("Hi", max_tokens=9) == ["reply 3"]
        assert plain(replaying(cache))("Hi", max_tokens=9) == ["reply 0"]
        with pytest.raises(ReplyMiss, match="prompt ending in 'never asked'"):
            plain(replaying(cache))("never asked", max_tokens=9)
        assert len(server.calls) == 4


def test_no_key_and_no_password_reaches_the_file(server: LMServer, cache: Cache) -> None:
    address = server.base_url.replace("http://", "http://me:pass-word@")
    with pytest.raises(LMError):
        make_model("openai/QwQ", address, cache=cache, num_retries=0).lm(request())
    assert cache.stats()["failures"] == 1
    asked = lm(server, cache).copy(api_key="sk-other")
    asked(request())
    asked(request(temperature=0.7, seed=1))
    content = b"".join(p.read_bytes() for p in cache.path.parent.glob("cache.sqlite*"))
    for secret in (b"sk-secret", b"sk-other", b"pass-word"):
        assert secret not in content
    with sqlite3.connect(cache.path) as connection:
        rows = connection.execute("SELECT parts, provider FROM replies").fetchall()
    connection.close()
    assert {provider for _, provider in rows} == {"openai/QwQ"}
    parts = [json.loads(row[0]) for row in rows]
    assert {(p["address"], p["about"]) for p in parts} == {(server.base_url, "Hi")}


@MODELS
def test_a_replay_asks_nobody_names_what_is_missing_and_fails_as_the_recording_did(
    server: LMServer, cache: Cache, model: str
) -> None:
    asked = lm(server, cache, model)
    asked(request("known", model))
    server.fail_next(9, status=400, body={"error": {"message": "the prompt is bad"}})
    with pytest.raises(LMError) as failed:
        asked(request("broken", model))
    replay = lm(server, replaying(cache), model)
    server.stop()
    before = len(server.requests)
    assert replay(request("known", model)).text == "reply 0"
    with pytest.raises(LMError) as repeated:
        replay(request("broken", model))
    assert (type(repeated.value), str(repeated.value)) == (type(failed.value), str(failed.value))
    for name, config in (("is not in the cache", {}), ("without a seed|neither seed nor", {"temperature": 0.7})):
        with pytest.raises((ReplayMiss, LMError), match=rf"prompt ending in 'new'.*({name})"):
            replay(request("new", model, **config))
    assert len(server.requests) == before


def test_a_server_that_does_not_serve_a_model_is_no_longer_asked_in_a_replay(server: LMServer, cache: Cache) -> None:
    lm(server, cache, "hosted_vllm/")
    server.stop()
    assert make_model("hosted_vllm/", server.base_url, cache=replaying(cache)).identity == "vllm:QwQ:models/QwQ"
    with pytest.raises(ModelError, match="says of 'Other' is not in the cache"):
        make_model("hosted_vllm/Other", server.base_url, cache=replaying(cache))


@MODELS
def test_a_cache_that_cannot_be_used_costs_no_reply(
    server: LMServer, tmp_path: Path, model: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret")
    (tmp_path / "file").write_text("")
    asked = lm(server, Cache(tmp_path / "file" / "cache.sqlite"), model)
    assert [asked(request(model=model)).text for _ in range(2)] == ["reply 0", "reply 1"]
    assert caplog.text.count("cannot be used") == 1


def test_copies_and_pickles_of_a_cached_lm_share_the_cache_and_save_as_plain_ones(
    server: LMServer, cache: Cache
) -> None:
    asked = lm(server, cache)
    first = asked(request()).text
    for other in (asked.copy(rollout_id="x"), pickle.loads(pickle.dumps(asked))):
        assert other(request()).text == first
    assert type(dspy.BaseLM.load_state(asked.dump_state())) is dspy.LM


def test_calls_are_seen_once_by_callbacks_whether_cached_or_not(server: LMServer, cache: Cache) -> None:
    from dspy.utils.callback import BaseCallback

    class Count(BaseCallback):
        seen = 0

        def on_lm_start(self, call_id: str, instance: Any, inputs: dict[str, Any]) -> None:
            self.seen += 1

    counter = Count()
    asked = lm(server, cache)
    with dspy.context(callbacks=[counter]):
        asked(request())
        asked(request())
        asyncio.run(asked.acall(request()))
    assert counter.seen == 3

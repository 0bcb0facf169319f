from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from typing import Any

import aiohttp
import pytest
import requests

from tests.servers.lm import LMServer
from tests.servers.lm_client import complete, echo, error, post


@pytest.fixture
def server() -> Iterator[LMServer]:
    with LMServer(echo, max_model_len=200) as running:
        yield running


def test_a_wrong_model_is_a_404_that_names_the_served_one(server: LMServer) -> None:
    text = "The model `nope` does not exist. Valid aliases: QwQ."
    for path, body in [("/v1/completions", {"prompt": "x"}), ("/tokenize", {"prompt": "x"})]:
        assert error(post(server, path, model="nope", **body)) == (404, text, "model")


def test_a_prompt_that_does_not_fit_is_a_400(server: LMServer) -> None:
    limit = "This model's maximum context length is 200 tokens. However, your prompt contains "
    tail = "Please reduce the length of the input prompt."
    rest = f" input tokens, which exceeds this limit even without any output tokens. {tail}"
    by_ids = post(server, "/v1/completions", prompt=[77] * 300)
    assert error(by_ids) == (400, f"{limit}300{rest} (parameter=input_tokens, value=300)", "input_tokens")
    by_text = post(server, "/v1/completions", prompt="ab " * 300)
    assert error(by_text) == (400, f"{limit}at least 201{rest} (parameter=input_tokens, value=201)", "input_tokens")
    full = post(server, "/v1/completions", prompt=[77] * 200)
    message = "max_tokens must be at least 1, got 0. (parameter=max_tokens, value=0)"
    assert error(full) == (400, message, "max_tokens")


def test_max_tokens_beyond_the_context_is_a_400_and_beyond_the_room_is_lowered(server: LMServer) -> None:
    beyond = post(server, "/v1/completions", prompt="x", max_tokens=201)
    message = "max_tokens=201 cannot be greater than max_model_len=200. Please request fewer output tokens."
    assert error(beyond) == (400, f"{message} (parameter=max_tokens, value=201)", "max_tokens")
    lowered = complete(server, [77] * 197, max_tokens=200)
    assert lowered["usage"]["completion_tokens"] == 3
    assert lowered["choices"][0]["finish_reason"] == "length"
    server.strict_budget = True
    assert "is too large: 200" in error(post(server, "/v1/completions", prompt=[77] * 197, max_tokens=200))[1]


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ({"prompt": ""}, "Either prompt or prompt_embeds must be provided and non-empty. (parameter=prompt)"),
        ({"prompt": []}, "You must pass at least one prompt"),
        ({"prompt": [10**18]}, "Token id 1000000000000000000 is out of vocabulary"),
        ({"max_tokens": -1}, "max_tokens must be at least 1, got -1. (parameter=max_tokens, value=-1)"),
        ({"temperature": 3}, "temperature must be in [0, 2], got 3.0. (parameter=temperature, value=3.0)"),
        ({"top_p": 2}, "top_p must be in (0, 1], got 2.0. (parameter=top_p, value=2.0)"),
        ({"top_k": -5}, "top_k must be 0 (disable), or at least 1, got -5."),
        ({"repetition_penalty": 0}, "repetition_penalty must be greater than zero, got 0.0."),
        ({"stop": [""]}, "stop cannot contain an empty string."),
    ],
)
def test_impossible_values_are_a_400(server: LMServer, body: dict[str, Any], message: str) -> None:
    assert error(post(server, "/v1/completions", **{"prompt": "x", **body}))[:2] == (400, message)


def test_unknown_paths_and_keys(server: LMServer) -> None:
    assert post(server, "/v1/nothing").json() == {"detail": "Not Found"}
    server.api_key = "secret"
    assert post(server, "/v1/completions", prompt="x").status_code == 401
    headers = {"Authorization": "Bearer secret"}
    assert requests.get(server.base_url + "/models", headers=headers, timeout=5).status_code == 200


# Faults and load


def test_faults_are_played_in_order_and_then_the_server_is_well(server: LMServer) -> None:
    server.fail_next(2, 429, {"error": "slow down"}, headers={"Retry-After": "7"})
    server.fail_next(close=True)
    server.fail_next(1, None, delay=0.2)
    for _ in range(2):
        answer = post(server, "/v1/completions", prompt="x")
        assert (answer.status_code, answer.json(), answer.headers["Retry-After"]) == (429, {"error": "slow down"}, "7")
    with pytest.raises(requests.ConnectionError):
        complete(server, "x")
    start = time.monotonic()
    complete(server, "x")
    assert time.monotonic() - start >= 0.2
    assert server.counts["/v1/completions"] == len(server.requests) == 4
    assert server.requests[0].body == {"prompt": "x"}


def test_stopping_cuts_a_request_in_flight(server: LMServer) -> None:
    server.latency = 30

    async def scenario() -> None:
        async with aiohttp.ClientSession() as session:
            task = asyncio.create_task(session.post(server.base_url + "/completions", json={"prompt": "x"}))
            while not server.running:
                await asyncio.sleep(0.01)
            await asyncio.to_thread(server.stop)
            with pytest.raises(aiohttp.ClientError):
                await asyncio.wait_for(task, 5)

    asyncio.run(scenario())
    assert (server.aborted, server.running) == (1, 0)


def test_a_client_that_goes_away_aborts_its_generation(server: LMServer) -> None:
    server.latency = 30
    with pytest.raises(requests.Timeout):
        requests.post(server.base_url + "/completions", json={"prompt": "x"}, timeout=0.2)
    deadline = time.monotonic() + 5
    while not server.aborted and time.monotonic() < deadline:
        time.sleep(0.01)
    assert (server.aborted, server.running) == (1, 0)


def test_five_hundred_requests_at_once() -> None:
    async def scenario(url: str) -> list[int]:
        connector = aiohttp.TCPConnector(limit=0)
        async with aiohttp.ClientSession(connector=connector) as session:

            async def one(number: int) -> int:
                async with session.post(url, json={"prompt": f"number {number}", "max_tokens": 9}) as answer:
                    assert (await answer.json())["choices"][0]["text"] == f"number {number}"
                    return answer.status

            return await asyncio.gather(*map(one, range(500)))

    with LMServer(lambda prompt, body: prompt, latency=1.0) as server:
        assert set(asyncio.run(scenario(server.base_url + "/completions"))) == {200}
        assert server.max_running == 500

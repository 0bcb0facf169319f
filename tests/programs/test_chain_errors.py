"""Failures: typed, retried where that can help, and never at the price of the chain so far."""

from __future__ import annotations

import asyncio
import threading
import time

import dspy
import pytest

from programs import DirectReasoning, RAGAgent, SearchO1, StandardRAG
from retrieval.backends.bing import BingSearch
from retrieval.base import Hit, Page
from retrieval.http.client import Limits
from retrieval.readers.web import WebReader
from signatures.errors import ModelError, OptionError, SearchError
from tests.programs.world import (
    ANSWER,
    BR,
    INFORMATION,
    QUESTION,
    MemoryReader,
    MemorySearch,
    ask,
    ask_async,
    events,
    model_of,
    query,
    say,
    search_o1,
)
from tests.servers.lm import LMServer
from tests.servers.web import WebServer


@pytest.mark.parametrize("asker", [ask, ask_async])
def test_a_search_that_fails_keeps_the_partial_chain(serve, asker) -> None:
    server = serve(say(query("one"), f"More: {query('two')}", ANSWER))
    prediction = asker(server, search_o1(search=MemorySearch(failing=["two"])))
    assert prediction.finish == "error"
    assert prediction.error_kind == "search"
    assert "'two'" in prediction.error
    assert prediction.reasoning.endswith(f"More: {query('two')}")
    assert INFORMATION in prediction.reasoning
    assert [event["kind"] for event in events(prediction, "error")] == ["search"]


def test_a_backend_that_raises_anything_else_keeps_the_partial_chain_too(serve) -> None:
    class Broken(MemorySearch):
        async def search(self, query: str, k: int) -> list[Hit]:
            raise KeyError("secret-token")

    prediction = ask(serve(say(query("one"), ANSWER)), search_o1(search=Broken()))
    assert (prediction.finish, prediction.error_kind) == ("error", "search")
    assert "KeyError" in prediction.error
    assert "secret-token" not in prediction.error


def test_a_page_whose_reader_breaks_counts_as_unread(serve) -> None:
    class Broken(MemoryReader):
        async def read(self, url: str) -> Page:
            raise ValueError("no")

    prediction = ask(serve(say(query("one"), ANSWER)), search_o1(reader=Broken()))
    assert prediction.finish == "answered"
    assert prediction.searches[0]["pages"][0]["reason"] == "http"


def test_a_server_killed_in_mid_chain_keeps_the_partial_chain() -> None:
    server = LMServer(say(query("one"), ANSWER)).start()

    class Killing(MemorySearch):
        async def search(self, query: str, k: int) -> list[Hit]:
            await asyncio.to_thread(server.stop)
            return await super().search(query, k)

    prediction = ask(server, search_o1(search=Killing()), retry_seconds=0.1)
    assert (prediction.finish, prediction.error_kind) == ("error", "model")
    assert server.base_url in prediction.error
    assert prediction.reasoning == query("one")


def test_a_server_restarted_in_mid_chain_costs_a_retry_only() -> None:
    server = LMServer(say(query("one"), ANSWER)).start()

    class Restarting(MemorySearch):
        async def search(self, query: str, k: int) -> list[Hit]:
            await asyncio.to_thread(server.stop)
            threading.Timer(0.3, server.start).start()
            return await super().search(query, k)

    prediction = ask(server, search_o1(search=Restarting()), retry_seconds=20)
    server.stop()
    assert (prediction.finish, prediction.answer) == ("answered", "Denis Villeneuve")
    assert prediction.usage["retokenised"] == 0


@pytest.mark.parametrize("asker", [ask, ask_async])
def test_a_failure_of_the_very_first_generation_is_raised(serve, asker) -> None:
    server = serve(say(ANSWER))
    server.fail_next(50, 500)
    with pytest.raises(ModelError, match="Injected failure"):
        asker(server, retry_seconds=0.1)


def test_a_failing_refinement_keeps_the_partial_chain(serve) -> None:
    server = serve(say(query("one"), ANSWER))

    class Failing(MemoryReader):
        async def read(self, url: str) -> Page:
            server.fail_next(50, 500)
            return await super().read(url)

    prediction = ask(server, search_o1(reader=Failing()), retry_seconds=0.1)
    assert (prediction.finish, prediction.error_kind) == ("error", "model")
    assert prediction.reasoning == query("one")
    assert prediction.searches[0]["query"] == "one"


@pytest.mark.parametrize("fault", [{"status": 500}, {"status": 429}, {"status": 503}, {"close": True}])
@pytest.mark.parametrize("path", ["completions", "tokenize"])
def test_passing_failures_are_retried(serve, fault, path) -> None:
    server = serve(say(ANSWER))
    server.fail_next(2, path=path, **fault)
    assert ask(server, retry_seconds=20).answer == "Denis Villeneuve"
    assert len(server.calls) == 1


def test_a_request_the_server_calls_wrong_is_not_sent_again(serve) -> None:
    server = serve(say(ANSWER))
    with pytest.raises(ModelError, match="repetition_penalty must be greater than zero"):
        ask(server, search_o1(sampling={"repetition_penalty": -1.0}), retry_seconds=20)
    assert server.counts["/v1/completions"] == 1


def test_an_impossible_sampling_option_is_named(serve) -> None:
    with pytest.raises(OptionError, match="top_p"):
        ask(serve(say(ANSWER)), search_o1(sampling={"top_p": 7.0}))


@pytest.mark.parametrize("body", [
    "", "not json", {}, {"choices": []}, {"choices": [{"text": 5}]}, {"choices": [{"text": "x", "token_ids": ["a"]}]},
    {"choices": [{"text": "x"}], "usage": "none"},
])  # fmt: skip
def test_a_reply_that_makes_no_sense_is_a_model_error(serve, body) -> None:
    server = serve(say(ANSWER))
    server.fail_next(50, 200, body)
    with pytest.raises(ModelError, match=server.base_url):
        ask(server, retry_seconds=0.1)


def test_tokens_that_make_no_sense_are_a_model_error(serve) -> None:
    server = serve(say(ANSWER))
    server.fail_next(50, 200, {"tokens": "none"}, path="tokenize")
    with pytest.raises(ModelError, match="sent no tokens"):
        ask(server, retry_seconds=0.1)


def test_a_wrong_model_name_lists_what_the_server_serves(serve) -> None:
    server = serve(say(ANSWER))
    with pytest.raises(ModelError, match=r"does not serve 'Other'; it serves: QwQ"):
        model_of_name(server, "Other")


def model_of_name(server, name):
    from runs.models.factory import make_model

    return make_model(f"hosted_vllm/{name}", base_url=server.base_url)


def test_a_model_swapped_under_a_running_program_is_named(serve) -> None:
    server = serve(say(ANSWER))
    lm = model_of(server).lm
    server.model = "Other"
    with dspy.context(lm=lm), pytest.raises(ModelError, match=r"does not serve 'QwQ'.*Valid aliases: Other"):
        search_o1()(question=QUESTION)


def test_a_refused_key_is_named_by_its_variable_and_not_shown(serve, monkeypatch) -> None:
    server = serve(say(ANSWER), api_key="right-key")
    monkeypatch.setenv("VLLM_API_KEY", "wrong-key")
    with pytest.raises(ModelError, match="VLLM_API_KEY") as refused:
        model_of(server)
    assert "wrong-key" not in str(refused.value)
    monkeypatch.setenv("VLLM_API_KEY", "right-key")
    lm = model_of(server).lm
    server.api_key = "another"
    with dspy.context(lm=lm), pytest.raises(ModelError, match="VLLM_API_KEY") as refused:
        search_o1()(question=QUESTION)
    assert "right-key" not in str(refused.value)


def test_the_key_is_sent_as_bearer(serve, monkeypatch) -> None:
    monkeypatch.setenv("VLLM_API_KEY", "right-key")
    assert ask(serve(say(ANSWER), api_key="right-key")).answer == "Denis Villeneuve"


def test_no_server_at_all_says_how_to_start_one() -> None:
    with LMServer(say()) as server:
        pass
    with pytest.raises(ModelError, match="search-o1 serve"):
        model_of(server)


def test_a_server_that_cannot_tokenise_is_no_vllm(serve) -> None:
    server = serve(say(ANSWER), no_tokenize=True)
    with pytest.raises(ModelError, match="/tokenize"):
        ask(server)


def test_a_program_without_a_search_backend_says_so(serve) -> None:
    for program in (SearchO1(), RAGAgent(), StandardRAG()):
        with pytest.raises(OptionError, match="search"):
            ask(serve(say(query("a"), ANSWER)), program)


def test_a_failed_search_of_standard_rag_is_raised(serve) -> None:
    with pytest.raises(SearchError, match=QUESTION[:10]):
        ask(serve(say(ANSWER)), StandardRAG(MemorySearch(failing=[QUESTION]), MemoryReader()))


def test_more_than_100_questions_are_in_flight_at_once(serve) -> None:
    server = serve(lambda prompt, body: ANSWER, latency=1.5)
    lm = model_of(server).lm

    async def run() -> list:
        with dspy.context(lm=lm):
            program = DirectReasoning()
            return await asyncio.gather(*(program.acall(question=f"{QUESTION} {i}") for i in range(140)))

    started = time.monotonic()
    predictions = asyncio.run(run())
    assert server.max_running > 100, time.monotonic() - started
    assert all(prediction.answer == "Denis Villeneuve" for prediction in predictions)


def test_no_connection_is_left_open_when_an_event_loop_ends(serve, capfd) -> None:
    import gc

    ask_async(serve(say(query("a"), ANSWER)))
    gc.collect()
    assert "Unclosed" not in capfd.readouterr().err


def test_a_chain_over_a_web_search_and_web_pages(serve) -> None:
    page = "<html><body><article><p>Arrival is a 2016 film directed by Denis Villeneuve.</p></article></body></html>"
    hits = {
        "Arrival": [{"title": "Arrival", "url": "/arrival", "snippet": "2016 film"}, {"title": "Gone", "url": "/gone"}]
    }
    with WebServer(hits=hits, pages={"/arrival": page}) as web:
        limits = Limits(attempts=1)
        program = SearchO1(BingSearch(web.search_url, "k", limits=limits), WebReader(allow_private=True, limits=limits))
        server = serve(say(query("Arrival"), ANSWER))
        prediction = ask(server, program)
    assert prediction.reasoning == f"{query('Arrival')}\n\n{BR}{INFORMATION}<|end_search_result|>{ANSWER}"
    (refine,) = [call for call in server.calls if "Searched Web Pages" in call.prompt]
    assert "directed by Denis Villeneuve" in refine.prompt
    assert [(p["reason"], p["status"]) for p in prediction.searches[0]["pages"]] == [("", 200), ("not_found", 404)]


def test_a_web_search_that_fails_the_second_time_keeps_the_partial_chain(serve) -> None:
    with WebServer(default_hits=[{"title": "A", "url": "/a"}], pages={"/a": "text"}) as web:
        limits = Limits(attempts=1)
        program = SearchO1(BingSearch(web.search_url, "k", limits=limits), WebReader(allow_private=True, limits=limits))

        def model(prompt: str, body: dict) -> str:
            if "Searched Web Pages" in prompt:
                web.script("/v7.0/search", *[_failure()] * 5)
                return "**Final Information**\n\nNo helpful information found."
            return query("two") if "<|end_search_result|>" in prompt.split("assistant\n")[-1] else query("one")

        prediction = ask(serve(model), program)
    assert (prediction.finish, prediction.error_kind) == ("error", "search")
    assert prediction.reasoning.endswith(query("two"))


def _failure():
    from tests.servers.web import Answer

    return Answer("broken", status=500)

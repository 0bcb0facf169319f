"""Our client against a real vLLM on the CPU; run by .ci/run in vLLM's own environment."""

from __future__ import annotations

import asyncio
import json
import os
import threading
import time
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import dspy
import pytest

from programs import DirectReasoning, RAGAgent, SearchO1, StandardRAG
from programs.language_model import ChainModel
from programs.operations import Generate
from programs.options import make_options
from programs.saving import find_compiled, load_program
from retrieval.base import Hit
from retrieval.corpus.index import build_index
from retrieval.corpus.local import LocalSearch
from runs.benchmarks.quickstart_set import QUICKSTART
from runs.models.factory import make_model
from runs.models.weights import SMOLLM2
from signatures.errors import ModelError
from tests.programs.world import BQ, BR, EQ, MemoryReader, MemorySearch, message, words
from tests.runs.serving.real_vllm import (
    BLOCK,
    COMPLETIONS,
    CONTEXT,
    RealVLLM,
    block_hits,
    chains_of,
    common,
    real_vllm,
    written,
)

pytestmark = pytest.mark.vllm

MARKER_TOKENS = 10


def refining(pattern: str) -> dict[str, Any]:
    """Sampling under which Reason-in-Documents spells a regular expression below its heading."""
    return {"temperature": 0.0, "structured_outputs": {"regex": rf"\*\*Final Information\*\*\n\n{pattern}"}}


SMALL = {
    "turn_tokens": 90,
    "min_turn_tokens": 16,
    "refine_tokens": 24,
    "refine_sampling": refining(r"[A-Za-z ]{20,40}\."),
    "context_chars": 200,
    "max_turns": 2,
}


@pytest.fixture(scope="module")
def vllm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RealVLLM]:
    with real_vllm(tmp_path_factory.mktemp("vllm")) as server:
        yield server
        facts = {name: round(value, 4) for name, value in server.facts.items()}
        print("\nmeasured on real vLLM:", json.dumps(facts))
        if target := os.environ.get("SEARCH_O1_MEASURE"):
            Path(target).write_text(json.dumps(facts, indent=1) + "\n")


def writing(pattern: str, **sampling: Any) -> dict[str, Any]:
    """Options under which every reasoning turn spells a regular expression."""
    return {**SMALL, "sampling": {"temperature": 0.0, "structured_outputs": {"regex": pattern}, **sampling}}


def literal(text: str) -> str:
    return text.replace("|", r"\|")


def memory_chain(pages: str = "Arrival is a film by Denis Villeneuve.", **options: Any) -> SearchO1:
    hit = Hit("Arrival", "https://a.example/arrival", "Arrival is a film")
    return SearchO1(MemorySearch([hit]), MemoryReader({hit.url: pages}), **options)


SEARCHING = rf"I want [a-z ]{{20,40}}\. {literal(BQ)}[a-z]{{4,9}} [a-z]{{4,9}}{literal(EQ)}"


def test_shipped_program_continues_its_chains_from_the_cache(vllm: RealVLLM, tmp_path: Path) -> None:
    assert QUICKSTART.corpus is not None
    build_index([QUICKSTART.corpus], tmp_path / "index", "quickstart")
    program = SearchO1(LocalSearch(tmp_path / "index"), options=make_options(None, **QUICKSTART.options))
    compiled = find_compiled("search_o1", "smollm2-135m", "open_qa")
    assert compiled is not None
    load_program(program, compiled)
    questions = [q.question for q in QUICKSTART.load("validation")[:3]]
    seen = len(vllm.wire.exchanges)

    async def run() -> list[Any]:
        with dspy.context(lm=vllm.model().lm):
            return list(await asyncio.gather(*(program.acall(question=question) for question in questions)))

    predictions = asyncio.run(run())
    calls = [e for e in vllm.wire.exchanges[seen:] if e.path == COMPLETIONS]
    chains = chains_of(calls)
    for before, after in (pair for chain in chains for pair in pairwise(chain)):
        known = [*before.body["prompt"], *written(before)]
        # What is not kept is at most a marker that the model wrote and the chain cut off.
        assert common(known, after.body["prompt"]) >= len(known) - MARKER_TOKENS
    hits, possible = (sum(numbers) for numbers in zip(*map(block_hits, chains), strict=True))
    vllm.facts["quickstart_cached_block_share_of_continuations"] = hits / possible
    cached = sum(e.reply["usage"]["prompt_tokens_details"]["cached_tokens"] for e in calls)
    vllm.facts["quickstart_cached_token_share_of_all_calls"] = cached / sum(len(e.body["prompt"]) for e in calls)
    assert hits / possible >= 0.95
    assert all(e.status == 200 for e in calls)
    assert sum(len(p.searches) for p in predictions) >= 3
    assert all(p.usage["retokenised"] == 0 for p in predictions)
    assert all(p.finish in ("answered", "no_answer", "turns", "length", "loop") for p in predictions)


@pytest.mark.parametrize("style", ["completion", "chat"])
def test_prefix_of_a_long_chain_is_exact(vllm: RealVLLM, style: str) -> None:
    options = writing(SEARCHING) | {"max_turns": 4, "max_searches": 3, "profile": {"style": style}}
    prediction, calls = vllm.ask(memory_chain(**options), f"Who directed Arrival, asked by {style}?")
    (chain,) = chains_of(calls)
    assert len(chain) == 4
    for before, after in pairwise(chain):
        kept = [*before.body["prompt"], *written(before)]
        assert after.body["prompt"][: len(kept)] == kept
        assert len(after.body["prompt"]) > len(kept)
        cached = after.reply["usage"]["prompt_tokens_details"]["cached_tokens"]
        assert cached >= 0.95 * (len(kept) // BLOCK) * BLOCK
    hits, possible = block_hits(chain)
    vllm.facts[f"long_chain_cached_block_share_{style}"] = hits / possible
    assert prediction.usage["retokenised"] == 0
    assert prediction.reasoning.count(BR) >= 3


def test_stop_string_is_included_and_its_reason_told(vllm: RealVLLM) -> None:
    options = writing(rf"Hm\. {literal(BQ)}arrival film{literal(EQ)}") | {"max_turns": 1}
    prediction, calls = vllm.ask(memory_chain(**options), "Who?")
    choice = calls[0].reply["choices"][0]
    assert choice["text"] == f"Hm. {BQ}arrival film{EQ}"
    assert choice["stop_reason"] == EQ
    assert [s["query"] for s in prediction.searches] == ["arrival film"]
    assert prediction.events[0]["stop"] == EQ


def test_stop_string_that_ends_inside_a_token(vllm: RealVLLM) -> None:
    model = vllm.model()
    assert model.core is not None
    (end,) = asyncio.run(model.core.tokenise(">"))
    # With `>` unwanted the model closes the marker with the token `>.`, which reaches past the stop string.
    options = writing(rf"Hm\. {literal(BQ)}arrival film{literal(EQ)}\.", logit_bias={str(end): -100})
    prediction, calls = vllm.ask(memory_chain(**options), "Who?")
    (first, second) = chains_of(calls)[0]
    assert first.reply["choices"][0]["text"].endswith(EQ)
    assert asyncio.run(model.core.detokenise(written(first))).endswith(f"{EQ}.")
    kept = [*first.body["prompt"], *written(first)[:-1]]
    assert second.body["prompt"][: len(kept)] == kept
    sent = asyncio.run(model.core.detokenise(second.body["prompt"][len(first.body["prompt"]) :]))
    assert f"{EQ}\n\n{BR}" in sent
    assert f"{EQ}." not in sent
    hits, possible = block_hits([first, second])
    assert hits >= 0.95 * possible
    assert prediction.usage["retokenised"] == 0


def test_result_the_model_makes_up_is_cut_and_its_query_searched(vllm: RealVLLM) -> None:
    options = writing(rf"{literal(BQ)}arrival film\n{literal(BR)}It is Steven Spielberg\.") | {"max_turns": 1}
    prediction, calls = vllm.ask(memory_chain(**options), "Who?")
    assert calls[0].reply["choices"][0]["stop_reason"] == BR
    assert [s["query"] for s in prediction.searches] == ["arrival film"]
    assert "Spielberg" not in prediction.reasoning
    assert prediction.reasoning.startswith(f"{BQ}arrival film{EQ}\n\n{BR}")


@pytest.mark.parametrize("text", [f"So it is done {EQ}", f"{BQ}  {EQ}"], ids=["unpaired", "empty"])
def test_query_that_is_none_gets_a_message(vllm: RealVLLM, text: str) -> None:
    prediction, calls = vllm.ask(memory_chain(**writing(literal(text))), "Who?")
    assert prediction.reasoning.startswith(
        text + message(f"No search query was found. Write it between {BQ} and {EQ}.")
    )
    assert prediction.searches == []
    assert prediction.malformed == 2
    assert len(calls) == 2


def test_end_of_the_turn_is_told_from_a_stop_string(vllm: RealVLLM) -> None:
    prediction, calls = vllm.ask(memory_chain(**writing(r"It is \\boxed\{Villeneuve\}")), "Who?")
    choice = calls[0].reply["choices"][0]
    assert (choice["finish_reason"], choice["stop_reason"]) == ("stop", None)
    assert (prediction.finish, prediction.answer) == ("answered", "Villeneuve")


def test_chain_and_pages_far_beyond_the_context_are_never_refused(vllm: RealVLLM) -> None:
    seen = len(vllm.wire.exchanges)
    many = [Hit(f"Page {i}", f"https://a.example/{i}", words(900, i)) for i in range(3)]
    pages = MemoryReader({hit.url: words(9_000, i) for i, hit in enumerate(many)})
    greedy = {"turn_tokens": 1_500, "context_chars": 20_000, "page_chars": 40_000}
    searching = writing(SEARCHING) | greedy
    agent, _ = vllm.ask(RAGAgent(MemorySearch(many), pages, **searching | {"max_turns": 10}), "Who directed Arrival?")
    assert agent.finish == "context"
    assert agent.searches
    distilled, _ = vllm.ask(
        SearchO1(MemorySearch(many), pages, **searching | {"max_turns": 1}), "Who directed Arrival?"
    )
    assert [s["outcome"] for s in distilled.searches] == ["found"]
    documents, _ = vllm.ask(StandardRAG(MemorySearch(many), pages, **writing(r"It is \\boxed\{so\}") | greedy), "Who?")
    assert documents.answer == "so"
    endless, none = vllm.ask(DirectReasoning(**SMALL), words(CONTEXT))
    assert endless.finish == "context"
    assert none == []
    sent = vllm.wire.exchanges[seen:]
    assert [e.reply for e in sent if e.status != 200] == []
    assert all(len(e.body["prompt"]) + e.body["max_tokens"] <= CONTEXT for e in sent if e.path == COMPLETIONS)
    assert max(len(e.body["prompt"]) for e in sent if e.path == COMPLETIONS) > 0.9 * CONTEXT


def test_wrong_model_name_is_answered_with_the_served_one(vllm: RealVLLM) -> None:
    with pytest.raises(ModelError, match=rf"does not serve 'nope'; it serves: {SMOLLM2.name}"):
        make_model("hosted_vllm/nope", base_url=vllm.wire.base_url)


def test_measure_client_cpu_and_decoding_at_eight_in_flight(vllm: RealVLLM) -> None:
    model = ChainModel(vllm.model(direct=True).lm)
    prompt = words(150)

    def operation(chain: str, tokens: int) -> Generate:
        messages = [{"role": "user", "content": f"{prompt} {chain}"}]
        return Generate(messages, tokens, (), "reason", 1, chain, {"ignore_eos": True})

    async def run() -> tuple[float, float]:
        await model.agenerate(operation("first", 1))
        before = time.process_time()
        for number in range(50):
            await model.agenerate(operation(f"call {number}", 1))
        cpu = (time.process_time() - before) / 50
        started = time.monotonic()
        replies = await asyncio.gather(*(model.agenerate(operation(f"call {number}", 48)) for number in range(8)))
        return cpu, sum(r.completion_tokens for r in replies) / (time.monotonic() - started)

    cpu, rate = asyncio.run(run())
    vllm.facts |= {"client_cpu_seconds_a_call": cpu, "decode_tokens_a_second_at_8": rate}
    assert cpu < 0.05
    assert rate > 0


def test_chain_outlives_its_server(vllm: RealVLLM, tmp_path: Path) -> None:
    process = vllm.process
    if process is None:
        pytest.fail("This test kills its server: unset SEARCH_O1_VLLM_URL.")
    program = memory_chain(**writing(SEARCHING) | {"max_turns": 3, "max_searches": 3})
    in_flight = threading.Event()
    outcome: list[Any] = []
    reasoning: list[Any] = []

    def notice(exchange: Any) -> None:
        if exchange.path == COMPLETIONS and "regex" in json.dumps(exchange.body):
            reasoning.append(exchange)
            if len(reasoning) == 2:
                in_flight.set()

    vllm.wire.on_request = notice
    runner = threading.Thread(target=lambda: outcome.append(vllm.ask(program, "Who directed Arrival, then?")))
    runner.start()
    assert in_flight.wait(120)
    time.sleep(0.3)
    process.kill()
    process.start()
    vllm.facts["restart_seconds"] = process.wait_ready(600)
    runner.join(240)
    vllm.wire.on_request = None
    prediction, calls = outcome[0]
    lost = [e for e in calls if e.status is None]
    answered = [e.body["prompt"] for e in calls if e.status == 200]
    assert prediction.finish == "turns"
    assert prediction.error == ""
    assert lost
    assert {json.dumps(e.body) for e in lost} == {json.dumps(reasoning[1].body)}
    assert len(answered) == len({json.dumps(ids) for ids in answered}) == prediction.usage["calls"]

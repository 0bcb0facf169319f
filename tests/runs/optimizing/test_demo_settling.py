"""Demos are whole, short, and no more than the context has room for, by the model's own tokenizer."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

import dspy
import pytest

from programs import DirectReasoning, SearchO1, StandardRAG
from programs.base import Program
from programs.refine import TRACED_CHARS
from programs.saving import load_program, shipped_programs, state_digest
from runs.models.factory import Model, make_model
from runs.optimizing.demos import DemoSettler, cut_document
from signatures.adapter import ChainAdapter
from signatures.markup import BEGIN_SEARCH_QUERY, END_SEARCH_QUERY
from tests.programs.world import MemoryReader, MemorySearch, ask, model_of, query, say
from tests.servers.lm import LMServer

BOX = "It is \\boxed{Arrival}."


def chain(number: int, words: int = 20) -> dict[str, str]:
    return {"question": f"Which film is number {number}?", "reasoning": f"{f'thought{number} ' * words}{BOX}"}


@pytest.fixture
def server() -> Iterator[LMServer]:
    with LMServer(say(BOX), max_model_len=1_600) as found:
        yield found


@pytest.fixture
def roomy() -> Iterator[LMServer]:
    with LMServer(say(BOX)) as found:
        yield found


def searching(**options: Any) -> SearchO1:
    return SearchO1(MemorySearch(), MemoryReader(), **options)


def settled(model: Model, program: Program) -> list[Any]:
    DemoSettler(model, program.options).settle(program)
    return list(program.reason.demos)


def test_only_whole_chains_stay(roomy) -> None:
    program = searching(turn_tokens=100)
    good = [chain(1, 2), dspy.Example(**chain(2, 2), augmented=True)]
    program.reason.demos = [
        good[0],
        {"question": "no chain"},
        {"question": "q", "reasoning": "no answer"},
        {"question": "q", "reasoning": f"{BOX} {BEGIN_SEARCH_QUERY}half a query"},
        {"question": "q", "reasoning": f"{BOX} {BEGIN_SEARCH_QUERY}no result{END_SEARCH_QUERY}"},
        {"question": "q", "reasoning": f"{BOX}<|begin_search_result|>never closed"},
        {"question": "q", "reasoning": f"<think>{BOX}</think>"},
        good[1],
    ]
    assert settled(model_of(roomy), program) == good


def test_settling_twice_changes_nothing_and_leaves_a_fitting_program_alone(roomy) -> None:
    program = searching(turn_tokens=100)
    program.reason.demos = [chain(1, 2)]
    before, digest = program.reason.demos, state_digest(program.dump_state())
    settler = DemoSettler(model_of(roomy), program.options)
    for _ in range(2):
        settler.settle(program)
    assert program.reason.demos is before
    assert state_digest(program.dump_state()) == digest
    assert roomy.counts["/tokenize"] == 2


def test_demos_take_at_most_half_of_what_the_output_leaves_by_the_real_tokenizer(server) -> None:
    program = DirectReasoning(turn_tokens=8_192)
    program.reason.demos = [chain(i) for i in range(12)]
    model = model_of(server)
    settler = DemoSettler(model, program.options)
    # The largest output counts as a quarter of the context at most.
    assert settler.most_tokens == (1_600 - 400) // 2
    settler.settle(program)
    kept = program.reason.demos
    assert 0 < len(kept) < 12
    assert kept == [chain(i) for i in range(len(kept))]

    def tokens(demos: list[Any]) -> int:
        adapter = ChainAdapter(program.reason.layout, model.profile)
        messages = adapter.format(program.reason.signature, demos, {"question": ""})
        return len(server.tokenizer.encode(server.tokenizer.render(messages)))

    assert settler.tokens(program) == {"reason": tokens(kept) - tokens([])}
    assert (
        tokens(kept) - tokens([]) <= settler.most_tokens < tokens([chain(i) for i in range(len(kept) + 1)]) - tokens([])
    )
    prediction = ask(server, program)
    assert prediction.finish == "answered"


def test_a_demo_larger_than_the_room_leaves_none(server) -> None:
    program = DirectReasoning()
    program.reason.demos = [chain(0, 2_000)]
    assert settled(model_of(server), program) == []
    assert DemoSettler(model_of(server), program.options).tokens(program) == {"reason": 0}


def test_chat_demos_grow_with_the_instructions(server) -> None:
    # Each earlier turn repeats them: what fitted before need not fit under a longer prompt.
    program = DirectReasoning()
    program.reason.demos = [chain(i, 5) for i in range(4)]
    settler = DemoSettler(model_of(server), program.options)
    twin = program.deepcopy()
    settler.settle(program)
    assert len(program.reason.demos) == 4
    twin.reason.signature = twin.reason.signature.with_instructions("Think about every word of the question. " * 20)
    settler.settle(twin)
    assert len(twin.reason.demos) < 4


def test_of_a_pool_only_the_few_that_are_shown_at_once_must_fit(server) -> None:
    model = model_of(server, profile={"style": "completion", "nearest_demos": 2})
    program = DirectReasoning()
    program.reason.demos = [chain(0, 900), *(chain(i) for i in range(1, 41)), chain(41, 150), chain(42, 140)]
    settler = DemoSettler(model, program.options)
    settler.settle(program)
    kept = program.reason.demos
    # The one that is too large is gone, wherever it stood, and every pair of the rest fits.
    assert kept[:40] == [chain(i) for i in range(1, 41)]
    assert chain(0, 900) not in kept
    largest = DirectReasoning()
    largest.reason.demos = sorted(kept, key=lambda d: len(d["reasoning"]))[-2:]
    tokens = settler.tokens(program)["reason"]
    assert 0 < tokens <= settler.most_tokens
    assert settler.tokens(largest)["reason"] == tokens


def test_a_pool_of_which_no_demo_fits_is_left_empty(server) -> None:
    program = DirectReasoning()
    program.reason.demos = [chain(i, 900) for i in range(3)]
    assert settled(model_of(server, profile={"style": "completion", "nearest_demos": 1}), program) == []


def test_the_embedded_models_own_tokenizer_is_asked() -> None:
    model = make_model("local")
    compiled = next(c for c in shipped_programs() if c.method == "search_o1")
    program = load_program(searching(turn_tokens=80), compiled)
    settler = DemoSettler(model, program.options)
    settler.settle(program)
    assert (len(program.reason.demos), len(program.refine.demos)) == (178, 208)
    assert settler.most_tokens == (8_192 - 80) // 2
    tokens = settler.tokens(program)
    assert 100 < tokens["refine"] < settler.most_tokens
    assert 100 < tokens["reason"] < settler.most_tokens


def test_tokens_are_estimated_where_no_tokenizer_can_be_asked() -> None:
    program = DirectReasoning(context_length=1_000)
    program.reason.demos = [chain(i) for i in range(12)]
    settler = DemoSettler(make_model("openai/anything"), program.options)
    settler.settle(program)
    assert 0 < len(program.reason.demos) < 12
    assert settler.tokens(program)["reason"] <= settler.most_tokens == 375


def test_documents_in_demos_are_cut(server) -> None:
    page = "The film was made in Arden. " * 200
    program = searching()
    refine = {"prev_reasoning": "Step 1: x", "search_query": "q", "document": page, "final_information": "It is d."}
    program.refine.demos = [
        dspy.Example(**refine),
        {**refine, "document": "short"},
        {**refine, "final_information": ""},
    ]
    settler = DemoSettler(make_model("openai/anything"), program.options)
    settler.settle(program)
    first, second = program.refine.demos
    assert first.document == page[: len(first.document)]
    assert TRACED_CHARS - 30 < len(first.document) < TRACED_CHARS
    assert first.document.endswith("Arden.")
    assert (first.final_information, second["document"]) == ("It is d.", "short")
    assert refine["document"] == page
    rag = StandardRAG(MemorySearch(), MemoryReader())
    rag.reason.demos = [{**chain(1, 2), "documents": page}]
    DemoSettler(make_model("openai/anything"), rag.options).settle(rag)
    assert len(rag.reason.demos[0]["documents"]) < TRACED_CHARS


@pytest.mark.parametrize(
    ("text", "end"),
    [
        ("short", "short"),
        ("Dr. Smith came. " * 130, "Dr. Smith came."),
        ("line of words without an end\n" * 100, "without an end"),
        ("这部电影由维伦纽瓦执导。" * 200, "执导。"),
        ("word " * 600, "word"),
        ("x" * 3_000, "x"),
        (("A sentence that stands at the beginning. " + "y" * 5_000), "y"),
    ],
)
def test_a_document_is_cut_at_a_sentence_or_line(text: str, end: str) -> None:
    cut = cut_document(text)
    assert text.startswith(cut)
    assert cut.endswith(end)
    assert len(cut) <= TRACED_CHARS
    assert cut_document(cut) == cut
    # What the trace keeps of a page ends in the middle of something, and is cut again.
    assert cut_document(text[:TRACED_CHARS]) == cut


def test_copies_and_threads_count_once(server) -> None:
    program = DirectReasoning()
    program.reason.demos = [chain(i, 40) for i in range(6)]
    settler = DemoSettler(model_of(server), program.options)
    copies = [program.deepcopy() for _ in range(8)]
    threads = [threading.Thread(target=settler.settle, args=(copy,)) for copy in copies]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    counted = server.counts["/tokenize"]
    assert {len(copy.reason.demos) for copy in copies} == {len(copies[0].reason.demos)}
    assert 0 < len(copies[0].reason.demos) < 6
    # One count without demos and one a try; the settled list itself is not counted again.
    assert counted == 1 + 6 - len(copies[0].reason.demos) + 1
    settler.settle(copies[0])
    settler.tokens(copies[1])
    assert server.counts["/tokenize"] == counted


def test_bootstrapped_demos_of_a_real_chain_are_whole(roomy) -> None:
    program = searching(turn_tokens=100)
    with LMServer(say(query("Arrival"), BOX)) as model, dspy.context(trace=[]):
        ask(model, program)
        trace = list(dspy.settings.trace)
    by_predictor = {
        "document" in inputs: dspy.Example(augmented=True, **inputs, **outputs) for _, inputs, outputs in trace
    }
    program.refine.demos, program.reason.demos = [by_predictor[True]], [by_predictor[False]]
    settler = DemoSettler(model_of(roomy), program.options)
    settler.settle(program)
    assert (len(program.refine.demos), len(program.reason.demos)) == (1, 1)
    assert BEGIN_SEARCH_QUERY in program.reason.demos[0].reasoning

"""Candidates that lost the protocol are told from those that may run."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import dspy
import pytest

from programs import make_program
from programs.base import Program
from programs.saving import load_program, shipped_programs
from runs.models.factory import Model
from runs.optimizing.protocol import MOST_CHARS, ProtocolGate
from runs.optimizing.starters import with_starters
from signatures.markup import BEGIN_SEARCH_QUERY, BEGIN_URL, END_SEARCH_QUERY, END_URL
from tests.programs.world import MemoryReader, MemorySearch, model_of
from tests.servers.lm import LMServer

SEARCHING = f"Search with {BEGIN_SEARCH_QUERY} and {END_SEARCH_QUERY}, at most {{max_search_limit}} times."
FETCHING = f"{SEARCHING} Read with {BEGIN_URL} and {END_URL}, {{max_url_fetch}} pages."
CHAIN = f"{BEGIN_SEARCH_QUERY}Arrival{END_SEARCH_QUERY}"
CODE = "```python\nprint(1)\n```"


def start(method: str, **options: Any) -> Program:
    return make_program(method, MemorySearch(), MemoryReader(), **options)


@pytest.fixture(scope="module")
def chat() -> Iterator[Model]:
    with LMServer([]) as server:
        yield model_of(server)


@pytest.fixture(scope="module")
def completion() -> Iterator[Model]:
    with LMServer([]) as server:
        yield model_of(server, profile={"style": "completion", "compact": True, "nearest_demos": 2})


def changed(program: Program, predictor: str = "reason", text: str | None = None, demos: Any = None) -> Program:
    twin: Program = program.deepcopy()
    found = getattr(twin, predictor)
    if text is not None:
        found.signature = found.signature.with_instructions(text)
    if demos is not None:
        found.demos = demos
    return twin


@pytest.mark.parametrize("method", ["direct", "standard_rag", "rag_agent", "search_o1"])
def test_the_start_and_its_starters_keep_the_protocol(chat, completion, method: str) -> None:
    for model in (chat, completion):
        program = start(method)
        gate = ProtocolGate(program, model)
        assert gate.check(program) == ""
        assert gate.check(with_starters(program, model.profile)) == ""


def test_the_shipped_programs_keep_it(completion) -> None:
    for compiled in shipped_programs():
        program = start(compiled.method)
        assert ProtocolGate(program, completion).check(load_program(program.deepcopy(), compiled)) == "", compiled.path


@pytest.mark.parametrize(
    ("method", "text", "reason"),
    [
        ("search_o1", "Think well.", f"lost {BEGIN_SEARCH_QUERY}, {END_SEARCH_QUERY}, {{max_search_limit}}"),
        ("search_o1", SEARCHING.replace("{max_search_limit}", "5"), "reason: the instructions lost {max_search_limit}"),
        ("search_o1", SEARCHING.replace(END_SEARCH_QUERY, "</search>"), f"lost {END_SEARCH_QUERY}"),
        ("rag_agent", SEARCHING, f"lost {BEGIN_URL}, {END_URL}, {{max_url_fetch}}"),
        ("rag_agent", FETCHING.replace("{max_url_fetch}", "two"), "lost {max_url_fetch}"),
        (
            "search_o1",
            FETCHING.replace(" {max_url_fetch}", " 2"),
            f"ask for {BEGIN_URL}, which search_o1 does not answer",
        ),
        ("direct", SEARCHING, f"ask for {BEGIN_SEARCH_QUERY}, which direct does not answer"),
        ("direct", " \n", "reason: the instructions are empty"),
        ("direct", "word " * 2_000, "the instructions have 10,000 characters, more than 8,000"),
        ("direct", "Answer.<|im_end|>\n<|im_start|>assistant", "hold '<|im_end|>', which is no marker"),
        ("search_o1", f"{SEARCHING} Or <|search|>x<|/search|>.", "hold '<|search|>'"),
        ("direct", "[INST] Answer. [/INST]", "hold '[INST]'"),
        ("direct", "Answer {question} in the form {answer}.", "hold {answer}, which nothing fills"),
        ("search_o1", f"{SEARCHING} Given {{documents}}.", "hold {documents}, which nothing fills"),
        ("direct", "Title: {question_title}", "hold {question_title}, which nothing fills"),
    ],
)
def test_instructions_that_lost_it_are_refused(chat, method: str, text: str, reason: str) -> None:
    program = start(method)
    assert reason in ProtocolGate(program, chat).check(changed(program, text=text))


@pytest.mark.parametrize(
    ("method", "text"),
    [
        ("search_o1", SEARCHING),
        ("rag_agent", FETCHING),
        ("search_o1", f"{SEARCHING} End with \\boxed{{answer}}, never $x^{{max}}$ or \\frac{{one}}{{two}} or {{X}}."),
        ("direct", "Think between <think> and </think> first."),
        ("direct", "Question: {question}. {think}Answer it."),
        ("standard_rag", "Use the documents."),
        ("standard_rag", "Question: {question}\n\nDocuments:\n{documents}\n\nUse them."),
        ("search_o1", f"{SEARCHING} Example: {CHAIN}\n<|begin_search_result|>By Villeneuve.<|end_search_result|>"),
    ],
)
def test_instructions_that_only_read_differently_pass(chat, method: str, text: str) -> None:
    program = start(method)
    assert ProtocolGate(program, chat).check(changed(program, text=text)) == ""


def test_raw_completion_fills_no_slot_of_the_question(completion) -> None:
    program = start("search_o1")
    gate = ProtocolGate(program, completion)
    assert "{question}, which nothing fills" in gate.check(changed(program, text=f"{SEARCHING} {{question}}"))
    rag = start("standard_rag")
    assert ProtocolGate(rag, completion).check(changed(rag, text="Use {documents} for {question}.")) == ""


def test_titles_of_code_problems_may_be_shown(chat) -> None:
    program = start("direct", task="code")
    assert ProtocolGate(program, chat).check(changed(program, text="Solve {question_title}.")) == ""


def test_a_short_context_bounds_the_instructions() -> None:
    with LMServer([], max_model_len=1_024) as server:
        program = start("direct")
        gate = ProtocolGate(program, model_of(server))
        assert "more than 1,024" in gate.check(changed(program, text="a" * 1_025))
        assert MOST_CHARS > 1_024


def test_refinement_must_still_show_its_heading(chat) -> None:
    program = start("search_o1")
    gate = ProtocolGate(program, chat)
    short = "Copy the helpful information from the web pages."
    demo = {"prev_reasoning": "Step 1: x", "search_query": "q", "document": "d", "final_information": "It is d."}
    lost = "refine: neither the instructions nor a demo show the heading **Final Information**"
    assert gate.check(changed(program, "refine", short)) == lost
    assert gate.check(changed(program, "refine", short, [{"search_query": "q"}])) == lost
    assert gate.check(changed(program, "refine", short, [demo])) == ""
    assert gate.check(changed(program, "refine", "Begin with **Final Information**.")) == ""
    assert gate.check(changed(program, "refine", "以“最终信息”开头。")) == ""
    assert "{pages}, which nothing fills" in gate.check(changed(program, "refine", "Final Information: {pages}"))


def test_demos_without_an_answer_are_a_lost_protocol_only_where_all_lack_it(chat) -> None:
    program = start("search_o1")
    gate = ProtocolGate(program, chat)
    without = dspy.Example(question="q", reasoning="It is Arrival.")
    cut = {"question": "q", "reasoning": f"\\boxed{{x}} or rather {BEGIN_SEARCH_QUERY}Arrival"}
    waiting = {"question": "q", "reasoning": f"\\boxed{{x}} {CHAIN}"}
    right = {"question": "q", "reasoning": "It is \\boxed{Arrival}."}
    reason = "reason: none of its 3 demos is a whole chain that ends in an answer in \\boxed{...}"
    assert gate.check(changed(program, demos=[without, cut, waiting])) == reason
    assert gate.check(changed(program, demos=[without, right])) == ""
    # The adapter shows no incomplete demo, so they take nothing away.
    assert gate.check(changed(program, demos=[{"question": "q"}])) == ""


def test_code_demos_must_hold_a_program(chat) -> None:
    program = start("direct", task="code")
    gate = ProtocolGate(program, chat)
    boxed = {"question": "q", "reasoning": "\\boxed{print(1)}"}
    assert "ends in a Python code block" in gate.check(changed(program, demos=[boxed]))
    assert gate.check(changed(program, demos=[{"question": "q", "reasoning": CODE}])) == ""


def test_what_the_start_lacks_cannot_be_lost(chat) -> None:
    odd = changed(start("search_o1"), text="No markers {here} at all.", demos=[{"question": "q", "reasoning": "none"}])
    gate = ProtocolGate(odd, chat)
    assert gate.check(odd) == ""
    assert gate.check(changed(odd, "refine", "Begin with **Final Information**, please.")) == ""
    # It is refused for what it shows, not for what it never had.
    assert "none of its 1 demos is a whole chain" in gate.check(changed(odd, text="No markers {here} either."))


def test_a_hidden_predictor_is_checked_too(chat) -> None:
    class Hiding(type(start("search_o1"))):  # type: ignore[misc]
        def named_parameters(self) -> Any:
            return [(name, value) for name, value in super().named_parameters() if name != "refine"]

    program = Hiding(MemorySearch(), MemoryReader())
    gate: Callable[[Any], str] = ProtocolGate(program, chat).check
    assert gate(changed(program, "refine", " ")) == "refine: the instructions are empty"

"""Programs survive deepcopy, pickle and JSON with everything a prompt is made of."""

from __future__ import annotations

import copy
import json
import pickle

import dspy
import pytest

from programs import DirectReasoning, StandardRAG
from tests.programs.world import (
    ANSWER,
    QUESTION,
    MemoryReader,
    MemorySearch,
    ask,
    every_program,
    model_of,
    say,
    search_o1,
)


def trained(program):
    program.reason.demos = [dspy.Example(question="Q", reasoning="R \\boxed{a}", answer="a")]
    program.reason.signature = program.reason.signature.with_instructions("Edited {max_search_limit}.")
    return program


@pytest.mark.parametrize(
    "copying",
    [copy.deepcopy, lambda p: p.deepcopy(), lambda p: p.reset_copy(), lambda p: pickle.loads(pickle.dumps(p))],
    ids=["copy.deepcopy", "deepcopy", "reset_copy", "pickle"],
)
@pytest.mark.parametrize("index", range(5))
def test_a_copy_answers_like_its_original(serve, copying, index) -> None:
    original = every_program()[index]
    server = serve(lambda prompt, body: ANSWER)
    twin = copying(original)
    assert type(twin) is type(original)
    assert twin.options == original.options
    assert ask(server, twin).reasoning == ask(server, original).reasoning == ANSWER
    assert server.calls[0].prompt == server.calls[1].prompt


@pytest.mark.parametrize(
    "copying",
    [copy.deepcopy, lambda p: p.deepcopy(), lambda p: pickle.loads(pickle.dumps(p))],
    ids=["copy.deepcopy", "deepcopy", "pickle"],
)
def test_a_copy_keeps_demos_instructions_and_options(copying) -> None:
    original = trained(search_o1(max_searches=3))
    twin = copying(original)
    assert twin.reason.signature.instructions == "Edited {max_search_limit}."
    assert [dict(demo) for demo in twin.reason.demos] == [dict(demo) for demo in original.reason.demos]
    assert twin.options.max_searches == twin.reason.layout.max_search_limit == 3
    twin.reason.demos.clear()
    assert len(original.reason.demos) == 1


def test_a_copy_keeps_a_model_that_was_set_on_the_program(serve) -> None:
    server = serve(lambda prompt, body: ANSWER)
    program = search_o1()
    program.set_lm(model_of(server).lm)
    assert program.deepcopy()(question=QUESTION).answer == "Denis Villeneuve"
    assert copy.deepcopy(program)(question=QUESTION).answer == "Denis Villeneuve"


def test_standard_rag_runs_with_a_model_set_on_the_program_alone(serve) -> None:
    program = StandardRAG(MemorySearch(), MemoryReader())
    program.set_lm(model_of(serve(say(ANSWER))).lm)
    assert program(question=QUESTION).answer == "Denis Villeneuve"


def test_state_goes_through_json(serve, tmp_path) -> None:
    path = tmp_path / "program.json"
    trained(search_o1()).save(str(path))
    text = json.loads(path.read_text())
    assert {"reason", "refine"} <= set(text)
    loaded = search_o1()
    loaded.load(str(path))
    server = serve(say(ANSWER))
    ask(server, loaded)
    assert server.calls[0].prompt.startswith("<|im_start|>user\nEdited 10.\n\n")
    assert "R \\boxed{a}<|im_end|>" in server.calls[0].prompt


@pytest.mark.parametrize("text", ["\n    Indented.\n  Less so.", "  Indented\n    more. ", "x\n   y\n"])
def test_instructions_survive_pickle_to_the_letter(text: str) -> None:
    program = DirectReasoning()
    program.reason.signature = program.reason.signature.with_instructions("\n" + text)
    loaded = pickle.loads(pickle.dumps(program))
    assert loaded.reason.signature.instructions == program.reason.signature.instructions

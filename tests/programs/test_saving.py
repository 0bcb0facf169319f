"""Compiled programs as JSON, and the registry of methods."""

from __future__ import annotations

import json

import dspy
import pytest

from programs import DirectReasoning, SearchO1, load_program, make_program, save_program
from programs.registry import PROGRAMS
from programs.saving import find_compiled, read_compiled, shipped_programs, state_digest
from signatures.errors import OptionError, ProgramError
from tests.programs.world import ANSWER, MemoryReader, MemorySearch, ask, say, search_o1


def trained() -> SearchO1:
    program = search_o1()
    program.reason.demos = [dspy.Example(question="Q", reasoning="R \\boxed{a}", answer="a")]
    program.reason.signature = program.reason.signature.with_instructions("Edited.")
    return program


def test_a_saved_program_comes_back_with_prompts_and_demos(serve, tmp_path) -> None:
    path = tmp_path / "deep" / "program.json"
    written = save_program(trained(), path, model="qwq-32b", metadata={"data": "train"})
    assert (written.method, written.model, written.task, written.language) == ("search_o1", "qwq-32b", "open_qa", "en")
    assert written.metadata["data"] == "train"
    assert written.metadata["dspy"].startswith("3.")
    server = serve(say(ANSWER))
    ask(server, load_program(search_o1(), path))
    assert server.calls[0].prompt.startswith("<|im_start|>user\nEdited.\n\n")
    assert "R \\boxed{a}" in server.calls[0].prompt


def test_a_saved_program_holds_no_run_and_no_model(serve, tmp_path) -> None:
    program = trained()
    program.set_lm(dspy.LM("openai/x", api_key="secret-key"))
    path = tmp_path / "program.json"
    save_program(program, path, model="m")
    assert "secret-key" not in path.read_text()
    state = json.loads(path.read_text())["state"]
    assert all(predictor["lm"] is None and predictor["traces"] == [] for predictor in state.values())


def test_a_program_with_an_engine_of_ours_can_be_saved(serve, tmp_path) -> None:
    from tests.programs.world import model_of

    program = trained()
    program.set_lm(model_of(serve(say())).lm)
    assert (
        save_program(program, tmp_path / "p.json", model="m").digest
        == save_program(trained(), tmp_path / "q.json", model="m").digest
    )


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        (None, "No compiled program"),
        ("not json", "not a JSON file"),
        ("[1]", "not a compiled program"),
        ('{"method": "direct"}', "lacks `method` or `state`"),
        ('{"method": "direct", "state": {}, "format": 99}', "has format 99"),
        ('{"method": "direct", "state": {}, "format": 1, "sha256": "x"}', "was changed"),
    ],
)
def test_a_bad_file_is_named_with_what_is_wrong(tmp_path, content, complaint) -> None:
    path = tmp_path / "bad.json"
    if content is not None:
        path.write_text(content)
    with pytest.raises(ProgramError, match=complaint) as refused:
        read_compiled(path)
    assert "bad.json" in str(refused.value)


def test_a_program_of_another_method_task_or_language_is_refused(tmp_path) -> None:
    compiled = save_program(trained(), tmp_path / "p.json", model="m")
    for program in (DirectReasoning(), search_o1(task="math"), search_o1(language="zh")):
        with pytest.raises(ProgramError, match="compiled for method search_o1, task open_qa, language en"):
            load_program(program, compiled)


def test_a_digest_names_the_state_alone(tmp_path) -> None:
    one = save_program(trained(), tmp_path / "1.json", model="m")
    two = save_program(trained(), tmp_path / "2.json", model="other", metadata={"x": 1})
    assert one.digest == two.digest == state_digest(one.state)


def test_shipped_programs_can_be_read_and_are_found_by_what_they_are_for() -> None:
    for compiled in shipped_programs():
        assert find_compiled(compiled.method, compiled.model, compiled.task, compiled.language) == compiled
        load_program(make_program(compiled.method, MemorySearch(), MemoryReader(), task=compiled.task), compiled)
    assert find_compiled("search_o1", "no-such-model", "open_qa") is None


@pytest.mark.parametrize("method", PROGRAMS)
def test_a_method_is_made_by_its_name(method) -> None:
    program = make_program(method, MemorySearch(), MemoryReader(), max_searches=3)
    assert (program.method, program.options.max_searches) == (method, 3)


def test_an_unknown_method_is_refused_with_the_known_ones() -> None:
    with pytest.raises(OptionError, match="'search_o2'; known methods: direct, standard_rag, rag_agent, search_o1"):
        make_program("search_o2")

"""Compiled programs as JSON, and the registry of methods."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import dspy
import pytest

from programs import DirectReasoning, SearchO1, load_program, make_program, save_program
from programs.program_file import digest_of
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


BEFORE = '{"format": 2, "method": "direct", "state": '


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        (None, "No compiled program"),
        ("not json", "not a JSON file"),
        ("null", "lacks `method` or `state`"),
        ("[1]", "not a compiled program"),
        ('{"method": "direct"}', "lacks `method` or `state`"),
        (
            '{"method": "direct", "state": {}, "format": 99}',
            r"has format 99; this version reads format 2\. Way out: update search-o1, or compile it again: "
            "search-o1 optimize --method direct",
        ),
        (
            '{"method": "direct", "state": {}, "format": 1, "sha256": "x"}',
            r"has format 1; this version reads format 2\. Way out: compile it again: search-o1 optimize",
        ),
        ('{"method": "direct", "state": {}}', "has format None"),
        ('{"method": "\\u001b[31m", "state": {}, "format": [1]}', r"format \[1\].*--method METHOD"),
        (BEFORE + "{}}", "was changed"),
        (BEFORE + '{}, "metadata": {"score": NaN}}', "NaN is no JSON number"),
        (BEFORE + '{}, "metadata": {"score": 1e999}}', "1e999 is no JSON number"),
        (BEFORE + "[" * 50 + "]" * 50 + "}", "nested deeper than 40"),
        (BEFORE + "[" * 100_000 + "]" * 100_000 + "}", "nested deeper than 40"),
        (b'{"method": "caf\xe9"}', "not UTF-8"),
        (b"\xff\xfe{\x00", "not UTF-8"),
        ("", "not a JSON file"),
        (b" " * (64 * 2**20 + 1), "larger than 64 MiB"),
    ],
    ids=lambda value: str(value)[:30],
)
def test_a_bad_file_is_named_with_what_is_wrong(tmp_path, content, complaint) -> None:
    path = tmp_path / "bad.json"
    if content is not None:
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises(ProgramError, match=complaint) as refused:
        read_compiled(path)
    assert "bad.json" in str(refused.value)
    assert "\x1b" not in str(refused.value)


def test_a_folder_is_no_program_and_no_place_for_one(tmp_path) -> None:
    with pytest.raises(ProgramError, match="is a folder, not a compiled program"):
        read_compiled(tmp_path)
    with pytest.raises(ProgramError, match="cannot be written"):
        save_program(trained(), tmp_path, model="m")
    assert not list(tmp_path.iterdir())
    (tmp_path / "file").write_text("x")
    with pytest.raises(ProgramError, match="cannot be written"):
        save_program(trained(), tmp_path / "file" / "p.json", model="m")


def rewrite(path: Path, change: Callable[[dict[str, Any]], None], *, sign: bool = False) -> None:
    """Change a file as an editor would, or (`sign`) as software that knows the checksum would."""
    document = json.loads(path.read_text(encoding="utf-8"))
    change(document)
    if sign:
        document["sha256"] = digest_of({name: value for name, value in document.items() if name != "sha256"})
    path.write_text(json.dumps(document), encoding="utf-8")


@pytest.mark.parametrize(
    "change",
    [
        lambda d: d["state"]["reason"]["demos"].clear(),
        lambda d: d["state"]["refine"]["signature"].update(instructions="x"),
        lambda d: d["metadata"].update(score=0.9),
        lambda d: d["metadata"].clear(),
        lambda d: d.update(model="other"),
        lambda d: d.update(task="math"),
        lambda d: d.update(more=1),
        lambda d: d.pop("sha256"),
    ],
)
def test_whatever_is_changed_in_a_file_is_noticed(tmp_path, change) -> None:
    path = tmp_path / "p.json"
    save_program(trained(), path, model="m", metadata={"score": 0.5})
    rewrite(path, change)
    with pytest.raises(ProgramError, match=r"p\.json was changed after it was written .* take the original"):
        read_compiled(path)


def test_a_file_that_was_only_laid_out_anew_is_the_same(tmp_path) -> None:
    path = tmp_path / "p.json"
    written = save_program(trained(), path, model="m", metadata={"b": 1.5, "a": "é"})
    rewrite(path, lambda d: None)
    assert read_compiled(path) == written


@pytest.mark.parametrize(
    ("change", "named"),
    [
        (lambda d: d["state"]["reason"].update(forward="x"), "state.reason.forward"),
        (lambda d: d["state"]["reason"].update(lm={"model": "openai/x"}), "state.reason.lm"),
        (lambda d: d["state"]["reason"].update(traces=[1]), "state.reason.traces"),
        (lambda d: d["state"]["reason"].pop("train"), "state.reason.train"),
        (lambda d: d["state"]["reason"].update(demos=["text"]), "state.reason.demos"),
        (lambda d: d["state"]["reason"].update(signature={}), "state.reason.signature.instructions"),
        (
            lambda d: d["state"]["reason"]["signature"].update(instructions="\ud800"),
            "state.reason.signature.instructions",
        ),
        (lambda d: d["state"]["reason"]["signature"].update(fields=[{}]), "state.reason.signature.fields"),
        (lambda d: d["state"].update(reason=[]), "state.reason"),
        (lambda d: d["state"].update({"\x1b[2J": {}}), "state"),
        (lambda d: d.update(state=[]), "state"),
        (lambda d: d.update(metadata="none"), "metadata"),
        (lambda d: d.update(model="\x1b]0;title\x07"), "model"),
        (lambda d: d.update(language=None), "language"),
    ],
)
def test_a_well_signed_file_of_another_layout_is_refused_before_dspy_sees_it(tmp_path, change, named) -> None:
    # DSPy sets every key of a predictor's state as an attribute, `forward` as well.
    path = tmp_path / "p.json"
    save_program(trained(), path, model="m")
    rewrite(path, change, sign=True)
    with pytest.raises(ProgramError, match=rf"another layout than this version reads: {re.escape(named)}\.") as refused:
        read_compiled(path)
    assert "\x1b" not in str(refused.value)


def test_a_file_with_other_predictors_is_refused_and_changes_nothing(tmp_path) -> None:
    path = tmp_path / "p.json"
    save_program(trained(), path, model="m")
    rewrite(path, lambda d: d["state"].pop("refine"), sign=True)
    program = search_o1()
    before = state_digest(program.dump_state())
    with pytest.raises(ProgramError, match="holds prompts of reason, but search_o1 has the predictors reason, refine"):
        load_program(program, path)
    assert state_digest(program.dump_state()) == before


def test_the_versions_that_wrote_a_file_do_not_matter_only_its_layout(tmp_path) -> None:
    path = tmp_path / "p.json"
    compiled = save_program(trained(), path, model="m", metadata={"dspy": "2.6.27", "search-o1": "9.9"})
    assert compiled.metadata["dspy"] == "2.6.27"
    assert state_digest(load_program(search_o1(), path).dump_state()) == compiled.digest


def test_what_json_cannot_hold_is_refused_and_the_old_file_stays(tmp_path) -> None:
    path = tmp_path / "p.json"
    kept = save_program(trained(), path, model="m")
    for wrong in (object(), float("nan")):
        program = trained()
        program.reason.demos = [{"question": "Q", "reasoning": "R", "extra": wrong}]
        with pytest.raises(ProgramError, match="holds what JSON cannot"):
            save_program(program, path, model="m")
    assert read_compiled(path) == kept
    assert [entry.name for entry in tmp_path.iterdir()] == ["p.json"]


def test_an_error_bar_that_is_no_number_does_not_lose_a_program(tmp_path) -> None:
    # One validation question has no standard error; the optimisation is paid for all the same.
    found = save_program(trained(), tmp_path / "p.json", model="m", metadata={"after": {"se": float("nan"), "n": (1,)}})
    assert found.metadata["after"] == {"se": None, "n": [1]}


def test_a_reader_never_sees_half_a_file(tmp_path) -> None:
    path = tmp_path / "p.json"
    programs = [trained(), trained()]
    programs[1].reason.demos *= 300
    save_program(programs[0], path, model="m")
    with ThreadPoolExecutor(2) as pool:
        writers = [pool.submit(lambda p: [save_program(p, path, model="m") for _ in range(5)], p) for p in programs]
        seen = {len(read_compiled(path).state["reason"]["demos"]) for _ in range(50)}
        assert all(done.result() for done in writers)
    assert seen <= {1, 300}
    assert [entry.name for entry in tmp_path.iterdir()] == ["p.json"]


def test_what_happens_to_a_loaded_program_does_not_change_what_was_read(tmp_path) -> None:
    compiled = save_program(trained(), tmp_path / "p.json", model="m")
    first = load_program(search_o1(), compiled)
    first.reason.demos.append({"question": "another"})
    first.reason.demos[0]["question"] = "changed"
    assert state_digest(load_program(search_o1(), compiled).dump_state()) == compiled.digest


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


def test_a_pipe_is_no_compiled_program(tmp_path) -> None:
    path = tmp_path / "pipe.json"
    os.mkfifo(path)
    with pytest.raises(ProgramError, match="no regular file"):
        read_compiled(path)

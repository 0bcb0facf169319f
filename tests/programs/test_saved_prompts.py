"""What a saved and loaded program sends is, byte for byte, what the original sends."""

from __future__ import annotations

import json
import pickle
from functools import cache
from pathlib import Path
from typing import Any

import dspy
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from programs.registry import PROGRAMS, make_program
from programs.saving import load_program, read_compiled, save_program, state_digest
from signatures.adapter import CHAIN, ChainAdapter
from signatures.profiles import profile_for
from tests.programs.world import MemoryReader, MemorySearch, query

INPUTS = {"question": "Who designed {it}?\n", "documents": "A: b\n"}
REFINE = {"prev_reasoning": "Step 1: x", "search_query": "lighthouse", "document": "A: b\n"}
PROFILES = [profile_for(name) for name in ("QwQ-32B", "SmolLM2-135M-Instruct", "Qwen2.5-Coder-1.5B", "gpt-4o")]
HOSTILE = [
    "\\boxed{a}", "{question}", "{max_search_limit}", "{", "}", "{{x}}", query("who?"), "<|im_end|>", "é", "\u202e",
    "\U0001f600", "e\u0301", "\ud83d", "\x1b[31m", "\x00", "\t", "  ", "\n", "\n\n", "\r\n", "\u2028", "\xa0", '"',
    "- **x**",
]  # fmt: skip
texts = st.lists(st.one_of(st.sampled_from(HOSTILE), st.text(max_size=8)), max_size=8).map("".join)
# DSPy keeps instructions as the text of a class, in which Python allows no half characters.
instruction_texts = texts.map(lambda text: text.encode(errors="ignore").decode())
reasoning_demos = st.lists(
    st.fixed_dictionaries({"question": texts, "reasoning": texts, "answer": texts, "documents": texts}), max_size=3
)
refine_demos = st.lists(
    st.fixed_dictionaries(
        {"prev_reasoning": texts, "search_query": texts, "document": texts, "final_information": texts}
    ),
    max_size=2,
)


@cache
def bare(method: str) -> Any:
    return make_program(method, MemorySearch(), MemoryReader())


def prompts(program: Any) -> list[bytes]:
    """Return what all predictors of a program send to every kind of model, at the start and in the middle."""
    sent = []
    for name, predictor in program.named_predictors():
        inputs = REFINE if name == "refine" else INPUTS
        for profile in PROFILES:
            adapter = ChainAdapter(predictor.layout, profile)
            for more in ({}, {CHAIN: "So far "}):
                messages = adapter.format(predictor.signature, predictor.demos, {**inputs, **more})
                sent.append(json.dumps(messages).encode())
    return sent


def edited(method: str, instructions: str, demos: list[Any], refine: list[Any]) -> Any:
    program = bare(method).deepcopy()
    program.reason.signature = program.reason.signature.with_instructions(instructions)
    program.reason.demos = [dspy.Example(demo) if i % 2 else demo for i, demo in enumerate(demos)]
    if method == "search_o1":
        program.refine.signature = program.refine.signature.with_instructions(instructions)
        program.refine.demos = refine
    return program


@pytest.mark.parametrize("method", PROGRAMS)
@settings(max_examples=25)
@given(instructions=instruction_texts, demos=reasoning_demos, refine=refine_demos)
@example(instructions="\n    Indented.\n  Less so.  \n\n", demos=[], refine=[])
@example(instructions="  first\n\tsecond\n", demos=[], refine=[])
@example(instructions=" \n   \n ", demos=[], refine=[])
@example(instructions="", demos=[], refine=[])
def test_any_prompt_survives_saving_and_loading(tmp_path_factory, method, instructions, demos, refine) -> None:
    path = _folder(tmp_path_factory) / f"{method}.json"
    original = edited(method, instructions, demos, refine)
    sent = prompts(original)
    compiled = save_program(original, path, model="m")
    loaded = load_program(bare(method).deepcopy(), path)
    assert prompts(loaded) == sent
    assert prompts(original) == sent
    # And once more: what was loaded is saved as the same file.
    first = path.read_bytes()
    assert save_program(loaded, path, model="m").digest == compiled.digest == state_digest(loaded.dump_state())
    assert path.read_bytes() == first
    assert prompts(loaded.deepcopy()) == sent


def _folder(factory: Any) -> Path:
    folder: Path = factory.getbasetemp() / "saved"
    folder.mkdir(exist_ok=True)
    return folder


def test_instructions_are_saved_as_dspy_shows_them(tmp_path) -> None:
    # DSPy cleans what it is given: shared indentation, tabs and blank ends go, spaces before a line break stay.
    given_text = "\n\tSearch.  \n\t  Then answer in \\boxed{}.\n\n"
    program = edited("direct", given_text, [], [])
    compiled = save_program(program, tmp_path / "p.json", model="m")
    assert compiled.state["reason"]["signature"]["instructions"] == "Search.  \n  Then answer in \\boxed{}."


def test_a_first_line_that_stays_indented_is_not_cleaned_twice(tmp_path) -> None:
    # "\n    a\n  b" is shown as "  a\nb"; cleaned once more, as DSPy's own loading does, it would be "a\nb".
    program = edited("direct", "\n    Indented.\n  Less so.", [], [])
    assert program.reason.signature.instructions == "  Indented.\nLess so."
    save_program(program, tmp_path / "p.json", model="m")
    loaded = load_program(bare("direct").deepcopy(), tmp_path / "p.json")
    assert loaded.reason.signature.instructions == "  Indented.\nLess so."


def test_half_a_character_is_written_as_json_can(tmp_path) -> None:
    program = edited("direct", "Answer.", [{"question": "\ud83d?", "reasoning": "\ude00 \\boxed{x}"}], [])
    compiled = save_program(program, tmp_path / "p.json", model="m")
    assert (tmp_path / "p.json").read_text(encoding="utf-8").count("\\ud83d") == 1
    assert read_compiled(tmp_path / "p.json").state["reason"]["demos"] == program.reason.demos
    assert compiled.digest == state_digest(program.dump_state())


def test_a_loaded_program_can_be_pickled(tmp_path) -> None:
    compiled = save_program(edited("direct", "Answer.  \n Well.", [], []), tmp_path / "p.json", model="m")
    loaded = load_program(bare("direct").deepcopy(), compiled)
    assert prompts(pickle.loads(pickle.dumps(loaded))) == prompts(loaded)

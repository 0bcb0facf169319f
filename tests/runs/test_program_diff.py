"""Compiled programs as a person looks at them: listed, shown, and two beside each other."""

from __future__ import annotations

import io
import json
import unicodedata
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from programs.registry import make_program
from programs.saving import save_program
from runs.home import Home
from runs.program_diff import diff_programs, diff_texts
from runs.program_listing import list_programs, show_program
from runs.program_printing import list_line, print_diff, print_program
from runs.program_store import program_path
from runs.terminal_text import visible
from tests.programs.world import MemoryReader, MemorySearch

HOSTILE = "\x1b[31mred\x1b]0;title\x07 \x9b2J [bold]x[/bold] :smile: \u202eevil {x} \\boxed{1}"
ACTIVE = "\x1b\x07\x9b\u202e"


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path / "home")


def keep(home: Home, name: str, instructions: str, demos: list[Any], **metadata: Any) -> None:
    program = make_program("search_o1", MemorySearch(), MemoryReader())
    program.reason.signature = program.reason.signature.with_instructions(instructions)
    program.reason.demos = demos
    save_program(program, program_path(home, name), model="qwq-32b", metadata=metadata)


def demo(question: str, reasoning: str = "\\boxed{x}") -> dict[str, str]:
    return {"question": question, "reasoning": reasoning}


def screen(show: Any, *arguments: Any, terminal: bool = False, **options: Any) -> str:
    out = io.StringIO()
    console = Console(file=out, force_terminal=terminal, width=120, color_system="standard" if terminal else None)
    show(console, *arguments, **options)
    return out.getvalue()


SCORE = {"mean": 0.42, "low": 0.301, "high": 0.55, "n": 60, "standard_error": None}


def test_programs_are_listed_with_scores_and_damage_the_users_own_first(home) -> None:
    keep(home, "mine", "Search.", [demo("Q")], made="by hand", date="2026-11-30", before=SCORE, after=SCORE)
    (home.programs / "broken.json").write_text("{")
    listed = list_programs(home)
    assert [p.name for p in listed[:2]] == ["broken", "mine"]
    assert [p.origin for p in listed] == ["home", "home", *["package"] * (len(listed) - 2)]
    assert list_line(listed[0]).startswith("broken.json (your own): DAMAGED: ")
    assert list_line(listed[1]) == (
        "mine.json (your own): search_o1, open_qa, for qwq-32b; demos reason 1, refine 0; by hand, 2026-11-30, "
        "42.0 % [30.1, 55.0], n = 60 before, 42.0 % [30.1, 55.0], n = 60 after"
    )
    assert json.loads(json.dumps(listed[1].to_dict()))["demos"] == {"reason": 1, "refine": 0}


def test_a_program_is_shown_with_metadata_prompts_and_as_many_demos_as_wanted(home) -> None:
    demos = [demo(f"Question {i}?", f"Chain {i}") for i in range(3)]
    about = {"name": "films", "ids": [f"q{i}" for i in range(9)], "empty": {}}
    keep(home, "mine", "Search\n  well\nnow.", demos, train=about, after=SCORE, seed=0, nothing=None)
    text = screen(print_program, show_program("mine", home=home), demos=2)
    assert "mine  (your own) · - before, 42.0 % [30.1, 55.0], n = 60 after" in text
    assert "    train.name: films\n" in text
    assert "    train.ids: 9 entries (" in text
    assert "    nothing: -\n" in text
    assert "reason: instructions\n      Search\n        well\n      now.\n" in text
    assert "reason: demos (3)\n  Question 0?\n    reasoning\n      Chain 0\n" in text
    assert ("Chain 1" in text, "Chain 2" in text, "  ... 1 more (all: --demos 0)" in text) == (True, False, True)
    assert "Chain 2" in screen(print_program, show_program("mine", home=home), demos=0)


def test_a_file_elsewhere_is_shown_as_one(home, tmp_path) -> None:
    keep(home, "mine", "Search.", [])
    moved = (home.programs / "mine.json").replace(tmp_path / "other.json")
    assert show_program(str(moved), home=home).program.origin == "file"


def test_two_programs_differ_in_prompt_demos_and_metadata(home) -> None:
    keep(home, "a", "Search at most five times.", [demo("same"), demo("changed", "one two"), demo("gone")], seed=0, x=1)
    keep(home, "b", "Search at most ten times.", [demo("new"), demo("changed", "one three"), demo("same")], seed=1, x=1)
    diff = diff_programs("a", "b", home=home)
    assert not diff.same_prompts
    assert diff.metadata == {"seed": ("0", "1")}
    reason, refine = diff.predictors
    assert [(s.kind, s.text) for s in reason.instructions if s.kind != "same"] == [("a", "five"), ("b", "ten")]
    assert (reason.same_demos, [d.key for d in reason.changed]) == (1, ["changed"])
    assert list(reason.changed[0].fields) == ["reasoning"]
    assert ([d["question"] for d in reason.only_a], [d["question"] for d in reason.only_b]) == (["gone"], ["new"])
    assert refine.same_instructions
    assert json.loads(json.dumps(diff.to_dict()))["metadata"] == {"seed": ["0", "1"]}

    plain = screen(print_diff, diff)
    assert "    seed: [-0-]{+1+}\n" in plain
    assert "      Search at most [-five-]{+ten+} times.\n" in plain
    assert "reason: 1 demos are the same, 1 differ, 1 only in A, 1 only in B" in plain
    assert "      one [-two-]{+three+}\n" in plain
    assert "reason: only in A (1)\n  gone\n" in plain
    assert "refine: instructions (the same in both)" in plain
    assert "\x1b" not in plain

    coloured = screen(print_diff, diff, terminal=True)
    assert "\x1b[1;9;31mfive" in coloured
    assert "\x1b[1;32mten" in coloured
    (line,) = [line for line in coloured.splitlines() if "five" in line]
    assert "ten" in line


def test_a_program_beside_itself_differs_in_nothing(home) -> None:
    keep(home, "a", "Search.", [demo("Q"), demo("Q")])
    diff = diff_programs("a", "a", home=home)
    assert (diff.same_prompts, diff.metadata) == (True, {})
    assert all(p.same_instructions and not (p.changed or p.only_a or p.only_b or p.only) for p in diff.predictors)
    assert "Both send the same prompts and demos." in screen(print_diff, diff)


def test_demos_about_one_question_are_matched_one_to_one(home) -> None:
    keep(home, "a", "Search.", [demo("Q", "1"), demo("Q", "2"), demo("Q", "3"), demo("Q", "3")])
    keep(home, "b", "Search.", [demo("Q", "3"), demo("Q", "4")])
    reason = diff_programs("a", "b", home=home).predictors[0]
    assert (reason.same_demos, len(reason.changed), reason.only_b) == (1, 1, ())
    assert [d["reasoning"] for d in reason.only_a] == ["2", "3"]


def test_programs_of_two_methods_show_what_only_one_has(home) -> None:
    keep(home, "a", "Search.", [])
    diff = diff_programs("a", "direct--smollm2-135m--open_qa", home=home)
    assert {p.name: p.only for p in diff.predictors} == {"reason": "", "refine": "a"}
    assert diff.metadata["method"] == ("search_o1", "direct")
    assert "refine: only in A" in screen(print_diff, diff)


@pytest.mark.parametrize("terminal", [False, True])
def test_hostile_text_is_shown_and_not_obeyed(home, terminal) -> None:
    keep(home, "a", f"Search {HOSTILE}", [demo(HOSTILE, HOSTILE)], made=HOSTILE, date=HOSTILE)
    keep(home, "b", f"Search well {HOSTILE}", [demo(HOSTILE, HOSTILE + "."), demo("new", HOSTILE)], made="x" + HOSTILE)
    shown = screen(print_program, show_program("a", home=home), terminal=terminal)
    diffed = screen(print_diff, diff_programs("a", "b", home=home), terminal=terminal)
    for text in (shown, diffed, list_line(list_programs(home)[0])):
        # What remains on a terminal are rich's own colours.
        assert not any(sign in text for sign in ACTIVE if sign != "\x1b")
        assert "\x1b[31mred" not in text
        assert "\x1b]" not in text
        assert "[bold]x" in text
        assert ":smile:" in text
        assert r"\x1b[31mred\x1b]0;title\x07 \x9b2J" in text
        assert "\\u202eevil" in text
    if not terminal:
        assert "\x1b" not in shown + diffed


@given(st.text(), st.text())
def test_the_stretches_of_a_difference_make_up_both_texts(a, b) -> None:
    found = diff_texts(a, b)
    assert "".join(s.text for s in found if s.kind in ("same", "a")) == a
    assert "".join(s.text for s in found if s.kind in ("same", "b")) == b


def test_very_long_texts_are_matched_by_lines() -> None:
    lines = [f"line {i} of a very long chain" for i in range(600)]
    changed = [*lines[:300], "another line", *lines[301:]]
    found = diff_texts("\n".join(lines), "\n".join(changed))
    assert [s.text for s in found if s.kind != "same"] == ["line 300 of a very long chain\n", "another line\n"]


@given(st.text())
def test_what_is_made_visible_holds_nothing_a_terminal_obeys(text) -> None:
    found = visible(text)
    obeyed = ("Cc", "Cf", "Cs", "Zl", "Zp")
    assert all(sign in "\n\t\u200c\u200d" or unicodedata.category(sign) not in obeyed for sign in found)
    assert visible(found) == found
    assert found.encode() or not text

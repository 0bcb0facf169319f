"""`search-o1 programs`, and `--program NAME` where a question is put."""

from __future__ import annotations

import json

import pytest

from programs.saving import save_program
from runs.home import Home
from runs.program_store import program_path
from tests.programs.world import search_o1
from tests.runs.world import command

SHIPPED = "search_o1--smollm2-135m--open_qa"


def keep(home: Home, name: str, instructions: str) -> None:
    program = search_o1()
    program.reason.signature = program.reason.signature.with_instructions(instructions)
    save_program(program, program_path(home, name), model="qwq-32b", metadata={"made": "by hand"})


@pytest.mark.parametrize("arguments", [[], ["list"]])
def test_programs_are_listed_the_users_own_first(tmp_path, arguments) -> None:
    keep(Home(tmp_path), "mine", "Search.")
    lines = command("programs", *arguments, home=tmp_path).output.splitlines()
    assert lines[0].startswith("mine.json (your own): search_o1, open_qa, for qwq-32b; demos reason 0, refine 0; by")
    assert any(
        line.startswith(f"{SHIPPED}.json: search_o1, open_qa, for smollm2-135m; demos reason ") for line in lines
    )
    told = [json.loads(line) for line in command("programs", *arguments, "--json", home=tmp_path).output.splitlines()]
    assert len(told) == len(lines)
    assert (told[0]["name"], told[0]["origin"], told[1]["origin"]) == ("mine", "home", "package")


def test_a_damaged_file_is_listed_with_its_reason_and_the_others_stay(tmp_path) -> None:
    keep(Home(tmp_path), "mine", "Search.")
    path = program_path(Home(tmp_path), "mine")
    path.write_text(path.read_text().replace("by hand", "by magic"))
    done = command("programs", home=tmp_path)
    assert done.exit_code == 0
    lines = done.output.splitlines()
    assert lines[0].startswith("mine.json (your own): DAMAGED: ")
    assert "was changed after it was written" in lines[0]
    assert len(lines) > 4


def test_a_program_is_shown(tmp_path) -> None:
    shown = command("programs", "show", SHIPPED, "--demos", "2", home=tmp_path).output
    assert f"{SHIPPED}  (comes with the package)" in shown
    assert "\nreason: instructions\n" in shown
    assert "\nrefine: demos (" in shown
    assert shown.count(" more (all: --demos 0)") == 2
    told = json.loads(command("programs", "show", SHIPPED, "--json", home=tmp_path).output)
    assert [p["name"] for p in told["predictors"]] == ["reason", "refine"]


def test_two_programs_are_laid_beside_each_other(tmp_path) -> None:
    for name, number in (("a", "five"), ("b", "ten")):
        keep(Home(tmp_path), name, f"Search {number} times.")
    shown = command("programs", "diff", "a", "b", home=tmp_path).output
    assert "      Search [-five-]{+ten+} times.\n" in shown
    told = json.loads(command("programs", "diff", "a", "b", "--json", home=tmp_path).output)
    assert told["predictors"][0]["instructions"][1] == {"kind": "a", "text": "five"}


def test_an_unknown_name_and_a_bad_file_end_with_an_error_and_no_traceback(tmp_path) -> None:
    done = command("programs", "show", "search_o1--smollm", home=tmp_path)
    assert (done.exit_code, "Unknown program 'search_o1--smollm'" in done.output) == (2, True)
    assert done.output.splitlines()[1].strip() == SHIPPED
    bad = tmp_path / "bad.json"
    bad.write_text('{"method": "direct", "state": {}, "format": 1}')
    done = command("programs", "diff", SHIPPED, str(bad), home=tmp_path)
    assert (done.exit_code, "has format 1; this version reads format 2" in done.output) == (2, True)


def test_a_question_is_put_to_a_program_by_its_name_and_that_is_said(films, tmp_path) -> None:
    world = films(1)
    keep(world.home, "mine", "EDITED {max_search_limit} <|begin_search_query|>")
    model = ("--model", f"hosted_vllm/{world.server.model}", "--base-url", world.server.base_url)
    corpus = ("--corpus", str(world.corpus))
    question = "Who directed Sunrise over Arden 00?"
    done = command("ask", question, *corpus, *model, "--program", "mine", home=world.home.root)
    assert done.exit_code == 0
    assert "search_o1: compiled program mine.json (without it: --program none)." in done.stderr
    assert "EDITED 10 <|begin_search_query|>" in world.server.prompts[-1]
    assert "your own for qwq-32b" in command("ask", question, *corpus, *model, home=world.home.root).stderr
    assert "compiled" not in command("ask", question, *corpus, *model, "--program", "none", home=world.home.root).stderr
    evaluated = command(*world.arguments("--program", "mine", "--no-track"), home=world.home.root)
    assert "search_o1: compiled program mine.json (without it: --program none)." in evaluated.output
    unknown = command(*world.arguments("--program", "mein", "--no-track"), home=world.home.root)
    assert (unknown.exit_code, "Unknown program 'mein'" in unknown.output, "\n  mine" in unknown.output) == (
        2,
        True,
        True,
    )


def test_of_several_methods_each_takes_its_own_program(films) -> None:
    world = films(1)
    keep(world.home, "mine", "EDITED {max_search_limit} <|begin_search_query|>")
    done = {e.method: e.compiled for e in world.run(methods=("direct", "search_o1"), program="mine")}
    assert done == {"direct": "", "search_o1": "mine.json"}

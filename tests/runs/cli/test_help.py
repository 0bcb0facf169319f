"""The command line explains itself, quickly, and shows errors without a traceback."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.runs.world import command

ROOT = Path(__file__).parents[3]
VERBS = [
    "ask", "benchmarks", "cache", "compare", "doctor", "evaluate", "index", "programs", "report", "rescore", "serve",
    "ui",
]  # fmt: skip
LINES = [
    [],
    *[[verb] for verb in VERBS],
    ["index", "build"],
    ["index", "search"],
    ["benchmarks", "show"],
    ["programs", "show"],
]
LINES += [["programs", "diff"]]
HEAVY = ("dspy", "mlflow", "litellm", "openvino", "torch", "tantivy", "datasets", "pandas", "rich")


def test_help_of_every_verb_loads_nothing_heavy() -> None:
    script = (
        "import sys\nfrom runs.cli import main\n"
        f"for line in {LINES!r}:\n"
        "    try:\n        main([*line, '--help'])\n"
        "    except SystemExit as stop:\n        assert not stop.code, line\n"
        f"print('LOADED', sorted(set({HEAVY!r}) & set(sys.modules)))\n"
    )
    done = subprocess.run([sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "LOADED []"


def test_the_first_help_lists_every_verb_with_what_it_does() -> None:
    for arguments in (["--help"], ["-h"]):
        done = command(*arguments)
        assert done.exit_code == 0
        for verb in VERBS:
            assert f"\n  {verb} " in done.output
    assert "SEARCH_O1_HOME" in done.output


@pytest.mark.parametrize("verb", VERBS)
def test_help_of_a_verb_reads_well(verb) -> None:
    done = command(verb, "--help")
    assert done.exit_code == 0
    lines = done.output.splitlines()
    assert lines[0].startswith("Usage: ")
    assert max(len(line) for line in lines) <= 110
    described = [line for line in lines if line.startswith("  --")]
    # An option without a word of help has nothing but its name on its line.
    names = [line for line in described if len(line.split("  ")) < 3 and "--help" not in line]
    assert all(lines[lines.index(name) + 1].startswith("     ") for name in names)


def test_examples_of_a_verb_keep_their_lines() -> None:
    assert '\n  search-o1 ask "..." --corpus documents.jsonl\n' in command("ask", "--help").output
    text = command("evaluate", "--help").output
    assert "\n  search-o1 evaluate quickstart\n" in text
    assert "\\\n" in text


def test_the_version_is_told() -> None:
    from importlib.metadata import version

    assert version("search-o1") in command("--version").output


@pytest.mark.parametrize(
    ("arguments", "code", "complaint"),
    [
        (["evaluat"], 2, "No such command 'evaluat'"),
        (["evaluate", "--speed", "3"], 2, "No such option"),
        (["evaluate", "--limit", "many"], 2, "'many' is not a valid integer"),
        (["evaluate", "nq2"], 2, "Error: Unknown benchmark 'nq2'; known: quickstart"),
        (["evaluate", "--data", "nowhere.jsonl"], 2, "Error: No question file at nowhere.jsonl"),
        (["evaluate", "--set", "top_k"], 2, "Error: --set 'top_k': expected NAME=VALUE"),
        (["evaluate", "--limit", "-1"], 2, "Error: Option limit = -1"),
        (["ask"], 2, "Missing argument 'QUESTION'"),
        (["benchmarks", "show", "nq2"], 2, "Error: Unknown benchmark 'nq2'"),
        (["index", "search", "nothing", "query"], 2, "Error: There is no index"),
        (["index", "build", "mine", "nowhere.jsonl"], 2, "nowhere.jsonl"),
        (["index", "build", "../up", "nowhere.jsonl"], 2, "'../up' cannot name a corpus"),
        (["serve"], 2, "Error: No NVIDIA GPU was found"),
        (["serve", "--local", "--vllm-python", "/nowhere/python"], 2, "Error: There is no Python at /nowhere/python"),
    ],
)
def test_mistakes_are_told_in_a_line_with_exit_code_2(tmp_path, arguments, code, complaint) -> None:
    done = command(*arguments, home=tmp_path, PATH=str(tmp_path))
    assert done.exit_code == code
    assert complaint in done.stderr
    assert "Traceback" not in done.output
    assert not (tmp_path.parent / "up").exists()

"""Scores on questions that a program has learned from say so wherever they are told."""

from __future__ import annotations

import io
import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import mlflow
import pytest
from rich.console import Console

from programs.saving import CompiledProgram, save_program, shipped_programs
from runs import compare, evaluate, report
from runs.benchmarks.quickstart_set import QUICKSTART
from runs.optimizing.question_text import question_key
from runs.program_store import program_path
from runs.trained_on import training_facts, training_notes
from tests.programs.world import search_o1
from tests.runs.world import Films, facts

FILMS = list(facts())


def learned(world: Films, count: int, **metadata: Any) -> CompiledProgram:
    """Write a program of the user's own that has learned from the first questions, asked in other words' dress."""
    keys = [question_key(f"  WHO directed {film} ?") for film in FILMS[:count]]
    return save_program(
        search_o1(),
        program_path(world.home, "mine"),
        model="qwq-32b",
        metadata={"trained_on": [*keys, "0" * 16], **metadata},
    )


def run(world: Films, **changes: Any) -> tuple[Any, str]:
    screen = io.StringIO()
    (done,) = evaluate("films", home=world.home, console=Console(file=screen, width=160), **world.settings(**changes))
    return done, screen.getvalue()


def kept(folder: Path, name: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((folder / name).read_text(encoding="utf-8"))
    return found


def test_a_score_on_learned_questions_says_so_on_screen_and_in_the_runs_folder(films) -> None:
    world = films(4)
    learned(world, 3)
    done, screen = run(world)
    assert "search_o1: compiled program mine.json, your own for qwq-32b (without it: --program none)." in screen
    note = "search_o1: its program has learned from 3 of these questions; the score does not say what it does on new"
    assert note in screen
    assert done.facts["trained_on_these"] == kept(done.folder, "facts.json")["trained_on_these"] == 3
    assert kept(done.folder, "summary.json")["trained_on_these"] == 3
    assert "leaked_test_rows" not in done.facts


def test_the_number_grows_with_the_questions_and_is_no_part_of_the_runs_id(films) -> None:
    world = films(4)
    learned(world, 3)
    first, screen = run(world, limit=2)
    assert "learned from 2 of these" in screen
    whole, _ = run(world)
    assert (whole.id, whole.answered) == (first.id, 2)
    assert kept(whole.folder, "facts.json")["trained_on_these"] == 3
    # A later start on fewer questions speaks of its own; the folder keeps what it holds.
    again, screen = run(world, limit=1)
    assert "learned from 1 of these" in screen
    assert again.facts["trained_on_these"] == kept(again.folder, "summary.json")["trained_on_these"] == 3
    # The same prompts without a word of what they have learned from are the same run.
    learned(world, 3, trained_on=None)
    silent, screen = run(world)
    assert (silent.id, silent.answered) == (first.id, 0)
    assert "learned" not in screen
    assert "trained_on_these" not in kept(silent.folder, "facts.json")


def test_test_rows_that_were_allowed_stand_by_every_score(films) -> None:
    world = films(2)
    learned(world, 0, leaked_test_rows=["q0", "q7"])
    done, screen = run(world)
    assert "search_o1: its program was made with 2 test rows (optimize --i-know)." in screen
    assert "learned from" not in screen
    assert (done.facts["trained_on_these"], done.facts["leaked_test_rows"]) == (0, 2)


def test_mlflow_gets_them_as_tags_and_metrics(films) -> None:
    world = films(2)
    learned(world, 1, leaked_test_rows=1)
    uri = f"sqlite:///{world.folder / 'store.db'}"
    done, _ = run(world, track=True, tracking_uri=uri)
    found = mlflow.MlflowClient(uri).get_run(done.mlflow_run).data
    assert (found.tags["trained_on_these"], found.tags["leaked_test_rows"]) == ("1", "1")
    assert found.metrics["trained_on_these"] == 1
    assert "trained_on_these" not in found.params


def test_reports_and_comparisons_have_a_footnote(films) -> None:
    world = films(2)
    plain, _ = run(world, program="none")
    learned(world, 2, leaked_test_rows=1)
    done, _ = run(world)
    notes = (
        f"{done.id}: its program has learned from 2 of these questions; the score does not say what it does on new "
        "ones.",
        f"{done.id}: its program was made with 1 test rows (optimize --i-know).",
    )
    for paper in (False, True):
        text = report([plain.id, done.id], home=world.home, paper=paper).text.replace("\\_", "_")
        assert all(note in text for note in notes)
        assert text.count("has learned from") == 1
    found = compare(plain.id, done.id, home=world.home)
    assert [note for note in found.notes if "learned" in note or "test rows" in note] == [
        note.replace(done.id, "B") for note in notes
    ]


@pytest.mark.parametrize(
    ("metadata", "expected"),
    [
        ({}, {}),
        ({"trained_on": None, "leaked_test_rows": None}, {}),
        ({"trained_on": "text", "leaked_test_rows": []}, {}),
        ({"trained_on": [1, None, {}]}, {"trained_on_these": 0}),
        ({"trained_on": [question_key("who?")]}, {"trained_on_these": 1}),
        ({"leaked_test_rows": 3}, {"leaked_test_rows": 3}),
    ],
)
def test_whatever_the_metadata_hold_can_be_counted(metadata, expected) -> None:
    compiled: Any = SimpleNamespace(metadata=metadata)
    assert training_facts(compiled, {"q1": "Who?", "q2": "Where?"}) == expected
    assert training_facts(None, {"q1": "Who?"}) == {}
    assert training_notes({}, "A") == training_notes({"trained_on_these": 0}, "A") == []


def test_the_shipped_programs_know_their_training_questions_and_no_others() -> None:
    train, test = ({q.id: q.question for q in QUICKSTART.load(split)} for split in ("train", "test"))
    for compiled in shipped_programs():
        if compiled.metadata.get("data") == "quickstart train":
            assert training_facts(compiled, train) == {"trained_on_these": len(train)}
            assert training_facts(compiled, test) == {"trained_on_these": 0}

from __future__ import annotations

import json
from pathlib import Path

import pytest

from runs.home import Home
from runs.journal import Journal
from runs.run_folder import load_run, note_start
from signatures.errors import DataError, OptionError
from tests.runs.recorded import FACTS, answer, record_run

ID = "films-direct-small-0123456789ab"


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path / "home")


def test_a_run_is_found_by_id_beginning_hash_folder_and_journal(home) -> None:
    record_run(home, ID, [True, False])
    record_run(home, "films-search_o1-small-ba9876543210", [True, True])
    folder = home.runs / ID
    for name in (ID, "films-d", "0123", str(folder), folder, folder / "journal.jsonl"):
        assert load_run(name, home).id == ID
    assert load_run("ba98", home).summary.scores["strict"]["em"].mean == 1.0


def test_a_run_knows_its_facts_records_and_scores(home) -> None:
    run = load_run(record_run(home, ID, [True, [False, True]]), home)
    assert (run.facts, run.missing, run.complete, run.headline, run.mlflow_run) == (FACTS, 0, True, "em", "")
    assert [(r["id"], r["sample"]) for r in run.records] == [("q0", 0), ("q1", 0), ("q1", 1)]
    assert [len(records) for records in run.by_question.values()] == [1, 2]
    assert run.summary.scores["strict"]["em"].mean == 0.75


@pytest.mark.parametrize(("task", "headline"), [("math", "math_equal"), ("code", "pass@1"), ("unheard_of", "em")])
def test_the_headline_is_that_of_the_task(home, task: str, headline: str) -> None:
    record_run(home, ID, [True], facts={"options": {"task": task}})
    assert load_run(ID, home).headline == headline


def test_records_stand_in_the_order_of_the_questions_whatever_finished_first(home) -> None:
    record_run(home, ID, [answer(2, True), answer(0, True), answer(1, True)])
    note_start(home.runs / ID, FACTS, [("q0", 0), ("q1", 0), ("q2", 0)], fresh=True)
    assert [r["id"] for r in load_run(ID, home).records] == ["q0", "q1", "q2"]


def test_a_stopped_run_says_how_many_answers_are_missing(home) -> None:
    record_run(home, ID, [True, False], planned=7)
    assert (load_run(ID, home).missing, load_run(ID, home).complete) == (5, False)


def test_a_shorter_start_after_a_longer_one_takes_nothing_away(home) -> None:
    folder = home.runs / record_run(home, ID, [True] * 4)
    note_start(folder, FACTS, [("q0", 0), ("q0", 1)], fresh=False)
    assert load_run(ID, home).missing == 1
    assert len(load_run(ID, home).by_question) == 4
    note_start(folder, FACTS, [("q0", 0)], fresh=True)
    assert load_run(ID, home).complete


def test_a_run_of_an_earlier_version_is_finished_when_it_has_its_summary(home) -> None:
    folder = home.runs / record_run(home, ID, [True, False, True])
    (folder / "plan.json").unlink()
    assert load_run(ID, home).missing is None
    (folder / "summary.json").write_text(json.dumps({"questions": 3.0}))
    assert load_run(ID, home).complete
    (folder / "summary.json").write_text(json.dumps({"questions": 10.0}))
    assert load_run(ID, home).missing == 7
    (folder / "facts.json").unlink()
    assert (load_run(ID, home).facts, load_run(ID, home).headline) == ({}, "em")


def test_an_unknown_run_gets_the_nearest_names(home) -> None:
    with pytest.raises(OptionError, match=r"there is none in .*search-o1 evaluate"):
        load_run("films", home)
    for name in (ID, "films-search_o1-small-ba9876543210"):
        record_run(home, name, [True])
    with pytest.raises(OptionError, match=f"No run 'film-direct-smal'.*of 2:\n  {ID}\n"):
        load_run("film-direct-smal", home)
    with pytest.raises(OptionError, match=r"'films' may mean 2 runs(.*\n)+.*ba9876543210"):
        load_run("films", home)
    with pytest.raises(OptionError, match="No run ''"):
        load_run("", home)


def test_damaged_files_and_foreign_journals_are_named(home) -> None:
    folder = home.runs / record_run(home, ID, [True])
    (folder / "plan.json").write_text("[1")
    with pytest.raises(DataError, match=r"plan\.json is damaged"):
        load_run(ID, home)
    (folder / "plan.json").unlink()
    Journal(folder / "journal.jsonl").append({"id": "x", "sample": 0, "question": "?"})
    with pytest.raises(DataError, match="the record of 'x', sample 0, has no answers, groups"):
        load_run(ID, home)


def test_one_id_for_two_questions_is_refused(home) -> None:
    other = {**answer(1, True), "id": "q0", "sample": 1}
    record_run(home, ID, [answer(0, True), other])
    with pytest.raises(DataError, match="the id 'q0' stands for two questions"):
        load_run(ID, home)


def test_a_folder_that_cannot_be_written_to_is_named(home) -> None:
    home.runs.parent.mkdir()
    home.runs.write_text("a file where the folder should be")
    with pytest.raises(DataError, match=r"facts\.json cannot be written: Not a directory"):
        note_start(home.runs / ID, FACTS, [("q0", 0)], fresh=True)

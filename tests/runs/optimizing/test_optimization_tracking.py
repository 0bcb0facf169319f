"""What MLflow knows of an optimisation: a real SQLite store, a run, a child a trial, prompts and program registered."""

from __future__ import annotations

import json
import os
import threading
import time
from pathlib import Path

import pytest

from runs.optimizing.learning_curve import Point, best_so_far, draw_learning_curve
from runs.optimizing.tracked_trial import prompts_of
from tests.runs.optimizing.tracked_world import DEMO, TEXT, VAL, Store, compiled, free_port, outcome, trial

THREE = [trial(0, 0.25, origin="start"), trial(1, 0.75), trial(2, 0.5)]


@pytest.fixture(scope="module")
def store(tmp_path_factory) -> Store:
    """One store for all tests of this file: a fresh one costs seconds."""
    return Store(tmp_path_factory.mktemp("optimisations"))


def test_the_run_has_parameters_scores_with_bounds_and_the_program(store, tmp_path) -> None:
    program = compiled(tmp_path, "m-run")
    tracker, done = store.track(outcome(program.path, 3), THREE)
    run = store.client.get_run(tracker.run_id)
    assert (run.info.status, run.info.run_name) == ("FINISHED", "search_o1 qwq-32b gepa")
    assert (run.data.params["method"], run.data.params["seed"]) == ("search_o1", "0")
    assert (run.data.tags["optimizer"], run.data.tags["kind"]) == ("gepa", "optimization")
    assert (run.data.tags["registered"], run.data.tags["champion"]) == (done.uri, "true")
    m = run.data.metrics
    assert (m["before"], m["after"], m["gain"], m["after.n"]) == (0.25, 0.75, 0.5, VAL)
    assert m["after.low"] < 0.75 < m["after.high"]
    assert (m["spent.calls"], m["spent.tokens"], "spent.cost" in m) == (12, 3456, False)
    assert json.loads(store.text(run.info.run_id, "program/program.json", tmp_path)) == json.loads(
        program.path.read_text()
    )
    assert "learning_curve.png" in {file.path for file in store.client.list_artifacts(run.info.run_id)}
    assert store.client.get_experiment(run.info.experiment_id).name == "films optimize"
    assert "MLFLOW_TRACKING_URI" not in os.environ


def test_every_trial_is_a_child_with_prompt_demos_and_score(store, tmp_path) -> None:
    rejected = trial(3, 0.0, 0, tokens=0, rejected="no marker syntax")
    tracker, _ = store.track(outcome(compiled(tmp_path, "m-child").path), [*THREE, rejected])
    children = store.children(tracker.run_id)
    assert [run.data.metrics["score"] for run in children] == [0.25, 0.75, 0.5, 0.0]
    assert [run.data.metrics["n"] for run in children] == [VAL, VAL, VAL, 0]
    assert [run.info.status for run in children] == ["FINISHED"] * 4
    assert [run.data.tags["origin"] for run in children] == ["start", "gepa", "gepa", "gepa"]
    assert [run.data.tags.get("rejected") for run in children] == [None, None, None, "no marker syntax"]
    assert children[1].data.tags["digest"] == f"{1:064x}"
    page = store.text(children[1].info.run_id, "prompts.md", tmp_path)
    assert f"````text\n{TEXT}\n````" in page
    assert json.loads(store.text(children[1].info.run_id, "demos.json", tmp_path)) == {"reason": [DEMO]}


def test_the_curve_counts_only_trials_that_met_every_question(store, tmp_path) -> None:
    trials = [trial(0, 0.25), trial(1, 1.0, 2), trial(2, 0.0, 0, rejected="no box", tokens=0), trial(3, 0.5), trial(4)]
    tracker, _ = store.track(outcome(compiled(tmp_path, "m-curve").path), trials)
    assert store.curve(tracker.run_id, "val") == [(0, 0.25), (3, 0.5), (4, 0.5)]
    assert store.curve(tracker.run_id, "best_val") == [(0, 0.25), (3, 0.5), (4, 0.5)]
    assert store.curve(tracker.run_id, "val_partial") == [(1, 1.0)]
    assert store.curve(tracker.run_id, "tokens_spent") == [(0, 100), (1, 200), (2, 200), (3, 300), (4, 400)]


def test_a_second_start_goes_on_in_the_same_run_and_logs_nothing_twice(store, tmp_path) -> None:
    done = outcome(compiled(tmp_path, "m-again").path)
    first = store.tracker()
    for one in THREE[:2]:
        first.trial(one)
    first.abandon()
    assert store.client.get_run(first.run_id).info.status == "KILLED"
    # As a kill leaves it: the child is there, the trial is not whole.
    (half,) = [run for run in store.children(first.run_id) if run.data.tags["trial"] == "1"]
    store.client.update_run(half.info.run_id, status="RUNNING")
    opened: list[str] = []
    second, registered = store.track(done, THREE, existing=first.run_id, on_open=opened.append)
    assert (second.run_id, opened) == (first.run_id, [first.run_id])
    children = store.children(first.run_id)
    assert [run.data.tags["trial"] for run in children] == ["0", "1", "2"]
    assert children[1].info.run_id == half.info.run_id
    curve = [(0, 0.25), (1, 0.75), (2, 0.5)]
    assert store.curve(first.run_id, "val") == curve
    third, again = store.track(done, THREE, existing=first.run_id)
    assert again == type(again)(**{**vars(registered), "why": "it is already"})
    assert (third.run_id, len(store.children(first.run_id))) == (first.run_id, 3)
    assert store.curve(first.run_id, "val") == curve
    assert store.curve(first.run_id, "after") == [(0, 0.5)]
    assert store.client.get_run(first.run_id).info.status == "FINISHED"


def test_a_trial_that_met_more_questions_is_updated_and_a_deleted_run_is_begun_anew(store, tmp_path) -> None:
    done = outcome(compiled(tmp_path, "m-more").path)
    tracker, _ = store.track(done, [trial(0, 1.0, 2), trial(0, 0.75, VAL)])
    (child,) = store.children(tracker.run_id)
    assert (child.data.metrics["score"], child.data.metrics["n"]) == (0.75, VAL)
    assert (store.curve(tracker.run_id, "val"), store.curve(tracker.run_id, "best_val")) == ([(0, 0.75)], [(0, 0.75)])
    store.client.delete_run(tracker.run_id)
    other, _ = store.track(done, [trial(0)], existing=tracker.run_id)
    missing, _ = store.track(done, [trial(0)], existing="0" * 32)
    assert len({tracker.run_id, other.run_id, missing.run_id}) == 3


def test_the_program_is_a_model_from_code_without_pickle(store, tmp_path) -> None:
    program = compiled(tmp_path, "m-code", name="my program #1 %20.json")
    tracker, done = store.track(outcome(program.path, 2))
    version = store.client.get_model_version("search-o1", done.uri.rpartition("/")[2])
    assert (version.run_id, version.tags["model_id"]) == (tracker.run_id, done.model_id)
    expected = {"method": "search_o1", "model": "m-code", "task": "open_qa", "language": "en", "optimizer": "gepa"}
    assert {name: version.tags[name] for name in expected} == expected
    assert (version.tags["score"], version.tags["questions"], version.tags["val_hash"]) == ("0.5", "4", "v1")
    assert version.tags["digest"] == program.digest
    model = store.client.get_logged_model(done.model_id)
    assert (str(model.status), model.source_run_id) == ("READY", tracker.run_id)
    files = [path for path in store.artifacts.rglob("*") if path.is_file()]
    assert not [path for path in files if path.suffix in (".pkl", ".pickle", ".pyc")]
    (place,) = [path.parent for path in files if path.name == "MLmodel" and done.model_id in str(path)]
    assert (place / "artifacts" / "my-program-1-20.json").read_bytes() == program.path.read_bytes()
    assert "set_model" in (place / "model_code.py").read_text(encoding="utf-8")


def test_prompts_are_registered_word_for_word_with_versions_and_a_champion(store, tmp_path) -> None:
    first = compiled(tmp_path, "m-prompts", name="1.json")
    second = compiled(tmp_path, "m-prompts", text=TEXT + " More.", name="2.json")
    _, one = store.track(outcome(first.path, 2))
    tracker, two = store.track(outcome(second.path, 3))
    name = "search_o1--m-prompts--open_qa--en--reason"
    assert (one.prompts["reason"], two.prompts["reason"]) == (f"prompts:/{name}/1", f"prompts:/{name}/2")
    # Reason-in-Documents' prompt is the same in both, so it stays the same version.
    assert one.prompts["refine"] == two.prompts["refine"]
    texts = prompts_of(first.state)[0]
    refine = one.prompts["refine"].removeprefix("prompts:/").split("/")
    assert store.client.get_prompt_version(name, 1).template == texts["reason"] == TEXT
    assert store.client.get_prompt_version(*refine).template == texts["refine"]
    champion = store.client.get_prompt_version_by_alias(name, "champion")
    assert (champion.version, champion.template) == (2, TEXT + " More.")
    assert champion.tags["run_id"] == tracker.run_id
    experiment = store.client.get_run(tracker.run_id).info.experiment_id
    assert store.client.get_prompt(name).tags["_mlflow_experiment_ids"] == f",{experiment},"


def test_the_champion_is_the_best_on_the_same_questions(store, tmp_path) -> None:
    programs = [compiled(tmp_path, "m-champion", text=f"{TEXT} {i}", name=f"{i}.json").path for i in range(4)]
    alias = "champion--search_o1--m-champion--open_qa--en"
    _, first = store.track(outcome(programs[0], 2))
    assert (first.champion, first.why) == (True, "the first of its kind")
    _, equal = store.track(outcome(programs[1], 2))
    assert (equal.champion, "has 0.5000 on the same questions" in equal.why) == (False, True)
    _, elsewhere = store.track(outcome(programs[2], 4, "v2"))
    assert (elsewhere.champion, "chosen on other questions" in elsewhere.why) == (False, True)
    assert alias in elsewhere.why
    assert store.aliases()[alias] == first.uri.rpartition("/")[2]
    _, better = store.track(outcome(programs[3], 3))
    assert better.champion
    assert store.aliases()[alias] == better.uri.rpartition("/")[2]


def test_the_plain_champion_follows_the_first_kind_and_no_other(tmp_path) -> None:
    store = Store(tmp_path)
    _, first = store.track(outcome(compiled(tmp_path, "a", name="1.json").path, 2))
    _, other = store.track(outcome(compiled(tmp_path, "b", name="2.json").path, 4))
    assert (first.champion, other.champion) == (True, True)
    assert store.aliases() == {
        "champion": "1",
        "champion--search_o1--a--open_qa--en": "1",
        "champion--search_o1--b--open_qa--en": "2",
    }
    _, better = store.track(outcome(compiled(tmp_path, "a", text="Better.", name="3.json").path, 3))
    assert better.uri == "models:/search-o1/3"
    assert store.aliases()["champion"] == store.aliases()["champion--search_o1--a--open_qa--en"] == "3"


def test_what_cannot_be_registered_is_said_and_the_run_is_closed_all_the_same(store, tmp_path) -> None:
    # Models and prompts share their names in MLflow.
    store.client.create_registered_model("search_o1--m-taken--open_qa--en--reason")
    store.said.clear()
    tracker, done = store.track(outcome(compiled(tmp_path, "m-taken").path), THREE)
    assert (done.uri, done.champion, done.why.startswith("not registered: ")) == ("", False, True)
    assert len(store.said) == 1
    assert "could not be registered in MLflow" in store.said[0]
    run = store.client.get_run(tracker.run_id)
    assert (run.info.status, run.data.metrics["after"]) == ("FINISHED", 0.5)


def test_two_optimisations_at_once_on_one_store_both_arrive(store, tmp_path) -> None:
    found: dict[int, tuple[str, str]] = {}

    def optimise(number: int) -> None:
        program = compiled(tmp_path, f"m-both-{number}", name=f"{number}.json")
        tracker, done = store.track(
            outcome(program.path), [trial(i) for i in range(5)], experiment="both at once optimize"
        )
        found[number] = str(tracker.run_id), done.uri

    threads = [threading.Thread(target=optimise, args=(number,)) for number in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
    runs = [store.client.get_run(run_id) for run_id, _ in found.values()]
    assert len({run.info.experiment_id for run in runs}) == 1
    assert [len(store.children(run.info.run_id)) for run in runs] == [5, 5]
    assert len({uri for _, uri in found.values()}) == 2


@pytest.mark.parametrize("broken", ["unwritable", "down"])
def test_a_broken_store_is_said_once_and_costs_the_optimisation_nothing(tmp_path, broken) -> None:
    (tmp_path / "file").write_text("not a folder")
    uri = {
        "unwritable": f"sqlite:///{tmp_path / 'file' / 'mlflow.db'}",
        "down": f"http://user:secret@127.0.0.1:{free_port()}",
    }[broken]
    store = Store(tmp_path, uri)
    began = time.monotonic()
    tracker = store.tracker()
    assert tracker.opened() == ""
    for one in THREE:
        tracker.trial(one)
    done = tracker.finish(outcome(compiled(tmp_path).path))
    assert time.monotonic() - began < 60
    assert (done.uri, done.champion) == ("", False)
    assert len(store.said) == 1
    assert store.said[0].startswith("Tracking stopped (")
    assert "secret" not in store.said[0] + tracker.failed + done.why


def test_the_best_so_far_leaves_out_what_cannot_be_compared() -> None:
    points = [Point(3, 0.4, True), Point(0, 0.2, True), Point(1, 0.9, False), Point(2, 0.8, True, rejected=True)]
    assert best_so_far(points) == [(0, 0.2), (3, 0.4)]
    assert best_so_far([]) == []


def test_the_curve_is_drawn_with_a_legend_of_what_there_is(tmp_path: Path) -> None:
    every = [Point(0, 0.2, True), Point(1, 0.9, False), Point(2, 0.0, False, rejected=True), Point(3, 0.4, True)]
    figure = draw_learning_curve(every)
    (legend,) = figure.legends
    labels = ["all validation questions", "some of them", "rejected", "best so far"]
    assert [text.get_text() for text in legend.get_texts()] == labels
    (ax,) = figure.axes
    (line,) = ax.get_lines()
    assert list(line.get_ydata()) == [20.0, 40.0, 40.0]
    assert draw_learning_curve([]).legends == []

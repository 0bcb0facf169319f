"""Several workers on one study, killed workers, interrupted ones: nothing is lost and nothing is done twice."""

from __future__ import annotations

import io
import sqlite3
import threading
from collections import Counter

import mlflow
import optuna
import pytest
from rich.console import Console

from runs.run_folder import load_run
from runs.tuning.study import TOLD
from runs.tuning.trial_lock import forget_lock, is_abandoned, trial_lock
from tests.runs.tuning.tuning_world import PARAMS, QUESTIONS, Tunings, reading_model, tried
from tests.runs.world import interrupt, wait_until


def study_of(world: Tunings, name: str) -> optuna.Study:
    return optuna.load_study(study_name=name, storage=f"sqlite:///{world.home.root / 'tuning' / name / 'study.db'}")


def answered(world: Tunings, name: str, trial: str) -> int:
    path = world.home.root / "tuning" / name / "trials" / trial / "journal.jsonl"
    return path.read_bytes().count(b"\n") if path.is_file() else 0


def test_two_workers_share_the_trials_and_finish_exactly_as_many_as_are_wanted(tunings) -> None:
    world = tunings(latency=0.05)
    arguments = ("--trials", "6", "--study", "shared", "--pruner", "none")
    workers = [world.start_tuning(*arguments, track=True) for _ in range(2)]
    outputs = [worker.communicate(timeout=240) for worker in workers]
    assert [worker.returncode for worker in workers] == [0, 0], outputs
    trials = study_of(world, "shared").trials
    states = Counter(trial.state.name for trial in trials)
    assert states["COMPLETE"] == 6
    assert states["RUNNING"] == states["WAITING"] == 0
    assert all(t.user_attrs[TOLD].startswith("surplus") for t in trials if t.state.name == "FAIL")
    folder = world.home.root / "tuning" / "shared"
    whole = [t for t in trials if t.state.name == "COMPLETE"]
    runs = [load_run(folder / "trials" / t.user_attrs["folder"]) for t in whole]
    assert [len(run.records) for run in runs] == [QUESTIONS] * 6
    assert len({run.folder for run in runs}) == 6
    # Workers with one seed draw different values.
    assert len({tuple(sorted(t.params.items())) for t in whole}) > 3
    assert not list((folder / "running").iterdir())
    for out, _ in outputs:
        assert "6 trials, 0 of them pruned" in out
        assert "Tracking stopped" not in out
    client = mlflow.MlflowClient(world.home.tracking_uri)
    logged = client.search_runs([client.get_experiment_by_name("films tune").experiment_id])
    (parent,) = [run for run in logged if "mlflow.parentRunId" not in run.data.tags]
    children = [run for run in logged if run.data.tags.get("mlflow.parentRunId") == parent.info.run_id]
    assert parent.info.status == "FINISHED"
    assert sorted(int(run.data.tags["trial"]) for run in children) == [t.number for t in trials]
    assert {run.info.status for run in children} <= {"FINISHED", "FAILED"}


@pytest.mark.parametrize("elsewhere", [False, True], ids=["on this machine", "on another machine"])
def test_the_trial_of_a_killed_worker_is_tried_again_with_what_it_had_answered(tunings, elsewhere) -> None:
    world = tunings(latency=0.25)
    worker = world.start_tuning("--trials", "3", "--study", "killed", "--concurrency", "1", "--grace", "2")
    wait_until(lambda: answered(world, "killed", "0001") >= 3, 120)
    worker.kill()
    worker.communicate()
    kept = answered(world, "killed", "0001")
    assert 3 <= kept < QUESTIONS
    if elsewhere:
        # Only the heartbeat then tells that the worker is no more, which takes its time.
        forget_lock(world.home.root / "tuning" / "killed", 1)
    world.server.latency = 0.0
    tuned = world.tune(trials=3, study="killed", concurrency=1, grace=2)
    assert [t.state for t in tuned.trials] == ["complete", "failed", "complete", "complete"]
    again = tuned.trials[3 if elsewhere else 2]
    assert (again.values, again.folder) == (tuned.trials[1].values, "0001")
    assert len(load_run(tuned.folder / "trials" / "0001").records) == QUESTIONS
    # Only the call that was in flight at the kill is made a second time.
    assert len(world.server.prompts) - len(set(world.server.prompts)) <= 1
    if not elsewhere:
        assert tried(tuned) == tried(world.tune(trials=3, study="whole"))


def test_ctrl_c_stops_soon_and_leaves_a_study_that_goes_on(tunings) -> None:
    world = tunings(latency=0.3)
    worker = world.start_tuning("--trials", "2", "--study", "stopped", "--concurrency", "1", track=True)
    wait_until(lambda: answered(world, "stopped", "0000") >= 2, 120)
    assert interrupt(worker) < 60  # a loaded machine is slow; the stop itself takes a second or two
    out, err = worker.communicate()
    assert worker.returncode == 130
    assert "The same command goes on from here" in err
    assert "Traceback" not in out + err
    assert [t.state.name for t in study_of(world, "stopped").trials] == ["FAIL", "WAITING"]
    kept = answered(world, "stopped", "0000")
    assert 2 <= kept < QUESTIONS
    world.server.latency = 0.0
    tuned = world.tune(trials=2, study="stopped")
    assert [t.state for t in tuned.trials] == ["failed", "complete", "complete"]
    assert tuned.trials[1].values == tuned.trials[0].values
    assert tried(tuned) == tried(world.tune(trials=2, study="whole"))


def test_a_worker_that_was_taken_for_dead_leaves_its_trial_to_the_other(tunings) -> None:
    world = tunings()
    model, taken = reading_model(), []

    def reply(prompt: str, body: dict[str, object]) -> str:
        if not taken:
            study = study_of(world, "taken")
            study.tell(0, state=optuna.trial.TrialState.FAIL)
            taken.append(study.trials[0].number)
        return str(model(prompt, body))

    world.server.reply = reply
    screen = io.StringIO()
    tuned = world.tune(Console(file=screen, width=200), trials=2, study="taken")
    assert [t.state for t in tuned.trials] == ["failed", "complete", "complete"]
    assert "Trial 0 was given to another worker" in screen.getvalue()


def test_options_that_kill_every_worker_are_given_up_after_three(tunings) -> None:
    world = tunings()
    world.tune(trials=1, study="deadly")
    study = study_of(world, "deadly")
    folder = world.home.root / "tuning" / "deadly"
    deadly = {"top_k": 1, "context_chars": 500}
    study.enqueue_trial(deadly)
    for _ in range(3):
        # What a worker leaves behind that dies in the middle of a trial.
        trial = study.ask()
        assert trial.suggest_int("top_k", 1, 6) == 1
        assert trial.suggest_int("context_chars", 500, 2000, step=500) == 500
        with trial_lock(folder, trial.number):
            left = (folder / "running" / f"{trial.number}.lock").read_bytes()
        (folder / "running" / f"{trial.number}.lock").write_bytes(left)
        assert is_abandoned(folder, trial.number)
        if trial.number < 3:
            world_trials = len(study.trials)
            _recover(world)
            assert len(study.trials) == world_trials + 1
    tuned = world.tune(trials=3, study="deadly")
    assert [t.state for t in tuned.trials] == ["complete", "failed", "failed", "failed", "complete", "complete"]
    assert [t.values for t in tuned.trials[1:4]] == [deadly] * 3


def _recover(world: Tunings) -> None:
    """Start the command with nothing left to do but to look for what dead workers left."""
    world.tune(trials=1, study="deadly")


def test_a_running_trial_is_not_taken_for_abandoned(tmp_path) -> None:
    with trial_lock(tmp_path, 3):
        assert not is_abandoned(tmp_path, 3)
    assert not is_abandoned(tmp_path, 3)
    (tmp_path / "running" / "4.lock").touch()
    assert is_abandoned(tmp_path, 4)
    forget_lock(tmp_path, 4)
    assert not is_abandoned(tmp_path, 4)


def test_a_worker_waits_for_a_database_that_another_one_holds(tunings) -> None:
    world = tunings(2)
    world.tune(trials=1, study="locked")
    database = world.home.root / "tuning" / "locked" / "study.db"
    holder = sqlite3.connect(database, check_same_thread=False)
    holder.execute("BEGIN IMMEDIATE")
    threading.Timer(6.0, holder.rollback).start()
    # Longer than SQLite's own five seconds.
    tuned = world.tune(trials=2, study="locked", params=PARAMS)
    assert tuned.finished == 2

"""What arrives in MLflow: a parent run a study, a child run a trial; and that a broken store stops nothing."""

from __future__ import annotations

import io
import json
import os
import threading
from pathlib import Path
from typing import Any

import mlflow
import optuna
import pytest
from rich.console import Console

from runs.tuning.results import TrialResult
from runs.tuning.tracking import StudyTracker
from runs.tuning.trial_run import TrialFailedError
from tests.runs.tuning.tuning_world import QUESTIONS, Tunings, reading_model
from tests.runs.world import wait_until
from tests.servers.lm import LMServer


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    """One store for all tests of this file: a fresh one costs seconds."""
    with LMServer(reading_model()) as server:
        yield Tunings(tmp_path_factory.mktemp("tuned"), server)


@pytest.fixture(scope="module")
def tuned(world):
    database = world.folder / "shared.db"
    return world.tune(
        track=True, trials=12, study="tracked", params={"top_k": "1,2,3,4"}, options={"max_searches": 2},
        storage=f"sqlite:///{database}?password=s3cret",
    )  # fmt: skip


@pytest.fixture(scope="module")
def client(world, tuned):
    return mlflow.MlflowClient(world.home.tracking_uri)


def children(client: mlflow.MlflowClient, run_id: str) -> dict[str, Any]:
    experiment = client.get_run(run_id).info.experiment_id
    found = client.search_runs([experiment], f"tags.`mlflow.parentRunId` = '{run_id}'")
    numbers = [run.data.tags["trial"] for run in found]
    assert len(set(numbers)) == len(numbers)
    return dict(zip(numbers, found, strict=True))


def test_the_parent_run_holds_the_space_the_best_trial_and_the_files(client, tuned, tmp_path) -> None:
    run = client.get_run(tuned.mlflow_run)
    assert (run.info.status, run.data.tags["mlflow.runName"]) == ("FINISHED", "tune films standard_rag qwq-32b")
    assert client.get_experiment(run.info.experiment_id).name == "films tune"
    assert (run.data.params["space.top_k"], run.data.params["options.max_searches"]) == ("1,2,3,4", "2")
    assert (run.data.params["objective"], run.data.params["seed"]) == ("score", "0")
    assert (run.data.tags["study"], run.data.tags["tuned_on_test_rows"]) == ("tracked", "0")
    assert run.data.metrics["best.score"] == 1.0
    assert run.data.metrics["complete"] + run.data.metrics["pruned"] == 12
    files = {artifact.path for artifact in client.list_artifacts(tuned.mlflow_run)}
    assert files == {"best.json", "history.png", "slices.png", "importance.png"}
    kept = json.loads(Path(client.download_artifacts(tuned.mlflow_run, "best.json", str(tmp_path))).read_text())
    assert kept["options"] == tuned.options
    course = client.get_metric_history(tuned.mlflow_run, "best_score")
    values = [metric.value for metric in sorted(course, key=lambda metric: metric.step)]
    assert values == sorted(values)
    assert values[-1] == 1.0


def test_each_trial_is_a_child_run_with_its_options_and_scores(client, tuned) -> None:
    found = children(client, tuned.mlflow_run)
    assert sorted(found, key=int) == [str(t.number) for t in tuned.trials]
    assert {t.state for t in tuned.trials} == {"complete", "pruned"}
    for trial in tuned.trials:
        run = found[str(trial.number)]
        assert run.info.status == "FINISHED"
        assert run.data.params == {"top_k": str(trial.values["top_k"])}
        assert run.data.metrics["score"] == trial.metrics["score"]
        assert run.data.metrics["tokens"] == pytest.approx(trial.metrics["tokens"])
        assert run.data.tags["pruned"] == str(trial.state == "pruned").lower()
        looks = client.get_metric_history(run.info.run_id, "running_score")
        assert {m.step: m.value for m in looks} == trial.running


def test_passwords_of_the_storage_are_nowhere_in_mlflow(client, tuned, world) -> None:
    run = client.get_run(tuned.mlflow_run)
    assert run.data.params["storage"] == f"sqlite:///{world.folder / 'shared.db'}?password=***"
    assert b"s3cret" not in (world.home.root / "mlflow.db").read_bytes()
    assert all(b"s3cret" not in path.read_bytes() for path in tuned.folder.rglob("*") if path.is_file())


def test_the_same_command_goes_on_in_the_same_parent_run(client, tuned, world) -> None:
    more = world.tune(
        track=True, trials=13, study="tracked", params={"top_k": "1,2,3,4"}, options={"max_searches": 2},
        storage=f"sqlite:///{world.folder / 'shared.db'}?password=s3cret",
    )  # fmt: skip
    assert more.mlflow_run == tuned.mlflow_run
    assert len(children(client, tuned.mlflow_run)) == 13
    assert client.get_run(tuned.mlflow_run).info.status == "FINISHED"


class Homes:
    """Workers of several homes that track one study in one store."""

    def __init__(self, uri: str, folder: Path) -> None:
        self.client = mlflow.MlflowClient(uri)
        self.noted: list[str] = []
        self._uri = uri
        self._folder = folder

    def tracker(self, home: str) -> StudyTracker:
        found = StudyTracker(
            self._uri, "films tune", "tune", self._folder / home, known=lambda: "".join(self.noted[:1]),
            note=self.noted.append,
        )  # fmt: skip
        found.start({"a": 1}, {"study": "x"})
        return found

    def log(self, home: str, trials: list[TrialResult]) -> None:
        """Log trials as a worker does that is killed afterwards."""
        tracker = self.tracker(home)
        tracker.add(trials)
        tracker.abandon()
        wait_until(lambda: self.client.get_run(self.noted[0]).info.status == "KILLED")

    def break_off(self, home: str, number: int) -> str:
        """Leave half a child run, as a worker of a home does that is killed while it logs a trial."""
        self.log(home, [ended(number)])
        whole = self.children()[str(number)]
        self.client.delete_run(whole.info.run_id)
        tags = {name: value for name, value in whole.data.tags.items() if name != "mlflow.runName"}
        return str(self.client.create_run(whole.info.experiment_id, tags=tags).info.run_id)

    def children(self) -> dict[str, Any]:
        return children(self.client, self.noted[0])


@pytest.fixture
def homes(world, tuned, tmp_path):
    return Homes(world.home.tracking_uri, tmp_path)


def ended(number: int) -> TrialResult:
    return TrialResult(number, "complete", {"top_k": number}, {"score": 0.5, "tokens": 1.0})


def test_what_a_killed_worker_did_not_log_is_logged_by_the_next_one(homes) -> None:
    homes.log("here", [ended(0)])
    half = homes.break_off("here", 1)
    second = homes.tracker("here")
    second.finish([ended(n) for n in range(3)], {}, [])
    assert (second.failed, second.run_id, len(homes.noted)) == ("", homes.noted[0], 1)
    assert sorted(homes.children()) == ["0", "1", "2"]
    assert {run.info.status for run in homes.children().values()} == {"FINISHED"}
    assert homes.client.get_run(half).info.lifecycle_stage == "deleted"


def test_what_a_worker_of_another_home_is_just_logging_is_left_to_it(homes) -> None:
    being_logged = homes.break_off("there", 1)
    here = homes.tracker("here")
    here.add([ended(0)])
    here.finish([ended(0), ended(1)], {}, [])
    assert here.failed == ""
    assert sorted(homes.children()) == ["0", "1"]
    assert homes.children()["1"].info.run_id == being_logged
    assert homes.client.get_run(being_logged).info.status == "RUNNING"


def test_homes_that_log_the_same_trials_at_once_keep_one_child_run_each(homes) -> None:
    homes.log("here", [])
    workers = [homes.tracker(home) for home in ("here", "there")]
    trials = [ended(number) for number in range(6)]
    threads = [threading.Thread(target=worker.finish, args=(trials, {}, [])) for worker in workers]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [worker.failed for worker in workers] == ["", ""]
    assert sorted(homes.children()) == [str(trial.number) for trial in trials]


def test_a_worker_that_has_ended_a_trial_logs_that_one_only(world, client, tunings, tmp_path) -> None:
    here = tunings()
    there = Tunings(tmp_path / "there", here.server)
    shared = {
        "study": "shared", "storage": f"sqlite:///{tmp_path / 'shared.db'}", "pruner": "none",
        "params": {"temperature": "0:1"},
    }  # fmt: skip
    here.tune(trials=2, **shared)
    # The first of the trials there is answered, the second is not.
    here.server.fail_next(QUESTIONS, status=None)
    here.server.fail_next(100, status=400, body={"error": {"message": "Injected refusal"}})
    with pytest.raises(TrialFailedError):
        there.tune(trials=4, track=True, tracking_uri=world.home.tracking_uri, **shared)
    study = optuna.load_study(study_name="shared", storage=shared["storage"])
    assert [trial.state.name for trial in study.trials[:4]] == ["COMPLETE", "COMPLETE", "COMPLETE", "FAIL"]
    parent = study.user_attrs["mlflow_run"]
    wait_until(lambda: client.get_run(parent).info.status == "KILLED")
    assert list(children(client, parent)) == ["2"]


def test_a_store_that_cannot_be_used_stops_the_tracking_and_nothing_else(tunings, tmp_path) -> None:
    broken = tmp_path / "broken.db"
    broken.write_text("this is no database")
    tuned = tunings(2).tune(track=True, trials=2, tracking_uri=f"sqlite:///{broken}")
    assert tuned.finished == 2
    assert tuned.tracking_error
    assert (tuned.folder / "best.json").is_file()


def test_the_password_of_a_store_that_is_down_is_not_shown_and_nobody_waits_for_minutes(tunings, monkeypatch) -> None:
    monkeypatch.setenv("MLFLOW_HTTP_REQUEST_MAX_RETRIES", "0")
    monkeypatch.delenv("MLFLOW_HTTP_REQUEST_TIMEOUT", raising=False)
    screen = io.StringIO()
    tuned = tunings(2).tune(
        Console(file=screen, width=200), track=True, trials=1, tracking_uri="http://me:topsecret@127.0.0.1:9"
    )
    assert tuned.finished == 1
    assert "http://127.0.0.1:9/" in tuned.tracking_error
    assert "Tracking stopped (" in screen.getvalue()
    for text in (screen.getvalue(), tuned.tracking_error, (tuned.folder / "best.json").read_text()):
        assert "topsecret" not in text
    assert os.environ["MLFLOW_HTTP_REQUEST_TIMEOUT"] == "30"

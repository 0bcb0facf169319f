"""What arrives in MLflow: a parent run a study, a child run a trial; and that a broken store stops nothing."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import mlflow
import pytest

from runs.tuning.results import TrialResult
from runs.tuning.tracking import StudyTracker
from tests.runs.tuning.tuning_world import Tunings, reading_model
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


def test_what_a_killed_worker_did_not_log_is_logged_by_the_next_one(world, tuned, tmp_path) -> None:
    noted: list[str] = []

    def tracker() -> StudyTracker:
        found = StudyTracker(
            world.home.tracking_uri, "films tune", "tune", tmp_path, known=lambda: "".join(noted[:1]), note=noted.append
        )
        found.start({"a": 1}, {"study": "x"})
        return found

    trials = [TrialResult(n, "complete", {"top_k": n}, {"score": 0.5, "tokens": 1.0}) for n in range(3)]
    first = tracker()
    first.add(trials[:1])
    first.abandon()
    client = mlflow.MlflowClient(world.home.tracking_uri)
    experiment = client.get_run(noted[0]).info.experiment_id
    assert client.get_run(noted[0]).info.status == "KILLED"
    # Half a child run, as a worker leaves it that is killed in the middle of logging.
    client.create_run(experiment, tags={"mlflow.parentRunId": noted[0], "trial": "1"})
    second = tracker()
    second.finish(trials, {}, [])
    assert (second.failed, second.run_id, len(noted)) == ("", noted[0], 1)
    assert sorted(children(client, noted[0])) == ["0", "1", "2"]
    assert {run.info.status for run in children(client, noted[0]).values()} == {"FINISHED"}


def test_a_store_that_cannot_be_used_stops_the_tracking_and_nothing_else(tunings, tmp_path) -> None:
    broken = tmp_path / "broken.db"
    broken.write_text("this is no database")
    tuned = tunings(2).tune(track=True, trials=2, tracking_uri=f"sqlite:///{broken}")
    assert tuned.finished == 2
    assert tuned.tracking_error
    assert (tuned.folder / "best.json").is_file()

"""An optimisation as MLflow sees it: one run, a child a candidate, gone on with after a stop, never its end."""

from __future__ import annotations

import io
from typing import Any

import mlflow
from rich.console import Console

from programs.saving import read_compiled
from runs.tracking_store import make_store
from tests.runs.world import interrupt, wait_until


def runs_of(here: Any) -> tuple[Any, list[Any]]:
    """Return the one parent run and its children, by trial."""
    client = mlflow.MlflowClient(here.home.tracking_uri)
    experiment = client.get_experiment_by_name("films optimize")
    found = client.search_runs([experiment.experiment_id])
    (parent,) = [run for run in found if "mlflow.parentRunId" not in run.data.tags]
    children = [run for run in found if run.data.tags.get("mlflow.parentRunId") == parent.info.run_id]
    return parent, sorted(children, key=lambda run: int(run.data.tags["trial"]))


def test_a_stopped_optimisation_goes_on_in_the_same_run_and_is_registered_at_its_end(workshop) -> None:
    here = workshop(latency=0.3)
    # A new store takes seconds, in which the optimisation might end.
    here.home.root.mkdir(parents=True, exist_ok=True)
    make_store(here.home.tracking_uri)
    process = here.start("--experiment", "films optimize", track=True)
    wait_until(lambda: list(here.home.root.glob("optimizations/*/mlflow_run")) and here.ledger_lines() > 20)
    interrupt(process)
    out, err = process.communicate()
    assert process.returncode == 130, out + err
    parent, _ = runs_of(here)
    assert parent.info.status == "KILLED"
    here.server.latency = 0.0
    out = io.StringIO()
    done = here.optimize(Console(file=out, width=200), track=True, concurrency=2)
    parent, children = runs_of(here)
    assert (parent.info.run_id, parent.info.status) == (done.mlflow_run, "FINISHED")
    assert read_compiled(done.file).metadata["mlflow_run"] == done.mlflow_run
    assert [int(run.data.tags["trial"]) for run in children] == [trial.number for trial in done.trials]
    assert [run.data.metrics["score"] for run in children] == [trial.score for trial in done.trials]
    assert (parent.data.metrics["before"], parent.data.metrics["after"]) == (0.0, 1.0)
    assert (parent.data.params["optimizer"], parent.data.params["train_n"]) == ("random-search", "6")
    assert done.registered == "models:/search-o1/1"
    assert "Registered in MLflow as models:/search-o1/1, the champion" in out.getvalue()
    assert done.tracking_error == ""
    again = here.optimize(track=True, concurrency=2)
    assert (again.mlflow_run, again.registered) == (done.mlflow_run, done.registered)
    assert len(runs_of(here)[1]) == len(children)


def test_a_store_that_is_down_is_said_once_and_changes_nothing(workshop) -> None:
    here = workshop()
    out = io.StringIO()
    done = here.optimize(
        Console(file=out, width=200), track=True, tracking_uri="http://127.0.0.1:9", method="direct", budget=1
    )
    assert (done.mlflow_run, done.registered, done.file.is_file()) == ("", "", True)
    assert done.tracking_error
    assert out.getvalue().count("Tracking stopped") == 1

"""Where the chains of a run can be read: its traces in MLflow, if they are there."""

from __future__ import annotations

import logging
import os
from pathlib import Path

from runs.home import Home
from runs.traces import known_traces

_log = logging.getLogger(__name__)
_LOCAL_UI = "http://127.0.0.1:5000"
"""Where `search-o1 ui` serves the home folder's store unless told otherwise."""


def trace_links(mlflow_run: str, home: Home) -> dict[tuple[str, int], str]:
    """Return the addresses of a run's traces.

    Args:
        mlflow_run: MLflow's run id, or empty.
        home: Home folder whose MLflow store is meant.

    Returns:
        Address by (question id, sample); empty when the store does not know the run or cannot be asked. Of a store
        without a server of its own the addresses are those of `search-o1 ui`.
    """
    uri = home.tracking_uri
    store = Path(uri.removeprefix("sqlite:///"))
    # Asked for a file that is not there, MLflow would make it.
    if not mlflow_run or (uri.startswith("sqlite:///") and not store.is_file()):
        return {}
    os.environ.setdefault("MLFLOW_DISABLE_TELEMETRY", "true")
    os.environ.setdefault("MLFLOW_HTTP_REQUEST_MAX_RETRIES", "2")
    for name in ("alembic", "mlflow"):
        logging.getLogger(name).setLevel(logging.ERROR)
    import mlflow

    named, before = os.environ.get("MLFLOW_TRACKING_URI"), mlflow.get_tracking_uri()
    try:
        mlflow.set_tracking_uri(uri)
        experiment = mlflow.MlflowClient().get_run(mlflow_run).info.experiment_id
        found = known_traces(experiment, mlflow_run)
    except Exception as error:
        # Whatever MLflow raises (no such run, a server that is down): the journal has the chains as well.
        _log.info("no traces of MLflow run %s: %s", mlflow_run, error)
        return {}
    finally:
        mlflow.set_tracking_uri(before)
        # MLflow writes the address into the environment, where the next run would take it for the user's.
        if named is None:
            os.environ.pop("MLFLOW_TRACKING_URI", None)
        else:
            os.environ["MLFLOW_TRACKING_URI"] = named
    base = uri.rstrip("/") if uri.startswith(("http://", "https://")) else _LOCAL_UI
    page = f"{base}/#/experiments/{experiment}/traces?selectedEvaluationId="
    return {key: page + trace_id for key, trace_id in found.items()}

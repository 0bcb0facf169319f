"""A quiet MLflow client for one store that leaves the process's own MLflow settings alone."""

from __future__ import annotations

import logging
import os
import re
from typing import Any

_CREDENTIALS = re.compile(r"(?<=://)[^/?#\s]+@")
_SETTINGS = {
    # A server that is down must not hold up the end of a run for MLflow's own minutes of waiting and trying again.
    "MLFLOW_HTTP_REQUEST_MAX_RETRIES": "2",
    "MLFLOW_HTTP_REQUEST_TIMEOUT": "30",
    "MLFLOW_DISABLE_TELEMETRY": "true",
    "MLFLOW_ENABLE_ARTIFACTS_PROGRESS_BAR": "false",
    "MLFLOW_SUPPRESS_PRINTING_URL_TO_STDOUT": "true",
}


def quieten() -> None:
    """Load MLflow so that it neither talks on the screen nor waits for minutes; what a person set stays."""
    for name, value in _SETTINGS.items():
        os.environ.setdefault(name, value)
    # Its first import sets the levels anew.
    import mlflow  # noqa: F401

    for name in ("alembic", "mlflow"):
        logging.getLogger(name).setLevel(logging.ERROR)


def open_client(uri: str) -> Any:
    """Return MLflow's client for a store.

    MLflow's module-level functions share one store in the whole process and write its address into the environment; a
    client does neither, so that several runs with stores of their own can stand beside each other.

    Args:
        uri: Tracking URI; the model registry is the same store's.

    Returns:
        An `mlflow.MlflowClient`. Nothing has been asked of the store yet, unless it is a database.

    Raises:
        Exception: Whatever MLflow raises for a store it cannot open.
    """
    quieten()
    import mlflow

    return mlflow.MlflowClient(uri, registry_uri=uri)


def without_credentials(text: str) -> str:
    """Return a text in which no address holds a user name or password."""
    return _CREDENTIALS.sub("", text)


def first_line(error: Exception) -> str:
    """Return the first line of what MLflow raised, with its kind where that says more, and without credentials."""
    kind = type(error).__name__
    text = str(error) if kind in ("MlflowException", "RestException") and str(error) else f"{kind}: {error}"
    return without_credentials(text.splitlines()[0])[:300].rstrip(".: ")

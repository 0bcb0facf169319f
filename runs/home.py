"""The one folder that holds everything a user accumulates: models, indexes, caches, journals, the MLflow store."""

from __future__ import annotations

import os
from pathlib import Path

import platformdirs

from runs.user_path import user_path


class Home:
    """Paths below the home folder; nothing is created until it is written to.

    Args:
        root: The folder; by default `SEARCH_O1_HOME`, else the platform's user data folder.
    """

    def __init__(self, root: Path | None = None) -> None:
        named = os.environ.get("SEARCH_O1_HOME")
        self.root = root or (user_path(named) if named else Path(platformdirs.user_data_dir("search-o1")))

    @property
    def models(self) -> Path:
        """Weights of embedded models (`SEARCH_O1_MODELS` overrides it, so that several homes share them)."""
        named = os.environ.get("SEARCH_O1_MODELS")
        return user_path(named) if named else self.root / "models"

    @property
    def indexes(self) -> Path:
        """One folder a local index."""
        return self.root / "indexes"

    @property
    def cache(self) -> Path:
        """The SQLite file of searches, pages and model replies."""
        return self.root / "cache.sqlite"

    @property
    def runs(self) -> Path:
        """One folder an evaluation: its journal and results."""
        return self.root / "runs"

    @property
    def programs(self) -> Path:
        """One JSON file a compiled program of the user's own."""
        return self.root / "programs"

    @property
    def tracking_uri(self) -> str:
        """MLflow's store: `MLFLOW_TRACKING_URI`, else an SQLite file in the home folder."""
        return os.environ.get("MLFLOW_TRACKING_URI") or f"sqlite:///{self.root / 'mlflow.db'}"

    @property
    def artifacts(self) -> Path:
        """Where MLflow keeps artifacts of the default store."""
        return self.root / "mlflow-artifacts"

"""MLflow's SQLite store is whole or not there, however a first start ends."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from pathlib import Path

import mlflow

from runs.tracking_store import make_store

ROOT = Path(__file__).parents[2]
MAKE = "import sys; from runs.tracking_store import make_store; print('go', flush=True); make_store(sys.argv[1])"


def test_a_store_is_made_once_and_can_be_used(tmp_path: Path) -> None:
    uri = f"sqlite:///{tmp_path / 'deep' / 'mlflow.db'}"
    make_store(uri)
    client = mlflow.MlflowClient(uri)
    name = client.create_experiment("films")
    make_store(uri)
    assert client.get_experiment(name).name == "films"
    assert [path.name for path in (tmp_path / "deep").iterdir()] == ["mlflow.db"]


def test_a_server_or_another_database_is_left_alone(tmp_path: Path) -> None:
    for uri in ("http://127.0.0.1:1", "postgresql://host/db", "sqlite:///"):
        make_store(uri)
    assert not list(tmp_path.iterdir())


def test_a_start_killed_while_it_makes_the_store_leaves_none_behind(tmp_path: Path) -> None:
    target = tmp_path / "mlflow.db"
    process = subprocess.Popen([sys.executable, "-c", MAKE, f"sqlite:///{target}"], cwd=ROOT, stdout=subprocess.PIPE)
    while not list(tmp_path.glob(".mlflow.db-*")):
        assert process.poll() is None
        time.sleep(0.002)
    process.send_signal(signal.SIGKILL)
    process.wait(30)
    assert not target.exists()
    make_store(f"sqlite:///{target}")
    assert mlflow.MlflowClient(f"sqlite:///{target}").search_experiments() is not None


def test_two_starts_at_once_use_one_store(tmp_path: Path) -> None:
    uri = f"sqlite:///{tmp_path / 'mlflow.db'}"
    both = [subprocess.Popen([sys.executable, "-c", MAKE, uri], cwd=ROOT, stdout=subprocess.PIPE) for _ in range(2)]
    assert [process.wait(120) for process in both] == [0, 0]
    assert [path.name for path in tmp_path.iterdir()] == ["mlflow.db"]

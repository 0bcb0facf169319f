"""Making MLflow's SQLite store so that it is either whole or not there.

MLflow makes its tables one by one. Killed in the middle, it leaves a file that no later start can use; so the store is
made under another name and put in place once it is complete.
"""

from __future__ import annotations

import os
from pathlib import Path

PREFIX = "sqlite:///"


def make_store(uri: str) -> None:
    """Make the store of a tracking URI if it is an SQLite file that does not exist yet.

    Args:
        uri: Tracking URI; any other kind is left alone.
    """
    if not uri.startswith(PREFIX):
        return
    target = Path(uri.removeprefix(PREFIX))
    if target.exists() or not target.name:
        return
    target.parent.mkdir(parents=True, exist_ok=True)
    # Two runs may start at once: each makes its own, and the first to finish wins.
    building = target.with_name(f".{target.name}-{os.getpid()}")
    try:
        _initialise(building)
        os.link(building, target)
    except FileExistsError:
        pass
    finally:
        for leftover in target.parent.glob(f"{building.name}*"):
            leftover.unlink(missing_ok=True)


def _initialise(path: Path) -> None:
    import sqlalchemy
    from mlflow.store.db.utils import _initialize_tables

    engine = sqlalchemy.create_engine(f"{PREFIX}{path}")
    try:
        _initialize_tables(engine)
    finally:
        engine.dispose()

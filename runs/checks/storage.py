"""Disk, local indexes, cache and MLflow store."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path
from urllib.parse import urlsplit, urlunsplit

import requests

from retrieval.cache import KINDS, Cache
from runs.checks.check import Check, guarded
from runs.home import Home

FREE_BYTES = 2_000_000_000
"""With less than this left, long runs and large indexes end in a full disk."""

WAIT_S = 10.0


def check_home(home: Home) -> Check:
    """Look whether the home folder can be written and has room."""

    def look() -> Check:
        home.root.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=home.root):
            pass
        free = shutil.disk_usage(home.root).free
        if free < FREE_BYTES:
            text = f"{home.root}: only {free / 1e9:.1f} GB are free"
            return Check("home", "wrong", text, "make room, or point SEARCH_O1_HOME at another disk")
        return Check("home", "ok", f"{home.root}, {free / 1e9:.0f} GB free")

    return guarded("home", look, "make the folder writable, or point SEARCH_O1_HOME at another one")


def check_indexes(home: Home) -> list[Check]:
    """Open and search each local index."""
    folders = sorted(p for p in home.indexes.glob("*") if p.is_dir() and not p.name.startswith("."))
    if not folders:
        return [Check("index", "off", "no index yet", "search-o1 index build NAME FILE")]
    return [_check_index(folder) for folder in folders]


def _check_index(folder: Path) -> Check:
    name = f"index {folder.name}"

    def look() -> Check:
        from retrieval.corpus.index import CorpusIndex

        index = CorpusIndex(folder)
        index.search("the", 1)
        return Check(name, "ok", f"{index.info.documents:,} documents, corpus hash {index.info.corpus_hash[:12]}")

    return guarded(name, look, f"search-o1 index build {folder.name} FILE")


def check_cache(home: Home) -> Check:
    """Look whether the cache file is whole."""

    def look() -> Check:
        import sqlite3

        if not home.cache.exists():
            return Check("cache", "off", f"none yet; the first run makes {home.cache}")
        if not home.cache.is_file():
            return Check("cache", "wrong", f"{home.cache} is no file", f"move {home.cache} away: a new one is made")
        with sqlite3.connect(home.cache, timeout=WAIT_S) as connection:
            found = connection.execute("PRAGMA quick_check").fetchone()[0]
        connection.close()
        if found != "ok":
            return Check("cache", "wrong", f"{home.cache} is damaged: {found}", f"move {home.cache} away")
        cache = Cache(home.cache)
        counts = cache.stats()
        cache.close()
        entries = ", ".join(f"{counts[kind]:,} {kind}" for kind in KINDS)
        return Check("cache", "ok", f"{entries}, {counts['bytes'] / 1e6:.1f} MB")

    return guarded("cache", look, f"move {home.cache} away: a new one is made")


def check_tracking(uri: str) -> Check:
    """Look whether MLflow's store answers.

    Args:
        uri: Tracking URI.
    """

    def look() -> Check:
        if uri.startswith(("http://", "https://")):
            reply = requests.get(uri.rstrip("/") + "/health", timeout=WAIT_S)
            if reply.status_code != 200:
                text = f"{without_password(uri)} answers {reply.status_code}"
                return Check("mlflow", "wrong", text, "start the server, or set MLFLOW_TRACKING_URI")
            return Check("mlflow", "ok", without_password(uri))
        if uri.startswith("sqlite:///") and not Path(uri.removeprefix("sqlite:///")).is_file():
            return Check("mlflow", "off", f"none yet; the first run makes {uri}")
        import mlflow

        experiments = mlflow.MlflowClient(uri).search_experiments(max_results=1000)
        return Check("mlflow", "ok", f"{without_password(uri)}, {len(experiments)} experiments")

    return guarded(
        "mlflow", look, "check MLFLOW_TRACKING_URI; an older store is brought up to date with `mlflow db upgrade URI`"
    )


def without_password(uri: str) -> str:
    """Return an address without the user and password it may hold."""
    parts = urlsplit(uri)
    if "@" not in parts.netloc:
        return uri
    return urlunsplit(parts._replace(netloc="***@" + parts.netloc.rpartition("@")[2]))

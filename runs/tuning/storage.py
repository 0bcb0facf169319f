"""Where a study is kept: an SQLite file in the home folder, or any database that SQLAlchemy can reach."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import quote

from signatures.errors import DataError, OptionError

_TRIES = 5
_SQLITE_PATIENCE_S = 60
"""How long a worker waits for another one's write; SQLite allows one at a time."""
_SECRETS = ("pass", "pwd", "token", "secret", "key")
_HIDDEN = "***"


def default_storage(folder: Path) -> str:
    """Return the address of the SQLite file in a study's folder; the folder is made."""
    from sqlalchemy.engine import URL

    folder.mkdir(parents=True, exist_ok=True)
    return URL.create("sqlite", database=str(folder / "study.db")).render_as_string(hide_password=False)


def shown_storage(url: str) -> str:
    """Return a storage address without its password.

    Args:
        url: Database URL; what is none comes back as a mere hint.

    Returns:
        The address, fit for screens and logs.
    """
    from sqlalchemy.engine import make_url
    from sqlalchemy.exc import ArgumentError

    try:
        parsed = make_url(url)
    except (ArgumentError, ValueError):
        return "(not a database URL)"
    hidden = {name: _HIDDEN for name in parsed.query if any(word in name.lower() for word in _SECRETS)}
    shown = parsed.update_query_dict(hidden).render_as_string(hide_password=True)
    return shown.replace(quote(_HIDDEN), _HIDDEN)


def without_secrets(text: str, url: str) -> str:
    """Return a text, such as a driver's complaint, without the secrets of a storage address."""
    from sqlalchemy.engine import make_url
    from sqlalchemy.exc import ArgumentError

    text = text.replace(url, shown_storage(url))
    try:
        parsed = make_url(url)
    except (ArgumentError, ValueError):
        return text
    rest = url.partition("://")[2].rpartition("@")[0].partition(":")[2]
    values = [v for n, v in parsed.query.items() if isinstance(v, str) and any(w in n.lower() for w in _SECRETS)]
    for secret in (parsed.password, rest, *values):
        if secret:
            text = text.replace(secret, _HIDDEN)
    return text


def open_storage(url: str, *, grace: int, on_dead: Callable[[Any, Any], None]) -> Any:
    """Open a storage, making its tables if need be.

    Args:
        url: Database URL.
        grace: Seconds without a sign of life after which a worker counts as dead.
        on_dead: Called with the study and the trial of such a worker, which has been marked as failed.

    Returns:
        Optuna's storage.

    Raises:
        OptionError: The address is none, or its driver is not installed.
        DataError: The database cannot be reached.
    """
    import optuna
    from sqlalchemy.engine import make_url
    from sqlalchemy.exc import ArgumentError, NoSuchModuleError, SQLAlchemyError

    try:
        backend = make_url(url).get_backend_name()
    except (ArgumentError, ValueError):
        raise OptionError(
            "--storage is not a database URL; it looks like sqlite:////folder/study.db or "
            "postgresql://user:password@host/database."
        ) from None
    connect = {"connect_args": {"timeout": _SQLITE_PATIENCE_S}} if backend == "sqlite" else {}
    for left in reversed(range(_TRIES)):
        try:
            with warnings.catch_warnings():
                # Optuna calls its heartbeat experimental.
                warnings.simplefilter("ignore")
                return optuna.storages.RDBStorage(
                    # Optuna fills in braces.
                    url.replace("{", "{{").replace("}", "}}"),
                    engine_kwargs={"pool_pre_ping": True, **connect},
                    heartbeat_interval=max(1, grace // 3),
                    grace_period=grace,
                    heartbeat_stale_trial_callback=on_dead,
                )
        except (ImportError, NoSuchModuleError) as error:
            raise OptionError(
                f"--storage {shown_storage(url)}: the driver for {backend} is not installed "
                f"({without_secrets(str(error.__cause__ or error), url)}); install it with pip, for example "
                "`pip install psycopg2-binary` for postgresql."
            ) from None
        except (SQLAlchemyError, optuna.exceptions.StorageInternalError) as error:
            # Two workers that start at once both make the tables, and one of them is told that they exist.
            if not left:
                raise storage_failed(url, error) from None
            time.sleep(0.2)
    raise AssertionError("unreachable")


def storage_failed(url: str, error: Exception) -> DataError:
    """Return the error of a database that cannot be reached, without its password."""
    told = f"{error.__cause__ or error}".splitlines()[0]
    return DataError(
        f"The study's storage {shown_storage(url)} cannot be used: {without_secrets(told, url)[:300]}. What was "
        "answered is kept; the same command goes on when it is there again."
    )

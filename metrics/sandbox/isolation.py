"""Choosing how programs are isolated on this machine: what is installed, and what the kernel allows."""

from __future__ import annotations

import functools
import logging
import shutil

from metrics.sandbox.launcher import Program, Sandbox
from metrics.sandbox.options import Limits, SandboxError, SandboxOptions

_PREFERRED = ("bubblewrap", "namespaces")
_log = logging.getLogger(__name__)


def choose_backend(options: SandboxOptions) -> str:
    """Return the backend that programs will be run with.

    Args:
        options: `backend` names one, which must work; `auto` takes the first that works of bubblewrap and namespaces,
            and, only with `unsafe`, `none`, which is logged once.

    Returns:
        `bubblewrap`, `namespaces` or `none`.

    Raises:
        SandboxError: No program can be isolated here, and `unsafe` was not said.
    """
    if options.backend == "none":
        _warn_unsafe()
        return "none"
    wanted = _PREFERRED if options.backend == "auto" else (options.backend,)
    obstacles = {}
    for backend in wanted:
        obstacle = why_not(backend)
        if not obstacle:
            return backend
        obstacles[backend] = obstacle
    reasons = " ".join(f"{backend}: {obstacle}" for backend, obstacle in obstacles.items())
    if options.unsafe and options.backend == "auto":
        _warn_unsafe()
        return "none"
    raise SandboxError(
        f"Model-written programs cannot be isolated on this machine, so none was run. {reasons} "
        "Install bubblewrap, allow user namespaces (in a container: --security-opt seccomp=unconfined or "
        "--privileged), or run them with your own rights: --unsafe-code."
    )


def available_backends() -> tuple[str, ...]:
    """Return the isolating backends that work here, the preferred one first."""
    return tuple(backend for backend in _PREFERRED if not why_not(backend))


@functools.cache
def why_not(backend: str) -> str:
    """Say why a backend does not isolate here; found out by starting one sandbox, once a process.

    Args:
        backend: `bubblewrap` or `namespaces`.

    Returns:
        The obstacle as a sentence; empty when the backend works.
    """
    if backend == "bubblewrap" and bubblewrap_path() is None:
        return "bwrap is not installed."
    try:
        with Sandbox(Program("print(6 * 7)"), Limits(), backend, bubblewrap_path()) as sandbox:
            run = sandbox.run("")
    except SandboxError as error:
        return str(error)
    return "" if run.output == b"42\n" else f"a first program ended with {run.reason} ({run.detail})."


def bubblewrap_path() -> str | None:
    """Return the path of `bwrap`, or None where it is not installed."""
    return shutil.which("bwrap")


@functools.cache
def _warn_unsafe() -> None:
    _log.warning(
        "Model-written programs run WITHOUT isolation (--unsafe-code): with your files, your network and your rights, "
        "held by time and memory limits only."
    )

"""Running one program on one input, in the process that is its own: the last steps before it, the program, the report.

What the program prints and returns is only reported here. It is compared outside, where no program reaches, and the
expected output never comes in: a program that forges its report gains what it would gain by printing it.
"""

from __future__ import annotations

import contextlib
import gc
import io
import json
import os
import resource
import signal
import sys
import threading
import types
from collections.abc import Callable
from typing import Any

from metrics.sandbox.inside import call_filter, namespaces, published
from metrics.sandbox.inside import system_calls as calls
from metrics.sandbox.inside.prelude import PRELUDE

REPORT = 3
"""File descriptor of the report."""

_DETAIL = 500
_names: dict[str, Any] = {}


def load_prelude() -> None:
    """Import once what every program may use without importing it; the processes of the tests inherit it."""
    sys.modules["builtins"].__dict__.setdefault("exit", sys.exit)
    sys.modules["builtins"].__dict__.setdefault("quit", sys.exit)
    exec(PRELUDE, _names)
    gc.collect()
    gc.freeze()


def restrict(limits: dict[str, int], *, isolated: bool) -> None:
    """Take rights and resources away from this process, for good.

    Args:
        limits: `cpu` (seconds), `memory` (bytes of address space), `processes` (0: not limited), `file_size`, `files`,
            `stack` and `scratch` (bytes).
        isolated: Whether the process is in namespaces of its own, so that it can have its own `/tmp`.

    Raises:
        OSError: The kernel does not allow one of the steps; the program must not be run then.
    """
    if isolated:
        namespaces.mount_scratch(limits["scratch"])
    _limit(resource.RLIMIT_STACK, limits["stack"])
    _limit(resource.RLIMIT_AS, limits["memory"])
    _limit(resource.RLIMIT_CPU, limits["cpu"], limits["cpu"] + 1)
    _limit(resource.RLIMIT_FSIZE, limits["file_size"])
    _limit(resource.RLIMIT_NOFILE, limits["files"])
    _limit(resource.RLIMIT_CORE, 0)
    if limits["processes"]:
        _limit(resource.RLIMIT_NPROC, limits["processes"])
    calls.forbid_new_privileges()
    if isolated:
        calls.drop_capabilities()
    call_filter.install()


def run(job: dict[str, Any], text: str) -> None:
    """Run the program, write the report and end this process.

    The report is a JSON object: `status` (`ok`, `compile`, `error`, `memory`), `detail` (the error's last line) and,
    of a called function, `value` (JSON text of what it returned).

    Args:
        job: `mode` (`script`, `function` or `published`), `source`, and for `function` its `name`.
        text: Standard input of a script; arguments of a function, one JSON value a line.
    """
    # A program's results must not depend on the run.
    sys.modules["random"].seed(0)
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    if job["mode"] != "published":
        # As the newest runner does; the older one left Python's own 4300.
        sys.set_int_max_str_digits(50_000)
    _open_streams()
    report: dict[str, Any] = {"status": "ok", "detail": ""}
    try:
        report.update(_MODES[job["mode"]](job, text))
        threading._shutdown()  # type: ignore[attr-defined]
        _flush()
    except MemoryError:
        report = {"status": "memory", "detail": "MemoryError"}
    except SystemExit as end:
        report = {"status": "error", "detail": f"SystemExit: {end.code!r}"[:_DETAIL]}
    except BaseException as error:
        report = {"status": "error", "detail": _last_line(error)}
        _print_traceback(error)
    _send(report)
    os._exit(0)


def _script(job: dict[str, Any], text: str) -> dict[str, Any]:
    module = types.ModuleType("__main__")
    module.__dict__.update(_names, __name__="__main__", __doc__=None)
    sys.modules["__main__"] = module
    sys.argv = ["program.py"]
    # Leaving by sys.exit is a normal end, whatever the code: only what was printed counts.
    with contextlib.suppress(SystemExit):
        if failure := _compiled(job["source"], module):
            return failure
    return {}


def _function(job: dict[str, Any], text: str) -> dict[str, Any]:
    module = types.ModuleType("solution")
    module.__dict__.update(_names, __name__="solution", __doc__=None)
    sys.modules["solution"] = module
    sys.argv = ["solution.py"]
    arguments = [json.loads(line) for line in text.split("\n") if line.strip()]
    if failure := _compiled(job["source"], module):
        return failure
    owner = module.Solution() if hasattr(module, "Solution") else module
    if not callable(function := getattr(owner, job["name"], None)):
        return {"status": "error", "detail": f"no function {job['name']} is defined"}
    value = function(*arguments)
    return {"value": json.dumps(value, default=_plain)}


def _published(job: dict[str, Any], text: str) -> dict[str, Any]:
    try:
        source = published.wrap(job["source"])
        code = compile(source, "program.py", "exec")
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        return {"status": "compile", "detail": _last_line(error)}
    published.call(code, text, os.dup(1), job["limits"]["output"])
    return {}


_MODES: dict[str, Callable[[dict[str, Any], str], dict[str, Any]]] = {
    "script": _script,
    "function": _function,
    "published": _published,
}


def _compiled(source: str, module: types.ModuleType) -> dict[str, Any] | None:
    """Execute a program's source in a module; return a report when it is no Python program at all."""
    try:
        code = compile(source, "program.py", "exec", dont_inherit=True)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        return {"status": "compile", "detail": _last_line(error)}
    exec(code, module.__dict__)
    return None


def _plain(value: Any) -> Any:
    """Turn a number of numpy's into Python's; anything else but plain data equals no label."""
    if type(value).__module__ == "numpy" and getattr(value, "ndim", None) == 0:
        return value.item()
    return {"not plain data": type(value).__name__}


def _open_streams() -> None:
    read, write, complain = (io.FileIO(number, mode, closefd=False) for number, mode in ((0, "r"), (1, "w"), (2, "w")))
    sys.stdin = io.TextIOWrapper(io.BufferedReader(read), encoding="utf-8", errors="surrogateescape")
    sys.stdout = io.TextIOWrapper(io.BufferedWriter(write), encoding="utf-8")
    sys.stderr = io.TextIOWrapper(
        io.BufferedWriter(complain), encoding="utf-8", errors="backslashreplace", line_buffering=True
    )
    for name in ("stdin", "stdout", "stderr"):
        setattr(sys, f"__{name}__", getattr(sys, name))


def _flush() -> None:
    """Write out what the program printed, also when it put something of its own in place of standard output."""
    for stream in (sys.stdout, sys.__stdout__, sys.stderr):
        with contextlib.suppress(AttributeError, ValueError):
            stream.flush()  # type: ignore[union-attr]


def _last_line(error: BaseException) -> str:
    try:
        text = f"{type(error).__name__}: {error}"
    except BaseException:
        text = type(error).__name__
    return text[:_DETAIL]


def _print_traceback(error: BaseException) -> None:
    import collections
    import traceback

    with contextlib.suppress(BaseException):
        _flush()
        # The innermost frames only, for there may be fifty thousand.
        innermost = collections.deque(traceback.walk_tb(error.__traceback__), maxlen=8)
        lines = [*traceback.StackSummary.extract(innermost).format(), _last_line(error)]
        _write_all(2, "".join(lines)[-4000:].encode("utf-8", "backslashreplace"))


def _send(report: dict[str, Any]) -> None:
    # Without memory left even the report may fail; its absence is then the report.
    with contextlib.suppress(BaseException):
        _write_all(REPORT, json.dumps(report).encode())


def _write_all(descriptor: int, payload: bytes) -> None:
    view = memoryview(payload)
    while view:
        view = view[os.write(descriptor, view) :]


def _limit(kind: int, soft: int, hard: int | None = None) -> None:
    ceiling = resource.getrlimit(kind)[1]
    hard = soft if hard is None else hard
    if ceiling != resource.RLIM_INFINITY:
        soft, hard = min(soft, ceiling), min(hard, ceiling)
    resource.setrlimit(kind, (soft, hard))

"""Many sandboxes at once: at most one a processor in this process, from threads and from coroutines alike."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import TypeVar

from metrics.sandbox.isolation import bubblewrap_path, choose_backend
from metrics.sandbox.launcher import Program, Run, Sandbox
from metrics.sandbox.options import Limits, SandboxOptions

T = TypeVar("T")
Item = TypeVar("Item")

_pools: dict[int, ThreadPoolExecutor] = {}
_lock = threading.Lock()


class Cancelled(Exception):
    """The work was given up; its sandbox is gone."""


class Cancellation:
    """Lets one thread end the sandbox that another is waiting for."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._sandbox: Sandbox | None = None
        self.requested = False

    def cancel(self) -> None:
        """Kill the sandbox in use, and let no other be started."""
        with self._lock:
            self.requested = True
            if self._sandbox is not None:
                self._sandbox.kill()

    def hold(self, sandbox: Sandbox | None) -> None:
        """Name the sandbox in use.

        Args:
            sandbox: It, or None when it is done with.

        Raises:
            Cancelled: The work was given up in the meantime.
        """
        with self._lock:
            self._sandbox = sandbox
        if self.requested and sandbox is not None:
            raise Cancelled


def run_program(
    program: Program,
    inputs: Iterable[str],
    options: SandboxOptions,
    limits: Limits | None = None,
    *,
    go_on: Callable[[int, Run], bool] = lambda index, run: True,
    cancellation: Cancellation | None = None,
) -> list[Run]:
    """Run a program on inputs one after the other, in one sandbox.

    Args:
        program: What to run.
        inputs: One text a run.
        options: How to run it.
        limits: What each run may use; None is `options.limits`.
        go_on: Called with each run's position and outcome; False ends here.
        cancellation: Given by whoever may want to give the work up.

    Returns:
        One outcome a run that took place, in the inputs' order.

    Raises:
        SandboxError: Programs cannot be isolated here.
        Cancelled: The work was given up.
    """
    backend = choose_backend(options)
    cancellation = cancellation or Cancellation()
    if cancellation.requested:
        raise Cancelled
    runs: list[Run] = []
    with Sandbox(program, limits or options.limits, backend, bubblewrap_path()) as sandbox:
        cancellation.hold(sandbox)
        try:
            for index, text in enumerate(inputs):
                runs.append(sandbox.run(text))
                if cancellation.requested:
                    raise Cancelled
                if not go_on(index, runs[-1]):
                    break
        finally:
            cancellation.hold(None)
    return runs


def map_in_order(function: Callable[[Item], T], items: Sequence[Item], options: SandboxOptions) -> list[T]:
    """Call a function that uses a sandbox for each item, on all processors.

    Args:
        function: Called once an item, in a thread.
        items: What it is called with.
        options: `workers` says how many at once.

    Returns:
        The results, in the items' order.
    """
    return list(_pool(options).map(function, items))


async def in_thread(function: Callable[[Cancellation], T], options: SandboxOptions) -> T:
    """Call a function that uses a sandbox without blocking the event loop.

    Args:
        function: Called in a thread with a cancellation that it hands to `run_program`; when the waiting task is
            cancelled, the sandbox is killed.
        options: `workers` says how many at once, over all callers in this process with the same number.

    Returns:
        What it returned.
    """
    cancellation = Cancellation()
    future = _pool(options).submit(function, cancellation)
    try:
        return await asyncio.wrap_future(future)
    except asyncio.CancelledError:
        cancellation.cancel()
        with contextlib.suppress(Exception):
            future.cancel()
        raise


def with_time_limit(limits: Limits, cpu_seconds: float) -> Limits:
    """Return limits with another time limit.

    Args:
        limits: The others.
        cpu_seconds: Processor time a run.

    Returns:
        New limits; a time on the clock that was set stays.
    """
    return replace(limits, cpu_seconds=cpu_seconds)


def _pool(options: SandboxOptions) -> ThreadPoolExecutor:
    workers = options.worker_count
    with _lock:
        if workers not in _pools:
            _pools[workers] = ThreadPoolExecutor(workers, thread_name_prefix="sandbox")
        return _pools[workers]

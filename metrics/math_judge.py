"""Comparing math answers in child processes: bounded in time and memory, safe from threads, forks and at exit.

A judge keeps a few children (`metrics.math_worker`), each started when first needed. A start costs some seconds, a
comparison some milliseconds. The time limit counts processor time, so that a busy machine does not change a verdict; a
far wider one on the clock catches what only waits.
"""

from __future__ import annotations

import asyncio
import atexit
import contextlib
import json
import os
import select
import signal
import subprocess
import sys
import threading
import time
import weakref
from pathlib import Path
from typing import Any, Literal, cast

from signatures.errors import SearchO1Error

Verdict = Literal["equal", "different", "time", "memory", "crash"]
"""How a comparison ended; the last three mean that it was given up, which counts as different."""

_WORKER = Path(__file__).with_name("math_worker.py")
_START_SECONDS = 300.0
_GRACE_SECONDS = 30.0
_CHUNK = 65_536


class JudgeError(SearchO1Error):
    """Math answers cannot be compared on this machine."""

    kind = "judge"


class MathJudge:
    """A pool of child processes that compare math answers.

    Args:
        lanes: Children at most, hence comparisons at once; None: one a core, at most four.
        cpu_seconds: Processor time a comparison may take.
        wall_seconds: Time on the clock a comparison may take, should it wait for something.
        memory_mib: Address space of a comparison in MiB; math-verify itself needs about 100.
    """

    def __init__(
        self,
        lanes: int | None = None,
        *,
        cpu_seconds: float = 5.0,
        wall_seconds: float = 60.0,
        memory_mib: int = 1024,
    ) -> None:
        self._lanes = lanes or max(1, min(4, os.cpu_count() or 1))
        self._limits = {
            "cpu_seconds": cpu_seconds,
            "wall_seconds": wall_seconds,
            "memory_bytes": memory_mib * 1024 * 1024,
        }
        self._wait = wall_seconds + _GRACE_SECONDS
        self._forget()
        _judges.add(self)

    def compare(self, label: str, answer: str) -> Verdict:
        """Compare an answer to a label; waits for a free child. Safe to call from several threads.

        Args:
            label: The right answer: LaTeX on one line, without dollar signs.
            answer: The answer to judge, likewise.

        Returns:
            The verdict; a child that died was replaced, and the comparison tried once more.

        Raises:
            JudgeError: The child process cannot start, for example because math-verify is not installed.
        """
        with self._free:
            for _ in range(2):
                lane = self._take()
                try:
                    verdict = lane.ask({"label": label, "answer": answer, **self._limits}, self._wait)
                except BaseException:
                    # Ctrl-C or a failed start: a reply may still be on its way, and must not meet the next question.
                    lane.kill()
                    raise
                if verdict is not None:
                    self._idle.append(lane)
                    return verdict
                lane.kill()
        return "crash"

    async def compare_async(self, label: str, answer: str) -> Verdict:
        """Compare as `compare` does, without holding up the event loop."""
        return await asyncio.to_thread(self.compare, label, answer)

    def close(self) -> None:
        """End the idle children; a later comparison starts new ones."""
        while self._idle:
            self._idle.pop().kill()

    def _take(self) -> _Lane:
        try:
            return self._idle.pop()
        except IndexError:
            return _Lane()

    def _forget(self) -> None:
        """Begin without children: those of the process this one was forked from are not ours to talk to."""
        self._idle: list[_Lane] = []
        self._free = threading.BoundedSemaphore(self._lanes)


class _Lane:
    """One child process; starts on its first question."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None

    def ask(self, job: dict[str, Any], seconds: float) -> Verdict | None:
        """Put a job to the child; None when it died or kept silent."""
        process = self._process or self._start()
        if process.stdin is None:
            return None
        try:
            process.stdin.write(json.dumps(job).encode() + b"\n")
        except BrokenPipeError:
            return None
        reply = _read_line(process, seconds)
        return cast(Verdict, reply["verdict"]) if reply else None

    def kill(self) -> None:
        """End the child and whatever it was comparing."""
        process, self._process = self._process, None
        if process is None:
            return
        # It may have ended by itself.
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        for stream in (process.stdin, process.stdout):
            if stream is not None:
                stream.close()
        process.wait()

    def _start(self) -> subprocess.Popen[bytes]:
        # -P: the folder of the script holds modules named like the standard library's. A session of its own keeps
        # Ctrl-C away from the child and lets it be ended together with the fork that compares.
        process = subprocess.Popen(
            [sys.executable, "-P", str(_WORKER)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            bufsize=0,
            start_new_session=True,
        )
        self._process = process
        hello = _read_line(process, _START_SECONDS)
        if not hello or "ready" not in hello:
            reason = (hello or {}).get("error", f"{sys.executable} {_WORKER} did not come up")
            raise JudgeError(f"math answers cannot be compared: {reason}; pip install 'math-verify[antlr4-13-2]'")
        return process


def _read_line(process: subprocess.Popen[bytes], seconds: float) -> dict[str, Any] | None:
    """Read one line of JSON; None when the child ends or keeps silent for so long."""
    stream = process.stdout
    if stream is None:
        return None
    until = time.monotonic() + seconds
    waiting = select.poll()
    waiting.register(stream, select.POLLIN | select.POLLHUP)
    line = b""
    while not line.endswith(b"\n"):
        if not waiting.poll(max(0.0, until - time.monotonic()) * 1000):
            return None
        piece = os.read(stream.fileno(), _CHUNK)
        if not piece:
            return None
        line += piece
    return cast(dict[str, Any], json.loads(line))


_judges: weakref.WeakSet[MathJudge] = weakref.WeakSet()
_default: MathJudge | None = None
_default_lock = threading.Lock()


def default_judge() -> MathJudge:
    """Return the judge that all strict math scores share; made on the first call, its children later still."""
    global _default
    with _default_lock:
        if _default is None:
            _default = MathJudge()
        return _default


def _close_all() -> None:
    for judge in list(_judges):
        judge.close()


def _forget_all() -> None:
    global _default_lock
    _default_lock = threading.Lock()
    for judge in list(_judges):
        judge._forget()


atexit.register(_close_all)
os.register_at_fork(after_in_child=_forget_all)

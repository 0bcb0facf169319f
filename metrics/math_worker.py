"""The child process that compares math answers with math-verify; `metrics.math_judge` starts it as a script.

It imports math-verify once, then answers jobs, a JSON object a line on standard input, with a verdict a line on
standard output. The comparing is done by a fork of it with limits that the kernel enforces, because a power tower sits
in one C call that no Python time-out reaches: processor time a job (SIGPROF ends it), address space, no files, no core.
A fork that gave up is thrown away, and so is one that has served long enough; the next one costs milliseconds.

Not covered: on macOS the kernel ignores the address-space limit. Only the standard library is imported here besides
math-verify, and nothing of this project, so that the file runs by itself.
"""

from __future__ import annotations

import gc
import json
import os
import resource
import select
import signal
import sys
from typing import Any, BinaryIO

_DIFFERENT, _EQUAL, _EQUAL_AND_FULL, _MEMORY = b"0", b"1", b"2", b"m"
_VERDICTS = {_DIFFERENT: "different", _EQUAL: "equal", _EQUAL_AND_FULL: "equal", _MEMORY: "memory"}
_JOBS_A_FORK = 500
_FULL = 0.75
"""Share of its address space beyond which a fork has run out; math-verify swallows the error and goes on."""

# The parser's tables fill as it reads; what the parent process has read, each fork need not learn again.
_WARM_UP = (
    ("\\frac{1}{2}", "0.5"),
    ("x^2+2x+1", "(x+1)^2"),
    ("\\left( 3, \\frac{\\pi}{2} \\right)", "(3,\\pi/2)"),
    ("(-\\infty, 3) \\cup [5, \\infty)", "x<5"),
    ("\\{1\\pm\\sqrt{5},-2\\}", "1,-2"),
    ("\\begin{pmatrix} 1/5 \\\\ -18/5 \\end{pmatrix}", "\\begin{bmatrix} 0.2 \\\\ -3.6 \\end{bmatrix}"),
    ("x \\in [-2,7]", "[-2,7]"),
    ("6 - 5i", "\\sqrt[3]{x}\\cdot\\cos 2"),
    ("5\\text{ cm}", "30^\\circ"),
    ("\\log_2 x", "e^{3x}!"),
)


def compare(label: str, answer: str) -> bool:
    """Compare two LaTeX answers by value.

    Args:
        label: The right answer, on one line, without dollar signs.
        answer: The answer to judge, likewise.

    Returns:
        Whether math-verify reads both as wholes and finds them equal.
    """
    from math_verify import parse, verify
    from math_verify.parser import LatexExtractionConfig

    # One LaTeX target, read once: with its other readings math-verify would fish a number out of prose.
    reading: dict[str, Any] = {
        "extraction_config": [LatexExtractionConfig(boxed_match_priority=-1)],
        "extraction_mode": "first_match",
        "fallback_mode": "no_fallback",
        "parsing_timeout": None,
    }
    wanted, given = (parse(f"${text}$", **reading) for text in (label, answer))
    if not wanted or not given:
        return False
    return bool(verify(wanted, given, timeout_seconds=None, allow_set_relation_comp=True))


def serve(jobs: BinaryIO, replies: int) -> None:
    """Answer jobs until there are no more.

    Args:
        jobs: Lines of JSON: `label`, `answer`, `cpu_seconds`, `wall_seconds`, `memory_bytes`.
        replies: File descriptor that gets a line of JSON a job: `verdict` is `equal`, `different`, `time`, `memory`
            or `crash`. The first line, before any job, says `ready`, or `error` where math-verify does not import.
    """
    try:
        for label, answer in _WARM_UP:
            compare(label, answer)
    except ImportError as error:
        _reply(replies, {"error": str(error)})
        return
    # What is there now stays: forks then share it instead of copying what the collector touches.
    gc.collect()
    gc.freeze()
    _reply(replies, {"ready": True})
    fork: _Fork | None = None
    for line in jobs:
        job = json.loads(line)
        fork = fork or _Fork(job["memory_bytes"])
        verdict = fork.judge(line, job["wall_seconds"])
        _reply(replies, {"verdict": verdict})
        if fork.spent:
            fork.end()
            fork = None
    if fork is not None:
        fork.end()


class _Fork:
    """A forked process that compares, one job after the other.

    Args:
        memory_bytes: Address space it may take.
    """

    def __init__(self, memory_bytes: int) -> None:
        self.spent = False
        self._served = 0
        theirs_in, self._to = os.pipe()
        self._from, theirs_out = os.pipe()
        self._child = os.fork()
        if self._child == 0:
            os.close(self._to)
            os.close(self._from)
            _compare_and_exit(theirs_in, theirs_out, memory_bytes)
        os.close(theirs_in)
        os.close(theirs_out)

    def judge(self, job: bytes, wall_seconds: float) -> str:
        """Put one job and return its verdict; `spent` then says whether the fork may take another."""
        self._served += 1
        self.spent = True
        waiting = select.poll()
        waiting.register(self._from, select.POLLIN | select.POLLHUP)
        os.write(self._to, job)
        if not waiting.poll(wall_seconds * 1000):
            return "time"
        told = os.read(self._from, 1)
        self.spent = told not in (_EQUAL, _DIFFERENT) or self._served >= _JOBS_A_FORK
        return _VERDICTS[told] if told else _how_it_died(self._child)

    def end(self) -> None:
        """Kill the fork, if it still lives, and close what led to it."""
        os.close(self._to)
        os.close(self._from)
        os.kill(self._child, signal.SIGKILL)
        os.waitpid(self._child, 0)


def _how_it_died(child: int) -> str:
    """Return `time` for a process that the clock ended, else `crash`; the process stays to be waited for."""
    result = os.waitid(os.P_PID, child, os.WEXITED | os.WNOWAIT)
    timed_out = result is not None and result.si_code == os.CLD_KILLED and result.si_status == signal.SIGPROF
    return "time" if timed_out else "crash"


def _compare_and_exit(jobs: int, report: int, memory_bytes: int) -> None:
    try:
        signal.signal(signal.SIGPROF, signal.SIG_DFL)
        resource.setrlimit(resource.RLIMIT_AS, (memory_bytes, memory_bytes))
        resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        for line in os.fdopen(jobs, "rb"):
            job = json.loads(line)
            signal.setitimer(signal.ITIMER_PROF, job["cpu_seconds"])
            equal = compare(job["label"], job["answer"])
            signal.setitimer(signal.ITIMER_PROF, 0)
            full = _peak_bytes() > _FULL * memory_bytes
            os.write(report, (_EQUAL_AND_FULL if full else _EQUAL) if equal else _MEMORY if full else _DIFFERENT)
    except MemoryError:
        os.write(report, _MEMORY)
    finally:
        # Anything else raised is a crash: whoever waits reads that nothing was told.
        os._exit(0)


def _peak_bytes() -> int:
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024


def _reply(replies: int, message: dict[str, Any]) -> None:
    os.write(replies, json.dumps(message).encode() + b"\n")


def main() -> None:
    """Serve on standard input and output, which nothing else may then write to."""
    replies = os.dup(1)
    nowhere = os.open(os.devnull, os.O_RDWR)
    os.dup2(nowhere, 1)
    os.dup2(nowhere, 2)
    try:
        serve(sys.stdin.buffer, replies)
    except BrokenPipeError:
        # Whoever asked is gone.
        return


if __name__ == "__main__":
    main()

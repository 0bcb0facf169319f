"""Process 1 of a sandbox: takes a program and its inputs from the host and watches each run of it.

Every input gets a process of its own, forked from this one with the prelude loaded. When it ends, everything else in
the sandbox is killed, so nothing of one test lives on into the next. This process keeps rights that its children give
up; they can neither signal nor trace it.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import select
import signal
import sys
import time
from typing import Any

from metrics.sandbox.inside import execution, frames, namespaces
from metrics.sandbox.inside import system_calls as calls

READY = b"ready"
"""First frame of a supervisor that is set up."""

_RESTRICTED = b"+"
_TICK = 0.04
_STDERR_TAIL = 4096
_PAGE = os.sysconf("SC_PAGE_SIZE")


def main(options_json: str) -> None:
    """Set the sandbox up, say so, and serve runs until the host closes its pipe.

    Args:
        options_json: JSON object: `backend` (`namespaces`, `bubblewrap` or `none`), `binds` (pairs of paths) and
            `packages` (folders to import further modules from).
    """
    options = json.loads(options_json)
    sys.path[:] = [*(path for path in sys.path if path not in options["roots"]), *options["packages"]]
    calls.die_with_parent()
    isolated = options["backend"] != "none"
    if options["backend"] == "namespaces":
        namespaces.enter([(source, target) for source, target in options["binds"]])
    elif isolated:
        namespaces.lock_down()
    else:
        calls.adopt_orphans()
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    commands, answers = _take_over_pipes()
    execution.load_prelude()
    frames.write_frame(answers, READY)

    def receive(count: int) -> bytes:
        return os.read(commands, count)

    first = frames.read_frame(receive)
    if first is None:
        return
    job = json.loads(first)
    while (text := frames.read_frame(receive)) is not None:
        header, output, report = _run_test(job, text.decode("utf-8", "surrogatepass"), isolated=isolated)
        for part in (json.dumps(header).encode(), output, report):
            frames.write_frame(answers, part)


def _take_over_pipes() -> tuple[int, int]:
    """Move the host's pipes away from the standard descriptors, which print and input of a program would reach."""
    commands, answers = os.dup(0), os.dup(1)
    nothing = os.open(os.devnull, os.O_RDWR)
    os.dup2(nothing, 0)
    os.dup2(nothing, 1)
    os.close(nothing)
    return commands, answers


def _run_test(job: dict[str, Any], text: str, *, isolated: bool) -> tuple[dict[str, Any], bytes, bytes]:
    """Run the program once.

    Returns:
        How it ended (`ended`: `exit`, `signal`, `time`, `memory`, `output`, or `setup` when it was not started; `code`;
        `cpu` and `wall` in seconds; `stderr`), what it printed, and its report.
    """
    pipes = [os.pipe() for _ in range(3)]
    stdin = os.memfd_create("stdin")
    with open(stdin, "wb", closefd=False) as file:
        file.write(text.encode("utf-8", "surrogatepass"))
    os.lseek(stdin, 0, os.SEEK_SET)
    started = time.monotonic()
    child = os.fork()
    if child == 0:
        _become_test(job, text, [stdin, *(write for _, write in pipes)], isolated=isolated)
    os.close(stdin)
    for _, write in pipes:
        os.close(write)
    watch = _Watch(child, [read for read, _ in pipes], job["limits"], isolated=isolated)
    ended = watch.until_end(started + job["limits"]["wall"])
    # Until it is waited for, its number cannot be given to another process or group.
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(child, signal.SIGKILL)
    _, status, usage = os.wait4(child, 0)
    if isolated:
        _kill_all()
    else:
        _kill_orphans()
    watch.drain()
    code = os.waitstatus_to_exitcode(status)
    header = {
        "ended": ended or ("setup" if not watch.report else "signal" if code < 0 else "exit"),
        "code": code,
        "cpu": usage.ru_utime + usage.ru_stime,
        "wall": time.monotonic() - started,
        "stderr": bytes(watch.stderr[-_STDERR_TAIL:]).decode("utf-8", "replace"),
    }
    return header, bytes(watch.output), bytes(watch.report[len(_RESTRICTED) :])


def _become_test(job: dict[str, Any], text: str, descriptors: list[int], *, isolated: bool) -> None:
    try:
        os.setsid()
        # By way of high numbers, for a source may have the number of another's target.
        parked = [fcntl.fcntl(source, fcntl.F_DUPFD, 64) for source in descriptors]
        for target, source in enumerate(parked):
            os.dup2(source, target)
        os.closerange(len(parked), max(parked) + 1)
        execution.restrict(job["limits"], isolated=isolated)
        # A report that lacks this cannot be the program's doing: it was never started.
        os.write(execution.REPORT, _RESTRICTED)
    except BaseException as error:
        with contextlib.suppress(OSError):
            os.write(2, f"{error}".encode())
        os._exit(1)
    execution.run(job, text)


class _Watch:
    """Collects what a test's process writes, until it ends or goes over a limit."""

    def __init__(self, child: int, readers: list[int], limits: dict[str, Any], *, isolated: bool) -> None:
        self.output, self.stderr, self.report = bytearray(), bytearray(), bytearray()
        self._buffers = dict(zip(readers, (self.output, self.stderr, self.report), strict=True))
        self._limits = limits
        self._child = child
        self._counts_memory = isolated and os.path.isdir("/proc/1")
        self._poll = select.poll()
        for reader in readers:
            os.set_blocking(reader, False)
            self._poll.register(reader, select.POLLIN)

    def until_end(self, deadline: float) -> str:
        """Wait for the process; kill it at a limit.

        Returns:
            The limit it went over, or empty.
        """
        end = os.pidfd_open(self._child)
        self._poll.register(end, select.POLLIN)
        next_count = 0.0
        over = ""
        while True:
            now = time.monotonic()
            if now >= deadline:
                over = "time"
            elif self._counts_memory and now >= next_count:
                next_count = now + _TICK
                if _memory_in_use(self._limits["memory"]) > self._limits["memory"]:
                    over = "memory"
            if over:
                os.kill(self._child, signal.SIGKILL)
                break
            ready = [descriptor for descriptor, _ in self._poll.poll(min(_TICK, deadline - now) * 1000)]
            for descriptor in ready:
                if descriptor != end and self._read(descriptor):
                    over = "output"
            if end in ready:
                break
        self._poll.unregister(end)
        os.close(end)
        return over

    def drain(self) -> None:
        """Read what is left in the pipes once nothing writes any more, and close them."""
        for reader in list(self._buffers):
            # Without namespaces something may have escaped that still writes; it is not waited for.
            while reader in self._buffers and self._has_more(reader) and not self._read(reader):
                pass
            if reader in self._buffers:
                self._close(reader)

    def _has_more(self, reader: int) -> bool:
        return bool(select.select([reader], [], [], 0)[0])

    def _read(self, reader: int) -> bool:
        """Read once; tell whether the output has become too much."""
        try:
            part = os.read(reader, 1 << 18)
        except BlockingIOError:
            return False
        buffer = self._buffers[reader]
        if not part:
            self._close(reader)
            return False
        buffer += part
        if buffer is self.stderr:
            del buffer[:-_STDERR_TAIL]
        elif len(buffer) > self._limits["output"]:
            del buffer[self._limits["output"] :]
            return True
        return False

    def _close(self, reader: int) -> None:
        self._poll.unregister(reader)
        del self._buffers[reader]
        os.close(reader)


def _memory_in_use(limit: int) -> int:
    """Return the bytes of memory that the test's processes hold together, shared pages shared out where it matters."""
    processes = [name for name in os.listdir("/proc") if name.isdigit() and name != "1"]
    total = 0
    for name in processes:
        with contextlib.suppress(OSError), open(f"/proc/{name}/statm", "rb") as file:
            total += int(file.read().split()[1]) * _PAGE
    if total <= limit:
        return total
    shared_out = 0
    for name in processes:
        with contextlib.suppress(OSError), open(f"/proc/{name}/smaps_rollup", "rb") as file:
            shared_out += sum(int(line.split()[1]) for line in file if line.startswith(b"Pss:")) * 1024
    return shared_out


def _kill_all() -> None:
    """Kill everything in this pid namespace but this process, at once: no fork slips through."""
    with contextlib.suppress(ProcessLookupError):
        os.kill(-1, signal.SIGKILL)
    with contextlib.suppress(ChildProcessError):
        while True:
            os.waitpid(-1, 0)


def _kill_orphans() -> None:
    """Kill whatever left the test's process group and was handed to this process, round by round."""
    for _ in range(100):
        with open(f"/proc/self/task/{os.getpid()}/children") as file:
            children = [int(name) for name in file.read().split()]
        if not children:
            return
        for child in children:
            with contextlib.suppress(ProcessLookupError):
                os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)

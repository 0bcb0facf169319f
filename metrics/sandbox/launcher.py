"""One sandbox from outside: start it, give it a program, run that on inputs, end it.

The host believes nothing that comes out: frames have a greatest length, each run has a time after which the whole
sandbox is killed, and a sandbox that ends early is a verdict and not an error.
"""

from __future__ import annotations

import contextlib
import json
import os
import selectors
import signal
import subprocess
import tempfile
import time
from dataclasses import dataclass
from typing import Any

from metrics.sandbox.commands import ENVIRONMENT, command
from metrics.sandbox.inside.frames import encode_frame, read_frame
from metrics.sandbox.inside.supervisor import READY
from metrics.sandbox.options import Limits, SandboxError

START_SECONDS = 60.0
"""How long a sandbox may take to start; it needs milliseconds, unless the machine is very busy."""

_GRACE = 10.0


@dataclass(frozen=True)
class Program:
    """A program to run.

    Attributes:
        source: Its Python text.
        mode: `script` (reads standard input, prints), `function` (one of its functions is called), or `published` (a
            script as LiveCodeBench's older runner runs it; `metrics.sandbox.inside.published`).
        function: Name of the function, for that mode; a method where the program defines a class `Solution`.
    """

    source: str
    mode: str = "script"
    function: str = ""


@dataclass(frozen=True)
class Run:
    """How one run of a program ended, before anybody judged its output.

    Attributes:
        reason: `ok`, `compile`, `runtime_error`, `time`, `memory`, `output_limit`, or `sandbox` (it ended early).
        detail: The error in one line; empty for `ok`.
        output: What was printed, at most the limit's bytes.
        value: JSON text of what the function returned, or None.
        stderr: The end of what was written to standard error.
        cpu_seconds: Processor time.
        wall_seconds: Time on the clock.
    """

    reason: str
    detail: str = ""
    output: bytes = b""
    value: str | None = None
    stderr: str = ""
    cpu_seconds: float = 0.0
    wall_seconds: float = 0.0


class Sandbox:
    """A running sandbox for one program; a context manager that leaves nothing behind.

    Args:
        program: What to run.
        limits: What each run may use.
        backend: `bubblewrap`, `namespaces` or `none`.
        bubblewrap: Path of `bwrap`, for that backend.

    Raises:
        SandboxError: The sandbox cannot be started; the text says what the system answered.
    """

    def __init__(self, program: Program, limits: Limits, backend: str, bubblewrap: str | None = None) -> None:
        self._program = program
        self._limits = limits
        self._dead = ""
        # A file, for a pipe that nobody reads while the sandbox runs could fill up.
        self._complaints = tempfile.TemporaryFile()  # noqa: SIM115
        # Isolated programs see a scratch folder that vanishes with them; others get one that is removed here.
        self._scratch = tempfile.TemporaryDirectory(prefix="sandbox-") if backend == "none" else None
        scratch = {} if self._scratch is None else {"HOME": self._scratch.name, "TMPDIR": self._scratch.name}
        try:
            self._process = subprocess.Popen(
                command(backend, bubblewrap),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=self._complaints,
                env={**ENVIRONMENT, **scratch},
                cwd=scratch.get("TMPDIR", "/"),
                start_new_session=True,
                bufsize=0,
            )
        except OSError as error:
            self._complaints.close()
            if self._scratch is not None:
                self._scratch.cleanup()
            raise SandboxError(f"The sandbox ({backend}) could not be started: {error}.") from None
        job = {
            "mode": program.mode,
            "source": program.source,
            "name": program.function,
            "limits": limits.to_dict(isolated=backend != "none"),
        }
        deadline = time.monotonic() + START_SECONDS
        if self._receive(deadline, limit=64) != READY or not self._send(json.dumps(job).encode(), deadline):
            said = self._said()
            self.close()
            raise SandboxError(f"The sandbox ({backend}) could not be set up: {said or 'it ended without a word'}.")

    def __enter__(self) -> Sandbox:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def run(self, text: str) -> Run:
        """Run the program on one input.

        Args:
            text: Standard input; or the function's arguments, one JSON value a line.

        Returns:
            How it ended. After a `sandbox` end every further run ends so too.
        """
        if self._dead:
            return Run("sandbox", self._dead)
        started = time.monotonic()
        deadline = started + self._limits.wall + _GRACE
        most = self._limits.output
        parts: list[bytes] = []
        if self._send(text.encode("utf-8", "surrogatepass"), deadline):
            # The report holds a returned value, which is limited as printed output is.
            for limit in (1 << 16, most, most + (1 << 16)):
                part = self._receive(deadline, limit)
                if part is None:
                    break
                parts.append(part)
        if len(parts) < 3:
            self._dead = self._dead or "the sandbox ended early"
            self.kill()
            return Run("sandbox", self._dead, wall_seconds=time.monotonic() - started)
        return _outcome(json.loads(parts[0]), parts[1], parts[2], self._limits, self._program.mode)

    def kill(self) -> None:
        """End the sandbox and all in it at once; safe from another thread, and more than once."""
        with contextlib.suppress(ProcessLookupError, PermissionError):
            if self._process.poll() is None:
                os.killpg(self._process.pid, signal.SIGKILL)

    def close(self) -> None:
        """End the sandbox, wait for its process, and close its pipes."""
        self.kill()
        self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout, self._complaints):
            if pipe is not None:
                with contextlib.suppress(OSError):
                    pipe.close()
        if self._scratch is not None:
            self._scratch.cleanup()

    def _send(self, payload: bytes, deadline: float) -> bool:
        assert self._process.stdin is not None
        view = memoryview(encode_frame(payload))
        descriptor = self._process.stdin.fileno()
        os.set_blocking(descriptor, False)
        while view:
            if not self._wait(descriptor, selectors.EVENT_WRITE, deadline):
                return False
            try:
                view = view[os.write(descriptor, view) :]
            except BlockingIOError:
                continue
            except OSError:
                return False
        return True

    def _receive(self, deadline: float, limit: int) -> bytes | None:
        assert self._process.stdout is not None
        descriptor = self._process.stdout.fileno()

        def read(count: int) -> bytes:
            return os.read(descriptor, count) if self._wait(descriptor, selectors.EVENT_READ, deadline) else b""

        try:
            return read_frame(read, limit)
        except (ValueError, OSError) as error:
            self._dead = f"the sandbox broke its protocol ({error})"
            return None

    def _wait(self, descriptor: int, event: int, deadline: float) -> bool:
        with selectors.PollSelector() as selector:
            selector.register(descriptor, event)
            if selector.select(max(0.0, deadline - time.monotonic())):
                return True
        self._dead = "the sandbox did not answer in time"
        return False

    def _said(self) -> str:
        self.kill()
        self._process.wait()
        self._complaints.seek(0)
        lines = self._complaints.read()[-2000:].decode("utf-8", "replace").strip().splitlines()
        return lines[-1] if lines else ""


def _outcome(header: dict[str, Any], output: bytes, report_bytes: bytes, limits: Limits, mode: str) -> Run:
    """Say why a run ended; the kernel's word comes before the program's."""
    report: dict[str, Any] = {}
    with contextlib.suppress(ValueError, RecursionError):
        loaded = json.loads(report_bytes)
        report = loaded if isinstance(loaded, dict) else {}
    code, ended = int(header["code"]), str(header["ended"])
    status, detail = str(report.get("status", "")), str(report.get("detail", ""))
    if ended == "setup":
        raise SandboxError(f"A test's process could not be restricted, so it was not run: {header['stderr']}.")
    value = report.get("value")
    cpu = float(header["cpu"])
    if ended == "time" or cpu > limits.cpu_seconds or code == -signal.SIGXCPU:
        reason, detail = "time", f"{cpu:.1f} s of processor time, {header['wall']:.1f} s on the clock"
    elif ended == "memory" or status == "memory":
        reason, detail = "memory", f"more than {limits.memory >> 20} MiB"
    elif ended == "output":
        reason, detail = "output_limit", f"more than {limits.output} bytes printed"
    elif ended == "signal":
        reason, detail = "runtime_error", f"killed by {_signal_name(-code)}"
    elif status == "compile":
        reason = "compile"
    elif status == "error" or code:
        reason, detail = "runtime_error", detail or f"exit status {code}"
    elif mode == "function" and not isinstance(value, str):
        reason, detail = "runtime_error", "the program ended before its function returned"
    else:
        reason, detail = "ok", ""
    return Run(
        reason=reason,
        detail=detail,
        output=output,
        value=value if isinstance(value, str) else None,
        stderr=str(header["stderr"]),
        cpu_seconds=cpu,
        wall_seconds=float(header["wall"]),
    )


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"

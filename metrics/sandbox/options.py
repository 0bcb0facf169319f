"""What a sandbox allows: the limits of one test, and how isolated it must be."""

from __future__ import annotations

import math
import os
from dataclasses import dataclass, field
from typing import Any

from signatures.errors import OptionError, SearchO1Error

MIB = 1 << 20

BACKENDS = ("auto", "bubblewrap", "namespaces", "none")
"""How a program is isolated; `none` is not at all, and `auto` never chooses it unless `unsafe` is set."""


class SandboxError(SearchO1Error):
    """No program can be isolated on this machine, or a sandbox could not be started."""

    kind = "sandbox"


@dataclass(frozen=True)
class Limits:
    """What one test may use; each run of a program on one input gets all of it anew.

    Attributes:
        cpu_seconds: Processor time. That is what a time limit means here: on an idle machine it equals the time on the
            clock, and on a busy one a right program does not become a slow one.
        wall_seconds: Time on the clock after which a test is ended in any case; by default three times
            `cpu_seconds` plus 5, which only a program that waits needs on a machine with a processor to spare.
        memory: Bytes of address space of one process, and of memory of all processes of a test together.
        processes: Processes and threads at once.
        output: Bytes of standard output.
        scratch: Bytes in `/tmp`, and of one file.
        files: Open files of a process.
        stack: Bytes of stack; enough for recursion through C code (`functools.cache`) as deep as contests need.
    """

    cpu_seconds: float = 6.0
    wall_seconds: float | None = None
    memory: int = 2048 * MIB
    processes: int = 16
    output: int = 16 * MIB
    scratch: int = 64 * MIB
    files: int = 64
    stack: int = 120 * MIB

    def __post_init__(self) -> None:
        for name in ("cpu_seconds", "memory", "processes", "output", "scratch", "files", "stack"):
            value = getattr(self, name)
            if not (math.isfinite(value) and value > 0):
                raise OptionError(f"sandbox limit {name}={value!r} must be greater than 0.")
        if self.wall_seconds is not None and not (math.isfinite(self.wall_seconds) and self.wall_seconds > 0):
            raise OptionError(f"sandbox limit wall_seconds={self.wall_seconds!r} must be greater than 0.")

    @property
    def wall(self) -> float:
        """Seconds on the clock after which a test is ended."""
        return 3 * self.cpu_seconds + 5 if self.wall_seconds is None else self.wall_seconds

    def to_dict(self, *, isolated: bool) -> dict[str, Any]:
        """Return the limits as the supervisor takes them.

        Args:
            isolated: Without isolation, processes are not limited: the kernel would count all of this user's.

        Returns:
            A JSON-like dict.
        """
        return {
            "cpu": math.ceil(self.cpu_seconds),
            "wall": self.wall,
            "memory": self.memory,
            # The supervisor is of the same user and counts.
            "processes": self.processes + 1 if isolated else 0,
            "output": self.output,
            "scratch": self.scratch,
            "file_size": self.scratch,
            "files": self.files,
            "stack": self.stack,
        }


@dataclass(frozen=True)
class SandboxOptions:
    """How programs are run.

    Attributes:
        backend: One of `BACKENDS`.
        unsafe: Run without isolation where there is none to be had (`--unsafe-code`); nothing else changes.
        workers: Sandboxes at once, at most one a processor; None is one a processor.
        limits: What one test may use. A scorer puts its own time limit in.
    """

    backend: str = "auto"
    unsafe: bool = False
    workers: int | None = None
    limits: Limits = field(default_factory=Limits)

    def __post_init__(self) -> None:
        if self.backend not in BACKENDS:
            raise OptionError(f"unknown sandbox backend {self.backend!r}; known: {', '.join(BACKENDS)}.")
        if self.backend == "none" and not self.unsafe:
            raise OptionError(
                "The sandbox backend 'none' runs model-written code with your own rights; "
                "say --unsafe-code (unsafe=True) as well if that is meant."
            )
        if self.workers is not None and self.workers < 1:
            raise OptionError(f"sandbox workers={self.workers} must be at least 1.")

    @property
    def worker_count(self) -> int:
        """Sandboxes at once."""
        processors = len(os.sched_getaffinity(0))
        return processors if self.workers is None else min(self.workers, processors)

"""Running model-written programs without trusting them.

A program runs in its own user, mount, pid, network, ipc and uts namespaces, set up by bubblewrap where it is installed
and by our own system calls elsewhere. It is the user nobody, without capabilities and without a way to new ones; it
sees Python, its packages and the system's programs, read-only, an empty `/tmp` of its own, six devices and no network,
not even loopback; no home folder, no file of any user, no variable of the caller's environment. Each test is limited in
processor time, time on the clock, memory, processes, files, their size, and output, and when it ends everything it
started is killed. A few system calls that would reach around these limits are refused. Its output is compared outside,
so there is no judge within a program's reach.

What this does NOT cover:

- Faults of the kernel. Programs make system calls to the same kernel as everything else: there is no virtual machine,
  and the filter refuses a dozen calls (`metrics.sandbox.inside.call_filter`) and leaves hundreds. For hostile code that
  matters, use a machine of its own. On other machines than x86-64 and 64-bit ARM there is no filter.
- Side channels: timing, caches, the load of the machine. A program can tell that others run.
- Readable secrets in the wrong place: what every user of this machine may read below `/usr`, in Python's own folder or
  among its installed packages is read by a program too. It cannot send it anywhere, but its output is kept.
- Memory that the kernel holds for a program outside its processes, in pipes and sockets, is limited by the number of
  open files and not by `Limits.memory`; the load on disks and memory buses is not limited at all.
- Machines other than Linux (5.14 and newer without bubblewrap). There nothing is run, unless `unsafe` is set.
- `unsafe` itself: without namespaces only time, memory, file size and output are limited; a program has the caller's
  rights, files and network, and can leave processes behind that it hides.
"""

from __future__ import annotations

import importlib
from typing import Any

_HOMES = {
    "Limits": "options",
    "Program": "launcher",
    "Run": "launcher",
    "Sandbox": "launcher",
    "SandboxError": "options",
    "SandboxOptions": "options",
    "available_backends": "isolation",
    "choose_backend": "isolation",
    "run_program": "pool",
}

__all__ = sorted(_HOMES)


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'metrics.sandbox' has no attribute {name!r}")
    return getattr(importlib.import_module(f"metrics.sandbox.{_HOMES[name]}"), name)

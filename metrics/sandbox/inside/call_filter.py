"""System calls that no program of a contest needs, and that would reach around a limit: refused by the kernel.

Shared memory segments, message queues, semaphore sets and files in memory hold memory that belongs to no process, so
the limit on memory would not see it. Key rings are the caller's own. The others have let programs out of sandboxes
before. Each of them fails as on a kernel that lacks it, which programs and libraries are prepared for.
"""

from __future__ import annotations

import os

from metrics.sandbox.inside import system_calls as calls

_REFUSED = {
    "shmget": (29, 194),
    "semget": (64, 190),
    "msgget": (68, 186),
    "add_key": (248, 217),
    "request_key": (249, 218),
    "keyctl": (250, 219),
    "perf_event_open": (298, 241),
    "memfd_create": (319, 279),
    "bpf": (321, 280),
    "userfaultfd": (323, 282),
    "io_uring_setup": (425, 425),
    "memfd_secret": (447, 447),
}
"""Name of the call to its numbers on x86-64 and on 64-bit ARM."""

_MACHINES = {"x86_64": (0xC000003E, 0), "aarch64": (0xC00000B7, 1)}
"""Machine to the kernel's name for its calls, and their column in `_REFUSED`."""

# Instructions of the kernel's packet filter: load a word, jump if equal, jump if greater or equal, return.
_LOAD, _EQUAL, _AT_LEAST, _RETURN = 0x20, 0x15, 0x35, 0x06
_NUMBER, _ARCHITECTURE = 0, 4
_ALLOW, _ENOSYS = 0x7FFF0000, 0x00050000 | 38
_OTHER_WAY_TO_CALL = 0x40000000
"""Numbers from here on are those of x32, a second set of the same calls on x86-64."""


def install() -> None:
    """Refuse these calls to this process and all that it starts, for good; needs `forbid_new_privileges` before.

    On a machine that is neither x86-64 nor 64-bit ARM nothing is refused: the numbers are not known here.

    Raises:
        OSError: The kernel has no filter of system calls.
    """
    machine = _MACHINES.get(os.uname().machine)
    if machine is None:
        return
    architecture, column = machine
    refuse = (_RETURN, 0, 0, _ENOSYS)
    program = [
        (_LOAD, 0, 0, _ARCHITECTURE),
        # Calls in the way of a 32-bit program have other numbers.
        (_EQUAL, 1, 0, architecture),
        refuse,
        (_LOAD, 0, 0, _NUMBER),
        (_AT_LEAST, 0, 1, _OTHER_WAY_TO_CALL),
        refuse,
    ]
    for numbers in _REFUSED.values():
        program += [(_EQUAL, 0, 1, numbers[column]), refuse]
    calls.filter_calls([*program, (_RETURN, 0, 0, _ALLOW)])

"""Linux system calls that Python 3.11 has no function for, as plain functions that raise `OSError`."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Sequence

CLONE_NEWNS = 0x00020000
CLONE_NEWUTS = 0x04000000
CLONE_NEWIPC = 0x08000000
CLONE_NEWUSER = 0x10000000
CLONE_NEWPID = 0x20000000
CLONE_NEWNET = 0x40000000

MS_NOSUID, MS_NODEV, MS_NOEXEC = 0x2, 0x4, 0x8
MS_BIND, MS_REC, MS_PRIVATE = 0x1000, 0x4000, 0x40000
MS_RDONLY, MS_REMOUNT = 0x1, 0x20

_MNT_DETACH = 2
_AT_FDCWD, _AT_RECURSIVE = -100, 0x8000
_MOUNT_ATTR_RDONLY, _MOUNT_ATTR_NOSUID, _MOUNT_ATTR_NODEV = 0x1, 0x2, 0x4
# System calls added since Linux 5.0 have the same number on every architecture.
_SYS_MOUNT_SETATTR = 442
_PR_SET_PDEATHSIG, _PR_SET_DUMPABLE, _PR_SET_NO_NEW_PRIVS, _PR_SET_CHILD_SUBREAPER = 1, 4, 38, 36
_PR_SET_SECCOMP, _SECCOMP_MODE_FILTER = 22, 2
_CAPABILITY_VERSION_3 = 0x20080522

_libc = ctypes.CDLL(None, use_errno=True)


class _MountAttributes(ctypes.Structure):
    _fields_ = [(name, ctypes.c_uint64) for name in ("attr_set", "attr_clr", "propagation", "userns_fd")]


class _Instruction(ctypes.Structure):
    _fields_ = [("code", ctypes.c_uint16), ("yes", ctypes.c_uint8), ("no", ctypes.c_uint8), ("value", ctypes.c_uint32)]


class _FilterProgram(ctypes.Structure):
    _fields_ = [("length", ctypes.c_uint16), ("instructions", ctypes.POINTER(_Instruction))]


def unshare(flags: int) -> None:
    """Move this process into new namespaces (a new pid namespace takes its next child).

    Args:
        flags: `CLONE_NEW…` constants.

    Raises:
        OSError: The kernel does not allow it.
    """
    _check(_libc.unshare(flags), "unshare")


def mount(source: str, target: str, kind: str, flags: int = 0, options: str = "") -> None:
    """Mount a file system.

    Args:
        source: Device, folder to bind, or the name of a virtual one.
        target: Where.
        kind: File system type; empty for a bind or a change of flags.
        flags: `MS_…` constants.
        options: Options of the file system, comma-separated.

    Raises:
        OSError: The kernel does not allow it.
    """
    call = _libc.mount(
        source.encode(), target.encode(), kind.encode() or None, ctypes.c_ulong(flags), options.encode() or None
    )
    _check(call, f"mount {kind or source} on {target}")


def make_read_only(target: str, *, devices: bool = False) -> None:
    """Make a mount and all below it read-only and blind to set-user-id bits.

    Args:
        target: The mount.
        devices: Keep device files usable.

    Raises:
        OSError: The kernel is older than 5.12, or does not allow it.
    """
    wanted = _MOUNT_ATTR_RDONLY | _MOUNT_ATTR_NOSUID | (0 if devices else _MOUNT_ATTR_NODEV)
    attributes = _MountAttributes(wanted, 0, 0, 0)
    call = _libc.syscall(
        ctypes.c_long(_SYS_MOUNT_SETATTR),
        ctypes.c_int(_AT_FDCWD),
        ctypes.c_char_p(target.encode()),
        ctypes.c_uint(_AT_RECURSIVE),
        ctypes.byref(attributes),
        ctypes.c_size_t(ctypes.sizeof(attributes)),
    )
    _check(call, f"make {target} read-only")


def pivot_root(new_root: str, old_root: str) -> None:
    """Make a mount the root of this mount namespace.

    Args:
        new_root: The mount that becomes `/`.
        old_root: Folder below it where the former root goes.

    Raises:
        OSError: The kernel does not allow it.
    """
    _check(_libc.pivot_root(new_root.encode(), old_root.encode()), "pivot_root")


def detach(target: str) -> None:
    """Take a mount out of view, with all below it.

    Args:
        target: The mount.

    Raises:
        OSError: The kernel does not allow it.
    """
    _check(_libc.umount2(target.encode(), _MNT_DETACH), f"umount {target}")


def set_host_name(name: str) -> None:
    """Set the name of the machine as this uts namespace sees it.

    Args:
        name: The name.
    """
    _check(_libc.sethostname(name.encode(), ctypes.c_size_t(len(name))), "sethostname")


def die_with_parent() -> None:
    """Have this process killed when the thread that started it ends."""
    _prctl(_PR_SET_PDEATHSIG, 9)


def make_dumpable() -> None:
    """Own the files of this process below `/proc` again, after a change of user."""
    _prctl(_PR_SET_DUMPABLE, 1)


def adopt_orphans() -> None:
    """Become the parent of descendants whose own parent ends."""
    _prctl(_PR_SET_CHILD_SUBREAPER, 1)


def forbid_new_privileges() -> None:
    """Rule out that any program gains rights by being started (set-user-id, file capabilities)."""
    _prctl(_PR_SET_NO_NEW_PRIVS, 1)


def drop_capabilities() -> None:
    """Give up every capability, for good together with `forbid_new_privileges`."""
    header = (ctypes.c_uint32 * 2)(_CAPABILITY_VERSION_3, 0)
    nothing = (ctypes.c_uint32 * 6)()
    _check(_libc.capset(ctypes.byref(header), ctypes.byref(nothing)), "capset")


def filter_calls(instructions: Sequence[tuple[int, int, int, int]]) -> None:
    """Have a program of the kernel's packet filter decide on every further system call of this process.

    Args:
        instructions: Operation, steps to skip if it holds, steps to skip if not, value; of each instruction.

    Raises:
        OSError: The kernel has no such filter, or does not take the program.
    """
    steps = (_Instruction * len(instructions))(*(_Instruction(*instruction) for instruction in instructions))
    program = _FilterProgram(len(instructions), steps)
    call = _libc.prctl(
        _PR_SET_SECCOMP,
        ctypes.c_ulong(_SECCOMP_MODE_FILTER),
        ctypes.byref(program),
        ctypes.c_ulong(0),
        ctypes.c_ulong(0),
    )
    _check(call, "prctl seccomp")


def _prctl(option: int, value: int) -> None:
    _check(_libc.prctl(option, ctypes.c_ulong(value), *[ctypes.c_ulong(0)] * 3), f"prctl {option}")


def _check(result: int, what: str) -> None:
    if result == -1:
        number = ctypes.get_errno()
        raise OSError(number, f"{what}: {os.strerror(number)}")

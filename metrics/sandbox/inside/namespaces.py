"""Moving into namespaces of one's own, with a root folder that holds Python and nothing else.

The order matters. Whoever starts as the machine's root builds the view first, with a root's rights (Python may lie in a
home folder that nobody else may enter), and only then becomes the user nobody. Had it stayed root under another name,
the kernel would not apply the limit on processes to it. Whoever starts as a plain user needs the user namespace first.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Sequence

from metrics.sandbox.inside import system_calls as calls

NOBODY = 65534
"""User and group inside every sandbox."""

_OLD = "/old"
_INNER = "/mnt"
_DEVICES = ("null", "zero", "full", "random", "urandom")
_LINKS = (("/proc/self/fd", "/dev/fd"), ("/tmp", "/dev/shm"))
_PRIVATE = calls.CLONE_NEWNS | calls.CLONE_NEWNET | calls.CLONE_NEWIPC | calls.CLONE_NEWUTS


def enter(binds: Sequence[tuple[str, str]]) -> None:
    """Go into new namespaces and a new root; what returns is their process 1, the caller waits for it and ends.

    Args:
        binds: What stays readable: (path outside, path inside), both absolute, of a file or a folder. A link that keeps
            its place is copied as a link; what is missing outside, or there already inside, is passed over.

    Raises:
        OSError: The kernel does not allow one of the steps.
    """
    as_root = os.geteuid() == 0
    if as_root:
        calls.unshare(calls.CLONE_NEWNS | calls.CLONE_NEWPID)
    else:
        _new_user_namespace(calls.CLONE_NEWPID | _PRIVATE)
    _continue_as_first_process()
    build_view(binds)
    lock_down()


def lock_down() -> None:
    """Become nobody, and close the ways to further rights; the last step of process 1 before it takes programs.

    The view is seen through a second mount of itself: to a process that is not in its mount namespace's own root, the
    kernel refuses user namespaces, in which a program would have all rights again.

    Raises:
        OSError: The kernel does not allow one of the steps.
    """
    if os.geteuid() == 0:
        become_nobody()
    calls.unshare(calls.CLONE_NEWNS)
    calls.mount("/", _INNER, "", calls.MS_BIND | calls.MS_REC)
    os.chroot(_INNER)
    os.chdir("/")
    calls.set_host_name("sandbox")


def become_nobody() -> None:
    """Change from the machine's root to the user nobody, in a user namespace of its own with all rights there.

    Raises:
        OSError: The kernel does not allow it.
    """
    os.setgroups([])
    os.setresgid(NOBODY, NOBODY, NOBODY)
    os.setresuid(NOBODY, NOBODY, NOBODY)
    calls.make_dumpable()
    calls.die_with_parent()
    _new_user_namespace(_PRIVATE)


def build_view(binds: Sequence[tuple[str, str]]) -> None:
    """Make a small file system in memory the root, with `binds`, devices and `/proc` in it.

    Args:
        binds: As of `enter`.

    Raises:
        OSError: The kernel does not allow it.
    """
    calls.mount("none", "/", "", calls.MS_REC | calls.MS_PRIVATE)
    # /tmp exists everywhere; what it held is still reached through the former root.
    calls.mount("tmpfs", "/tmp", "tmpfs", calls.MS_NOSUID | calls.MS_NODEV, "size=1m,mode=755")
    os.mkdir(f"/tmp{_OLD}")
    calls.pivot_root("/tmp", f"/tmp{_OLD}")
    os.chdir("/")
    for folder in (_INNER, "/proc", "/tmp", "/dev"):
        os.mkdir(folder)
    for source, target in binds:
        _show(source, target)
    for name in _DEVICES:
        open(f"/dev/{name}", "w").close()
        calls.mount(f"{_OLD}/dev/{name}", f"/dev/{name}", "", calls.MS_BIND)
        calls.make_read_only(f"/dev/{name}", devices=True)
    for destination, link in _LINKS:
        os.symlink(destination, link)
    flags = calls.MS_NOSUID | calls.MS_NODEV | calls.MS_NOEXEC
    calls.mount("proc", "/proc", "proc", flags, "subset=pid")
    calls.detach(_OLD)
    os.rmdir(_OLD)
    calls.mount("none", "/", "", calls.MS_REMOUNT | calls.MS_BIND | calls.MS_RDONLY | calls.MS_NOSUID | calls.MS_NODEV)


def mount_scratch(size: int) -> None:
    """Give this process an empty `/tmp` of its own and go there; it vanishes with the process.

    Args:
        size: Most bytes that it holds.

    Raises:
        OSError: The kernel does not allow it.
    """
    calls.unshare(calls.CLONE_NEWNS)
    calls.mount("tmpfs", "/tmp", "tmpfs", calls.MS_NOSUID | calls.MS_NODEV, f"size={size},nr_inodes=4096,mode=1777")
    os.chdir("/tmp")


def _new_user_namespace(others: int) -> None:
    user, group = os.geteuid(), os.getegid()
    calls.unshare(calls.CLONE_NEWUSER | others)
    for name, line in (("setgroups", "deny"), ("uid_map", f"{NOBODY} {user} 1"), ("gid_map", f"{NOBODY} {group} 1")):
        with open(f"/proc/self/{name}", "w") as file:
            file.write(line)


def _continue_as_first_process() -> None:
    child = os.fork()
    if child:
        # Ctrl-C in a shell reaches the whole group; the supervisor's end decides ours.
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        for descriptor in (0, 1):
            os.close(descriptor)
        os._exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) & 0xFF)
    calls.die_with_parent()


def _show(path: str, target: str) -> None:
    """Make one path of the former root visible, read-only."""
    source = _OLD + path
    if not os.path.lexists(source) or os.path.lexists(target):
        return
    os.makedirs(os.path.dirname(target), exist_ok=True)
    if os.path.islink(source) and path == target:
        os.symlink(os.readlink(source), target)
        return
    if os.path.isdir(source):
        os.mkdir(target)
    else:
        open(target, "w").close()
    calls.mount(source, target, "", calls.MS_BIND | calls.MS_REC)
    calls.make_read_only(target)

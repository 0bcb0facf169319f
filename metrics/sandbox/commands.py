"""The command lines that start a sandbox, one a backend, and what of this machine is seen inside."""

from __future__ import annotations

import functools
import json
import os
import sys
import sysconfig
from collections.abc import Mapping
from pathlib import Path

_SYSTEM = ("/usr", "/bin", "/lib", "/lib32", "/lib64", "/etc/ld.so.cache", "/etc/alternatives", "/etc/localtime")
_START = (
    "import sys; sys.path.append(sys.argv[1]); from metrics.sandbox.inside.supervisor import main; main(sys.argv[2])"
)
_INSIDE = Path(__file__).with_name("inside")
_PACKAGES = "/packages"

ENVIRONMENT = {
    "PATH": "/usr/local/bin:/usr/bin:/bin",
    "LANG": "C.UTF-8",
    "HOME": "/tmp",
    "TMPDIR": "/tmp",
    # Sets are walked in the same order each time; numerical libraries start no threads of their own.
    "PYTHONHASHSEED": "0",
    "OPENBLAS_NUM_THREADS": "1",
    "OMP_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
}
"""All the environment that a program sees; nothing of the caller's goes in."""


def interpreter() -> str:
    """Return the Python that programs run under: the one this process runs, outside its virtual environment."""
    return os.path.realpath(getattr(sys, "_base_executable", None) or sys.executable)


def command(backend: str, bubblewrap: str | None = None) -> list[str]:
    """Return the command that starts a supervisor.

    Args:
        backend: `bubblewrap`, `namespaces` or `none`.
        bubblewrap: Path of `bwrap`, for that backend.

    Returns:
        Program and arguments; to be started with `ENVIRONMENT` alone.
    """
    packages = _packages()
    root = str(_INSIDE.parents[2])
    if backend == "none":
        return _python(root, {"backend": backend, "binds": [], "packages": [source for source, _ in packages]})
    inside = {"backend": backend, "binds": [], "packages": [target for _, target in packages]}
    binds = _binds()
    if backend == "namespaces":
        return _python(root, {**inside, "binds": binds})
    shown = "/sandbox"
    binds.append((str(_INSIDE), f"{shown}/metrics/sandbox/inside"))
    return [bubblewrap or "bwrap", *_bubblewrap_options(binds), *_python(shown, inside)]


def _python(root: str, options: Mapping[str, object]) -> list[str]:
    # -S: no .pth file of the caller's environment is executed; -P and -s: no folder of the caller is imported from.
    arguments = [root, json.dumps({**options, "roots": [root]})]
    return [interpreter(), "-s", "-S", "-P", "-B", "-c", _START, *arguments]


def _bubblewrap_options(binds: list[tuple[str, str]]) -> list[str]:
    options = ["--unshare-pid", "--unshare-net", "--unshare-ipc", "--unshare-uts", "--as-pid-1", "--die-with-parent"]
    if os.geteuid():
        options += ["--unshare-user", "--uid", "65534", "--gid", "65534"]
    options += ["--cap-add", "ALL", "--proc", "/proc"]
    # Named ones get mode 0755; those that bwrap adds by itself can be closed to the user nobody.
    parents = {str(parent) for _, target in binds for parent in Path(target).parents} - {"/"}
    for folder in sorted({*parents, "/dev", "/tmp", "/mnt"}):
        options += ["--dir", folder]
    for name in ("null", "zero", "full", "random", "urandom"):
        options += ["--dev-bind", f"/dev/{name}", f"/dev/{name}"]
    options += ["--symlink", "/proc/self/fd", "/dev/fd", "--symlink", "/tmp", "/dev/shm"]
    for source, target in binds:
        if os.path.islink(source) and source == target:
            options += ["--symlink", os.readlink(source), target]
        elif os.path.exists(source):
            options += ["--ro-bind", source, target]
    return [*options, "--remount-ro", "/", "--chdir", "/", "--"]


def _binds() -> list[tuple[str, str]]:
    """Return what is seen inside, parents first: the system's programs, this Python, and its packages."""
    paths = {*_SYSTEM, os.path.realpath(sys.base_prefix), os.path.realpath(sys.base_exec_prefix)}
    kept: list[str] = []
    for path in sorted(paths):
        if not any(path.startswith(f"{parent}/") for parent in kept if not os.path.islink(parent)):
            kept.append(path)
    return [*((path, path) for path in kept), *_packages()]


@functools.cache
def _packages() -> tuple[tuple[str, str], ...]:
    """Return the folders of installed packages with their places inside; contest programs use numpy."""
    folders = dict.fromkeys(os.path.realpath(sysconfig.get_path(name)) for name in ("purelib", "platlib"))
    existing = [folder for folder in folders if os.path.isdir(folder)]
    return tuple((folder, f"{_PACKAGES}/{index}") for index, folder in enumerate(existing))

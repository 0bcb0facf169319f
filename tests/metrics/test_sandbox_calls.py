"""System calls that reach around the limits are refused; those that programs need are not."""

from __future__ import annotations

import pytest

from metrics.sandbox.isolation import available_backends, bubblewrap_path
from metrics.sandbox.launcher import Program, Sandbox
from metrics.sandbox.options import MIB, Limits

ENOSYS = 38

LIBC = "import ctypes, errno, os, platform\nlibc = ctypes.CDLL(None, use_errno=True)\n"


@pytest.fixture(params=available_backends() or ["none works"])
def backend(request: pytest.FixtureRequest) -> str:
    assert request.param != "none works", "neither bubblewrap nor namespaces isolate on this machine"
    return str(request.param)


def output(backend: str, source: str, **limits: int) -> str:
    with Sandbox(Program(LIBC + source), Limits(cpu_seconds=5, **limits), backend, bubblewrap_path()) as sandbox:
        return sandbox.run("").output.decode().strip()


@pytest.mark.parametrize(
    "call",
    [
        "libc.shmget(0, 1 << 20, 0o1600)",
        "libc.semget(0, 1000, 0o1600)",
        "libc.msgget(0, 0o1600)",
        "libc.syscall(425, 8, 0)",
        "libc.syscall(250 if platform.machine() == 'x86_64' else 219, 0, -3, 0)",
        "libc.memfd_create(b'x', 0)",
    ],
    ids=["shared memory", "semaphores", "messages", "io_uring", "key ring", "file in memory"],
)
def test_what_holds_memory_outside_processes_or_is_the_callers_is_refused(backend: str, call: str) -> None:
    assert output(backend, f"print({call}, ctypes.get_errno())") == f"-1 {ENOSYS}"


def test_threads_processes_numpy_and_files_work_as_ever(backend: str) -> None:
    source = (
        "import concurrent.futures, multiprocessing, subprocess, sys, tempfile, numpy\n"
        "with concurrent.futures.ThreadPoolExecutor(2) as pool:\n    print(sum(pool.map(abs, [-1, 2])))\n"
        "queue = multiprocessing.get_context('fork').Queue()\n"
        "child = multiprocessing.get_context('fork').Process(target=queue.put, args=(4,))\n"
        "child.start()\nprint(queue.get())\nchild.join()\n"
        "print(int(numpy.linalg.det(numpy.eye(50) * 1.0)))\n"
        "with tempfile.TemporaryFile() as file:\n    print(file.write(b'abc'))\n"
        "print(subprocess.run(['/bin/echo', '5'], capture_output=True, text=True).stdout.strip())\n"
    )
    assert output(backend, source, memory=1024 * MIB).split() == ["3", "4", "1", "3", "5"]

"""Programs that try to get out, to stay, or to take everything; each runs under every isolation that works here."""

from __future__ import annotations

import os
import socket
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from metrics.sandbox.isolation import available_backends, bubblewrap_path
from metrics.sandbox.launcher import Program, Run, Sandbox
from metrics.sandbox.options import MIB, Limits

QUICK = Limits(cpu_seconds=1, memory=512 * MIB)


@pytest.fixture(params=available_backends() or ["none works"])
def backend(request: pytest.FixtureRequest) -> str:
    assert request.param != "none works", "neither bubblewrap nor namespaces isolate on this machine"
    return str(request.param)


@pytest.fixture
def listener() -> Iterator[socket.socket]:
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        server.listen()
        yield server


def run(backend: str, source: str, limits: Limits = QUICK, text: str = "", **program: str) -> Run:
    with open_sandbox(backend, source, limits, **program) as sandbox:
        return sandbox.run(text)


def open_sandbox(backend: str, source: str, limits: Limits = QUICK, **program: str) -> Sandbox:
    return Sandbox(Program(source, **program), limits, backend, bubblewrap_path())


def processes_in(namespace: str) -> list[int]:
    """Return the processes of this machine that live in a pid namespace (`pid:[…]`)."""
    found = []
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            if os.readlink(f"/proc/{name}/ns/pid") == namespace:
                found.append(int(name))
        except OSError:
            continue
    return found


def soon_empty(namespace: str) -> bool:
    """Wait until the kernel has cleared a pid namespace whose first process was killed."""
    deadline = time.monotonic() + 20
    while processes_in(namespace):
        if time.monotonic() > deadline:
            return False
        time.sleep(0.02)
    return True


TELL_NAMESPACE = "import os\nprint(os.readlink('/proc/self/ns/pid'), flush=True)\n"


def test_a_fork_bomb_ends_at_the_time_limit_and_leaves_no_process(backend: str) -> None:
    bomb = TELL_NAMESPACE + "while True:\n    try:\n        os.fork()\n    except OSError:\n        pass\n"
    with open_sandbox(backend, bomb, Limits(cpu_seconds=1, wall_seconds=3)) as sandbox:
        ended = sandbox.run("")
        assert ended.reason == "time"
        assert len(processes_in(ended.output.decode().split()[0])) == 1  # the supervisor
    assert soon_empty(ended.output.decode().split()[0])


def test_the_number_of_processes_is_limited_even_when_the_caller_is_root(backend: str) -> None:
    source = (
        "import os, time\nmade = 0\n"
        "try:\n    while made < 500:\n        if os.fork() == 0:\n            time.sleep(5)\n            os._exit(0)\n"
        "        made += 1\nexcept OSError:\n    pass\nprint(made)\n"
    )
    assert 1 <= int(run(backend, source).output) <= QUICK.processes


def test_threads_count_as_processes(backend: str) -> None:
    source = (
        "import threading, time\nmade = 0\n"
        "try:\n    while made < 500:\n        threading.Thread(target=time.sleep, args=(9,), daemon=True).start()\n"
        "        made += 1\nexcept RuntimeError:\n    pass\nprint(made)\n"
    )
    assert 1 <= int(run(backend, source, Limits(cpu_seconds=2)).output) <= QUICK.processes


def test_an_allocation_of_8_gib_is_a_memory_verdict(backend: str) -> None:
    assert run(backend, "x = bytearray(8 << 30)").reason == "memory"


def test_memory_of_several_processes_is_counted_together(backend: str) -> None:
    source = (
        "import os, time\nfor _ in range(6):\n    if os.fork() == 0:\n"
        "        x = bytearray(os.urandom(1 << 20)) * 100\n        time.sleep(30)\n        os._exit(0)\n"
        "time.sleep(30)\n"
    )
    assert run(backend, source, Limits(cpu_seconds=5, wall_seconds=20, memory=300 * MIB)).reason == "memory"


def test_an_endless_loop_that_ignores_every_signal_is_a_time_verdict(backend: str) -> None:
    source = (
        "import signal\nfor number in set(signal.Signals) - {signal.SIGKILL, signal.SIGSTOP}:\n"
        "    signal.signal(number, signal.SIG_IGN)\nwhile True:\n    pass\n"
    )
    ended = run(backend, source)
    assert ended.reason == "time"
    assert ended.cpu_seconds < 4


def test_a_program_that_sleeps_is_ended_by_the_clock(backend: str) -> None:
    ended = run(backend, "import time\ntime.sleep(60)", Limits(cpu_seconds=5, wall_seconds=0.5))
    assert ended.reason == "time"
    assert ended.cpu_seconds < 1


def test_a_gibibyte_of_output_is_cut_at_the_limit(backend: str) -> None:
    source = "import os\nfor _ in range(1024):\n    os.write(1, b'x' * (1 << 20))\nprint('done')"
    ended = run(backend, source, Limits(cpu_seconds=20, output=2 * MIB))
    assert ended.reason == "output_limit"
    assert len(ended.output) == 2 * MIB


def test_output_to_standard_error_is_kept_at_its_end_only(backend: str) -> None:
    source = "import os, sys\nfor _ in range(64):\n    os.write(2, b'x' * (1 << 20))\nsys.stderr.write('the end')"
    ended = run(backend, source, Limits(cpu_seconds=20))
    assert ended.reason == "ok"
    assert ended.stderr.endswith("the end")
    assert len(ended.stderr) <= 4096


def test_no_file_of_another_user_and_no_home_folder_is_seen(backend: str, tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("do not read")
    readable = tmp_path / "readable"
    readable.write_text("do not read")
    readable.chmod(0o644)
    source = (
        "import os, sys\nfor path in sys.stdin.read().split():\n    try:\n        print(open(path).read())\n"
        "    except OSError as error:\n        print(type(error).__name__)\n"
        "print([name for name in os.listdir('/') if name in ('home', 'work', 'var', 'srv', 'run', 'sys')])\n"
        "print(os.path.exists('/etc/passwd'), os.getuid(), os.getgid(), os.getgroups())\n"
    )
    ended = run(backend, source, text=f"{secret} {readable} /etc/shadow /etc/passwd {__file__}")
    *reads, folders, identity = ended.output.decode().splitlines()
    assert reads == ["FileNotFoundError"] * 5
    assert folders == "[]"
    assert identity.startswith("False 65534 65534")


def test_the_callers_environment_is_not_seen(backend: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-very-secret")
    source = (
        "import glob, os\nprint(dict(os.environ))\nfor path in glob.glob('/proc/[0-9]*/environ'):\n"
        "    try:\n        print(open(path).read())\n    except OSError:\n        pass\n"
    )
    ended = run(backend, source)
    assert ended.reason == "ok"
    assert b"PATH" in ended.output
    assert b"very-secret" not in ended.output


def test_nothing_on_the_network_is_reached_not_even_this_machine(backend: str, listener: socket.socket) -> None:
    arrived: list[object] = []
    watcher = threading.Thread(target=lambda: arrived.append(listener.accept()), daemon=True)
    watcher.start()
    source = (
        "import socket\nport = int(input())\n"
        "for family, address in ((socket.AF_INET, ('127.0.0.1', port)), (socket.AF_INET, ('192.0.2.1', 80)),\n"
        "                        (socket.AF_INET6, ('::1', port))):\n"
        "    try:\n        socket.socket(family).connect(address)\n        print('connected')\n"
        "    except OSError:\n        print('no')\n"
    )
    ended = run(backend, source, text=str(listener.getsockname()[1]))
    assert ended.output.decode().split() == ["no", "no", "no"]
    assert arrived == []


def test_an_abstract_unix_socket_of_this_machine_is_not_reached(backend: str) -> None:
    name = f"\0search-o1-{os.getpid()}-{backend}"
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(name)
        server.listen()
        source = f"import socket\nsocket.socket(socket.AF_UNIX).connect({name!r})\nprint('connected')"
        ended = run(backend, source)
    assert "ConnectionRefusedError" in ended.detail


def test_nothing_outside_tmp_can_be_written(backend: str) -> None:
    folders = ["/", "/usr", "/usr/lib", "/etc", "/dev", "/proc", "/mnt", "/packages/0", "/sandbox", sys.base_prefix]
    source = (
        "import sys\nfor folder in sys.stdin.read().split():\n    try:\n        open(folder + '/written', 'w')\n"
        "        print(folder)\n    except OSError:\n        pass\n"
        "open('/tmp/written', 'w').write('x')\nopen('here', 'w').write('x')\nprint('done')\n"
    )
    assert run(backend, source, text=" ".join(folders)).output == b"done\n"


def test_what_one_test_leaves_in_tmp_the_next_does_not_find(backend: str) -> None:
    with open_sandbox(backend, "import os\nprint(os.listdir('/tmp'))\nopen('/tmp/left', 'w')") as sandbox:
        assert [sandbox.run("").output for _ in range(2)] == [b"[]\n", b"[]\n"]


def test_filling_the_disk_ends_at_the_size_of_tmp(backend: str) -> None:
    source = (
        "total = 0\ntry:\n    for index in range(100):\n        with open(f'/tmp/{index}', 'wb', buffering=0) as f:\n"
        "            for _ in range(4):\n                total += f.write(b'x' * (1 << 20))\n"
        "except OSError as error:\n    print(total, error.errno)\n"
    )
    total, _ = map(int, run(backend, source, Limits(cpu_seconds=5, scratch=8 * MIB)).output.split())
    assert MIB < total <= 8 * MIB


def test_the_parent_can_be_neither_killed_nor_stopped(backend: str) -> None:
    source = (
        "import os, signal\nfor number in (signal.SIGTERM, signal.SIGINT, signal.SIGSTOP, signal.SIGKILL):\n"
        "    for target in (os.getppid(), 1, -1):\n        try:\n            os.kill(target, number)\n"
        "        except OSError:\n            pass\nprint('still here')\n"
    )
    with open_sandbox(backend, source) as sandbox:
        assert [sandbox.run("").output for _ in range(2)] == [b"still here\n"] * 2


def test_the_supervisor_can_be_neither_traced_nor_read(backend: str) -> None:
    source = (
        "import ctypes, os\nlibc = ctypes.CDLL(None, use_errno=True)\nPTRACE_ATTACH = 16\n"
        "print(libc.ptrace(PTRACE_ATTACH, 1, 0, 0))\n"
        "for path in ('/proc/1/mem', '/proc/1/environ', '/proc/1/maps', '/proc/1/fd/1'):\n"
        "    try:\n        open(path, 'rb')\n        print('opened', path)\n"
        "    except OSError as error:\n        print('no')\n"
    )
    assert run(backend, source).output.split() == [b"-1", b"no", b"no", b"no", b"no"]


def test_no_process_of_this_machine_is_seen(backend: str) -> None:
    source = "import os\nprint(sorted(int(name) for name in os.listdir('/proc') if name.isdigit()))"
    assert run(backend, source).output == b"[1, 2]\n"


def test_a_program_that_leaves_a_daemon_behind_is_rid_of_it(backend: str) -> None:
    source = TELL_NAMESPACE + (
        "if os.fork() == 0:\n    os.setsid()\n    if os.fork() == 0:\n        import time\n        time.sleep(600)\n"
        "    os._exit(0)\n"
    )
    with open_sandbox(backend, source) as sandbox:
        ended = sandbox.run("")
        namespace = ended.output.decode().split()[0]
        assert ended.reason == "ok"
        assert len(processes_in(namespace)) == 1
    assert soon_empty(namespace)


def test_a_program_has_no_capability_and_no_way_to_one(backend: str) -> None:
    source = (
        "import ctypes\nlibc = ctypes.CDLL(None, use_errno=True)\nCLONE_NEWUSER, CLONE_NEWNS = 0x10000000, 0x20000\n"
        "print(libc.unshare(CLONE_NEWUSER), libc.unshare(CLONE_NEWNS), libc.mount(b'x', b'/tmp', b'tmpfs', 0, None))\n"
        "print(*[line.split()[1] for line in open('/proc/self/status')\n"
        "        if line.startswith(('CapInh', 'CapPrm', 'CapEff', 'CapAmb', 'NoNewPrivs'))])\n"
    )
    calls, status = run(backend, source).output.decode().splitlines()
    assert calls == "-1 -1 -1"
    assert status.split() == ["0" * 16, "0" * 16, "0" * 16, "0" * 16, "1"]


def test_no_descriptor_of_the_supervisor_is_inherited(backend: str) -> None:
    source = "import os\nprint([fd for fd in range(4, 1000) if os.path.exists(f'/proc/self/fd/{fd}')])"
    assert run(backend, source).output == b"[]\n"


def test_deep_recursion_is_an_error_and_not_a_crash_of_the_sandbox(backend: str) -> None:
    endless = "def f(n):\n    return f(n + 1)\n"
    assert run(backend, endless + "f(0)", Limits(cpu_seconds=5)).reason == "runtime_error"
    without_limit = endless + "import sys\nsys.setrecursionlimit(10**9)\nf(0)"
    assert run(backend, without_limit, Limits(cpu_seconds=20, memory=96 * MIB)).reason in {"memory", "runtime_error"}


def test_recursion_through_c_code_as_deep_as_contests_need_works(backend: str) -> None:
    source = "@cache\ndef f(n):\n    return n and 1 + f(n - 1)\nprint(f(20000))"
    assert run(backend, source, Limits(cpu_seconds=5)).output == b"20000\n"


def test_the_files_of_the_judge_cannot_be_overwritten(backend: str) -> None:
    source = (
        "import sys\nfor name, module in list(sys.modules.items()):\n    path = getattr(module, '__file__', None)\n"
        "    if path:\n        try:\n            open(path, 'a').write('x')\n            print('wrote', path)\n"
        "        except OSError:\n            pass\nprint('done')\n"
    )
    assert run(backend, source).output == b"done\n"


def test_a_program_that_rewrites_the_code_around_it_spoils_nothing_but_its_own_test(backend: str) -> None:
    source = (
        "import sys\nodd = int(input()) % 2\nprint('fine')\n"
        "if odd:\n    for name, module in list(sys.modules.items()):\n        if name.startswith('metrics'):\n"
        "            for key in list(vars(module)):\n                setattr(module, key, None)\n"
    )
    with open_sandbox(backend, source) as sandbox:
        runs = [sandbox.run(text) for text in ("0", "1", "0")]
    assert [runs[0].reason, runs[2].reason] == ["ok", "ok"]
    assert [ended.output for ended in runs] == [b"fine\n"] * 3


@pytest.mark.parametrize("junk", ["b'x' * 100", "b'[' * 100000", 'b\'{"status": 5, "value": 7}\'', "b'+' * (32 << 20)"])
def test_junk_instead_of_a_report_is_no_result(backend: str, junk: str) -> None:
    source = f"import os\ndef solve():\n    os.write(3, {junk})\n    os._exit(0)"
    ended = run(backend, source, Limits(cpu_seconds=3), mode="function", function="solve")
    assert ended.value is None


@pytest.mark.parametrize("status", [1, 117])
def test_an_exit_status_of_the_programs_own_choice_is_its_own_error(backend: str, status: int) -> None:
    ended = run(backend, f"import os\nos._exit({status})")
    assert (ended.reason, ended.detail) == ("runtime_error", f"exit status {status}")


def test_killing_the_supervisor_from_outside_is_a_verdict_and_ends_all_in_the_sandbox(backend: str) -> None:
    source = TELL_NAMESPACE + "import time\ntime.sleep(60)"
    with open_sandbox(backend, source, Limits(cpu_seconds=5, wall_seconds=60)) as sandbox:
        killer = threading.Timer(0.5, sandbox.kill)
        killer.start()
        assert [sandbox.run("").reason for _ in range(2)] == ["sandbox", "sandbox"]
        killer.join()

from __future__ import annotations

import logging
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from metrics.sandbox import isolation
from metrics.sandbox.inside.frames import encode_frame, read_frame
from metrics.sandbox.isolation import choose_backend
from metrics.sandbox.launcher import Program, Sandbox
from metrics.sandbox.options import Limits, SandboxError, SandboxOptions
from signatures.errors import OptionError

UNSAFE = SandboxOptions(backend="none", unsafe=True)
ROOT = Path(__file__).parents[2]


def test_isolation_is_the_default() -> None:
    assert choose_backend(SandboxOptions()) in ("bubblewrap", "namespaces")


def test_to_run_without_isolation_must_be_said_twice() -> None:
    with pytest.raises(OptionError, match="--unsafe-code"):
        SandboxOptions(backend="none")


def test_running_without_isolation_is_logged_once(caplog: pytest.LogCaptureFixture) -> None:
    isolation._warn_unsafe.cache_clear()
    with caplog.at_level(logging.WARNING, logger="metrics.sandbox"):
        assert [choose_backend(UNSAFE) for _ in range(3)] == ["none"] * 3
    assert len(caplog.records) == 1
    assert "WITHOUT isolation" in caplog.text


def test_saying_unsafe_does_not_give_up_isolation_where_there_is_some() -> None:
    assert choose_backend(SandboxOptions(unsafe=True)) != "none"


def test_a_named_backend_that_is_missing_is_an_error_even_with_unsafe(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    isolation.why_not.cache_clear()
    try:
        with pytest.raises(SandboxError, match=r"bwrap is not installed.*--unsafe-code"):
            choose_backend(SandboxOptions(backend="bubblewrap", unsafe=True))
    finally:
        isolation.why_not.cache_clear()


def test_where_the_kernel_allows_no_namespace_nothing_is_run_unless_unsafe_is_said() -> None:
    script = (
        "from metrics.sandbox.isolation import choose_backend\n"
        "from metrics.sandbox.options import SandboxError, SandboxOptions\n"
        "try:\n    choose_backend(SandboxOptions())\n"
        "except SandboxError as error:\n    print(error)\n"
        "print(choose_backend(SandboxOptions(unsafe=True)))\n"
    )
    forbid = 'echo 0 > /proc/sys/user/max_user_namespaces && exec setpriv --inh-caps=-all --bounding-set=-all "$@"'
    result = subprocess.run(
        ["unshare", "--user", "--map-root-user", "sh", "-c", forbid, "sh", sys.executable, "-c", script],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )
    refusal, chosen = result.stdout.strip().split("\n")
    assert refusal.startswith("Model-written programs cannot be isolated on this machine, so none was run.")
    assert "--unsafe-code" in refusal
    assert chosen == "none"


@pytest.mark.parametrize("value", [0, -1, float("nan"), float("inf")])
def test_a_limit_must_be_a_positive_number(value: float) -> None:
    with pytest.raises(OptionError, match="cpu_seconds"):
        Limits(cpu_seconds=value)
    with pytest.raises(OptionError, match="wall_seconds"):
        Limits(wall_seconds=value)


def test_an_unknown_backend_and_no_workers_are_refused() -> None:
    with pytest.raises(OptionError, match=r"docker.*bubblewrap"):
        SandboxOptions(backend="docker")
    with pytest.raises(OptionError, match="workers=0"):
        SandboxOptions(workers=0)


def test_no_more_sandboxes_than_processors_run_at_once() -> None:
    processors = len(os.sched_getaffinity(0))
    assert SandboxOptions(workers=1000).worker_count == processors
    assert SandboxOptions(workers=1).worker_count == 1
    assert SandboxOptions().worker_count == processors


def test_without_isolation_limits_still_hold() -> None:
    with Sandbox(Program("x = bytearray(8 << 30)"), Limits(cpu_seconds=1), "none") as sandbox:
        assert sandbox.run("").reason == "memory"
    with Sandbox(Program("while True:\n    pass"), Limits(cpu_seconds=1), "none") as sandbox:
        assert sandbox.run("").reason == "time"


def test_without_isolation_a_daemon_is_killed_and_the_scratch_folder_removed() -> None:
    source = (
        "import os, time\nprint(os.getcwd())\nread, write = os.pipe()\n"
        "if os.fork() == 0:\n    os.setsid()\n    if os.fork() == 0:\n"
        "        os.write(write, str(os.getpid()).encode())\n        os.close(write)\n        time.sleep(600)\n"
        "    os._exit(0)\n"
        "print(os.read(read, 20).decode())\nopen('left', 'w').close()\n"
    )
    with Sandbox(Program(source), Limits(cpu_seconds=5), "none") as sandbox:
        folder, daemon = sandbox.run("").output.decode().split()
        assert Path(folder, "left").exists()
        assert not Path("/proc", daemon).exists()
    assert not Path(folder).exists()


def test_without_isolation_the_callers_environment_is_not_handed_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-very-secret")
    with Sandbox(Program("import os\nprint(dict(os.environ))"), Limits(), "none") as sandbox:
        assert b"very-secret" not in sandbox.run("").output


def test_a_sandbox_that_cannot_be_started_says_what_the_system_said() -> None:
    with pytest.raises(SandboxError, match=r"sandbox \(bubblewrap\).*No such file"):
        Sandbox(Program(""), Limits(), "bubblewrap", "/nowhere/bwrap")


def test_frames_arrive_as_they_were_sent_and_too_long_ones_are_refused() -> None:
    read, write = os.pipe()
    os.write(write, encode_frame(b"one") + encode_frame(b"") + encode_frame(b"x" * 100) + b"\0\0")
    os.close(write)

    def receive(count: int) -> bytes:
        return os.read(read, min(count, 2))

    assert read_frame(receive) == b"one"
    assert read_frame(receive) == b""
    with pytest.raises(ValueError, match="100 bytes"):
        read_frame(receive, limit=99)
    os.close(read)
    read, write = os.pipe()
    os.write(write, encode_frame(b"cut off")[:-1])
    os.close(write)
    assert read_frame(receive) is None
    os.close(read)


def test_closing_a_sandbox_does_not_wait_for_its_program() -> None:
    began = time.monotonic()
    with Sandbox(
        Program("print(1)"), Limits(cpu_seconds=600), choose_backend(SandboxOptions()), isolation.bubblewrap_path()
    ):
        pass
    assert time.monotonic() - began < 60

"""A server as a child process, with a tiny real one."""

from __future__ import annotations

import os
import signal
import socket
import sys
import time
from pathlib import Path

import pytest
import requests

from runs.serving.commands import ServerCommand, count_gpus, cpu_command, find_vllm_python, gpu_command
from runs.serving.process import ServerProcess, check_port
from signatures.errors import ModelError, OptionError
from tests.runs.world import wait_until

SERVER = """
import http.server, os, signal, subprocess, sys, time
print("starting with", os.environ.get("FLAVOUR"), flush=True)
if "stubborn" in sys.argv:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
open(sys.argv[2], "w").write(str(child.pid))
if "dies" in sys.argv:
    child.kill()
    print("no memory left", flush=True)
    sys.exit(7)
if "never" in sys.argv:
    time.sleep(600)

class Handler(http.server.BaseHTTPRequestHandler):
    asked = 0
    def do_GET(self):
        Handler.asked += 1
        self.send_response(503 if Handler.asked == 1 and self.path == "/health" else 200)
        self.end_headers()
    def log_message(self, *a): pass

http.server.HTTPServer(("127.0.0.1", int(sys.argv[1])), Handler).serve_forever()
"""


def port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


@pytest.fixture
def tiny(tmp_path):
    started: list[ServerProcess] = []

    def make(*words: str) -> ServerProcess:
        number = port()
        command = ServerCommand(
            [sys.executable, "-c", SERVER, str(number), str(tmp_path / "child"), *words],
            {"FLAVOUR": "vanilla"},
            f"http://127.0.0.1:{number}/v1",
        )
        started.append(ServerProcess(command, tmp_path / "logs" / "server.log"))
        return started[-1]

    yield make
    for server in started:
        server.kill()


def child_gone(folder: Path) -> bool:
    pid = (folder / "child").read_text()
    stat = Path(f"/proc/{pid}/stat")
    # A killed orphan may wait as a zombie for somebody to collect it.
    return not stat.exists() or stat.read_text().rsplit(")", 1)[1].split()[0] == "Z"


def test_a_server_is_started_waited_for_and_stopped_with_its_children(tiny, tmp_path) -> None:
    waits: list[float] = []
    with tiny() as server:
        took = server.wait_ready(30, waits.append)
        assert 0 < took < 30
        assert waits
        assert requests.get(server.command.base_url, timeout=5).status_code == 200
        assert server.tail() == "starting with vanilla"
    with pytest.raises(requests.ConnectionError):
        requests.get(server.command.base_url, timeout=5)
    wait_until(lambda: child_gone(tmp_path), 10)
    server.stop()
    assert server.wait() == 0


def test_a_server_that_dies_while_starting_is_told_with_the_end_of_its_log(tiny) -> None:
    with (
        tiny("dies") as server,
        pytest.raises(ModelError, match=r"ended while starting. End of .*server\.log:\n(.|\n)*no memory left"),
    ):
        server.wait_ready(30)


def test_a_server_that_never_gets_ready_is_given_up(tiny, tmp_path) -> None:
    with tiny("never") as server:
        wait_until(lambda: (tmp_path / "child").exists(), 30)
        with pytest.raises(ModelError, match="was not ready after 1 s"):
            server.wait_ready(1)
    wait_until(lambda: child_gone(tmp_path), 10)


def test_a_server_that_ignores_the_request_to_stop_is_killed(tiny, tmp_path) -> None:
    server = tiny("stubborn")
    server.start()
    server.wait_ready(30)
    began = time.monotonic()
    server.stop(grace=0.5)
    assert 0.4 < time.monotonic() - began < 10
    wait_until(lambda: child_gone(tmp_path), 10)


def test_a_killed_server_is_gone_at_once_and_one_that_never_ran_is_no_trouble(tiny, tmp_path) -> None:
    server = tiny()
    assert (server.tail(), server.wait()) == ("", 0)
    server.stop()
    server.kill()
    with pytest.raises(ModelError, match="ended while starting"):
        server.wait_ready(1)
    server.start()
    server.wait_ready(30)
    server.kill()
    with pytest.raises(requests.ConnectionError):
        requests.get(server.command.base_url, timeout=5)
    wait_until(lambda: child_gone(tmp_path), 10)


def test_a_server_that_ends_by_itself_is_noticed(tiny) -> None:
    server = tiny()
    server.start()
    server.wait_ready(30)
    assert server._process is not None
    os.kill(server._process.pid, signal.SIGTERM)
    assert server.wait() == -signal.SIGTERM


def executable(path: Path, script: str) -> str:
    path.write_text("#!/bin/sh\n" + script)
    path.chmod(0o755)
    return str(path)


@pytest.mark.parametrize(
    ("script", "expected"),
    [
        ("echo 'GPU 0: H100'; echo 'GPU 1: H100'; echo '  MIG 1g'\n", 2),
        ("echo 'GPU 0: H100'; exit 9\n", 0),
        (None, 0),
    ],
)
def test_gpus_are_counted_by_the_drivers_own_tool(tmp_path, monkeypatch, script, expected) -> None:
    if script is not None:
        executable(tmp_path / "nvidia-smi", script)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert count_gpus() == expected


def test_a_gpu_command_needs_a_gpu_and_vllm(tmp_path, monkeypatch) -> None:
    with pytest.raises(ModelError, match=r"No NVIDIA GPU was found.*--model local"):
        gpu_command("Qwen/QwQ-32B", 0, "127.0.0.1", 8000)
    (tmp_path / "vllm.py").write_text("")
    monkeypatch.syspath_prepend(tmp_path)
    for gpus, parallel in ((1, "1"), (2, "2"), (3, "2"), (8, "8")):
        command = gpu_command("Qwen/QwQ-32B", gpus, "0.0.0.0", 8001, 4_096)
        text = " ".join(command.arguments)
        assert (
            f"serve Qwen/QwQ-32B --host 0.0.0.0 --port 8001 --tensor-parallel-size {parallel} --max-model-len 4096"
            in text
        )
        assert "--reasoning-parser" not in text


def test_the_cpu_command_binds_the_cores_and_names_the_model(tmp_path) -> None:
    command = cpu_command("/env/python", tmp_path, "Small", "127.0.0.1", 8002, 4)
    assert command.arguments[:4] == ["/env/python", "-m", "runs.serving.vllm_cpu", "serve"]
    bound = command.environment["VLLM_CPU_OMP_THREADS_BIND"].split(",")
    assert {int(core) for core in bound} <= os.sched_getaffinity(0)
    assert 1 <= len(bound) <= 4
    assert len(cpu_command("p", tmp_path, "Small", "h", 1, 1).environment["VLLM_CPU_OMP_THREADS_BIND"].split(",")) == 1
    assert command.base_url == "http://127.0.0.1:8002/v1"


def test_a_python_with_vllm_is_looked_for_where_it_may_be(tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("SEARCH_O1_VLLM_PYTHON", raising=False)
    good, bad = executable(tmp_path / "good", "exit 0\n"), executable(tmp_path / "bad", "exit 1\n")
    with pytest.raises(ModelError, match=r"needs an environment of its own. Make one: python -m venv \.venv-vllm"):
        find_vllm_python()
    assert find_vllm_python(good) == good
    with pytest.raises(ModelError, match="bad has no vllm-cpu"):
        find_vllm_python(bad)
    with pytest.raises(ModelError, match=r"There is no Python at .*missing"):
        find_vllm_python(str(tmp_path / "missing"))
    (tmp_path / "text").write_text("no program")
    with pytest.raises(ModelError, match="text has no vllm-cpu"):
        find_vllm_python(str(tmp_path / "text"))
    monkeypatch.setenv("SEARCH_O1_VLLM_PYTHON", good)
    assert find_vllm_python() == good
    monkeypatch.delenv("SEARCH_O1_VLLM_PYTHON")
    (tmp_path / ".venv-vllm" / "bin").mkdir(parents=True)
    executable(tmp_path / ".venv-vllm" / "bin" / "python", "exit 0\n")
    assert find_vllm_python() == str(tmp_path / ".venv-vllm" / "bin" / "python")


def test_a_port_in_use_is_told_before_a_server_is_started() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(OptionError, match=f"--port {port} cannot be used .*--port {port + 1}"):
            check_port("127.0.0.1", port)
    check_port("127.0.0.1", port)

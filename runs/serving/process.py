"""A model server as a child process: started, waited for, stopped with everything it started."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Self

import requests

from runs.serving.commands import ServerCommand
from signatures.errors import ModelError, OptionError


def check_port(host: str, port: int) -> None:
    """Make sure that a port is free, before a server takes half a minute to find out.

    Args:
        host: Address to listen on.
        port: Its port.

    Raises:
        OptionError: Something listens there already, or the address is none of this machine's.
    """
    try:
        with socket.create_server((host, port)):
            pass
    except OSError as error:
        raise OptionError(
            f"--host {host} --port {port} cannot be used ({error.strerror or error}); choose another, for example "
            f"--port {port + 1 if port < 65_535 else port - 1}."
        ) from error


class ServerProcess:
    """Runs a server command; use it as a context manager.

    Args:
        command: What to run.
        log: File that gets its output.
    """

    def __init__(self, command: ServerCommand, log: Path) -> None:
        self.command = command
        self.log = log
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start the server; its output goes to the log."""
        self.log.parent.mkdir(parents=True, exist_ok=True)
        with self.log.open("ab") as output:
            self._process = subprocess.Popen(
                self.command.arguments,
                stdout=output,
                stderr=subprocess.STDOUT,
                stdin=subprocess.DEVNULL,
                env={**os.environ, **self.command.environment},
                start_new_session=True,
            )

    def wait_ready(self, seconds: float = 900.0, on_wait: Callable[[float], None] | None = None) -> float:
        """Wait until the server answers.

        Args:
            seconds: Longest wait.
            on_wait: Called about once a second with the seconds waited.

        Returns:
            Seconds it took.

        Raises:
            ModelError: It died or did not get ready; the text holds the end of its log.
        """
        started = time.monotonic()
        health = self.command.base_url.removesuffix("/v1") + "/health"
        while (waited := time.monotonic() - started) < seconds:
            if self._process is None or self._process.poll() is not None:
                raise ModelError(f"The server ended while starting. End of {self.log}:\n{self.tail()}")
            try:
                if requests.get(health, timeout=5).status_code == 200:
                    return waited
            except requests.RequestException:
                pass
            if on_wait is not None:
                on_wait(waited)
            time.sleep(1.0)
        raise ModelError(f"The server was not ready after {seconds:.0f} s. End of {self.log}:\n{self.tail()}")

    def wait(self) -> int:
        """Wait for the server to end and return its exit status."""
        return self._process.wait() if self._process is not None else 0

    def stop(self, grace: float = 20.0) -> None:
        """Ask the server to stop, and kill its whole process group if it does not."""
        process = self._process
        if process is None:
            return
        if process.poll() is None:
            process.terminate()
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(grace)
        self._kill_group(process)
        self._process = None

    def kill(self) -> None:
        """Kill the server and everything it started at once, as a crash would."""
        if self._process is not None:
            self._kill_group(self._process)
            self._process.wait()
            self._process = None

    def tail(self, lines: int = 15) -> str:
        """Return the last lines of the log."""
        if not self.log.is_file():
            return ""
        return "\n".join(self.log.read_text(errors="replace").splitlines()[-lines:])

    def _kill_group(self, process: subprocess.Popen[bytes]) -> None:
        try:
            os.killpg(process.pid, signal.SIGKILL)
        except ProcessLookupError:
            return

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

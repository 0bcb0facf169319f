"""A small world for runs: invented films as questions, corpus and scripted model, and the command line."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import click
from click.testing import CliRunner, Result

from runs.cli import main
from runs.evaluation import Evaluation, evaluate
from runs.home import Home
from tests.servers.lm import LMServer, searching_model

PLACES = ("Arden", "Bergen", "Calder", "Dunmore", "Elster", "Farrow", "Galway", "Hadley")


def facts(count: int = 8) -> dict[str, str]:
    """Return films and their directors; no name is part of another."""
    return {f"Sunrise over {PLACES[i % 8]} {i:02d}": f"Director {PLACES[i % 8]} {i:02d}" for i in range(count)}


def model(count: int = 8) -> Any:
    """Return the reply function of a model that searches for these films."""
    return searching_model(facts(count))


def write_lines(path: Path, rows: Iterable[Any]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows), encoding="utf-8")
    return path


def questions_file(folder: Path, count: int = 8) -> Path:
    rows = [
        {
            "id": f"q{i}",
            "question": f"Who directed {film}?",
            "answers": [director],
            "gold_titles": [film],
            "type": "single" if i % 2 else "bridge",
        }
        for i, (film, director) in enumerate(facts(count).items())
    ]
    return write_lines(folder / "films.jsonl", rows)


def corpus_file(folder: Path, count: int = 8) -> Path:
    rows = [
        {"id": f"d{i}", "title": film, "text": f"{film} is a film. It was directed by {director} in a cold winter."}
        for i, (film, director) in enumerate(facts(count).items())
    ]
    return write_lines(folder / "library.jsonl", rows)


class Films:
    """A home folder with questions and corpus, and the settings of an evaluation against a scripted server."""

    def __init__(self, folder: Path, server: LMServer, count: int = 8) -> None:
        self.folder = folder
        self.server = server
        self.home = Home(folder / "home")
        self.data = questions_file(folder, count)
        self.corpus = corpus_file(folder, count)

    def settings(self, **changes: Any) -> dict[str, Any]:
        return {
            "data": self.data,
            "corpus": self.corpus,
            "model": f"hosted_vllm/{self.server.model}",
            "base_url": self.server.base_url,
            "methods": ("search_o1",),
            "track": False,
            "progress": False,
            **changes,
        }

    def run(self, **changes: Any) -> list[Evaluation]:
        return evaluate("films", home=self.home, **self.settings(**changes))

    def run_one(self, **changes: Any) -> Evaluation:
        (done,) = self.run(**changes)
        return done

    def arguments(self, *more: str) -> list[str]:
        """Return the command line of the same evaluation."""
        return [
            "evaluate", "films", "--data", str(self.data), "--corpus", str(self.corpus),
            "--model", f"hosted_vllm/{self.server.model}", "--base-url", self.server.base_url, *more,
        ]  # fmt: skip

    def journal(self) -> Path:
        (found,) = self.home.runs.glob("*/journal.jsonl")
        return found

    def start(self, *more: str) -> subprocess.Popen[str]:
        """Start the command in a process of its own."""
        return start_command(*self.arguments(*more), home=self.home.root)


def start_command(*arguments: str, home: Path, **environment: str) -> subprocess.Popen[str]:
    code = "from runs.cli import main; main()"
    return subprocess.Popen(
        [sys.executable, "-c", code, *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=Path(__file__).parents[2],
        env={**os.environ, "SEARCH_O1_HOME": str(home), **environment},
        # A shell that runs the tests in the background makes its children ignore Ctrl-C, which a terminal does not.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )


def wait_until(ready: Callable[[], bool], seconds: float = 60.0) -> None:
    deadline = time.monotonic() + seconds
    while not ready():
        assert time.monotonic() < deadline, "it did not happen in time"
        time.sleep(0.05)


def interrupt(process: subprocess.Popen[str]) -> float:
    """Press Ctrl-C and return the seconds until the process has ended."""
    began = time.monotonic()
    process.send_signal(signal.SIGINT)
    process.wait(60)
    return time.monotonic() - began


def command(*arguments: str, home: Path | None = None, verb: click.Command = main, **environment: str | None) -> Result:
    """Run a command line in this process; anything but an exit is raised."""
    given = {**({"SEARCH_O1_HOME": str(home)} if home else {}), **environment}
    result = CliRunner().invoke(verb, list(arguments), env=given)
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result


def read_records(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]

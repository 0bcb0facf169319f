"""A small world for optimisations: films to learn from and to choose by, and a model that only works when shown how."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from rich.console import Console

from runs.optimizing.optimize import optimize
from runs.optimizing.result import Optimised
from tests.runs.world import Films, facts, write_lines
from tests.servers.lm import LMServer, searching_model

ANSWER_START = "<|im_start|>assistant"
GENERATIONS = "/v1/completions"
TRAIN, VAL = 6, 6


def is_refinement(prompt: str) -> bool:
    """Say whether a prompt's last message asks for Reason-in-Documents."""
    return "**Searched Web Pages:**" in prompt.rpartition("<|im_start|>user")[2]


def shows_a_chain(prompt: str) -> bool:
    """Say whether a prompt shows a worked example before its question."""
    return prompt.count(ANSWER_START) > 1


def model_that_must_be_shown(count: int = TRAIN + VAL) -> Callable[[str, dict[str, Any]], str]:
    """Return a model that searches only when its prompt shows a worked chain."""
    knowing = searching_model(facts(count))

    def reply(prompt: str, body: dict[str, Any]) -> str:
        if is_refinement(prompt) or shows_a_chain(prompt):
            answer = knowing(prompt, body)
            assert isinstance(answer, str)
            return answer
        return "I do not know that.\n\n\\boxed{unknown}"

    return reply


class Workshop:
    """A home folder, questions, corpus and the settings of an optimisation against a scripted server."""

    def __init__(self, folder: Path, server: LMServer) -> None:
        self.folder = folder
        self.server = server
        self.films = Films(folder, server, TRAIN + VAL)
        self.home = self.films.home
        rows = [json.loads(line) for line in self.films.data.read_text(encoding="utf-8").splitlines()]
        self.train = write_lines(folder / "train.jsonl", rows[:TRAIN])
        self.val = write_lines(folder / "val.jsonl", rows[TRAIN:])

    def settings(self, **changes: Any) -> dict[str, Any]:
        return {
            "train": self.train,
            "val": self.val,
            "corpus": self.films.corpus,
            "model": f"hosted_vllm/{self.server.model}",
            "base_url": self.server.base_url,
            "optimizer": "random-search",
            "budget": 2,
            "concurrency": 4,
            "track": False,
            "progress": False,
            **changes,
        }

    def optimize(self, console: Console | None = None, **changes: Any) -> Optimised:
        return optimize("films", home=self.home, console=console, **self.settings(**changes))

    def arguments(self, *more: str) -> list[str]:
        return [
            "films", "--train", str(self.train), "--val", str(self.val), "--corpus", str(self.films.corpus), "--model",
            f"hosted_vllm/{self.server.model}", "--base-url", self.server.base_url, "--optimizer", "random-search",
            "--budget", "2", "--concurrency", "2", *more,
        ]  # fmt: skip

    def start(self, *more: str, track: bool = False) -> subprocess.Popen[str]:
        """Start the command in a process of its own."""
        code = "from runs.cli.optimize import command; command()"
        return subprocess.Popen(
            [sys.executable, "-c", code, *self.arguments(*more, *([] if track else ["--no-track"]))],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            cwd=Path(__file__).parents[3],
            env={**os.environ, "SEARCH_O1_HOME": str(self.home.root)},
            # A shell that runs the tests in the background makes its children ignore Ctrl-C.
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
        )

    def generations(self) -> int:
        return self.server.counts[GENERATIONS]

    def ledger_lines(self) -> int:
        return sum(path.read_bytes().count(b"\n") for path in self.home.root.glob("optimizations/*/ledger.jsonl"))

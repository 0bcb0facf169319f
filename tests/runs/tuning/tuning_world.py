"""A small world for tuning: a scripted model that is right only where the options are."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from rich.console import Console

from runs.tuning.results import Tuned
from runs.tuning.tune import tune
from tests.runs.world import Films, corpus_file, facts, start_command, write_lines
from tests.servers.lm import LMServer

QUESTIONS = 8
PARAMS = {"top_k": "1:6", "context_chars": "500:2000:step=500"}


def reading_model(needed: int = 3, count: int = QUESTIONS) -> Any:
    """Return a model that is right only if so many documents stand in its prompt."""
    known = facts(count)

    def reply(prompt: str, _: dict[str, Any]) -> str:
        film = next(film for film in known if f"Who directed {film}?" in prompt)
        return f"\\boxed{{{known[film] if f'**Document {needed}:**' in prompt else 'nobody'}}}"

    return reply


class Tunings(Films):
    """Films with a validation split of their own, tuned with standard RAG: one model call a question."""

    def __init__(self, folder: Path, server: LMServer, count: int = QUESTIONS) -> None:
        super().__init__(folder, server, count)
        rows = [
            {"id": f"q{i}", "question": f"Who directed {film}?", "answers": [director], "split": "validation"}
            for i, (film, director) in enumerate(facts(count).items())
        ]
        self.data = write_lines(folder / "films.jsonl", rows)
        # More documents than any trial reads.
        self.corpus = corpus_file(folder, max(count, 8))

    def settings(self, **changes: Any) -> dict[str, Any]:
        rest = {name: value for name, value in super().settings().items() if name != "methods"}
        return {
            **rest, "method": "standard_rag", "program": "none", "params": PARAMS, "trials": 6, "report_every": 2,
            "warmup": 2, **changes,
        }  # fmt: skip

    def tune(self, console: Console | None = None, **changes: Any) -> Tuned:
        return tune("films", home=self.home, console=console, **self.settings(**changes))

    def tune_arguments(self, *more: str, track: bool = False) -> list[str]:
        """Return the command line of the same tuning."""
        params = [part for name, spec in PARAMS.items() for part in ("--param", f"{name}={spec}")]
        return [
            "tune", "films", "--data", str(self.data), "--corpus", str(self.corpus), "--method", "standard_rag",
            "--program", "none", "--model", f"hosted_vllm/{self.server.model}", "--base-url", self.server.base_url,
            "--report-every", "2", "--warmup", "2", *params, *(() if track else ("--no-track",)), *more,
        ]  # fmt: skip

    def start_tuning(self, *more: str, track: bool = False) -> Any:
        """Start the command in a process of its own."""
        return start_command(*self.tune_arguments(*more, track=track), home=self.home.root)


def tried(tuned: Tuned) -> list[dict[str, Any]]:
    """Return the values of the trials that ended in order, without those that were tried again."""
    return [t.values for t in tuned.trials if t.state != "failed"]

"""The command that a tuning ends with: it evaluates what was tuned, with the same model and knowledge."""

from __future__ import annotations

import io
import shlex
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from runs.settings import EvaluateSettings
from runs.tuning.printing import print_result
from runs.tuning.results import TrialResult, Tuned
from runs.tuning.settings import TuneSettings
from runs.tuning.space import flags_of
from tests.runs.evaluate_command import settings_of

GIVEN: dict[str, Any] = {
    "model": "hosted_vllm/QwQ", "base_url": "http://gpu:8000/v1", "revision": "r 2", "context_length": 8192,
    "search": "serper", "search_options": {"gl": "us"}, "reader": "web,jina",
    "reader_options": {"jina.requests_per_minute": 200}, "allow_private": True, "cached": False,
    "block_benchmark_hosts": True, "embeddings_url": "http://gpu:8001/v1", "seed": 3, "paper": True,
    "unsafe_code": True,
}  # fmt: skip


def printed(settings: TuneSettings, values: dict[str, Any], benchmark: str = "films") -> str:
    best = TrialResult(0, "complete", values, {"score": 0.5, "tokens": 1.0})
    flags = shlex.join(flags_of(values, settings.options))
    tuned = Tuned("study", Path("tuning/study"), ("score",), [best], best, [best], {}, flags)
    text = io.StringIO()
    print_result(Console(file=text, width=200), tuned, settings, benchmark, leaked=0)
    return text.getvalue()


def arguments(text: str) -> list[str]:
    """Return the arguments of the command that was printed."""
    (line,) = [line for line in text.splitlines() if line.startswith("  search-o1 evaluate ")]
    return shlex.split(line)[2:]


def test_evaluate_reads_from_the_printed_command_what_was_tuned_with() -> None:
    settings = TuneSettings(
        benchmark="films", method="rag_agent", program="mine", options={"language": "en", "force_answer": True}, **GIVEN
    )
    assert settings_of(arguments(printed(settings, {"top_k": 3, "temperature": 0.5}))) == EvaluateSettings(
        benchmark="films", methods=("rag_agent",), program="mine", temperature=0.5,
        options={"language": "en", "force_answer": True, "top_k": 3}, **GIVEN,
    )  # fmt: skip


def test_method_and_program_of_the_best_trial_stand_there_once() -> None:
    settings = TuneSettings(benchmark="films", method="rag_agent", program="mine", data=Path("validation.jsonl"))
    found = arguments(printed(settings, {"method": "direct", "program": "my other one.json"}))
    assert (found.count("--method"), found.count("--program")) == (1, 1)
    assert settings_of(found) == EvaluateSettings(
        benchmark="films", methods=("direct",), program="my other one.json", data=Path("OTHER_QUESTIONS.jsonl")
    )


def test_a_text_that_looks_like_a_number_stays_a_text() -> None:
    settings = TuneSettings(benchmark="films", options={"language": "5"})
    assert settings_of(arguments(printed(settings, {"top_k": 3}))).options == {"language": "5", "top_k": 3}


@pytest.mark.parametrize(
    "changes",
    [
        {"base_url": "http://me:topsecret@gpu:8000/v1"},
        {"tracking_uri": "http://me:topsecret@127.0.0.1:9"},
        {"search": "brave", "search_options": {"key": "topsecret"}},
    ],
    ids=str,
)
def test_no_secret_is_printed(changes: dict[str, Any]) -> None:
    text = printed(TuneSettings(benchmark="films", **changes), {"top_k": 3})
    assert "topsecret" not in text
    assert "***" in text


def test_a_profile_which_no_flag_can_give_is_pointed_out() -> None:
    text = printed(TuneSettings(benchmark="films", profile={"context_length": 4096}), {"top_k": 3})
    assert "No flag gives profile={'context_length': 4096}" in text
    assert "No flag" not in printed(TuneSettings(benchmark="films"), {"top_k": 3})

"""A compiled program asked by itself: whatever questions come in, and settings from parameters or the environment."""

from __future__ import annotations

import pandas as pd
import pytest

from runs.loaded_program import LoadedProgram, chosen_settings, rows_of
from signatures.errors import OptionError
from tests.runs.optimizing.tracked_world import compiled
from tests.runs.world import Films, model
from tests.servers.lm import LMServer

FIRST, SECOND = "Who directed Sunrise over Arden 00?", "Who directed Sunrise over Bergen 01?"


@pytest.fixture
def asked(tmp_path, monkeypatch):
    """A program of `search_o1`, the settings that lead to a scripted model, and that model's server."""
    monkeypatch.setenv("SEARCH_O1_HOME", str(tmp_path / "home"))
    with LMServer(model(3)) as server:
        films = Films(tmp_path, server, 3)
        given = {"model": f"hosted_vllm/{server.model}", "base_url": server.base_url, "corpus": str(films.corpus)}
        yield LoadedProgram(compiled(tmp_path).path), given, server


@pytest.mark.parametrize(
    ("given", "rows"),
    [
        ("Who?", ["Who?"]),
        (["Who?", {"question": "What?"}], ["Who?", {"question": "What?"}]),
        ({"question": "Who?"}, [{"question": "Who?"}]),
        ({"question": ["Who?", "What?"]}, [{"question": "Who?"}, {"question": "What?"}]),
        (pd.DataFrame({"question": ["Who?"]}), [{"question": "Who?"}]),
        ([], []),
    ],
)
def test_questions_come_in_many_shapes(given, rows) -> None:
    assert rows_of(given) == rows


def test_a_parameter_comes_before_the_environment_and_an_empty_one_counts_as_none(monkeypatch) -> None:
    monkeypatch.setenv("SEARCH_O1_MODEL", "local")
    monkeypatch.setenv("SEARCH_O1_INDEX", "mine")
    assert chosen_settings({"model": "hosted_vllm/QwQ", "index": "", "corpus": ""}) == {
        "model": "hosted_vllm/QwQ",
        "index": "mine",
    }


def test_the_same_question_twice_is_sampled_twice_and_asked_again_costs_nothing(asked) -> None:
    program, given, server = asked
    program.answer([FIRST, FIRST, SECOND], given)
    seeds = [call.body["seed"] for call in server.calls]
    assert len(set(seeds)) == len(seeds)
    calls = len(server.calls)
    program.answer([SECOND, FIRST], given)
    assert len(server.calls) == calls


def test_a_question_that_fails_does_not_take_the_others_with_it(asked) -> None:
    program, given, server = asked
    server.fail_next(1, status=400, body={"error": {"message": "Injected refusal"}})
    failed, right = program.answer([FIRST, SECOND], {**given, "concurrency": "1"})
    assert (failed["finish"], failed["answer"], "Injected refusal" in failed["error"]) == ("error", "", True)
    assert (right["finish"], right["answer"], right["error"]) == ("answered", "Director Bergen 01", "")


@pytest.mark.parametrize(
    ("questions", "changes", "told"),
    [
        ([FIRST, " "], {}, "Input 2 holds no question"),
        ([3.5], {}, "Input 1 holds no question; give texts, or rows with a column `question`"),
        ([{"query": FIRST}], {}, "Input 1 holds no question"),
        ([FIRST], {"concurrency": "0"}, "concurrency = '0': give a whole number of 1 or more"),
        ([FIRST], {"options": "[3]"}, r"options = '\[3\]': give a JSON object"),
        ([FIRST], {"options": '{"topk": 3}'}, "Unknown option 'topk'"),
    ],
)
def test_what_cannot_be_asked_is_refused_before_anything_is_paid_for(asked, questions, changes, told) -> None:
    program, given, server = asked
    with pytest.raises(OptionError, match=told):
        program.answer(questions, {**given, **changes})
    assert not server.calls

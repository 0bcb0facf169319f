"""`search-o1 tune` as it is typed."""

from __future__ import annotations

import json

import pytest

from tests.runs.tuning.tuning_world import Tunings, reading_model
from tests.runs.world import command
from tests.servers.lm import LMServer


@pytest.fixture
def world(tmp_path):
    with LMServer(reading_model()) as server:
        yield Tunings(tmp_path, server)


def test_tune_prints_each_trial_the_best_options_and_the_command_that_checks_them(world) -> None:
    arguments = world.tune_arguments("--trials", "3", "--temperature", "0.5", "--set", "max_searches=2")
    done = command(*arguments, home=world.home.root)
    assert done.exit_code == 0, done.output
    (best,) = world.home.root.glob("tuning/films-standard_rag-qwq-32b-*/best.json")
    kept = json.loads(best.read_text())
    assert kept["options"]["max_searches"] == 2
    assert kept["temperature"] == 0.5
    text = done.output
    assert "Tuning context_chars=500:2000:step=500, top_k=1:6 on 8 questions a trial." in text
    assert "trial 2: " in text
    assert f"Best options: {kept['flags']}" in text
    assert f"--temperature 0.5 --program none --method standard_rag {kept['flags']}" in text
    assert "3 trials, 0 of them pruned" in text
    again = command(*arguments, home=world.home.root)
    assert "has its 3 trials" in again.output


@pytest.mark.parametrize(
    ("more", "told"),
    [
        (("--param", "top_n=1:5"), "Unknown parameter 'top_n'; known: "),
        (("--param", "top_k=1:5"), "--param top_k is given twice"),
        (("--param", "max_searches"), "expected NAME=RANGE, for example --param top_k=1:20"),
        (("--param", "max_searches=9:1"), "the range is empty"),
        (("--set", "top_k=3"), "top_k is given by --param and by --set"),
        (("--objective", "tokens"), "begin with score"),
        (("--pruner", "random"), "Invalid value for '--pruner'"),
        (("--study", "a/b"), "Option study = 'a/b'"),
    ],
)
def test_bad_input_ends_with_2_and_says_what_is_allowed(world, more, told) -> None:
    done = command(*world.tune_arguments(*more), home=world.home.root)
    assert done.exit_code == 2
    assert told in done.output
    assert not world.server.calls


def test_test_rows_are_refused_on_the_command_line_too(world) -> None:
    world.data.write_text(world.data.read_text().replace('"validation"', '"test"'))
    done = command(*world.tune_arguments("--trials", "1"), home=world.home.root)
    assert (done.exit_code, "8 of 8 questions to tune on are test rows" in done.output) == (2, True)
    known = command(*world.tune_arguments("--trials", "1", "--i-know"), home=world.home.root)
    assert (known.exit_code, "Tuning on 8 test rows (--i-know)" in known.output) == (0, True)

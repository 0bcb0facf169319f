"""`search-o1 optimize` on the command line."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from runs.cli.optimize import command as verb
from signatures.errors import OptionError
from tests.runs.optimizing.optimize_world import Workshop, model_that_must_be_shown
from tests.runs.world import command
from tests.servers.lm import LMServer


@pytest.fixture
def here(tmp_path: Path) -> Iterator[Workshop]:
    with LMServer(model_that_must_be_shown()) as server:
        yield Workshop(tmp_path, server)


def test_it_ends_with_scores_cost_file_and_the_command_to_use_it(here) -> None:
    result = command(
        *here.arguments("--set", "top_k=3", "--output", "mine", "--no-track"), home=here.home.root, verb=verb
    )
    assert result.exit_code == 0, result.output
    assert "6 validation questions, em (strict)" in result.output
    for part in ("before", "after", "difference", "McNemar p", "model calls", "mine.json", "--program mine"):
        assert part in result.output
    assert (here.home.programs / "mine.json").is_file()


def test_the_benchmark_may_be_given_as_an_option_too(here) -> None:
    arguments = here.arguments("--no-track")
    given = command("--benchmark", *arguments, home=here.home.root, verb=verb)
    assert given.exit_code == 0, given.output
    with pytest.raises(OptionError, match="Two benchmarks are named, 'films' and 'other'"):
        command(*arguments, "--benchmark", "other", home=here.home.root, verb=verb)


def test_help_names_every_optimizer(here) -> None:
    shown = command("--help", verb=verb).output
    for name in ("bootstrap", "random-search", "copro", "miprov2", "gepa", "simba", "--i-know", "--reflection"):
        assert name in shown

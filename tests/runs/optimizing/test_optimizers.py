"""Every optimizer, end to end against a server that rewards one thing."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from programs.registry import PROGRAMS
from runs.optimizing.optimizers import OPTIMIZERS, find_optimizer
from signatures.errors import ModelError, OptionError
from tests.runs.optimizing.optimizer_world import FILMS, MAGIC, Rewarding, generations, run
from tests.runs.world import Films

MakeFilms = Callable[..., Films]


@pytest.mark.parametrize("optimizer", ["labeled", "bootstrap", "random-search", "miprov2"])
def test_demos_win_where_worked_chains_are_rewarded(films: MakeFilms, optimizer: str) -> None:
    world = films(10, Rewarding("demo"))
    done = run(world, optimizer=optimizer)
    assert (done.before.mean, done.after.mean) == (0.0, 1.0)
    shown = [demo["question"] for demo in done.program.reason.demos]
    assert any(film in question for film in FILMS for question in shown)
    assert all(
        "\\boxed{Director" in d["reasoning"] for d in done.program.reason.demos if "Who directed" in d["question"]
    )


@pytest.mark.parametrize("optimizer", ["labeled", "bootstrap", "random-search"])
def test_bootstrapped_demos_land_on_both_predictors(films: MakeFilms, optimizer: str) -> None:
    done = run(films(10, Rewarding("demo")), optimizer=optimizer)
    refined = [demo["final_information"] for demo in done.program.refine.demos]
    assert any("Director" in text for text in refined)
    assert all(len(demo["document"]) <= 2_000 for demo in done.program.refine.demos)


@pytest.mark.parametrize("optimizer", ["copro", "gepa", "miprov2"])
def test_an_instruction_wins_where_it_is_rewarded(films: MakeFilms, optimizer: str) -> None:
    model = Rewarding("instruction")
    done = run(films(10, model), optimizer=optimizer, budget=6 if optimizer == "gepa" else 16)
    assert MAGIC in done.program.reason.signature.instructions
    assert (done.before.mean, done.after.mean) == (0.0, 1.0)
    assert model.proposals
    assert model.bad_calls == []


def test_a_rule_wins_where_samples_of_a_question_disagree(films: MakeFilms) -> None:
    model = Rewarding("advice")
    done = run(films(10, model), optimizer="simba", budget=6, seed=1)
    assert MAGIC in done.program.reason.signature.instructions
    assert (done.before.mean, done.after.mean) == (0.0, 1.0)
    assert model.proposals


def test_samples_differ_also_where_the_options_are_greedy(films: MakeFilms) -> None:
    greedy = {"sampling": {"temperature": 0.0}, "refine_sampling": {"temperature": 0.0}}
    model = Rewarding("advice")
    done = run(films(10, model), optimizer="simba", budget=6, seed=1, options=greedy)
    assert model.proposals
    assert done.after.mean == 1.0


@pytest.mark.parametrize("optimizer", OPTIMIZERS)
def test_a_second_start_asks_the_model_nothing(films: MakeFilms, optimizer: str) -> None:
    world = films(10, Rewarding("demo" if OPTIMIZERS[optimizer].makes_demos else "instruction"))
    first = run(world, optimizer=optimizer)
    asked = len(generations(world))
    second = run(world, optimizer=optimizer)
    assert asked
    assert generations(world)[asked:] == []
    assert second.program.dump_state() == first.program.dump_state()


@pytest.mark.parametrize("method", [method for method in PROGRAMS if method != "search_o1"])
@pytest.mark.parametrize("optimizer", OPTIMIZERS)
def test_every_optimizer_works_on_every_method(films: MakeFilms, optimizer: str, method: str) -> None:
    world = films(10, Rewarding("instruction", method))
    changes: dict[str, Any] = {"optimizer": optimizer, "method": method, "budget": 2}
    done = run(world, **changes)
    assert done.after.mean >= done.before.mean
    assert done.file.is_file()


def nonsense(prompt: str, body: dict[str, Any]) -> str:
    return "nonsense without fields" if "[[ ##" in prompt else "\\boxed{a guess}"


@pytest.mark.parametrize("optimizer", ["copro", "miprov2"])
def test_a_proposer_that_writes_nonsense_is_an_error_with_a_way_out(films: MakeFilms, optimizer: str) -> None:
    with pytest.raises(ModelError, match=rf"{optimizer} stopped \(.*name a stronger one with --reflection"):
        run(films(10, nonsense), optimizer=optimizer, budget=2)


@pytest.mark.parametrize("optimizer", ["gepa", "simba"])
def test_optimizers_that_go_on_without_a_proposal_keep_the_start(films: MakeFilms, optimizer: str) -> None:
    assert not run(films(10, nonsense), optimizer=optimizer, budget=2).improved


def test_what_optimizers_print_stays_out_of_sight(films: MakeFilms, capsys: pytest.CaptureFixture[str]) -> None:
    run(films(10, Rewarding("instruction")), optimizer="gepa", progress=True)
    shown = capsys.readouterr()
    assert "Average Metric" not in shown.out + shown.err


def test_only_one_predictor_is_improved_when_asked(films: MakeFilms) -> None:
    done = run(films(10, Rewarding("demo")), optimizer="bootstrap", only="reason")
    assert done.program.reason.demos
    assert done.program.refine.demos == []


def test_an_unknown_optimizer_lists_the_known_ones() -> None:
    with pytest.raises(OptionError, match="'adam'; known optimizers: labeled, bootstrap, random-search, copro"):
        find_optimizer("adam")

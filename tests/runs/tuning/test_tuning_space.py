"""Reading `--param`: what is searched, what it means for a trial, and what is refused before anything runs."""

from __future__ import annotations

import optuna
import pytest

from runs.tuning.parameter import KNOWN, Parameter, parse_parameter
from runs.tuning.settings import check_objective
from runs.tuning.space import Space, flags_of, setup_of
from signatures.errors import OptionError


@pytest.mark.parametrize(
    ("name", "spec", "written"),
    [
        ("top_k", "1:20", "1:20"),
        ("context_chars", " 500 : 6000 :step=500", "500:6000:step=500"),
        ("context_chars", "500:6000:step=1000", "500:5500:step=1000"),
        ("turn_tokens", "100:10000:log", "100:10000:log"),
        ("temperature", "0:1", "0:1"),
        ("temperature", "0.0:1.0:step=0.25", "0:1:step=0.25"),
        ("min_p", "0.001:0.2:log", "0.001:0.2:log"),
        ("top_k", "1,3, 10", "1,3,10"),
        ("force_answer", "true,false", "true,false"),
        ("max_turns", "none,5,10", "none,5,10"),
        ("language", "en,zh", "en,zh"),
        ("method", "search_o1,standard_rag", "search_o1,standard_rag"),
        ("program", "auto,none,models:/search-o1/champion", "auto,none,models:/search-o1/champion"),
        ("sampling.top_k", "1:50", "1:50"),
        ("refine_sampling.temperature", "0:1", "0:1"),
    ],
)
def test_ranges_and_choices_are_read(name, spec, written) -> None:
    assert parse_parameter(name, spec).spec == written


@pytest.mark.parametrize(
    ("name", "spec", "told"),
    [
        ("top_n", "1:5", "Unknown parameter 'top_n'; known: language, example, max_searches"),
        ("task", "math,code", "Unknown parameter 'task'"),
        ("seed", "1:5", "Unknown parameter 'seed'"),
        ("top_k", "20:1", "the range is empty, its lower end 20 is not below its upper end 1"),
        ("top_k", "5:5", "the range is empty"),
        ("temperature", "0:1:step=1e-320", "the step makes more than 1,000,000 values"),
        ("top_k", "0:5", "top_k = 0: Input should be greater than or equal to 1"),
        ("top_k", "1:500", "top_k = 500: Input should be less than or equal to 100"),
        ("top_k", "1:2.5", "'2.5' is no whole number"),
        ("top_k", "1:many", "'many' is no whole number"),
        ("top_k", "1:", "'' is no whole number"),
        ("top_k", "5", "one value is nothing to search"),
        ("top_k", "", "one value is nothing to search"),
        ("top_k", "1,3,3", "a choice stands there twice"),
        ("top_k", "1,3,500", "less than or equal to 100"),
        ("top_k", "1:9:step=0", "the step is above 0 and at most 8"),
        ("top_k", "1:9:step=20", "the step is above 0 and at most 8"),
        ("top_k", "1:9:linear", "'linear' is neither `log` nor `step=NUMBER`"),
        ("top_k", "1:9:log:step=2", "a log range begins above 0 and has no step"),
        ("max_searches", "0:9:log", "a log range begins above 0"),
        ("max_turns", "none:5", "a range goes from one number to another"),
        ("temperature", "0:3", "3 is out of bounds; it goes from 0 to 2"),
        ("temperature", "nan:1", "'nan' is no number"),
        ("top_p", "0:1", "0 is out of bounds; it goes above 0 to 1"),
        ("sampling.top_k", "0:5", "0 is below 1"),
        ("force_answer", "yes,no", "'yes' is neither true nor false"),
        ("force_answer", "0:1", "takes no range"),
        ("language", "en:zh", "takes no range"),
        ("language", "en,fr", "language = 'fr'"),
        ("method", "search_o1,search_o2", "unknown method 'search_o2'; known: direct"),
    ],
)
def test_bad_parameters_are_refused_by_name_with_the_way_out(name, spec, told) -> None:
    with pytest.raises(OptionError) as error:
        parse_parameter(name, spec)
    assert told in str(error.value)


@pytest.mark.parametrize(
    ("params", "fixed", "temperature", "told"),
    [
        ({}, {}, None, "Nothing to tune"),
        ({"top_k": "1:5"}, {"top_k": 3}, None, "top_k is given by --param and by --set"),
        ({"temperature": "0:1"}, {}, 0.5, "by --param and by --temperature"),
        ({"sampling.temperature": "0:1"}, {}, 0.5, "by --param and by --temperature"),
        ({"top_p": "0.1:1"}, {"sampling": {"top_p": 0.5}}, None, "top_p is given by --param and in --set sampling"),
        ({"top_p": "0.1:1", "sampling.top_p": "0.1:1"}, {}, None, "both set sampling.top_p"),
    ],
)
def test_what_is_set_twice_is_refused(params, fixed, temperature, told) -> None:
    with pytest.raises(OptionError, match=told):
        Space(params, fixed, temperature)


@pytest.mark.parametrize("objective", [(), ("tokens",), ("score", "score"), ("score", "speed")])
def test_objectives_begin_with_the_score_and_are_known(objective) -> None:
    with pytest.raises(OptionError, match=r"Objective|known: score, tokens, latency, cost"):
        check_objective(objective)


def test_values_become_method_program_and_options() -> None:
    values = {"top_k": 3, "temperature": 0.5, "sampling.top_k": 20, "method": "direct", "program": "none"}
    setup = setup_of(values, "search_o1", "auto", {"max_searches": 2, "sampling": {"min_p": 0.1}})
    assert (setup.method, setup.program) == ("direct", "none")
    assert setup.options == {
        "max_searches": 2,
        "sampling": {"min_p": 0.1, "temperature": 0.5, "top_k": 20},
        "refine_sampling": {"temperature": 0.5},
        "top_k": 3,
    }


def test_flags_give_the_same_options_again() -> None:
    values = {"top_k": 3, "temperature": 0.25, "top_p": 0.9, "force_answer": True, "language": "zh", "method": "direct"}
    assert flags_of(values, {"sampling": {"min_p": 0.1}}) == [
        "--temperature", "0.25", "--method", "direct", "--set", 'sampling={"min_p": 0.1, "top_p": 0.9}',
        "--set", 'refine_sampling={"top_p": 0.9}', "--set", "top_k=3", "--set", "force_answer=true",
        "--set", "language=zh",
    ]  # fmt: skip


def test_every_known_parameter_can_be_drawn_within_its_bounds() -> None:
    specs = {"language": "en,zh", "example": "none,multi_hop", "method": "direct,search_o1", "program": "auto,none"}
    flags = ("stop_loops", "force_answer", "show_starter_code", "open_urls")
    specs |= dict.fromkeys(flags, "true,false")
    for name in KNOWN:
        parameter = parse_parameter(name, specs.get(name, "0.25:1" if _is_share(name) else "64:90"))
        drawn = [parameter.suggest(trial) for trial in _trials(5)]
        if parameter.choices:
            assert set(drawn) <= set(parameter.choices)
        else:
            assert all(parameter.low <= value <= parameter.high for value in drawn)


def _is_share(name: str) -> bool:
    bare = name.rpartition(".")[2]
    return bare in ("temperature", "top_p", "min_p") or "penalty" in bare


def _trials(count: int) -> list[optuna.Trial]:
    study = optuna.create_study(sampler=optuna.samplers.RandomSampler(seed=0))
    return [study.ask() for _ in range(count)]


def test_numbers_are_run_with_as_they_are_shown() -> None:
    parameter = Parameter("temperature", low=0.1, high=0.123456)
    assert parameter.readable(0.123412345) == 0.1234
    # Rounding must not leave the range.
    assert parameter.readable(0.1234559) == 0.123456
    assert Parameter("temperature", low=0.0, high=1.0, step=0.1).readable(0.30000000000000004) == 0.3


def test_the_size_of_a_space_is_the_number_of_its_combinations() -> None:
    assert Space({"top_k": "1:4", "force_answer": "true,false"}, {}).size == 8
    assert Space({"context_chars": "500:1500:step=500"}, {}).size == 3
    assert Space({"temperature": "0:1"}, {}).size == float("inf")

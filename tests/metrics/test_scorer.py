from __future__ import annotations

import importlib

import pytest

import metrics
from metrics.scorer import TASKS, score
from signatures.errors import OptionError


def test_a_task_is_scored_by_its_scorer() -> None:
    result = score(r"\boxed{Paris}", ["Lyon", "Paris"], "open_qa")
    assert result.to_dict() == {
        "official": {"em": 1.0, "acc": 1.0, "f1": 1.0, "valid": 1.0},
        "strict": {"em": 1.0, "acc": 1.0, "f1": 1.0, "valid": 1.0},
        "official_answer": "Paris",
        "strict_answer": "Paris",
        "headline": "em",
    }


def test_every_scorer_reports_its_headline_in_both_families() -> None:
    for task in TASKS:
        result = score("", ["x"], task)
        assert result.headline in result.official
        assert result.headline in result.strict


def test_a_single_string_is_one_label_and_not_its_letters() -> None:
    assert score(r"\boxed{P}", "Paris", "open_qa").strict["em"] == 0.0
    assert score(r"\boxed{Paris}", "Paris", "open_qa").strict["em"] == 1.0


def test_a_task_without_a_scorer_is_named_with_those_that_have_one() -> None:
    with pytest.raises(OptionError, match=r"'poetry'.*open_qa"):
        score("", [], "poetry")


def test_the_package_offers_every_name_it_lists() -> None:
    for name in metrics.__all__:
        assert getattr(metrics, name) is not importlib.import_module("metrics")
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        metrics.nothing  # noqa: B018

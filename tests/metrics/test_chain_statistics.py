from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from metrics.chain_statistics import chain_metrics, quantile, uncertainty_words
from signatures.markup import BEGIN_SEARCH_RESULT, END_SEARCH_RESULT

RECORDS = [
    {
        "finish": "answered", "searches": 2, "searches_failed": {"bing": 1, "brave": 2}, "reads": 6, "reads_cached": 3,
        "reads_failed": {"timeout": 1, "empty": 1},
        "malformed": 1, "refinements": 2, "refined_to_nothing": 1, "valid": True,
        "prompt_tokens": 100, "completion_tokens": 50, "cached_tokens": 60, "cost": 0.5, "seconds": 1.0,
        "chain": f"Wait, perhaps.{BEGIN_SEARCH_RESULT}wait likely{END_SEARCH_RESULT}waiting, wait",
    },
    {
        "finish": "length", "searches": 0, "malformed": 0, "refinements": 0, "refined_to_nothing": 0, "valid": False,
        "prompt_tokens": 100, "completion_tokens": 150, "cached_tokens": 0, "cost": None, "seconds": 3.0,
        "chain": "Alternatively",
    },
]  # fmt: skip


def test_a_run_is_summed_up_a_question() -> None:
    assert chain_metrics(RECORDS) == pytest.approx(
        {
            "questions": 2, "searches": 1.0, "searched_share": 0.5, "malformed_queries": 0.5,
            "searches_failed": 1.5, "pages_read": 3.0, "pages_failed_share": 0.25, "pages_cached_share": 0.5,
            "refined_to_nothing_rate": 0.5, "valid_share": 0.5, "truncated_share": 0.5, "prompt_tokens": 100,
            "completion_tokens": 100, "tokens": 200, "cached_share": 0.3, "cost": 0.5, "total_cost": 0.5,
            "seconds_p50": 2.0, "seconds_p95": 2.9, "uncertainty_words": 2.0, "uncertainty_perhaps": 0.5,
            "uncertainty_alternatively": 0.5, "uncertainty_wait": 1.0, "uncertainty_likely": 0.0,
        }
    )  # fmt: skip


def test_words_of_doubt_are_whole_words_of_the_model_only() -> None:
    assert uncertainty_words(str(RECORDS[0]["chain"])) == {"perhaps": 1, "alternatively": 0, "wait": 2, "likely": 0}


def test_no_records_give_the_same_keys_and_nan() -> None:
    nothing = chain_metrics([])
    assert list(nothing) == list(chain_metrics(RECORDS))
    assert nothing.pop("questions") == 0
    assert all(math.isnan(value) for value in nothing.values())


def test_a_question_that_failed_at_once_counts_with_what_it_has() -> None:
    failed = {"finish": "error", "searches": None, "chain": None}
    both = chain_metrics([*RECORDS, failed])
    assert both["questions"] == 3
    assert both["valid_share"] == pytest.approx(1 / 3)
    assert both["seconds_p50"] == 2.0
    alone = chain_metrics([failed])
    assert alone["searches"] == 0
    assert alone["searches_failed"] == alone["pages_read"] == 0
    for undefined in (
        "pages_failed_share",
        "pages_cached_share",
        "refined_to_nothing_rate",
        "cost",
        "total_cost",
        "cached_share",
        "seconds_p95",
    ):
        assert math.isnan(alone[undefined])


@given(st.lists(st.floats(0, 1000), min_size=1, max_size=20), st.floats(0, 1))
def test_a_quantile_lies_among_the_values(values: list[float], share: float) -> None:
    assert min(values) <= quantile(values, share) <= max(values)
    assert quantile(values, 0) == min(values)
    assert quantile(values, 1) == max(values)

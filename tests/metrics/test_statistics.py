from __future__ import annotations

import math
from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from metrics.normalise import normalise_strict
from metrics.statistics import (
    avg_at_k,
    clustered_mean_with_error,
    majority_at_k,
    mean_with_error,
    paired_difference,
    pass_at_k,
)
from signatures.errors import OptionError

outcomes = st.lists(st.sampled_from([0.0, 1.0]), min_size=1, max_size=60)
graded = st.lists(st.floats(-100, 100), min_size=2, max_size=30)
pairs = st.lists(
    st.tuples(st.floats(0, 1), st.floats(0, 1)) | st.tuples(st.sampled_from([0, 1]), st.sampled_from([0, 1])),
    min_size=2,
    max_size=40,
)
binary_pairs = st.lists(st.tuples(st.sampled_from([0, 1]), st.sampled_from([0, 1])), min_size=1, max_size=60)


@given(outcomes)
def test_wilson_stays_within_0_and_1_holds_the_share_and_agrees_with_scipy(values: list[float]) -> None:
    estimate = mean_with_error(values)
    assert 0 <= estimate.low <= estimate.mean <= estimate.high <= 1
    assert estimate.low < estimate.high
    known = stats.binomtest(int(sum(values)), len(values)).proportion_ci(method="wilson")
    assert (estimate.low, estimate.high) == pytest.approx((known.low, known.high), abs=1e-9)


@given(graded.filter(lambda values: not set(values) <= {0, 1}))
def test_graded_outcomes_get_students_interval(values: list[float]) -> None:
    estimate = mean_with_error(values)
    error = stats.sem(values)
    assert estimate.standard_error == pytest.approx(error, abs=1e-9)
    assert estimate.high - estimate.mean == pytest.approx(stats.t.ppf(0.975, len(values) - 1) * error, abs=1e-6)
    assert estimate.low + estimate.high == pytest.approx(2 * estimate.mean, abs=1e-9)


def test_booleans_are_outcomes() -> None:
    assert mean_with_error([True, False]) == mean_with_error([1.0, 0.0])


def test_no_values_and_one_value_give_nan_and_no_error() -> None:
    nothing = mean_with_error([])
    assert nothing.n == 0
    assert all(math.isnan(x) for x in (nothing.mean, nothing.standard_error, nothing.low, nothing.high))
    one = mean_with_error([0.4])
    assert one.mean == 0.4
    assert all(math.isnan(x) for x in (one.standard_error, one.low, one.high))
    assert mean_with_error([1]).low > 0.2
    assert nothing.to_dict().keys() == {"mean", "standard_error", "low", "high", "n"}


def test_samples_of_one_question_count_as_one_question() -> None:
    clustered = clustered_mean_with_error([[1, 1, 1, 1], [0, 0, 0, 0], [1, 0, 1, 0], []])
    assert (clustered.mean, clustered.n) == (0.5, 3)
    assert clustered.standard_error > mean_with_error([1, 1, 1, 1, 0, 0, 0, 0, 1, 0, 1, 0]).standard_error
    assert clustered_mean_with_error([[1], [0], [1]]) == mean_with_error([1, 0, 1])
    assert clustered_mean_with_error([]).n == 0


@given(pairs)
def test_swapping_the_runs_turns_the_difference_round(values: list[tuple[float, float]]) -> None:
    a, b = [x for x, _ in values], [y for _, y in values]
    forth, back = paired_difference(a, b), paired_difference(b, a)
    assert forth.difference == -back.difference
    assert (forth.low, forth.high) == (-back.high, -back.low)
    assert (forth.only_a, forth.only_b) == (back.only_b, back.only_a)
    assert forth.mcnemar_p == back.mcnemar_p
    assert forth.standard_error == back.standard_error
    assert forth.low <= forth.difference <= forth.high


@given(binary_pairs)
def test_mcnemar_is_the_exact_binomial_test(values: list[tuple[int, int]]) -> None:
    result = paired_difference([x for x, _ in values], [y for _, y in values])
    disagreements = result.only_a + result.only_b
    known = stats.binomtest(result.only_a, disagreements, 0.5).pvalue if disagreements else 1.0
    assert result.mcnemar_p == pytest.approx(known)
    assert -1 <= result.low <= result.difference <= result.high <= 1


def test_a_clear_win_is_significant_and_many_disagreements_are_no_trouble() -> None:
    result = paired_difference([1] * 1500 + [0] * 500, [0] * 1500 + [1] * 500)
    assert result.mcnemar_p is not None
    assert result.mcnemar_p < 1e-9
    assert result.difference == 0.5
    assert result.low > 0.4


def test_graded_pairs_have_no_mcnemar_but_count_who_was_better() -> None:
    result = paired_difference([0.5, 1.0, 0.2], [0.25, 1.0, 0.4])
    assert result.mcnemar_p is None
    assert (result.only_a, result.only_b) == (1, 1)
    assert result.to_dict()["n"] == 3


def test_no_pairs_give_nan_and_unequal_runs_are_refused() -> None:
    nothing = paired_difference([], [])
    assert math.isnan(nothing.difference)
    assert (nothing.n, nothing.mcnemar_p) == (0, None)
    with pytest.raises(OptionError, match="3 outcomes with 2"):
        paired_difference([1, 0, 1], [1, 0])


@given(st.integers(1, 8).flatmap(lambda n: st.tuples(st.just(n), st.integers(0, n), st.integers(1, n))))
def test_pass_at_k_is_the_share_of_subsets_with_a_right_sample(counts: tuple[int, int, int]) -> None:
    n, c, k = counts
    subsets = list(combinations([True] * c + [False] * (n - c), k))
    assert pass_at_k(n, c, k) == pytest.approx(sum(any(subset) for subset in subsets) / len(subsets))


@pytest.mark.parametrize(("n", "c", "k"), [(1, 2, 1), (2, -1, 1), (2, 1, 3), (2, 1, 0)])
def test_impossible_counts_are_refused(n: int, c: int, k: int) -> None:
    with pytest.raises(OptionError, match=f"n={n}, c={c}, k={k}"):
        pass_at_k(n, c, k)


def test_avg_at_k() -> None:
    assert avg_at_k([1, 0, 0, 1]) == 0.5
    assert math.isnan(avg_at_k([]))


@pytest.mark.parametrize(
    ("answers", "winner"),
    [
        ([], ""),
        (["", " "], ""),
        (["a", "b", "b"], "b"),
        (["b", "a"], "b"),
        (["", "", "a"], "a"),
        (["b", "a", "a", "b"], "b"),
    ],
)
def test_the_majority_wins_and_the_first_seen_breaks_ties(answers: list[str], winner: str) -> None:
    assert majority_at_k(answers) == winner


def test_a_key_tells_which_answers_are_the_same() -> None:
    assert majority_at_k(["Lyon", "The Paris", "paris"], key=normalise_strict) == "The Paris"

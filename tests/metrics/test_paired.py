from __future__ import annotations

import math
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from metrics.sign_flips import mcnemar_p, sign_flip_p
from metrics.statistics import paired_difference
from signatures.errors import OptionError

pairs = st.lists(
    st.tuples(st.floats(0, 1), st.floats(0, 1)) | st.tuples(st.sampled_from([0, 1]), st.sampled_from([0, 1])),
    min_size=2,
    max_size=30,
)
binary_pairs = st.lists(st.tuples(st.sampled_from([0, 1]), st.sampled_from([0, 1])), min_size=1, max_size=60)
few_examples = settings(max_examples=30, deadline=None)


@few_examples
@given(pairs)
def test_swapping_the_runs_turns_the_difference_round(values: list[tuple[float, float]]) -> None:
    a, b = [x for x, _ in values], [y for _, y in values]
    forth, back = paired_difference(a, b), paired_difference(b, a)
    assert forth.difference == -back.difference
    assert (forth.low, forth.high) == (-back.high, -back.low)
    assert (forth.only_a, forth.only_b) == (back.only_b, back.only_a)
    assert (forth.mcnemar_p, forth.p) == (back.mcnemar_p, back.p)
    assert forth.standard_error == back.standard_error
    assert forth.low <= forth.difference <= forth.high


@given(binary_pairs)
def test_mcnemar_is_the_exact_binomial_test(values: list[tuple[int, int]]) -> None:
    result = paired_difference([x for x, _ in values], [y for _, y in values])
    disagreements = result.only_a + result.only_b
    known = stats.binomtest(result.only_a, disagreements, 0.5).pvalue if disagreements else 1.0
    assert result.mcnemar_p == pytest.approx(known)
    assert result.p == result.mcnemar_p
    assert -1 <= result.low <= result.difference <= result.high <= 1


def test_published_pairs() -> None:
    # Agresti 2002, Categorical Data Analysis, 2nd edition, table 10.1 (approval of the Prime Minister, 150 and 86 of
    # 1,600 change their mind): difference -0.04, standard error 0.0095, interval (-0.059, -0.021), McNemar's z -4.17.
    first = [1] * 794 + [1] * 150 + [0] * 86 + [0] * 570
    second = [1] * 794 + [0] * 150 + [1] * 86 + [0] * 570
    result = paired_difference(second, first)
    assert result.difference == pytest.approx(-0.04)
    assert result.standard_error == pytest.approx(0.0095, abs=1e-4)
    assert (result.low, result.high) == pytest.approx((-0.059, -0.021), abs=5e-4)
    assert result.p == pytest.approx(2 * stats.norm.sf(4.17), rel=0.3)
    # statsmodels.stats.contingency_tables.mcnemar([[0, 2], [10, 0]], exact=True).pvalue
    assert mcnemar_p(2, 10) == pytest.approx(0.038574218750)


def test_a_clear_win_is_significant_and_many_disagreements_are_no_trouble() -> None:
    result = paired_difference([1] * 1500 + [0] * 500, [0] * 1500 + [1] * 500)
    assert result.mcnemar_p is not None
    assert result.mcnemar_p < 1e-9
    assert result.difference == 0.5
    assert result.low > 0.4
    assert mcnemar_p(500_000, 500_000) == 1.0


def test_runs_that_agree_everywhere_have_an_interval_around_zero() -> None:
    result = paired_difference([1, 0] * 50, [1, 0] * 50)
    assert (result.difference, result.p, result.standard_error) == (0, 1, 0)
    assert -0.03 < result.low < 0 < result.high < 0.03


def test_graded_pairs_have_no_mcnemar_but_a_p_and_count_who_was_better() -> None:
    result = paired_difference([0.5, 1.0, 0.2], [0.25, 1.0, 0.4])
    assert result.mcnemar_p is None
    assert (result.only_a, result.only_b) == (1, 1)
    # Of the four ways to exchange the two that differ, all leave a difference of at least 0.05.
    assert result.p == 1.0
    assert result.to_dict()["n"] == 3


@few_examples
@given(st.lists(st.integers(-4, 4).map(lambda quarters: quarters / 4), min_size=1, max_size=9))
def test_the_p_of_graded_pairs_counts_the_exchanges(differences: list[float]) -> None:
    observed = abs(sum(differences))
    sums = [abs(sum(s * d for s, d in zip(signs, differences, strict=True)))
            for signs in product((1, -1), repeat=len(differences))]  # fmt: skip
    assert sign_flip_p(differences) == pytest.approx(sum(s >= observed - 1e-9 for s in sums) / len(sums))


def test_the_p_of_many_graded_pairs_agrees_with_scipys_permutation_test() -> None:
    differences = np.random.default_rng(5).normal(0.35, 1.0, 80)
    known = stats.permutation_test(
        (differences, np.zeros(80)), lambda x, y, axis: np.mean(x - y, axis=axis), permutation_type="samples",
        vectorized=True, n_resamples=20_000, rng=np.random.default_rng(2),
    ).pvalue  # fmt: skip
    assert sign_flip_p(list(differences)) == pytest.approx(known, abs=0.02)


@given(st.integers(0, 30), st.integers(0, 30))
@few_examples
def test_on_right_and_wrong_the_exchange_of_runs_is_mcnemars_test(only_a: int, only_b: int) -> None:
    differences = [1.0] * only_a + [-1.0] * only_b + [0.0] * 5
    assert sign_flip_p(differences) == pytest.approx(mcnemar_p(only_a, only_b), abs=0.015)


def test_a_p_is_never_0_and_undefined_for_what_is_no_number() -> None:
    assert 0 < sign_flip_p([1.0] * 200) < 1e-4
    assert math.isnan(sign_flip_p([0.5, math.nan]))
    assert sign_flip_p([0.0, 0.0]) == sign_flip_p([]) == 1.0


def test_no_pairs_give_nan_and_unequal_runs_are_refused() -> None:
    nothing = paired_difference([], [])
    assert math.isnan(nothing.difference)
    assert (nothing.n, nothing.mcnemar_p, nothing.p) == (0, None, None)
    with pytest.raises(OptionError, match="3 outcomes with 2"):
        paired_difference([1, 0, 1], [1, 0])

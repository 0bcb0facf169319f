from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from metrics.power import (
    most_discordant,
    questions_for_means,
    questions_for_shares,
    visible_mean_difference,
    visible_share_difference,
)
from metrics.sign_flips import mcnemar_p
from signatures.errors import OptionError


def exact_power(n: int, only_a: float, only_b: float) -> float:
    """Return the chance that McNemar's exact test has p < 0.05 on n questions: summed over all tables."""
    total = 0.0
    for disagreements in range(1, n + 1):
        seen = [mcnemar_p(first, disagreements - first) < 0.05 for first in range(disagreements + 1)]
        right = stats.binom.pmf(np.arange(disagreements + 1), disagreements, only_a / (only_a + only_b))
        total += stats.binom.pmf(disagreements, n, only_a + only_b) * right[np.array(seen)].sum()
    return float(total)


@pytest.mark.parametrize(
    ("only_a", "only_b", "expected"),
    [
        # Connor 1987 as worked by R's pwr.mcnemar(0.05, 0.45, power = 0.8): 22.0.
        (0.05, 0.45, 23),
        # The formula by hand: ((1.95996 sqrt(0.3) + 0.84162 sqrt(0.29)) / 0.1)^2 = 233.1.
        (0.10, 0.20, 234),
        (0.06, 0.04, 1960),
    ],
)
def test_connors_number_of_questions(only_a: float, only_b: float, expected: int) -> None:
    assert questions_for_shares(only_a - only_b, only_a + only_b) == expected
    assert questions_for_shares(only_b - only_a, only_a + only_b) == expected


@pytest.mark.parametrize(("only_a", "only_b"), [(0.05, 0.45), (0.02, 0.10), (0.0, 0.30)])
def test_the_exact_test_reaches_the_power_within_a_tenth_more_questions(only_a: float, only_b: float) -> None:
    n = questions_for_shares(only_a - only_b, only_a + only_b)
    assert n is not None
    assert 0.75 < exact_power(n, only_a, only_b) < 0.82
    assert exact_power(math.ceil(1.1 * n), only_a, only_b) >= 0.8


def test_no_difference_takes_more_questions_than_there_are() -> None:
    assert questions_for_shares(0.0, 0.2) is None
    assert questions_for_shares(0.0, 0.0) is None
    assert questions_for_means(0.0, 0.3) is None


def test_runs_that_differ_in_one_direction_still_need_six_questions_that_differ() -> None:
    assert questions_for_shares(1.0, 1.0) == 6
    assert mcnemar_p(0, 6) < 0.05 < mcnemar_p(0, 5)
    assert questions_for_shares(0.99, 0.99) == 7


@pytest.mark.parametrize(("difference", "discordant"), [(0.3, 0.2), (0.1, 1.2), (0.1, math.nan)])
def test_impossible_shares_are_refused(difference: float, discordant: float) -> None:
    with pytest.raises(OptionError, match="a difference of"):
        questions_for_shares(difference, discordant)


def test_questions_for_a_difference_of_means() -> None:
    # The paired z test: ((1.95996 + 0.84162) * 0.5 / 0.1)^2 = 196.2.
    assert questions_for_means(0.1, 0.5) == 197
    assert questions_for_means(-0.1, 0.5) == 197
    assert questions_for_means(0.1, 0.0) == 2
    assert questions_for_means(0.1, math.nan) is None


@given(st.integers(5, 5_000), st.floats(0.001, 1.0))
def test_what_is_visible_on_n_questions_takes_n_questions_to_see(n: int, discordant: float) -> None:
    visible = visible_share_difference(n, discordant)
    if visible is None:
        fewest = questions_for_shares(discordant, discordant)
        assert fewest is not None
        assert fewest > n
    else:
        assert 0 < visible <= discordant
        needed = questions_for_shares(visible, discordant)
        assert needed is not None
        assert needed in (n, n + 1) or needed == math.ceil(6 / discordant)


def test_too_few_questions_show_nothing() -> None:
    assert visible_share_difference(3, 1.0) is None
    assert visible_share_difference(100, 0.0) is None
    assert visible_mean_difference(1, math.nan) is None
    assert visible_mean_difference(50, 0.0) is None


def test_the_visible_difference_of_means() -> None:
    visible = visible_mean_difference(197, 0.5)
    assert visible is not None
    assert visible == pytest.approx(0.1, rel=0.01)


@pytest.mark.parametrize(("n", "discordant"), [(212, 0), (30, 4), (1, 0)])
def test_how_many_more_may_differ_is_clopper_and_pearsons_bound(n: int, discordant: int) -> None:
    known = stats.binomtest(discordant, n, alternative="less").proportion_ci(0.95, method="exact").high
    assert most_discordant(n, discordant) == pytest.approx(known)
    assert most_discordant(300, 0) == pytest.approx(3 / 300, rel=0.01)
    assert most_discordant(5, 5) == 1.0

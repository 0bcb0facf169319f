from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from metrics.intervals import bootstrap, mirrored_bootstrap
from metrics.statistics import (
    clustered_mean_with_error,
    maj_at_k_with_error,
    mean_with_error,
    pass_at_k_with_error,
)
from signatures.errors import OptionError

outcomes = st.lists(st.sampled_from([0.0, 1.0]), min_size=1, max_size=60)
graded = st.lists(st.floats(-100, 100), min_size=2, max_size=30)
few_examples = settings(max_examples=30, deadline=None)


def f1_scores(n: int, seed: int = 7) -> list[float]:
    """Return scores as F1 gives them: many 0, some 1, few values between."""
    generator = np.random.default_rng(seed)
    kind = generator.choice(3, n, p=[0.5, 0.25, 0.25])
    between = generator.choice([0.2, 0.25, 0.29, 0.33, 0.4, 0.5, 0.57, 0.67, 0.8], n)
    return [float(x) for x in np.where(kind == 0, 0.0, np.where(kind == 1, 1.0, between))]


@given(outcomes)
def test_wilson_stays_within_0_and_1_holds_the_share_and_agrees_with_scipy(values: list[float]) -> None:
    estimate = mean_with_error(values)
    assert 0 <= estimate.low <= estimate.mean <= estimate.high <= 1
    assert estimate.low < estimate.high
    known = stats.binomtest(int(sum(values)), len(values)).proportion_ci(method="wilson")
    assert (estimate.low, estimate.high) == pytest.approx((known.low, known.high), abs=1e-9)


def test_wilson_of_a_published_example() -> None:
    # Newcombe 1998, Statistics in Medicine 17:857-872, table I, method 3: 81 of 263.
    estimate = mean_with_error([1] * 81 + [0] * 182)
    assert (estimate.low, estimate.high) == pytest.approx((0.2553, 0.3662), abs=5e-5)


@few_examples
@given(graded.filter(lambda values: not set(values) <= {0, 1}))
def test_graded_outcomes_get_a_bootstrap_interval_within_their_range(values: list[float]) -> None:
    estimate = mean_with_error(values)
    assert estimate.standard_error == pytest.approx(stats.sem(values), abs=1e-9)
    slack = 1e-9
    assert min(values) - slack <= estimate.low <= estimate.mean <= estimate.high <= max(values) + slack


@few_examples
@given(st.lists(st.sampled_from([0.0, 0.25, 0.5, 1.0]), min_size=2, max_size=40), st.randoms())
def test_the_bootstrap_is_the_same_every_time_and_in_any_order(values: list[float], random) -> None:
    shuffled = list(values)
    random.shuffle(shuffled)
    assert bootstrap(shuffled) == bootstrap(values)


@pytest.mark.parametrize("n", [60, 500])
def test_the_bootstrap_agrees_with_scipys_and_with_student(n: int) -> None:
    values = f1_scores(n)
    low, high = bootstrap(values)
    known = stats.bootstrap((values,), np.mean, method="percentile", rng=np.random.default_rng(1), n_resamples=9999)
    width = known.confidence_interval.high - known.confidence_interval.low
    assert low == pytest.approx(known.confidence_interval.low, abs=0.05 * width)
    assert high == pytest.approx(known.confidence_interval.high, abs=0.05 * width)
    student = stats.t.interval(0.95, n - 1, loc=np.mean(values), scale=stats.sem(values))
    assert high - low == pytest.approx(student[1] - student[0], rel=0.05)


@pytest.mark.parametrize("n", [25, 50])
def test_an_interval_of_95_percent_holds_the_truth_95_times_in_a_hundred(n: int) -> None:
    truth = float(np.mean(f1_scores(400_000, seed=0)))
    held = 0
    for seed in range(1, 301):
        low, high = bootstrap(f1_scores(n, seed))
        held += low <= truth <= high
    # Three standard errors of a share of 0.95 among 300.
    assert held / 300 >= 0.95 - 3 * 0.0126


def test_the_bootstrap_of_many_different_values_and_of_few_is_the_same_bootstrap() -> None:
    few = [0.0] * 250 + [0.4] * 130 + [1.0] * 120
    nearly_the_same = [value + 1e-9 * i for i, value in enumerate(few)]
    assert bootstrap(few) == pytest.approx(bootstrap(nearly_the_same), abs=0.003)


def test_what_is_all_alike_or_not_finite_has_its_own_interval() -> None:
    assert bootstrap([0.5, 0.5, 0.5]) == (0.5, 0.5)
    assert all(math.isnan(x) for x in (*bootstrap([0.5]), *bootstrap([]), *bootstrap([0.5, math.nan])))
    broken = mean_with_error([0.5, math.nan, 1.0])
    assert all(math.isnan(x) for x in (broken.mean, broken.standard_error, broken.low, broken.high))


@few_examples
@given(st.lists(st.floats(-1, 1), min_size=2, max_size=30))
def test_the_mirrored_bootstrap_turns_round_with_the_sides(differences: list[float]) -> None:
    low, high = mirrored_bootstrap(differences)
    assert mirrored_bootstrap([-d for d in differences]) == (-high, -low)


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


def test_the_clustered_error_is_that_of_a_regression_on_a_constant_with_clusters() -> None:
    # For clusters of one size the clustered variance (Miller 2024, equation 4) is the sum over clusters of the squared
    # sums of deviations over the squared number of samples, times clusters / (clusters - 1) for the small sample.
    samples = np.random.default_rng(3).binomial(1, 0.4, (40, 5)).astype(float)
    deviations = samples - samples.mean()
    variance = (deviations.sum(axis=1) ** 2).sum() / samples.size**2 * 40 / 39
    found = clustered_mean_with_error(samples.tolist())
    assert (found.mean, found.standard_error) == pytest.approx((samples.mean(), math.sqrt(variance)))


def test_pass_at_k_over_questions() -> None:
    found = pass_at_k_with_error([[1, 0, 0, 0], [0, 0, 0, 0], [True, True, False, False]], 2)
    assert (found.mean, found.n) == (pytest.approx((1 / 2 + 0 + 5 / 6) / 3), 3)
    assert pass_at_k_with_error([[1.0], [0.5]], 1) == mean_with_error([1, 0])
    assert pass_at_k_with_error([], 4).n == 0
    with pytest.raises(OptionError, match="n=1, c=1, k=2; draw at least k samples"):
        pass_at_k_with_error([[1, 0], [1]], 2)


def test_maj_at_k_over_questions() -> None:
    found = maj_at_k_with_error([["Paris", "paris", "Lyon"], ["1", "2"], []], [[1, 1, 0], [0, 1], []])
    assert (found.mean, found.n) == (0.75, 2)
    with pytest.raises(OptionError, match="not 1, 2"):
        maj_at_k_with_error([["a"]], [[1], [0]])

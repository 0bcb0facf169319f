"""Intervals of averages, differences and gains: against known results and against simulation."""

from __future__ import annotations

import math
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from metrics.statistics import mean_with_error
from runs.reports.intervals import average, difference, published_estimate, relative_gain


def share(right: int, n: int):
    return mean_with_error([1.0] * right + [0.0] * (n - right))


def test_a_difference_has_newcombes_interval() -> None:
    # R. G. Newcombe 1998, Statistics in Medicine 17, Table II, example (a), method 10: 56/70 - 48/80.
    found = difference(share(56, 70), share(48, 80))
    assert found.value == pytest.approx(0.2)
    assert (found.low, found.high) == (pytest.approx(0.0524, abs=5e-5), pytest.approx(0.3339, abs=5e-5))


def test_a_published_share_keeps_its_printed_value_within_its_interval() -> None:
    found = published_estimate(0.581, 198)
    exact = share(115, 198)
    assert found.mean == 0.581
    assert (found.low, found.high) == (exact.low, exact.high)
    assert published_estimate(1.0, 30).high == 1.0


@given(st.lists(st.tuples(st.integers(0, 40), st.integers(40, 60)), min_size=1, max_size=6))
def test_an_average_lies_within_its_interval_and_within_0_and_1(counts) -> None:
    found = average([share(right, n) for right, n in counts])
    assert 0 <= found.low <= found.value <= found.high <= 1
    assert found.value == pytest.approx(math.fsum(right / n for right, n in counts) / len(counts))


def test_an_average_of_one_set_is_that_set() -> None:
    one = share(7, 20)
    found = average([one])
    assert (found.value, found.low, found.high) == pytest.approx((one.mean, one.low, one.high))
    assert math.isnan(average([]).value)


def test_a_gain_is_relative_and_undefined_over_nothing() -> None:
    a, b = {"x": 1.0, "y": 1.0, "z": 0.0, "w": 1.0}, {"x": 1.0, "y": 0.0, "z": 0.0, "w": 1.0}
    found = relative_gain([a], [b], paired=True)
    assert found.value == pytest.approx(0.5)
    assert found.low < 0.5 < found.high
    assert math.isnan(relative_gain([a], [dict.fromkeys(b, 0.0)], paired=True).value)
    assert relative_gain([dict.fromkeys(a, 0.0)], [b], paired=True).value == -1.0
    assert math.isnan(relative_gain([], [], paired=True).value)


def test_a_system_gains_nothing_over_itself_with_certainty_only_when_paired() -> None:
    outcomes = {str(i): float(i % 3 == 0) for i in range(90)}
    paired = relative_gain([outcomes], [outcomes], paired=True)
    assert (paired.low, paired.high) == pytest.approx((0.0, 0.0), abs=1e-6)
    alone = relative_gain([outcomes], [outcomes], paired=False)
    assert alone.low < -0.2 < 0.2 < alone.high


def test_intervals_of_gains_hold_the_truth_about_as_often_as_they_say() -> None:
    rng = random.Random(7)
    hits = 0
    for _ in range(300):
        ease = [rng.random() for _ in range(200)]
        a = [{str(i): float(rng.random() < 0.2 + 0.6 * e) for i, e in enumerate(ease)} for _ in range(2)]
        b = [{str(i): float(rng.random() < 0.1 + 0.6 * e) for i, e in enumerate(ease)} for _ in range(2)]
        found = relative_gain(a, b, paired=True)
        hits += found.low <= 0.5 / 0.4 - 1 <= found.high
    assert 275 <= hits <= 297

from __future__ import annotations

import math
from collections import Counter
from fractions import Fraction
from itertools import combinations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from metrics.at_k import avg_at_k, maj_at_k, majority_at_k, pass_at_k
from metrics.normalise import normalise_strict
from signatures.errors import OptionError

counts = st.integers(1, 8).flatmap(lambda n: st.tuples(st.just(n), st.integers(0, n), st.integers(1, n)))
large = st.integers(1, 2_000).flatmap(lambda n: st.tuples(st.just(n), st.integers(0, n), st.integers(1, n)))


@given(counts)
def test_pass_at_k_is_the_share_of_subsets_with_a_right_sample(given_counts: tuple[int, int, int]) -> None:
    n, c, k = given_counts
    subsets = list(combinations([True] * c + [False] * (n - c), k))
    assert pass_at_k(n, c, k) == pytest.approx(sum(any(subset) for subset in subsets) / len(subsets))


@settings(deadline=None)
@given(large)
def test_pass_at_k_keeps_its_digits(given_counts: tuple[int, int, int]) -> None:
    n, c, k = given_counts
    exact = 1 - Fraction(math.comb(n - c, k), math.comb(n, k))
    assert pass_at_k(n, c, k) == pytest.approx(float(exact), rel=1e-12, abs=0)


@pytest.mark.parametrize(
    ("n", "c", "k"), [(10_000, 1, 1), (10_000, 1, 5_000), (10_000, 5_000, 1), (10_000, 37, 100), (10_000, 9_000, 1_001)]
)
def test_pass_at_k_of_ten_thousand_samples(n: int, c: int, k: int) -> None:
    exact = float(1 - Fraction(math.comb(n - c, k), math.comb(n, k))) if n - c >= k else 1.0
    assert pass_at_k(n, c, k) == pytest.approx(exact, rel=1e-12)


def test_the_ends_of_pass_at_k_are_exact() -> None:
    assert (pass_at_k(10, 0, 5), pass_at_k(10, 10, 1), pass_at_k(10, 6, 5)) == (0.0, 1.0, 1.0)
    assert math.copysign(1, pass_at_k(10, 0, 5)) == 1
    assert pass_at_k(4, 1, 1) == 0.25


@pytest.mark.parametrize(("n", "c", "k"), [(1, 2, 1), (2, -1, 1), (2, 1, 3), (2, 1, 0), (0, 0, 1)])
def test_impossible_counts_are_refused(n: int, c: int, k: int) -> None:
    with pytest.raises(OptionError, match=f"n={n}, c={c}, k={k}"):
        pass_at_k(n, c, k)


def test_avg_at_k() -> None:
    assert avg_at_k([1, 0, 0, 1]) == 0.5
    assert math.isnan(avg_at_k([]))


@pytest.mark.parametrize(
    ("answers", "values", "expected"),
    [
        (["Paris", "the PARIS", "Lyon"], [1, 1, 0], 1.0),
        (["Lyon", "Lyon", "Paris"], [0, 0, 1], 0.0),
        # A tie is worth what drawing one of the tied answers is worth.
        (["Lyon", "Paris"], [0, 1], 0.5),
        (["a b c", "x", "y", "x", "a b c", "z"], [1, 0, 0, 0, 1, 0], 0.5),
        (["x", "y", "z"], [0, 1, 0], 1 / 3),
        # No answer, no vote: one right answer wins against many that are missing.
        (["", " ", "", "Paris"], [0, 0, 0, 1], 1.0),
        (["", "  "], [0, 0], 0.0),
        (["0.5", "0.5", "1/2", "2"], [1, 1, 1, 0], 1.0),
    ],
)
def test_the_majority_of_normalised_answers_counts(answers: list[str], values: list[float], expected: float) -> None:
    assert maj_at_k(answers, values) == pytest.approx(expected)
    assert maj_at_k(answers[::-1], values[::-1]) == pytest.approx(expected)


def test_maj_at_k_of_nothing_is_undefined_and_unequal_lists_are_refused() -> None:
    assert math.isnan(maj_at_k([], []))
    with pytest.raises(OptionError, match="not 1 for 2 answers"):
        maj_at_k(["a", "b"], [1])


@given(st.lists(st.sampled_from("ab"), min_size=1, max_size=9))
def test_of_two_answers_the_majority_is_right_half_the_time_on_a_tie_only(answers: list[str]) -> None:
    votes = Counter(answers)
    expected = 0.5 if votes["a"] == votes["b"] else float(votes["a"] > votes["b"])
    assert maj_at_k(answers, [float(a == "a") for a in answers], key=str) == expected


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
def test_the_answer_shown_is_the_majoritys_and_the_first_seen_of_several(answers: list[str], winner: str) -> None:
    assert majority_at_k(answers) == winner


def test_a_key_tells_which_answers_are_the_same() -> None:
    assert majority_at_k(["Lyon", "The Paris", "paris"], key=normalise_strict) == "The Paris"

"""pass@k and maj@k of questions that were answered several times."""

from __future__ import annotations

from typing import Any

from runs.repeated_scores import repeated_scores


def record(answer: str, right: float, metric: str = "em") -> dict[str, Any]:
    scores = {metric: right}
    return {"prediction": answer, "official_prediction": answer, "official": scores, "strict": scores}


def test_one_sample_a_question_has_neither() -> None:
    assert repeated_scores({"a": [record("x", 1.0)], "b": [record("y", 0.0)] * 4}, "em") == {}
    assert repeated_scores({}, "em") == {}


def test_pass_and_majority_over_the_samples_that_every_question_has() -> None:
    runs = {
        "often right": [record("x", 1.0), record("x", 1.0), record("y", 0.0)],
        "once right": [record("x", 0.0), record("y", 1.0), record("x", 0.0)],
    }
    strict = repeated_scores(runs, "em")["strict"]
    assert list(strict) == ["pass@2", "pass@3", "maj@3"]
    # Of the first question no pair of samples is all wrong, of the second one of three is.
    assert strict["pass@2"].mean == (1 + 2 / 3) / 2
    assert strict["pass@3"].mean == 1.0
    assert strict["maj@3"].mean == 0.5


def test_programs_have_no_majority() -> None:
    runs = {"a": [record("p", 1.0, "pass@1"), record("q", 0.0, "pass@1")]}
    assert list(repeated_scores(runs, "pass@1")["official"]) == ["pass@2"]


def test_one_value_in_several_spellings_is_one_vote() -> None:
    spellings = [("\\frac{1}{2}", 1.0), ("0.5", 1.0), ("1/2", 1.0), ("3", 0.0), ("3", 0.0), (" 3.0", 0.0)]
    runs = {"half": [record(answer, right, "math_equal") for answer, right in (*spellings, ("x=\\frac12", 1.0))]}
    found = repeated_scores(runs, "math_equal")
    assert found["strict"]["maj@7"].mean == 1.0
    # The published scorer calls 3.0 and 3 two answers; the halves are one to it as well.
    assert found["official"]["maj@7"].mean == 1.0
    # As many threes as halves: a draw.
    tied = {"tie": [record(answer, right, "math_equal") for answer, right in spellings]}
    assert repeated_scores(tied, "math_equal")["strict"]["maj@6"].mean == 0.5
    assert repeated_scores(tied, "math_equal")["official"]["maj@6"].mean == 1.0

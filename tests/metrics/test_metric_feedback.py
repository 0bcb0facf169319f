from __future__ import annotations

import copy
import inspect
import json
import pickle

import dspy
import pytest

from metrics import official, strict
from metrics.feedback import ScoreWithFeedback
from signatures.errors import DataError
from signatures.markup import BEGIN_SEARCH_RESULT, END_SEARCH_RESULT

PAGE = f"{BEGIN_SEARCH_RESULT}The tower stands in Paris. \\boxed{{page}}{END_SEARCH_RESULT}"


@pytest.mark.parametrize(
    ("kind", "output", "labels", "says"),
    [
        ("qa", "\\boxed{Paris}", "Paris", ["Right: `Paris`"]),
        ("qa", "", "Paris", ["output is empty", "expected `Paris`"]),
        ("qa", "It is Lyon.", "Paris", ["holds no \\boxed{...}", "occurs nowhere"]),
        ("qa", "It is Paris.", "Paris", ["holds no \\boxed{...}", "occurs in the reasoning"]),
        ("qa", f"x {PAGE} y", "Paris", ["only box stands in a search result", "stood in the search results"]),
        ("qa", "<think>\\boxed{Paris}</think>", "Paris", ["before the last </think>"]),
        ("qa", "\\boxed{Paris", "Paris", ["not closed"]),
        ("qa", "\\boxed{Paris in France}", "Paris", ["was `Paris in France`", "the box must hold the answer alone"]),
        ("qa", "\\boxed{York}", "New York", ["F1 0.67"]),
        ("qa", "\\boxed{x}", list("abcdefg"), ["`a` or `b` or `c` or `d` or `e` (or 2 other forms)"]),
        ("qa", "\\boxed{x}", None, ["unknown (no label)"]),
        ("choice", "\\boxed{A or B}", "B", ["not one letter"]),
        ("choice", "\\boxed{C}", "B", ["was `C`, expected `B`"]),
        ("math", "\\boxed{7}", "8", ["was `7`, expected `8`"]),
        ("math", "\\boxed{" + "1 " * 500 + "}", "8", ["1 …`"]),
    ],
)
def test_feedback_says_what_was_wrong(kind: str, output: str, labels: object, says: list[str]) -> None:
    found = strict.feedback(kind, output, labels)
    for part in says:
        assert part in found.feedback
    assert float(found) == float(found.feedback.startswith("Right"))


def test_official_feedback_follows_the_official_reading() -> None:
    assert "was `page`" in official.feedback("qa", f"x {PAGE}", "Paris").feedback
    assert "not one letter" in official.feedback("choice", "\\boxed{B. 42 kJ}", "B").feedback
    assert "Right" in strict.feedback("choice", "\\boxed{B. 42 kJ}", "B").feedback


def test_a_score_with_feedback_is_a_number_and_a_record() -> None:
    found = ScoreWithFeedback(0.5, "why")
    assert found + 1 == 1.5
    assert (found["score"], found["feedback"], found.feedback, json.dumps(found)) == (0.5, "why", "why", "0.5")
    found["feedback"] = "because"
    assert found.feedback == "because"
    for twin in (copy.deepcopy(found), pickle.loads(pickle.dumps(found))):
        assert (float(twin), twin["feedback"]) == (0.5, "because")
    with pytest.raises(KeyError):
        found["nothing"]
    with pytest.raises(KeyError):
        found["nothing"] = 1


def test_a_metric_reads_the_fields_of_dspy_records() -> None:
    metric = strict.metric("qa")
    example = dspy.Example(question="?", answers=["Paris"]).with_inputs("question")
    assert metric(example, dspy.Prediction(reasoning="so \\boxed{Paris}", answer="Paris")) == 1.0
    assert metric(example, dspy.Prediction(reasoning="so \\boxed{Lyon}", answer="Lyon"), None) == 0.0
    assert metric(example, dspy.Prediction(reasoning="It is the capital.", answer="Paris"), []) == 1.0
    assert metric(example, dspy.Prediction(answer="Paris")) == 1.0
    assert metric(example, dspy.Prediction()) == 0.0
    assert metric(example, dspy.Prediction(reasoning="\\boxed{Lyon}", direct_reasoning="\\boxed{Paris}")) == 1.0
    assert metric({"answer": "Paris"}, {"reasoning": "\\boxed{Paris}"}) == 1.0
    assert metric({"answer": "Paris"}, "\\boxed{Paris}") == 1.0


def test_a_metric_uses_known_choices() -> None:
    example = dspy.Example(answer="B", choices=["10 kJ", "42 kJ"])
    assert strict.metric("choice")(example, dspy.Prediction(answer="42 kJ")) == 1.0
    assert official.metric("choice")(example, dspy.Prediction(answer="42 kJ")) == 0.0


def test_an_example_without_labels_is_refused() -> None:
    with pytest.raises(DataError, match="neither `answers` nor `answer`"):
        strict.metric("qa")(dspy.Example(label="Paris"), dspy.Prediction(answer="Paris"))


def test_metrics_have_the_arguments_that_gepa_asks_for_and_a_name_for_tables() -> None:
    for family in (official, strict):
        metric = family.metric("math")
        inspect.signature(metric).bind(None, None, None, None, None)
        assert metric.__name__ == f"{family.__name__.rpartition('.')[2]}_math_equal"


def test_dspy_evaluates_with_a_metric() -> None:
    class Fixed(dspy.Module):
        def forward(self, question: str) -> dspy.Prediction:
            return dspy.Prediction(reasoning=f"\\boxed{{{question}}}", answer=question)

    devset = [dspy.Example(question=q, answer="073").with_inputs("question") for q in ("73", "74", "7")]
    result = dspy.Evaluate(devset=devset, metric=strict.metric("math"), num_threads=1, display_progress=False)(Fixed())
    assert result.score == pytest.approx(100 / 3, abs=0.01)


def test_gepa_takes_the_feedback_as_it_is() -> None:
    from dspy.teleprompt.gepa.gepa import GEPA

    optimizer = GEPA(metric=strict.metric("qa"), max_metric_calls=1, reflection_lm=dspy.LM("none/none"))
    found = optimizer.metric_fn(dspy.Example(answer="Paris"), dspy.Prediction(answer="Lyon"), None, "predict", [])
    assert hasattr(found, "feedback")
    assert found["score"] == 0.0
    assert "expected `Paris`" in found["feedback"]

"""The metric of an optimisation: the strict score, why it is what it is, and which chains are worth imitating."""

from __future__ import annotations

import copy
import inspect
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import dspy
import pytest

from metrics.feedback import ScoreWithFeedback
from programs import DirectReasoning, RAGAgent, SearchO1
from retrieval.base import Hit
from runs.benchmarks.problem_tests import ProblemTests
from runs.benchmarks.question import Question
from runs.optimizing.chain_feedback import chain_feedback, refinements
from runs.optimizing.examples import to_example
from runs.optimizing.feedback import OptimizationMetric
from tests.programs.world import BQ, BR, EQ, ER, MemoryReader, MemorySearch, ask, model_of, query, say
from tests.servers.lm import LMServer

GOLD = "Denis Villeneuve"
QUESTION = Question("q1", "Who directed Arrival?", (GOLD,))
EXAMPLE = to_example(QUESTION)
RIGHT = f"So it is \\boxed{{{GOLD}}}."
WRONG = "So it is \\boxed{Ridley Scott}."
NOTHING = "**Final Information**\n\nNo helpful information found."


def metric(**options: Any) -> OptimizationMetric:
    return OptimizationMetric("open_qa", {"q1": QUESTION}, **options)


def traced(reply: Callable[..., str], program: Any = None, **options: Any) -> tuple[Any, list[Any]]:
    """Return a real chain's prediction and its DSPy trace."""
    program = program or SearchO1(MemorySearch(), MemoryReader(), **options)
    with LMServer(reply) as server, dspy.context(trace=[]):
        return ask(server, program), list(dspy.settings.trace)


def about(reply: Callable[..., str], **options: Any) -> str:
    prediction, _ = traced(reply, **options)
    return str(metric()(EXAMPLE, prediction).feedback)


def test_a_right_chain_without_fault_is_said_to_be_right() -> None:
    prediction, trace = traced(say(f"I search. {query('Arrival')}", RIGHT))
    found = metric()(EXAMPLE, prediction)
    assert isinstance(found, ScoreWithFeedback)
    assert (found, found.feedback) == (1.0, f"Right: `{GOLD}` (expected `{GOLD}`).")
    assert metric()(EXAMPLE, prediction, trace) == 1.0


@pytest.mark.parametrize(
    ("reply", "options", "says"),
    [
        (
            say(WRONG),
            {},
            ["Wrong: the answer was `Ridley Scott`", f"expected `{GOLD}`", f"made no search. A query is written {BQ}"],
        ),
        (say("I do not know."), {}, ["holds no \\boxed{...}"]),
        (say(f"{BQ}{EQ}", f"made up {BR}", WRONG), {}, ["search markers were misused 2 times"]),
        (say(query("Arrival"), query("Arrival"), WRONG), {}, ["It searched again for `Arrival`"]),
        (say(query("a"), query("b"), WRONG), {"max_searches": 1}, ["It searched for `b` after the search limit"]),
        (
            say(query("a"), WRONG, refined=NOTHING),
            {},
            ["The search for `a` brought pages of which the refinement kept nothing"],
        ),
        (
            say(query("a"), WRONG, refined="Nothing much."),
            {},
            ["the refinement lacked the heading `**Final Information**`"],
        ),
        (
            say(query("a"), WRONG),
            {"search": MemorySearch([])},
            ["The search for `a` found nothing; it needs other words"],
        ),
        (say(query("a"), WRONG), {"reader": MemoryReader({})}, ["No page found for `a` could be read."]),
        (say(*[query(str(i)) for i in range(5)], WRONG, refined=NOTHING), {}, ["`0`, `1`, `2` and 2 more"]),
        (say(query("a"), query("b")), {"max_turns": 2}, ["used up its turns"]),
        (say("word " * 60), {"turn_tokens": 20}, ["ran out of tokens"]),
    ],
)
def test_feedback_says_what_failed_in_the_chain(
    reply: Callable[..., str], options: dict[str, Any], says: list[str]
) -> None:
    sources = {"search": options.pop("search", MemorySearch()), "reader": options.pop("reader", MemoryReader())}
    said = about(reply, program=SearchO1(*sources.values(), **options))
    assert all(part in said for part in says), said


def test_a_search_that_failed_is_named_with_its_error() -> None:
    prediction, _ = traced(say(query("a"), RIGHT), SearchO1(MemorySearch(failing=["a"]), MemoryReader()))
    found = metric()(EXAMPLE, prediction)
    assert found == 0.0
    assert "The chain broke off and counts as wrong: memory: the query 'a' failed" in found.feedback
    assert "The search for `a` failed" in found.feedback
    assert "made no search" not in found.feedback


def test_a_method_that_does_not_search_is_not_blamed_for_it() -> None:
    prediction, trace = traced(say(RIGHT), DirectReasoning())
    assert metric(method="direct")(EXAMPLE, prediction).feedback == f"Right: `{GOLD}` (expected `{GOLD}`)."
    assert metric(method="direct")(EXAMPLE, prediction, trace) == 1.0


def test_the_rag_agent_hears_of_pages_it_may_not_fetch() -> None:
    fetch = "<|begin_url|>https://b.example/x<|end_url|>"
    prediction, _ = traced(say(query("a"), fetch, WRONG), RAGAgent(MemorySearch(), MemoryReader()))
    said = metric(method="rag_agent")(EXAMPLE, prediction).feedback
    assert "It asked for `https://b.example/x`, which no search had returned." in said


def test_an_answer_that_stood_in_the_pages_and_was_lost_by_the_refinement_is_told() -> None:
    prediction, trace = traced(say(query("a"), WRONG, refined="**Final Information**\n\nIt is a film."))
    lost = f"For `a` the pages held the right answer `{GOLD}`, the distilled information did not"
    whole = metric()(EXAMPLE, prediction, trace, "program.reason", [trace[1]])
    assert lost in whole.feedback
    (entry,) = [entry for entry in trace if "document" in entry[1]]
    one = metric()(EXAMPLE, prediction, trace, "program.refine", [entry])
    assert one.feedback.startswith(lost)
    assert "Wrong: the answer was `Ridley Scott`" in one.feedback
    assert "made no search" not in one.feedback
    # GEPA wants the same score as without a predictor's name.
    assert whole == one == metric()(EXAMPLE, prediction) == 0.0
    assert [r.information for r in refinements(trace)] == ["It is a film."]


@pytest.mark.parametrize(
    ("refined", "pages", "says"),
    [
        (f"**Final Information**\n\nBy {GOLD}.", None, f"the distilled information kept the right answer `{GOLD}`"),
        ("**Final Information**\n\nA film.", {}, "the right answer does not stand in the pages."),
        ("A film.", None, "the refinement lacked the heading"),
        (NOTHING, None, "the refinement kept nothing"),
        (
            "**Final Information**\n\nA film.",
            {"https://a.example/arrival": "long " * 900},
            "in the first 2,000 characters",
        ),
    ],
)
def test_feedback_for_a_refinement_speaks_of_that_refinement(refined: str, pages: Any, says: str) -> None:
    program = SearchO1(MemorySearch(), MemoryReader(pages))
    prediction, trace = traced(say(query("a"), WRONG, refined=refined), program)
    entry = next(entry for entry in trace if "document" in entry[1])
    assert says in metric()(EXAMPLE, prediction, trace, "program.refine", [entry]).feedback


def test_pages_that_hold_the_question_itself_are_told() -> None:
    prediction, _ = traced(say(query("a"), RIGHT))
    prediction.contamination = [{"url": "https://copy.example/1", "kind": "question", "overlap": 1.0}]
    said = chain_feedback(prediction, "search_o1")
    assert said == [
        "`https://copy.example/1` held the benchmark's own question: an answer taken from there proves nothing."
    ]


@pytest.mark.parametrize(
    ("reply", "options", "why"),
    [
        (say(query("a"), WRONG), {}, "the answer is wrong"),
        (say(RIGHT), {}, "0 searches found something, 1 are wanted"),
        (say(query("a"), RIGHT, refined=NOTHING), {}, "0 searches found something"),
        (say(f"{BQ}{EQ}", query("a"), RIGHT), {}, "1 malformed queries"),
        (say(query("a"), f"{RIGHT} {query('b')}"), {"max_turns": 2}, "the chain ended with turns"),
    ],
)
def test_only_a_right_and_clean_chain_becomes_a_demo(reply: Any, options: dict[str, Any], why: str) -> None:
    prediction, trace = traced(reply, **options)
    found = metric()(EXAMPLE, prediction, trace)
    assert found == 0.0
    assert "Not a demo: " in found.feedback
    assert why in found.feedback


def test_a_chain_with_an_error_is_no_demo_whatever_it_ended_with() -> None:
    prediction = dspy.Prediction(finish="answered", reasoning=RIGHT, error="the server went away")
    assert "Not a demo: an error occurred." in metric()(EXAMPLE, prediction, []).feedback


def test_how_many_searches_a_demo_must_show_is_an_option() -> None:
    prediction, trace = traced(say(RIGHT))
    assert metric(min_searches=0)(EXAMPLE, prediction, trace) == 1.0
    prediction, trace = traced(say(query("a"), RIGHT))
    assert metric(min_searches=2)(EXAMPLE, prediction, trace) == 0.0


def test_a_rejected_candidate_scores_nothing_and_says_why() -> None:
    prediction = dspy.Prediction(answer="", reasoning="", finish="rejected", rejection="the instructions are empty")
    found = metric()(EXAMPLE, prediction)
    assert (found, found.feedback) == (0.0, "This prompt was not tried: the instructions are empty")


@pytest.mark.parametrize("prediction", [None, dspy.Prediction(finish="answered", reasoning=7), "text"])
def test_a_prediction_of_no_known_shape_is_wrong_and_raises_nothing(prediction: Any) -> None:
    assert metric()(EXAMPLE, prediction) == 0.0


def test_what_cannot_be_scored_is_one_failed_example_and_is_counted() -> None:
    judged = OptimizationMetric("code", {"q1": QUESTION}, method="direct")
    chain = dspy.Prediction(finish="answered", reasoning="```python\nprint(1)\n```", answer="print(1)")
    found = judged(EXAMPLE, chain)
    assert found == 0.0
    assert "could not be scored" in found.feedback
    assert judged(dspy.Example(id="other", question="?"), chain) == 0.0
    assert [(f.question_id, f.error.split(":")[0]) for f in judged.failures] == [("q1", "DataError"), ("", "DataError")]
    assert "has no tests" in judged.failures[0].error


def test_a_question_is_found_by_its_text_where_the_id_is_missing() -> None:
    chain = dspy.Prediction(finish="answered", reasoning=RIGHT)
    assert metric()(dspy.Example(question=QUESTION.question), chain) == 1.0


def test_choices_and_mathematics_are_judged_as_evaluations_judge_them() -> None:
    choice = Question("c", "Which?", ("B",), choices=("red", "blue"), task="multiple_choice")
    judged = OptimizationMetric("multiple_choice", {"c": choice}, method="direct")
    assert judged(to_example(choice), dspy.Prediction(finish="answered", reasoning="\\boxed{blue}")) == 1.0
    number = Question("m", "What?", ("7",))
    found = OptimizationMetric("math", {"m": number}, method="direct")(
        to_example(number), dspy.Prediction(finish="answered", reasoning="\\boxed{8}")
    )
    assert (found, "was `8`, expected `7`" in found.feedback) == (0.0, True)


def test_programs_are_run_and_the_failed_test_is_shown() -> None:
    tests = [{"input": "3\n", "output": "9\n", "testtype": "stdin"}]
    row = {"question": "Square the number.", "public_test_cases": tests}
    problem = Question("p", "Square the number.", (), task="code", tests=ProblemTests.of_row(row, None))
    judged = OptimizationMetric("code", {"p": problem}, method="direct")
    example = to_example(problem)

    def program(body: str) -> dspy.Prediction:
        return dspy.Prediction(finish="answered", reasoning=f"So:\n```python\n{body}\n```")

    assert judged(example, program("print(int(input()) ** 2)")).feedback == "Right: the program passes all tests."
    wrong = judged(example, program("print(int(input()) * 2)"))
    assert wrong == 0.0
    assert wrong.feedback == "Wrong: the program fails a test: wrong_answer (got '6', expected '9')."
    missing = judged(example, dspy.Prediction(finish="no_answer", reasoning="I cannot."))
    assert "No program could be read" in missing.feedback
    assert judged.failures == []


def test_the_same_chain_is_judged_once_and_many_threads_get_the_same() -> None:
    prediction, trace = traced(say(query("a"), RIGHT))
    judged = metric()
    with ThreadPoolExecutor(8) as pool:
        scores = list(pool.map(lambda _: judged(EXAMPLE, prediction, trace), range(40)))
    assert scores == [1.0] * 40
    assert len(judged._scores) == 1
    assert copy.deepcopy(judged) is judged


def test_dspy_takes_it_as_a_metric_of_two_three_and_five_arguments() -> None:
    inspect.signature(metric()).bind(None, None, None, None, None)
    with LMServer(say(query("a"), RIGHT)) as server:
        program = SearchO1(MemorySearch([Hit("Arrival", "https://a.example/arrival", "")]), MemoryReader())
        with dspy.context(lm=model_of(server).lm):
            result = dspy.Evaluate(devset=[EXAMPLE], metric=metric(), num_threads=1, display_progress=False)(program)
    assert result.score == 100.0
    assert ER in result.results[0][1].reasoning

"""The metric of an optimisation: the strict headline score, and in words what in the chain led to it."""

from __future__ import annotations

import hashlib
import threading
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from metrics.code_verdicts import CodeScore
from metrics.feedback import ScoreWithFeedback, with_feedback
from metrics.sandbox.options import SandboxOptions
from metrics.scores import Score, Scores
from retrieval.sync import run_sync
from runs.answering import scored_chain
from runs.benchmarks.question import Question
from runs.optimizing.chain_feedback import (
    SEARCHING,
    chain_feedback,
    one_refinement,
    refinement_feedback,
    refinements,
    short,
)
from runs.scoring import score_of_nothing, score_question
from signatures.errors import DataError

REJECTED = "rejected"
"""Finish of a prediction whose candidate had lost the protocol: no model was asked."""

_KEPT_SCORES = 4_096
_SHOWN_ANSWERS = 5


@dataclass(frozen=True)
class MetricFailure:
    """A question that could not be scored.

    Attributes:
        question_id: Its id, or empty when even that is unknown.
        error: What went wrong.
    """

    question_id: str
    error: str


class OptimizationMetric:
    """A DSPy metric: called with two arguments to evaluate, three to bootstrap, five by GEPA.

    The score is the headline metric of the strict family, so that scores on the validation set compare with those of
    `evaluate`. A chain that broke off is wrong. A question that cannot be scored is wrong too and stands in
    `failures`: the metric never raises.

    Where demos are bootstrapped (a trace, and no predictor named) the score is 1 only for a chain worth imitating: full
    headline score, finish `answered`, no malformed query, no error, and, for methods that search inside the chain,
    at least `min_searches` searches that found something.

    Args:
        task: Task kind.
        questions: The questions by id.
        method: The method.
        min_searches: Searches that a demo of `search_o1` or `rag_agent` must show.
        sandbox: How programs that answer code questions are run; None is the default of `SandboxOptions`.

    Attributes:
        failures: Questions that could not be scored, in order.
    """

    def __init__(
        self,
        task: str,
        questions: Mapping[str, Question],
        *,
        method: str = "search_o1",
        min_searches: int = 1,
        sandbox: SandboxOptions | None = None,
    ) -> None:
        self.task = task
        self.questions = dict(questions)
        self.method = method
        self.min_searches = min_searches
        self.sandbox = sandbox
        self.failures: list[MetricFailure] = []
        self._by_text = {question.question: question for question in self.questions.values()}
        self._scores: OrderedDict[tuple[str, str], Score] = OrderedDict()
        self._lock = threading.Lock()

    def __deepcopy__(self, memo: dict[int, Any]) -> OptimizationMetric:
        """Return the metric itself: a copied optimizer counts in the same place."""
        return self

    def __call__(
        self, example: Any, prediction: Any, trace: Any = None, pred_name: Any = None, pred_trace: Any = None
    ) -> ScoreWithFeedback:
        """Score a prediction.

        Args:
            example: The example, with `id` or `question`.
            prediction: The program's prediction, or None if there is none.
            trace: The program's trace, where demos are bootstrapped or GEPA reflects.
            pred_name: Name of the predictor that GEPA wants to improve.
            pred_trace: That predictor's own trace entry.

        Returns:
            The score, 0 to 1, with its feedback.
        """
        question: Question | None = None
        try:
            question = self._question(example)
            score = self._judge(question, prediction)
            value = float(score.strict[score.headline])
            about = pred_trace if str(pred_name or "").rpartition(".")[2] == "refine" else None
            result = ScoreWithFeedback(value, self._feedback(question, prediction, score, trace, about))
        # One question must not take the optimisation with it, whatever is wrong with it.
        except Exception as error:
            result = ScoreWithFeedback(0.0, f"The answer could not be scored: {short(error)}")
            self._fail(question, error)
        bootstrapping = trace is not None and pred_name is None
        return self._as_demo(prediction, result) if bootstrapping else result

    def _question(self, example: Any) -> Question:
        found = self.questions.get(str(getattr(example, "id", ""))) or self._by_text.get(
            str(getattr(example, "question", ""))
        )
        if found is None:
            raise DataError(f"The example {short(example)} is none of the {len(self.questions)} questions.")
        return found

    def _judge(self, question: Question, prediction: Any) -> Score:
        fields = {name: getattr(prediction, name, None) for name in ("direct_reasoning", "reasoning")}
        chain = scored_chain({**fields, "finish": getattr(prediction, "finish", "error")})
        if not chain:
            return score_of_nothing(self.task)
        # GEPA asks about the same chain once a predictor, and running a program's tests takes seconds.
        key = question.id, hashlib.sha256(chain.encode("utf-8", "replace")).hexdigest()
        with self._lock:
            known = self._scores.get(key)
        if known is not None:
            return known
        score = run_sync(score_question(question, chain, self.task, self.sandbox))
        with self._lock:
            self._scores[key] = score
            while len(self._scores) > _KEPT_SCORES:
                self._scores.popitem(last=False)
        return score

    def _feedback(self, question: Question, prediction: Any, score: Score, trace: Any, about: Any) -> str:
        finish = getattr(prediction, "finish", "error")
        if finish == REJECTED:
            return f"This prompt was not tried: {getattr(prediction, 'rejection', '') or 'it lost the protocol'}"
        answers: Sequence[str] = question.answers if self.task == "open_qa" else ()
        said = [self._about_answer(question, prediction, score)]
        if about is not None:
            return " ".join([*one_refinement(refinements(about), answers, prediction), *said])
        said += chain_feedback(prediction, self.method)
        if score.strict[score.headline] != 1.0:
            said += refinement_feedback(refinements(trace), answers)
        return " ".join(said)

    def _about_answer(self, question: Question, prediction: Any, score: Score) -> str:
        if getattr(prediction, "finish", "error") == "error":
            expected = " or ".join(f"`{short(a)}`" for a in question.answers[:_SHOWN_ANSWERS]) or "a program"
            error = short(getattr(prediction, "error", "") or "no reason is known").rstrip(".")
            return f"The chain broke off and counts as wrong: {error}. Expected {expected}."
        if isinstance(score, CodeScore):
            return _about_program(score)
        scores = Scores.from_numbers(score.strict, score.strict_answer)
        output = getattr(prediction, "reasoning", "")
        return str(with_feedback("strict", self.task, scores, output, list(question.answers)).feedback)

    def _as_demo(self, prediction: Any, result: ScoreWithFeedback) -> ScoreWithFeedback:
        """Return the score of a chain as a demo: 0 unless it is right and worth imitating."""
        why = self._not_a_demo(prediction) if result == 1.0 else "the answer is wrong"
        return ScoreWithFeedback(0.0, f"{result.feedback} Not a demo: {why}.") if why else result

    def _not_a_demo(self, prediction: Any) -> str:
        if (finish := getattr(prediction, "finish", "")) != "answered":
            return f"the chain ended with {finish or 'nothing'}"
        if getattr(prediction, "error", ""):
            return "an error occurred"
        if malformed := getattr(prediction, "malformed", 0):
            return f"{malformed} malformed queries"
        found = sum(search.get("outcome") == "found" for search in getattr(prediction, "searches", None) or ())
        if self.method in SEARCHING and found < self.min_searches:
            return f"{found} searches found something, {self.min_searches} are wanted"
        return ""

    def _fail(self, question: Question | None, error: Exception) -> None:
        failure = MetricFailure(question.id if question else "", f"{type(error).__name__}: {short(error)}")
        with self._lock:
            self.failures.append(failure)


def _about_program(score: CodeScore) -> str:
    """Say why a program failed, with the first test it did not pass."""
    if score.strict[score.headline] == 1.0:
        return "Right: the program passes all tests."
    if not score.strict_answer:
        return "No program could be read: it must stand in a closed ```python block after all reasoning."
    verdicts = score.strict_verdicts or score.official_verdicts
    first = next((verdict for verdict in verdicts if not verdict.passed), None)
    detail = f" ({short(first.detail)})" if first is not None and first.detail else ""
    return f"Wrong: the program fails a test: {score.reason}{detail}."

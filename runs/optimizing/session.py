"""What all candidates of one optimisation share: the questions, the ledger, the checks, the stop.

A candidate is copied by optimizers as they like; its session is one and the same for all copies.
"""

from __future__ import annotations

import asyncio
import hashlib
import threading
from collections import Counter
from collections.abc import Callable, Coroutine, Iterator, Mapping, Sequence
from concurrent.futures import CancelledError
from contextlib import contextmanager
from functools import partial
from typing import Any, Literal, Protocol, TypeVar

from metrics.feedback import Metric, ScoreWithFeedback
from retrieval.sync import run_sync
from runs.benchmarks.question import Question
from runs.optimizing.accounts import Part
from runs.optimizing.ledger import Ledger
from signatures.errors import SearchO1Error

T = TypeVar("T")
Predictor = Literal["reason", "refine"]


class Stopped(BaseException):
    """The optimisation was told to stop.

    Not an `Exception`: DSPy's optimizers and thread pools take those for one failed example and go on.
    """


class Gate(Protocol):
    """Says whether a program has lost its protocol."""

    def check(self, program: Any) -> str:
        """Return why a program would be called in vain, or an empty text."""
        ...


class Settler(Protocol):
    """Brings a program's demos into a form that fits the model."""

    def settle(self, program: Any) -> None:
        """Drop incomplete demos, shorten long ones, keep within the context; a settled program stays as it is."""
        ...


class Session:
    """One optimisation as its candidates see it. Copies of a candidate share it.

    Args:
        ledger: Where everything is accounted for.
        train: Training questions.
        val: Validation questions.
        gate: Refuses candidates that lost the protocol.
        demos: Settles the demos of candidates.
        model: Name of the language model that is optimised for; answers of another one are no scores of a candidate.
        seed: Run seed, part of each rollout id.
        only: The one predictor that is improved; None means all.

    Attributes:
        origin: Where candidates seen from now on come from, for people; optimizers may set it.
        on_answer: Called with a candidate's digest after each answer, from any thread.
        on_score: The same after each score.
        error: What ended the optimisation: an error of this project outside a chain, or None.
    """

    def __init__(
        self,
        ledger: Ledger,
        train: Sequence[Question],
        val: Sequence[Question],
        *,
        gate: Gate,
        demos: Settler,
        model: str = "",
        seed: int = 0,
        only: Predictor | None = None,
    ) -> None:
        self.ledger = ledger
        self.gate = gate
        self.demos = demos
        self.model = model
        self.seed = seed
        self.only = only
        self.origin = ""
        self.on_answer: list[Callable[[str], None]] = []
        self.on_score: list[Callable[[str], None]] = []
        self.error: SearchO1Error | None = None
        self._by_text: dict[str, Question] = {}
        self._parts: dict[str, Part] = dict.fromkeys((q.id for q in train), "train")
        self._parts.update(dict.fromkeys((q.id for q in val), "val"))
        for question in (*val, *train):
            self._by_text.setdefault(question.question, question)
        self._stopped = threading.Event()
        self._cancels: set[Callable[[], Any]] = set()
        self._lock = threading.Lock()
        self._alone: dict[tuple[str, ...], threading.Lock] = {}
        self._waiting: Counter[tuple[str, ...]] = Counter()

    def __deepcopy__(self, memo: dict[int, Any]) -> Session:
        return self

    @property
    def stopped(self) -> bool:
        """Whether the optimisation was told to stop."""
        return self._stopped.is_set()

    def stop(self) -> None:
        """Stop: calls in flight are cancelled, and every further one raises `Stopped`."""
        self._stopped.set()
        with self._lock:
            for cancel in self._cancels:
                cancel()

    def fail(self, error: SearchO1Error) -> Stopped:
        """End the optimisation with an error: DSPy takes what a candidate raises for one failed example.

        Args:
            error: The error, which the optimisation then ends with.

        Returns:
            What the candidate has to raise.
        """
        self.error = self.error or error
        self.stop()
        return Stopped()

    def check(self) -> None:
        """Go on, unless the optimisation was told to stop.

        Raises:
            Stopped: It was.
        """
        if self.stopped:
            raise Stopped

    def run(self, coroutine: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine on the background event loop and wait for it; `stop` ends the wait.

        Args:
            coroutine: What to run; it sees the caller's context variables.

        Returns:
            Its result.

        Raises:
            Stopped: The optimisation was told to stop.
        """

        async def work() -> T:
            task, loop = asyncio.current_task(), asyncio.get_running_loop()
            assert task is not None
            cancel = partial(loop.call_soon_threadsafe, task.cancel)
            with self._lock:
                self._cancels.add(cancel)
            try:
                self.check()
                return await coroutine
            finally:
                coroutine.close()
                with self._lock:
                    self._cancels.discard(cancel)

        try:
            return run_sync(work())
        except CancelledError:
            raise Stopped from None

    @contextmanager
    def alone(self, *key: str) -> Iterator[None]:
        """Let one thread at a time do what a key names: the second one then finds the replies in the cache.

        DSPy puts a question that takes long a second time.
        """
        with self._lock:
            lock = self._alone.setdefault(key, threading.Lock())
            self._waiting[key] += 1
        try:
            with lock:
                self.check()
                yield
        finally:
            with self._lock:
                self._waiting[key] -= 1
                if not self._waiting[key]:
                    del self._waiting[key], self._alone[key]

    def admit(self, program: Any) -> tuple[str, str]:
        """Settle a program's demos and enter it in the ledger, unless the gate refuses it.

        Args:
            program: One of the four methods; its demos may change.

        Returns:
            (digest of its state, why it is refused or an empty text).

        Raises:
            ModelError: The tokenizer's server does not answer.
        """
        rejection = self.gate.check(program)
        if not rejection:
            self.demos.settle(program)
        digest = self.ledger.candidate(program, self.origin)
        if rejection:
            self.ledger.reject(digest, rejection)
        return digest, rejection

    def question_of(self, inputs: Mapping[str, Any]) -> Question:
        """Return the question that a program is called with; one made of its text if it is none of ours."""
        text = str(inputs.get("question") or "")
        known = self._by_text.get(text)
        if known is not None:
            return known
        return Question("?" + hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16], text, ())

    def part_of(self, question_id: str) -> Part | None:
        """Return where a question belongs, or None if it is none of ours."""
        return self._parts.get(question_id)


class AccountedMetric:
    """A metric whose scores go to the ledger; one that raises is a failed example, not a lost run.

    Args:
        inner: The metric.
        session: The session.
    """

    def __init__(self, inner: Metric, session: Session) -> None:
        self.inner = inner
        self.session = session

    def __call__(
        self, example: Any, prediction: Any, trace: Any = None, pred_name: Any = None, pred_trace: Any = None
    ) -> ScoreWithFeedback:
        """Score a prediction.

        Args:
            example: The question with its labels.
            prediction: What a candidate answered.
            trace: What DSPy gives when it looks for demos, or asks for feedback.
            pred_name: Predictor that feedback is wanted for.
            pred_trace: Its part of the trace.

        Returns:
            The metric's score with its feedback; 0 where the metric raised.
        """
        self.session.check()
        try:
            given = self.inner(example, prediction, trace, pred_name, pred_trace)
            score = given if isinstance(given, ScoreWithFeedback) else ScoreWithFeedback(float(given))
        except Exception as error:
            score = ScoreWithFeedback(0.0, f"The answer could not be scored: {type(error).__name__}: {error}")
        # While DSPy looks for demos the metric asks for more than a right answer.
        if trace is None:
            self._note(example, prediction, float(score))
        return score

    def _note(self, example: Any, prediction: Any, score: float) -> None:
        digest = getattr(prediction, "candidate", None)
        question_id = str(getattr(example, "id", None) or getattr(prediction, "question_id", ""))
        part = self.session.part_of(question_id)
        if digest is None or part is None:
            return
        self.session.ledger.add(digest, question_id, part, score, rollout=prediction.rollout)
        for listener in self.session.on_score:
            listener(digest)

    def __deepcopy__(self, memo: dict[int, Any]) -> AccountedMetric:
        return self

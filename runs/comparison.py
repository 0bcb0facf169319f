"""What comparing two runs gives: scores side by side, the questions that flipped, and how many it would take."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, field
from typing import Any

from metrics.statistics import Estimate


@dataclass(frozen=True)
class ComparedRun:
    """One of the two runs.

    Attributes:
        id: The run's id.
        folder: Its folder.
        method: The method; empty where the run's facts are lost.
        model: The model's profile.
        program: Name of the compiled program, or empty.
        questions: Questions that it answered.
        samples: Samples a question; the most where they differ.
        failed: Answers among those compared that failed, which count as wrong.
    """

    id: str
    folder: str
    method: str
    model: str
    program: str
    questions: int
    samples: int
    failed: int


@dataclass(frozen=True)
class ComparedScores:
    """Scores of both runs on the same questions.

    Attributes:
        n: Number of questions.
        a: Score of the first run, with several samples of the question means.
        b: Score of the second run.
        difference: Second minus first.
        standard_error: Its standard error from the differences by question; NaN for fewer than two questions.
        low: Lower end of its 95 % interval.
        high: Upper end of its 95 % interval.
        mcnemar_p: McNemar's two-sided exact p; None when outcomes are not all 0 or 1.
        p: Two-sided p of exchanging the runs at random, which is McNemar's where that is defined; None for no question.
        only_a: Questions on which the first run is right and the second wrong (on graded outcomes: is better).
        only_b: Questions on which the second run is right and the first wrong (or is better).
    """

    n: int
    a: Estimate
    b: Estimate
    difference: float
    standard_error: float
    low: float
    high: float
    mcnemar_p: float | None
    p: float | None
    only_a: int
    only_b: int


@dataclass(frozen=True)
class Power:
    """How many questions a difference takes to be seen (two-sided test at 5 %, power 80 %).

    Attributes:
        questions: Questions compared.
        needed: Questions needed to see the difference observed; None when there is none, or too few questions to say.
        visible: Smallest difference that the questions compared can show; None when too few questions to say.
        discordant: Share of questions that the runs decided differently; None on graded outcomes.
        discordant_bound: Where the runs decided no question differently, how large that share may still be (one-sided
            95 % bound), from which `visible` is then worked out; else None.
    """

    questions: int
    needed: int | None
    visible: float | None
    discordant: float | None
    discordant_bound: float | None


@dataclass(frozen=True)
class Outcome:
    """What one run answered to a question in one sample.

    Attributes:
        sample: Number of the sample.
        prediction: The answer scored, as the family reads it; empty when there is none.
        score: The metric.
        finish: Finish reason.
        journal: File that holds the chain, under the question's id and the sample.
        trace: Address of the chain in MLflow, or empty when it is not known.
        chain: The chain itself; `to_dict` leaves it out.
    """

    sample: int
    prediction: str
    score: float
    finish: str
    journal: str
    trace: str
    chain: str = field(repr=False)


@dataclass(frozen=True)
class Flip:
    """A question that the runs decided differently.

    Attributes:
        id: Question id.
        question: The question.
        answers: Accepted answers.
        score_a: The metric in the first run, the mean of its samples.
        score_b: The metric in the second run.
        a: The first run's outcomes, one a sample.
        b: The second run's outcomes.
        contaminated: Whether a page gave the question away in either run.
    """

    id: str
    question: str
    answers: tuple[str, ...]
    score_a: float
    score_b: float
    a: tuple[Outcome, ...]
    b: tuple[Outcome, ...]
    contaminated: bool

    @property
    def gained(self) -> bool:
        """Whether the second run is the better one."""
        return self.score_b > self.score_a


@dataclass(frozen=True)
class Comparison:
    """Two runs compared question by question; every difference is second (B) minus first (A, the baseline).

    Attributes:
        run_a: The baseline.
        run_b: The run compared with it.
        family: `official` or `strict`.
        metric: Metric name.
        metrics_version: Version of the scorers, or None when the runs noted none.
        overall: Scores on all questions compared.
        clean: The same without questions that a page gave away in either run; None when there are none.
        groups: Group (`type=bridge`) to the scores of its questions.
        power: How many questions it takes.
        flips: Questions decided differently: first those that the second run lost, the largest differences first.
        notes: What the reader should keep in mind, a sentence each.
    """

    run_a: ComparedRun
    run_b: ComparedRun
    family: str
    metric: str
    metrics_version: int | None
    overall: ComparedScores
    clean: ComparedScores | None
    groups: dict[str, ComparedScores]
    power: Power
    flips: tuple[Flip, ...]
    notes: tuple[str, ...] = ()

    @property
    def contaminated(self) -> int:
        """Questions that a page gave away in either run."""
        return 0 if self.clean is None else self.overall.n - self.clean.n

    def to_dict(self) -> dict[str, Any]:
        """Return the comparison as plain data that JSON can hold: no chains, and None for what is undefined."""
        told: dict[str, Any] = _plain(asdict(self))
        for flip in told["flips"]:
            for outcome in (*flip["a"], *flip["b"]):
                del outcome["chain"]
        return told


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _plain(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(inner) for inner in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value

"""What judging a program gives: a verdict a test, and the score of a chain that wrote the program."""

from __future__ import annotations

from dataclasses import dataclass

from metrics.scores import Score

REASONS = (
    "passed",
    "wrong_answer",
    "runtime_error",
    "time",
    "memory",
    "compile",
    "output_limit",
    "no_code",
    "sandbox",
    "not_run",
)
"""Why a test passed or not: `no_code` is a chain without a program; `sandbox` a sandbox that ended early, which the
program may have caused; `not_run` a test after the first that was not passed."""


@dataclass(frozen=True)
class TestVerdict:
    """The outcome of one test.

    Attributes:
        reason: One of `REASONS`.
        detail: The error in one line, or how the output differs.
        stderr: The end of what was written to standard error, at most 4 KiB.
        cpu_seconds: Processor time.
        wall_seconds: Time on the clock.
        public: Whether the problem's text shows this test.
    """

    # Its name begins with "Test", but it is none of pytest's.
    __test__ = False

    reason: str
    detail: str = ""
    stderr: str = ""
    cpu_seconds: float = 0.0
    wall_seconds: float = 0.0
    public: bool = True

    @property
    def passed(self) -> bool:
        """Whether the program passed this test."""
        return self.reason == "passed"


@dataclass(frozen=True)
class CodeScore(Score):
    """The score of a chain that answers a code question; a family that was not asked for is empty.

    Attributes:
        official_verdicts: One a public test, in the problem's order.
        strict_verdicts: One a test that is present, public ones first.
        coverage: What the strict family was judged on: `all` tests, or `public only`.
    """

    official_verdicts: tuple[TestVerdict, ...] = ()
    strict_verdicts: tuple[TestVerdict, ...] = ()
    coverage: str = "all"

    @property
    def reason(self) -> str:
        """Why the chain failed in the strict family (in the official one where only that was judged)."""
        verdicts = self.strict_verdicts or self.official_verdicts
        return next((verdict.reason for verdict in verdicts if not verdict.passed), "passed" if verdicts else "not_run")

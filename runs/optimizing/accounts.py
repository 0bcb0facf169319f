"""What a ledger keeps of a candidate, and what it says of it."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

Part = Literal["train", "val"]
FAILED, ANSWERED, FIRST = "error", "answered", "0"
"""Finish of an answer that failed and of one that came to its end, and the round of sampling that makes a score."""


@dataclass(frozen=True)
class Trial:
    """A candidate that met validation questions.

    Attributes:
        number: Its number, in the order candidates were first seen; the start is 0.
        digest: SHA-256 of its state.
        score: Mean score on the validation questions it met, 0 to 1.
        n: How many it met.
        rejected: Why it made no model call, or empty.
        origin: Where it came from.
        tokens: Prompt and completion tokens of its chains, also those that the cache answered.
    """

    number: int
    digest: str
    score: float
    n: int
    rejected: str
    origin: str
    tokens: int


@dataclass
class Spent:
    """What an optimisation used.

    Attributes:
        questions: Questions put to a program.
        calls: Model calls of its chains.
        from_cache: Those of them that the cache answered when they were first counted.
        proposals: Calls of the model that proposes instructions; their tokens are in the sums too.
        prompt_tokens: Tokens of their prompts.
        completion_tokens: Tokens generated.
        cost: US dollars, or None if no call told a price.
    """

    questions: int = 0
    calls: int = 0
    from_cache: int = 0
    proposals: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    cost: float | None = None

    @property
    def tokens(self) -> int:
        """Prompt and completion tokens."""
        return self.prompt_tokens + self.completion_tokens

    def add(self, usage: Mapping[str, Any], sign: int = 1) -> None:
        """Count a question's usage; `sign` -1 takes it off again."""
        self.questions += sign
        self._add(usage, sign)

    def propose(self, usage: Mapping[str, Any]) -> None:
        """Count the usage of a proposal."""
        self.proposals += 1
        self._add(usage, 1)

    def _add(self, usage: Mapping[str, Any], sign: int) -> None:
        for name in ("calls", "from_cache", "prompt_tokens", "completion_tokens"):
            setattr(self, name, getattr(self, name) + sign * int(usage.get(name) or 0))
        if usage.get("cost") is not None:
            self.cost = (self.cost or 0.0) + sign * float(usage["cost"])


@dataclass
class Account:
    """One candidate's account.

    Attributes:
        number: Its number, in the order candidates were first seen.
        origin: Where it came from.
        rejected: Why it makes no model call, or empty.
        calls: Finish and usage by (question, round).
        scores: Score by part and (question, round).
        spent: What its answers used.
    """

    number: int
    origin: str
    rejected: str = ""
    calls: dict[tuple[str, str], dict[str, Any]] = field(default_factory=dict)
    scores: dict[str, dict[tuple[str, str], float]] = field(default_factory=lambda: {"train": {}, "val": {}})
    spent: Spent = field(default_factory=Spent)

    def add(self, key: tuple[str, str], finish: str, usage: Mapping[str, Any], total: Spent) -> bool:
        """Take an answer's usage into account, unless one that did not fail is known; returns whether it was new.

        Args:
            key: Question and round.
            finish: How the chain ended.
            usage: What it used.
            total: What all candidates used, which is kept up too.
        """
        known = self.calls.get(key)
        if known is not None and (known["finish"] != FAILED or finish == FAILED):
            return False
        for spent in (self.spent, total):
            if known is not None:
                spent.add(known["usage"], -1)
            spent.add(usage)
        self.calls[key] = {"finish": finish, "usage": usage}
        return True

    def answered(self, questions: Collection[str]) -> int:
        """Return of how many of these questions the chain ended in an answer, in the first round of sampling."""
        ended = {
            question
            for (question, rollout), call in self.calls.items()
            if rollout == FIRST and call["finish"] == ANSWERED
        }
        return sum(question in ended for question in questions)

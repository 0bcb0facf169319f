"""A trial of an optimisation as MLflow is told of it: which prompts and demos, and what they scored."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

Demos = Sequence[Mapping[str, Any]]


@dataclass(frozen=True)
class TrackedTrial:
    """One candidate program and its score.

    Attributes:
        number: Number of the trial, from 0; the same trial always has the same.
        digest: SHA-256 of the candidate's state.
        score: Mean score on the validation questions it met, 0 to 1.
        n: How many it met.
        instructions: Predictor name to prompt text.
        demos: Predictor name to demos.
        tokens: Tokens spent on it.
        rejected: Why it was not run, or empty.
        origin: Where it comes from: `start`, or what the optimizer calls it.
    """

    number: int
    digest: str
    score: float
    n: int
    instructions: Mapping[str, str] = field(default_factory=dict)
    demos: Mapping[str, Demos] = field(default_factory=dict)
    tokens: int = 0
    rejected: str = ""
    origin: str = ""

    @property
    def fingerprint(self) -> str:
        """What changes when there is something new to log of it."""
        return f"{self.digest[:16]} {self.n} {self.score:.6f} {self.tokens} {self.rejected}"[:500]

    def to_markdown(self) -> str:
        """Return its prompts as a page, each word for word in a block of its own."""
        parts = [f"# Trial {self.number}\n"]
        for name, text in self.instructions.items():
            fence = "`" * max(3, 1 + max((len(run) for run in re.findall("`+", text)), default=0))
            parts.append(f"## {name}\n\n{len(self.demos.get(name, ()))} demos\n\n{fence}text\n{text}\n{fence}\n")
        return "\n".join(parts)


def prompts_of(state: Mapping[str, Any]) -> tuple[dict[str, str], dict[str, list[dict[str, Any]]]]:
    """Take prompts and demos out of a program's state.

    Args:
        state: DSPy's state of a program: predictor name to its signature and demos.

    Returns:
        (predictor to prompt text, predictor to demos).
    """
    predictors = {name: part for name, part in state.items() if isinstance(part, Mapping) and "signature" in part}
    return (
        {name: str(part["signature"].get("instructions", "")) for name, part in predictors.items()},
        {name: [dict(demo) for demo in part.get("demos", [])] for name, part in predictors.items()},
    )

"""Systems: the runs of one method with one model, over several benchmarks; a row of a table each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from runs.reports.fallback import Outcomes
from runs.reports.paper_tables import METHODS, plain_name


@dataclass
class System:
    """A method with a model.

    Attributes:
        method: The method's name.
        model: The model's name.
        number: 1, or higher for further runs of the same method and model on the same set.
        outcomes: Its runs, one a set.
    """

    method: str
    model: str
    number: int = 1
    outcomes: list[Outcomes] = field(default_factory=list)

    @property
    def label(self) -> str:
        """Method and model, and its number where there are several."""
        return f"{METHODS.get(self.method, self.method)}, {self.model_label}"

    @property
    def model_label(self) -> str:
        """The model, and the system's number where there are several."""
        return self.model if self.number == 1 else f"{self.model} ({self.number})"

    def has(self, benchmark: str, split: str) -> bool:
        """Tell whether one of its runs is on this set."""
        return any((o.run.benchmark, o.run.split) == (benchmark, split) for o in self.outcomes)


def systems_of(outcomes: Sequence[Outcomes]) -> list[System]:
    """Group runs into systems.

    Args:
        outcomes: The runs.

    Returns:
        The systems by method, in the order of the paper's tables, then as they were given. Two runs of the same method
        and model on the same set make two systems: neither is averaged away or dropped.
    """
    found: list[System] = []
    for each in outcomes:
        run = each.run
        same = [s for s in found if s.method == run.method and plain_name(s.model) == plain_name(run.model)]
        free = next((s for s in same if not s.has(run.benchmark, run.split)), None)
        if free is None:
            free = System(run.method, run.model, len(same) + 1)
            found.append(free)
        free.outcomes.append(each)
    order = list(METHODS)
    return sorted(found, key=lambda s: order.index(s.method) if s.method in order else len(order))

"""Whether a run was made as the authors made theirs (`--paper`), and if not, in what it differs."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

from programs.options import paper_options
from runs.reports.loading import ReportRun
from signatures.errors import SearchO1Error
from signatures.profiles import ModelProfile

_FREE = frozenset({"seed", "profile"})
"""Options that the paper's setting leaves open."""


def setting_differences(run: ReportRun) -> list[str] | None:
    """Return in what a run's settings differ from the paper's.

    Args:
        run: The run.

    Returns:
        `option ours (paper's)` each, empty for a run with the paper's settings; None where the facts are too old to
        say.
    """
    given = run.facts.get("profile_fields")
    if not isinstance(given, dict) or not run.options:
        return None
    known = {field.name for field in fields(ModelProfile)}
    shape: dict[str, Any] = {name: tuple(v) if isinstance(v, list) else v for name, v in given.items() if name in known}
    try:
        paper = paper_options(
            run.method,  # type: ignore[arg-type]
            ModelProfile(**shape),
            run.task,  # type: ignore[arg-type]
            benchmark=run.benchmark,
            multi_hop=run.benchmark not in ("nq", "triviaqa"),
        ).model_dump(mode="json")
    except (SearchO1Error, TypeError):
        return None
    found = [
        f"{name} {_short(value)} (paper: {_short(paper[name])})"
        for name, value in run.options.items()
        if name in paper and name not in _FREE and value != paper[name]
    ]
    if run.facts.get("compiled"):
        found.append(f"compiled program {run.facts['compiled']} (paper: none)")
    return found


def settings_word(run: ReportRun) -> str:
    """Return `yes`, `no` or `unknown` to the question whether a run has the paper's settings."""
    differences = setting_differences(run)
    return "unknown" if differences is None else "no" if differences else "yes"


def _short(value: Any) -> str:
    text = ", ".join(f"{k} {v}" for k, v in value.items()) if isinstance(value, dict) else str(value)
    return text or "none"

"""What a person can set for a tuning, typed and validated once."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

from pydantic import Field, field_validator

from runs.settings import ModelSettings, RetrievalSettings, split_names
from signatures.errors import OptionError

OBJECTIVES = {"score": "maximize", "tokens": "minimize", "latency": "minimize", "cost": "minimize"}
"""What can be optimised, and which way."""


class TuneSettings(ModelSettings, RetrievalSettings):
    """Everything `search-o1 tune` takes.

    Attributes:
        benchmark: Name of a benchmark (empty: `quickstart`), or a label for `data` (empty: the file's name).
        data: A question file of your own.
        split: Split; empty means `validation`.
        limit: Only the first so many questions; None means all.
        method: The method, unless it is a parameter.
        program: Compiled program, unless it is a parameter: `auto`, `none`, a name, a JSON file or a registered one.
        params: Parameter name to range or choices: `1:20`, `0.001:1:log`, `500:6000:step=500`, `a,b,c`.
        trials: Finished trials the study should have in the end, over all workers and starts.
        objective: `score`, and what it is weighed against: `tokens`, `latency` or `cost`; also as one text.
        storage: Database URL of the study; None means an SQLite file in the home folder.
        study: Name of the study; empty makes one from what is tuned.
        pruner: How hopeless trials are found: `median`, `hyperband`, or `none`.
        report_every: Questions between two looks at a trial; also the most that are in flight while trials are pruned.
        warmup: Questions that each trial answers before it may be pruned.
        grace: Seconds without a sign of life after which a worker counts as dead and its trial is tried again.
        concurrency: Chains in flight; None means 8 for the embedded model and 64 for a server.
        i_know: Tune on test rows all the same; the result then says so.
        paper: Use the paper's settings as the base of the options.
        seed: Seed of the search and of sampling.
        options: Chain options that are the same in every trial, by name.
        unsafe_code: Run programs that answer code questions without isolation where none is to be had.
        track: Log to MLflow.
        experiment: MLflow experiment; empty means `<benchmark> tune`.
        tracking_uri: MLflow store; None means the home folder's.
        progress: Show a progress bar.
    """

    benchmark: str = ""
    data: Path | None = None
    split: str = ""
    limit: int | None = Field(None, ge=1)
    method: str = "search_o1"
    program: str = "auto"
    params: dict[str, str] = Field(default_factory=dict)
    trials: int = Field(20, ge=1)
    objective: tuple[str, ...] = ("score",)
    storage: str | None = None
    study: str = Field("", pattern=r"^([A-Za-z0-9_][A-Za-z0-9._-]*)?$", max_length=120)
    pruner: Literal["median", "hyperband", "none"] = "median"
    report_every: int = Field(8, ge=1)
    warmup: int = Field(8, ge=0)
    grace: int = Field(60, ge=2)
    concurrency: int | None = Field(None, ge=1)
    i_know: bool = False
    paper: bool = False
    seed: int = 0
    options: dict[str, Any] = Field(default_factory=dict)
    unsafe_code: bool = False
    track: bool = True
    experiment: str = ""
    tracking_uri: str | None = None
    progress: bool = True

    @field_validator("objective", mode="before")
    @classmethod
    def _split_objective(cls, given: Any) -> Any:
        return split_names(given) if isinstance(given, str) else given


def check_objective(objective: tuple[str, ...]) -> None:
    """Refuse objectives that are unknown, or that leave the score out.

    Args:
        objective: Names.

    Raises:
        OptionError: One is unknown or named twice, or the first is not the score.
    """
    for name in objective:
        if name not in OBJECTIVES:
            raise OptionError(f"Unknown objective {name!r}; known: {', '.join(OBJECTIVES)}.")
    if not objective or objective[0] != "score" or len(set(objective)) < len(objective):
        raise OptionError(
            f"Objective {','.join(objective)!r}: begin with score and name each once, for example score,tokens; what "
            "is cheapest without regard to the score is found without a search."
        )

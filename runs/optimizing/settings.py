"""What a person can set for an optimisation, typed and validated once."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

from pydantic import Field

from runs.settings import ModelSettings, RetrievalSettings


class OptimizeSettings(ModelSettings, RetrievalSettings):
    """Everything `search-o1 optimize` takes.

    Attributes:
        benchmark: Name of a benchmark (empty: `quickstart`), or a label for `train` (empty: the file's name).
        method: Method whose prompts are improved.
        optimizer: `labeled`, `bootstrap`, `random-search`, `copro`, `miprov2`, `gepa` or `simba`.
        budget: `light`, `medium`, `heavy`, or the number of candidates to try.
        train: Question file to learn from; None means the benchmark's split.
        val: Question file to choose by; None means the benchmark's split, else a fifth of the training questions.
        train_split: Split to learn from; empty means `train`.
        val_split: Split to choose by; empty means `validation`.
        train_limit: Only the first so many training questions.
        val_limit: Only the first so many validation questions.
        only: Improve only the reasoning prompt or only Reason-in-Documents; None improves both.
        teacher: A stronger model that the demos come from: a model name, an address ending in `/v1`, or `NAME@ADDRESS`.
        reflection: A model that proposes instructions, likewise; None means the model itself.
        start: What is improved: `zero-shot`, `worked` (demos made from the labels), or a compiled program.
        output: Name in the home folder's `programs`, or a JSON file; empty means `<method>--<model>--<task>`.
        force: Replace a program of that name.
        i_know: Learn from test rows all the same; the program and all its scores then say so.
        concurrency: Chains in flight; None means 8 for the embedded model and 64 for a server.
        seed: Seed of the optimizer and of sampling.
        options: Chain options by name.
        paper: Use the paper's settings as the base of the options.
        unsafe_code: Run programs that answer code questions without isolation where none is to be had.
        track: Log to MLflow.
        experiment: MLflow experiment; empty means `<benchmark> optimize`.
        tracking_uri: MLflow store; None means the home folder's.
        progress: Show a progress bar.
    """

    benchmark: str = ""
    method: str = "search_o1"
    optimizer: str = "random-search"
    budget: str | int = "light"
    train: Path | None = None
    val: Path | None = None
    train_split: str = ""
    val_split: str = ""
    train_limit: int | None = Field(None, ge=1)
    val_limit: int | None = Field(None, ge=1)
    only: Literal["reason", "refine"] | None = None
    teacher: str | None = None
    reflection: str | None = None
    start: str = "zero-shot"
    output: str = ""
    force: bool = False
    i_know: bool = False
    concurrency: int | None = Field(None, ge=1)
    seed: int = 0
    options: dict[str, Any] = Field(default_factory=dict)
    paper: bool = False
    unsafe_code: bool = False
    track: bool = True
    experiment: str = ""
    tracking_uri: str | None = None
    progress: bool = True

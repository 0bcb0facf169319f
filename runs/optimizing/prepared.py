"""Everything that an optimisation needs, put together and checked before anything is paid for."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from metrics.sandbox.options import SandboxOptions
from programs.base import Program
from programs.options import COMPACT_NOTE
from programs.registry import PROGRAMS
from runs.assembly import assemble_model, assemble_options, assemble_program
from runs.home import Home
from runs.models.factory import Model
from runs.optimizing.budgets import parse_budget
from runs.optimizing.labelled import worked_program
from runs.optimizing.metadata import optimisation_facts, optimisation_id
from runs.optimizing.optimizers import find_optimizer
from runs.optimizing.optimizers.base import Optimizer, Plan
from runs.optimizing.output import check_output, output_path
from runs.optimizing.question_text import question_key
from runs.optimizing.roles import proposing_lm, teaching_lm
from runs.optimizing.settings import OptimizeSettings
from runs.optimizing.splits import Split, check_sizes, split_examples
from runs.retrieval_setup import Retrieval, assemble_retrieval, cache_policy
from runs.scoring import check_scoring
from signatures.errors import OptionError

ZERO_SHOT, WORKED = "zero-shot", "worked"
Say = Callable[[str], None]


@dataclass(frozen=True)
class Prepared:
    """An optimisation that can begin.

    Attributes:
        settings: The settings.
        home: Home folder.
        optimizer: The optimizer.
        plan: What it will do.
        split: The questions.
        model: The language model optimised for.
        program: The program to improve, with its start prompts.
        started_from: Metadata of the compiled program that is improved; empty for other starts.
        teacher_lm: A stronger model that demos come from, or None.
        reflection_lm: The model that proposes instructions.
        threads: Questions at a time.
        facts: What changes the result.
        id: Hash of the facts.
        file: Where the compiled program goes.
    """

    settings: OptimizeSettings
    home: Home
    optimizer: Optimizer
    plan: Plan
    split: Split
    model: Model
    program: Program
    started_from: Mapping[str, Any]
    teacher_lm: Any
    reflection_lm: Any
    threads: int
    facts: Mapping[str, Any]
    id: str
    file: Path

    @property
    def folder(self) -> Path:
        """Folder of the optimisation."""
        return self.home.root / "optimizations" / self.id

    @property
    def sandbox(self) -> SandboxOptions:
        """How programs that answer code questions are run."""
        return SandboxOptions(unsafe=self.settings.unsafe_code)


def prepare(settings: OptimizeSettings, home: Home, say: Say) -> Prepared:
    """Put an optimisation together.

    Args:
        settings: The settings.
        home: Home folder.
        say: Called with a line for the user.

    Returns:
        The optimisation, ready to begin.

    Raises:
        OptionError: The optimizer, method, budget or another setting is unknown or impossible; known ones are listed.
        DataError: Questions are missing, too few, or test rows.
        ProgramError: The start is no fitting program, or another program stands where the result goes.
        SearchO1Error: Corpus, weights or server are missing.
    """
    optimizer = find_optimizer(settings.optimizer)
    budget = parse_budget(settings.budget)
    _check_method(settings)
    split = split_examples(settings)
    check_sizes(settings.optimizer, optimizer.min_train, optimizer.min_val, split)
    task = settings.options.get("task", split.task)
    check_scoring(task, SandboxOptions(unsafe=settings.unsafe_code), [*split.train, *split.val])
    _tell(split, say)
    model = assemble_model(settings, home, say, policy=cache_policy(settings))
    file = output_path(settings, home, model, task)
    retrieval = None
    if settings.method != "direct":
        retrieval = assemble_retrieval(settings, home, say, split.benchmark, watched=True)
    if model.profile.compact and not settings.paper:
        say(COMPACT_NOTE)
    program, started_from = _start(settings, home, split, model, retrieval, say)
    facts = optimisation_facts(settings, split, program, model, retrieval)
    name = optimisation_id(facts)
    check_output(file, name, force=settings.force)
    return Prepared(
        settings, home, optimizer, optimizer.plan(budget, len(split.train), len(split.val), model.profile), split,
        model, program, started_from, teaching_lm(settings, home, say), proposing_lm(settings, home, model, say),
        settings.concurrency or (8 if model.name.startswith("local/") else 64), facts, name, file,
    )  # fmt: skip


def _check_method(settings: OptimizeSettings) -> None:
    if settings.method not in PROGRAMS:
        raise OptionError(f"Unknown method {settings.method!r}; known methods: {', '.join(PROGRAMS)}.")
    if settings.only == "refine" and settings.method != "search_o1":
        raise OptionError(f"{settings.method} has no Reason-in-Documents; --only refine is for search_o1.")


def _tell(split: Split, say: Say) -> None:
    say(
        f"Learning from {len(split.train)} questions ({split.train_from}), choosing by {len(split.val)} "
        f"({split.val_from})."
    )
    if split.dropped:
        say(f"{split.dropped} training questions left out: they stand twice, or in the validation set.")
    if split.warning:
        say(split.warning)
    if split.leaked:
        say(f"{len(split.leaked)} test rows are among them (--i-know): the program and all its scores will say so.")


def _start(
    settings: OptimizeSettings, home: Home, split: Split, model: Model, retrieval: Retrieval | None, say: Say
) -> tuple[Program, Mapping[str, Any]]:
    """Return the program to improve, and the metadata of the compiled one it was loaded from."""
    options = assemble_options(
        settings.method,
        model,
        split.benchmark,
        settings.options,
        task=split.task,
        paper=settings.paper,
        seed=settings.seed,
        name=split.name,
        temperature=settings.temperature,
    )
    wanted = "none" if settings.start in (ZERO_SHOT, WORKED) else settings.start
    program, compiled = assemble_program(
        settings.method, options, retrieval, model, wanted, home, say=say, tracking_uri=settings.tracking_uri
    )
    if settings.start == WORKED:
        program, used = worked_program(program, split.train, model.profile)
        say(f"Start: demos from the labels of {len(used)} training questions.")
    if compiled is None:
        return program, {}
    known = set(compiled.metadata.get("trained_on", ()))
    if met := sum(question_key(question.question) in known for question in split.val):
        say(f"The start has learned from {met} of the validation questions: its score before is flattered.")
    return program, compiled.metadata

"""One trial: the questions answered with the trial's options, journaled, looked at after every few."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from metrics.chain_statistics import quantile
from metrics.kinds import HEADLINE
from metrics.sandbox.options import SandboxOptions
from programs.saving import CompiledProgram, load_program
from retrieval.sync import run_blocking
from runs.answering import answer_all, pending
from runs.assembly import assemble_options, assemble_program
from runs.benchmarks.registry import QuestionSet
from runs.home import Home
from runs.identity import run_facts
from runs.journal import Journal, Record
from runs.models.factory import Model
from runs.program_store import NONE
from runs.retrieval_setup import Retrieval, Say
from runs.run_folder import note_start
from runs.summary import summarise
from runs.tuning.pruning import waves
from runs.tuning.settings import TuneSettings
from runs.tuning.space import Setup
from signatures.errors import SearchO1Error

_ENVIRONMENT = ("model", "retrieval", "search", "read")
"""Error kinds that are no fault of the options: a server that is down, a key that is not valid."""

Look = Callable[[list[Record]], None]
"""Called with the records so far, in the order of the questions; raises to give the trial up."""


class TrialFailedError(SearchO1Error):
    """No question of a trial could be answered, for reasons that are not the trial's."""

    kind = "trial"


@dataclass(frozen=True)
class World:
    """What all trials share.

    Attributes:
        settings: The settings.
        questions: The questions, in the order in which every trial answers them.
        data_hash: Their hash.
        model: The language model.
        retrieval: Search and reader, or None where no method searches.
        home: Home folder.
        compiled: Method, program as it was asked for, and language, to the compiled program: found once, so that one
            which is made while a study runs is in none of its trials.
    """

    settings: TuneSettings
    questions: QuestionSet
    data_hash: str
    model: Model
    retrieval: Retrieval | None
    home: Home
    compiled: dict[tuple[str, str, str], CompiledProgram | None] = field(default_factory=dict)

    @property
    def task(self) -> str:
        """Task kind of the questions."""
        return str(self.settings.options.get("task", self.questions.task))

    @property
    def headline(self) -> str:
        """The metric that is the score, of the strict family."""
        return HEADLINE[self.task]


def build_program(world: World, setup: Setup, say: Say = lambda line: None) -> tuple[Any, CompiledProgram | None]:
    """Build the program of a trial.

    Args:
        world: What all trials share.
        setup: Method, compiled program and options.
        say: Called with a line for the user when a compiled program is found.

    Returns:
        The program, and the compiled one in it, or None.

    Raises:
        OptionError: An option is impossible.
        ProgramError: The compiled program is missing, damaged, or made for another method.
    """
    settings, questions = world.settings, world.questions
    options = assemble_options(
        setup.method,
        world.model,
        questions.benchmark,
        setup.options,
        task=questions.task,
        paper=settings.paper,
        seed=settings.seed,
        name=questions.name,
        temperature=settings.temperature,
    )
    retrieval = world.retrieval if setup.method != "direct" else None
    key = setup.method, setup.program, options.language
    wanted = NONE if key in world.compiled else setup.program
    program, found = assemble_program(
        setup.method, options, retrieval, world.model, wanted, world.home, say=say, tracking_uri=settings.tracking_uri
    )
    compiled = world.compiled.setdefault(key, found)
    if compiled is not None and wanted == NONE:
        load_program(program, compiled)
    return program, compiled


def run_trial(
    world: World, setup: Setup, folder: Path, *, look: Look | None, on_done: Callable[[Record], None]
) -> list[Record]:
    """Answer the questions with a trial's options; what its folder's journal holds is not answered again.

    Args:
        world: What all trials share.
        setup: Method, compiled program and options.
        folder: The trial's folder, which is a run's folder like any other.
        look: Called after every few questions; None answers all at once.
        on_done: Called with each record.

    Returns:
        The records, in the order of the questions.

    Raises:
        TrialFailedError: A server or a key failed every question so far.
        BaseException: Whatever `look` raised.
    """
    settings, questions = world.settings, world.questions.questions
    program, compiled = build_program(world, setup)
    facts = run_facts(
        benchmark=world.questions.name, split=world.questions.split, data_hash=world.data_hash, method=setup.method,
        program=program, model=world.model, retrieval=world.retrieval, compiled=compiled, fallback=None,
    )  # fmt: skip
    journal = Journal(folder / "journal.jsonl")
    note_start(folder, facts, [(q.id, 0) for q in questions], fresh=False)
    concurrency = settings.concurrency or (8 if world.model.name.startswith("local/") else 64)
    size = len(questions) if look is None else settings.report_every

    async def answer() -> list[Record]:
        records: list[Record] = []
        done = journal.read()
        for wave in waves(questions, size):
            found = {key: record for key, record in done.items() if record["finish"] != "error"}
            fresh: dict[tuple[str, int], Record] = {}

            def keep(record: Record, fresh: dict[tuple[str, int], Record] = fresh) -> None:
                fresh[record["id"], record["sample"]] = record
                on_done(record)

            await answer_all(
                program,
                world.model,
                pending(wave, 1, found),
                journal,
                concurrency=concurrency,
                seed=settings.seed,
                on_done=keep,
                sandbox=SandboxOptions(unsafe=settings.unsafe_code),
            )
            records += [{**found, **fresh}[q.id, 0] for q in wave]
            _check_environment(records)
            if look is not None:
                look(records)
        return records

    return run_blocking(answer())


def trial_metrics(records: list[Record], headline: str) -> dict[str, float]:
    """Return what is kept of a trial.

    Args:
        records: Its records, one a question.
        headline: Name of the metric that is the score.

    Returns:
        `score` with `low` and `high` (95 %), `questions`, `tokens` and `searches` a question, `failures`; and where
        they are known `cost` (US dollars a question) and `latency` (seconds, median of those answered without the
        reply cache).
    """
    summary = summarise(records, headline)
    score = summary.scores["strict"][headline]
    seconds = [float(r["seconds"]) for r in records if not r["calls_from_cache"] and r["finish"] != "error"]
    found = {
        "score": score.mean,
        "low": score.low,
        "high": score.high,
        "questions": float(summary.questions),
        "tokens": summary.chains["tokens"],
        "searches": summary.chains["searches"],
        "failures": float(sum(summary.failures.values())),
        "cost": summary.chains["cost"],
        "latency": quantile(seconds, 0.5),
    }
    return {name: value for name, value in found.items() if math.isfinite(value)}


def mean_score(records: list[Record], headline: str) -> float:
    """Return the mean score of some records, at least one."""
    return math.fsum(float(record["strict"][headline]) for record in records) / len(records)


def _check_environment(records: list[Record]) -> None:
    if all(record["finish"] == "error" and record["error_kind"] in _ENVIRONMENT for record in records):
        raise TrialFailedError(
            f"Every question so far failed, {len(records)} of {len(records)}; the first one: {records[0]['error']} "
            "The same command goes on once that is mended."
        )

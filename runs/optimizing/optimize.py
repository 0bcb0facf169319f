"""Optimisation: a program and questions in, the same program with better prompts out: `search-o1 optimize`."""

from __future__ import annotations

import logging
import shlex
from dataclasses import replace
from typing import Any

import dspy
from dspy.utils.exceptions import LMError
from rich.console import Console

from metrics.kinds import HEADLINE
from metrics.statistics import mean_with_error, paired_difference
from programs.base import Program
from programs.saving import CompiledProgram, load_program, save_program
from runs.command_flags import flags_of_options, flags_of_settings
from runs.home import Home
from runs.json_file import write_json
from runs.optimizing.candidate import Candidate
from runs.optimizing.demos import DemoSettler
from runs.optimizing.examples import to_examples
from runs.optimizing.feedback import OptimizationMetric
from runs.optimizing.interrupts import WORKER, Interrupts
from runs.optimizing.labelled import worked_program
from runs.optimizing.ledger import Ledger
from runs.optimizing.measuring import measure
from runs.optimizing.metadata import program_metadata
from runs.optimizing.one_start import the_only_start
from runs.optimizing.optimizers.base import OptimizerTask
from runs.optimizing.output import name_for_use
from runs.optimizing.prepared import prepare
from runs.optimizing.progress import OptimizationProgress
from runs.optimizing.proposals import ProposalUsage
from runs.optimizing.protocol import ProtocolGate
from runs.optimizing.quiet import Quiet
from runs.optimizing.result import Optimised, print_result
from runs.optimizing.session import AccountedMetric, Session, Stopped
from runs.optimizing.settings import OptimizeSettings
from runs.optimizing.starters import with_starters
from runs.optimizing.trial_log import TrialLog
from runs.program_store import model_key
from runs.settings import make_settings
from signatures.errors import ModelError, SearchO1Error

_FINALISTS = 3
_ENDLESS = 10**9


def optimize(
    benchmark: str = "", *, console: Console | None = None, home: Home | None = None, **settings: Any
) -> Optimised:
    """Improve a method's prompts with one of DSPy's optimizers and write the compiled program.

    The same call goes on where a killed one stopped, and repeats no model call. Ctrl-C stops within about two seconds
    and keeps the best program so far. The result is never worse than the start on the validation questions.

    Args:
        benchmark: Name of a benchmark, by default `quickstart`; with `train` a label, by default the file's name.
        console: Where to print; None prints nothing but the progress.
        home: Home folder; by default the user's.
        **settings: Fields of `OptimizeSettings`.

    Returns:
        The compiled program with its file, scores before and after, and what it cost.

    Raises:
        OptionError: A setting is unknown or impossible.
        SearchO1Error: Data, corpus, weights or server are missing, or every question failed.
        KeyboardInterrupt: Ctrl-C was pressed before the start's own score was known.
    """
    chosen: OptimizeSettings = make_settings(OptimizeSettings, {"benchmark": benchmark, **settings})
    return _Optimisation(chosen, home or Home(), console or Console(quiet=True)).run()


class _Optimisation:
    def __init__(self, settings: OptimizeSettings, home: Home, console: Console) -> None:
        logging.getLogger("dspy").setLevel(logging.ERROR)
        self.console = console
        self.prepared = ready = prepare(settings, home, self.say)
        self.ledger = Ledger(ready.folder, [question.id for question in ready.split.val])
        self.settler = DemoSettler(ready.model, ready.program.options)
        self.session = Session(
            self.ledger,
            ready.split.train,
            ready.split.val,
            gate=ProtocolGate(ready.program, ready.model),
            demos=self.settler,
            model=ready.model.lm.model,
            seed=settings.seed,
            only=settings.only,
        )
        self.scorer = OptimizationMetric(
            ready.program.options.task, ready.split.questions, method=settings.method, sandbox=ready.sandbox
        )
        self.metric = AccountedMetric(self.scorer, self.session)
        self.train, self.val = to_examples(ready.split.train), to_examples(ready.split.val)
        self.start = ""

    def say(self, line: str) -> None:
        self.console.print(line, highlight=False, soft_wrap=True, markup=False)

    def run(self) -> Optimised:
        with the_only_start(self.prepared.folder):
            return self._run()

    def _run(self) -> Optimised:
        ready, ledger = self.prepared, self.ledger
        write_json(ready.folder / "facts.json", ready.facts)
        if ledger.spent.questions:
            self.say(f"Going on after {ledger.spent.questions} answered questions ({ready.folder}).")
        ledger.begin()
        progress = OptimizationProgress(
            ready.settings.optimizer, ledger, ready.plan.rollouts + len(self.val), ready.plan.candidates, self.console,
            shown=ready.settings.progress,
        )  # fmt: skip
        quiet = Quiet(WORKER, ready.folder / "optimizer.log")

        def answered(digest: str) -> None:
            with quiet.aloud():
                progress.answered()

        self.session.on_answer.append(answered)
        log = TrialLog(ready, ledger, self.say) if ready.settings.track else None
        if log is not None:
            self.session.on_score.append(log.scored)
        try:
            with Interrupts(self.session.stop) as interrupts:
                with progress, quiet:
                    finished = interrupts.run(self._search_or_fail)
                if not self.start or not ledger.is_whole(self.start):
                    # Nothing is known yet that would be worth keeping.
                    raise KeyboardInterrupt
                done = self._result(log, interrupted=not finished)
                self._tell(done)
                return done if log is None else self._close(log, done)
        except BaseException:
            if log is not None:
                log.stop()
            raise

    def _close(self, log: TrialLog, done: Optimised) -> Optimised:
        """Log what it came to; after Ctrl-C only that it was stopped, which takes less time."""
        if done.interrupted:
            log.stop()
            return replace(done, tracking_error=log.tracker.failed)
        registration = log.finish(done, HEADLINE[self.prepared.program.options.task])
        if registration.uri:
            champion = "the champion" if registration.champion else "not the champion"
            self.say(f"Registered in MLflow as {registration.uri}, {champion}: {registration.why}.")
        return replace(done, registered=registration.uri, tracking_error=log.tracker.failed)

    def _tell(self, done: Optimised) -> None:
        if failed := self.ledger.failures():
            self.say(
                f"{failed} of {done.spent.questions} answers failed and count as wrong; the same command asks those "
                "questions again."
            )
        if failures := self.scorer.failures:
            self.say(
                f"{len(failures)} answers could not be scored and count as wrong; the first one, to question "
                f"{failures[0].question_id}: {failures[0].error}"
            )
        print_result(self.console, done, HEADLINE[done.program.options.task], self._use(done))

    def _search_or_fail(self) -> None:
        try:
            self._search()
        except Stopped:
            if self.session.error is None:
                raise
            raise self.session.error from None

    def _search(self) -> None:
        """Measure the start, let the optimizer work, and measure what comes into question on all of val."""
        ready, session = self.prepared, self.session
        with dspy.context(
            lm=ready.model.lm,
            trace=None,
            disable_history=True,
            max_errors=_ENDLESS,
            num_threads=ready.threads,
            usage_tracker=ProposalUsage(self.ledger),
        ):
            student = Candidate(ready.program, session)
            session.origin = f"start ({ready.settings.start})"
            self.start, _ = session.admit(student.program)
            measure(student, self.val, self.metric, ready.threads)
            session.origin = ready.settings.optimizer
            compiled = self._compile(student)
            last, _ = session.admit(compiled.program)
            for digest in dict.fromkeys([last, *self.ledger.finalists(_FINALISTS)]):
                if not self.ledger.is_whole(digest):
                    measure(Candidate(self._program(digest), session), self.val, self.metric, ready.threads)

    def _compile(self, student: Candidate) -> Candidate:
        name = self.prepared.settings.optimizer
        try:
            return self.prepared.optimizer.compile(self._task(student))
        except SearchO1Error:
            raise
        except LMError as error:
            raise ModelError(
                f"{name}: the model that proposes instructions failed: {error}. The same command goes on from here."
            ) from error
        except Exception as error:
            # DSPy raises whatever a proposal that it cannot read leads to.
            reason = (str(error).strip() or "no reason given").splitlines()[0]
            raise ModelError(
                f"{name} stopped ({type(error).__name__}: {reason}). A model that cannot write the proposals it is "
                "asked for is the usual reason; name a stronger one with --reflection, or take random-search, which "
                "asks for none."
            ) from error

    def _task(self, student: Candidate) -> OptimizerTask:
        ready = self.prepared
        shows_demos = any(predictor.demos for _, predictor in ready.program.named_predictors())
        teacher = None
        if not shows_demos or ready.teacher_lm is not None:
            teacher = self._only_what_is_improved(with_starters(ready.program, ready.model.profile))
        return OptimizerTask(
            student=student,
            teacher=teacher,
            teacher_lm=ready.teacher_lm,
            reflection_lm=ready.reflection_lm,
            labelled=self._labelled,
            train=self.train,
            val=self.val,
            metric=self.metric,
            plan=ready.plan,
            seed=ready.settings.seed,
            threads=ready.threads,
        )

    def _labelled(self) -> Candidate:
        ready = self.prepared
        worked, used = worked_program(ready.program, ready.split.train, ready.model.profile)
        self.say(f"Demos from the labels of {len(used)} training questions.")
        return self._only_what_is_improved(worked)

    def _only_what_is_improved(self, program: Program) -> Candidate:
        """Put what is frozen back as it was in the start: such a program may win itself."""
        if (only := self.prepared.settings.only) is not None and hasattr(program, "refine"):
            frozen = "refine" if only == "reason" else "reason"
            setattr(program, frozen, self.prepared.program.deepcopy().__dict__[frozen])
        return Candidate(program, self.session)

    def _program(self, digest: str) -> Program:
        """Return a candidate's program, with exactly its texts."""
        ready = self.prepared
        program: Program = ready.program.deepcopy()
        options = program.options
        path = self.ledger.folder / digest
        state = self.ledger.state(digest)
        stored = CompiledProgram(
            path, program.method, model_key(ready.model), options.task, options.language, {}, state, digest
        )
        load_program(program, stored)
        return program

    def _use(self, done: Optimised) -> str:
        """Return the command that evaluates the program, with the model and knowledge it was made with."""
        ready, settings = self.prepared, self.prepared.settings
        questions = [ready.split.benchmark.name] if ready.split.benchmark is not None else ["--data", "FILE"]
        named = ["--method", settings.method, "--program", name_for_use(done.file, ready.home)]
        given = [*flags_of_settings(settings), *flags_of_options(settings.options)]
        return shlex.join(["search-o1", "evaluate", *questions, *named, *given])

    def _result(self, log: TrialLog | None, *, interrupted: bool) -> Optimised:
        ready, ledger = self.prepared, self.ledger
        found = ledger.best()
        best = found[0] if found is not None else self.start
        before, after = ledger.scores(self.start), ledger.scores(best)
        first = [before[question.id] for question in ready.split.val]
        second = [after[question.id] for question in ready.split.val]
        difference = paired_difference(second, first)
        program = self._program(best)
        mlflow_run = log.run_id(patient=not interrupted) if log is not None else ""
        metadata = program_metadata(
            ready.settings,
            ready.split,
            ready.model,
            ledger,
            optimisation=ready.id,
            plan=ready.plan,
            before=mean_with_error(first),
            after=mean_with_error(second),
            difference=difference,
            demo_tokens=self.settler.tokens(program),
            started_from=ready.started_from,
            interrupted=interrupted,
            mlflow_run=mlflow_run,
        )
        written = save_program(program, ready.file, model=model_key(ready.model), metadata=metadata)
        return Optimised(
            ready.id, ready.folder, written.path, program, mean_with_error(first), mean_with_error(second), difference,
            ledger.trials(), ledger.spent, ledger.seconds, best != self.start, interrupted, mlflow_run,
            metadata=written.metadata,
        )  # fmt: skip

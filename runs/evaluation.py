"""Evaluation: questions in, scores with their errors out; journaled, resumable, tracked: `search-o1 evaluate`."""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

from rich.console import Console

from metrics.kinds import HEADLINE
from metrics.sandbox.options import SandboxOptions
from programs.fallback import WithFallback
from programs.options import COMPACT_NOTE
from programs.saving import CompiledProgram
from retrieval.sync import run_blocking
from runs.answering import answer_all, pending, table_row
from runs.assembly import assemble_model, assemble_options, assemble_program
from runs.benchmarks.question import dataset_hash
from runs.benchmarks.registry import QuestionSet, load_questions
from runs.finished_run import Evaluation
from runs.home import Home
from runs.identity import run_facts, run_id
from runs.journal import Journal, Record
from runs.models.factory import Model
from runs.printing import print_difference, print_scores
from runs.progress import RunProgress
from runs.replaying import REPLAY_SUFFIX, replay_report
from runs.retrieval_setup import Retrieval, Say, assemble_retrieval, cache_policy
from runs.run_folder import load_run, note_start
from runs.scoring import check_scoring
from runs.settings import EvaluateSettings, make_settings
from runs.summary import compare_records, summarise
from runs.tracking import Tracker, read_note, write_note
from runs.trained_on import LEAKED, TRAINED, training_facts, training_notes
from signatures.errors import OptionError


def evaluate(
    benchmark: str = "", *, console: Console | None = None, home: Home | None = None, **settings: Any
) -> list[Evaluation]:
    """Evaluate one or more methods on a benchmark or a question file.

    The same call goes on where a killed one stopped, and repeats no model call.

    Args:
        benchmark: Name of a benchmark, by default `quickstart`; with `data` a label, by default the file's name.
        console: Where to print; None prints nothing but the progress.
        home: Home folder; by default the user's.
        **settings: Fields of `EvaluateSettings`.

    Returns:
        One evaluation a method, in order.

    Raises:
        OptionError: A setting is unknown or impossible.
        SearchO1Error: Data, corpus, weights or server are missing.
    """
    chosen: EvaluateSettings = make_settings(EvaluateSettings, {"benchmark": benchmark, **settings})
    return _Run(chosen, home or Home(), console or Console(quiet=True)).evaluate()


class _Run:
    def __init__(self, settings: EvaluateSettings, home: Home, console: Console) -> None:
        self.settings = settings
        self.home = home
        self.console = console

    def say(self, line: str) -> None:
        self.console.print(line, highlight=False, soft_wrap=True, markup=False)

    def evaluate(self) -> list[Evaluation]:
        settings = self.settings
        logging.getLogger("dspy.clients.lm").setLevel(logging.ERROR)
        if settings.fallback not in (None, "generate"):
            raise OptionError(f"Unknown fallback {settings.fallback!r}; known: generate.")
        named = settings.benchmark or ("quickstart" if settings.data is None else "")
        everything = load_questions(named, data=settings.data, split=settings.split)
        questions = self._chosen(everything)
        methods = settings.methods or (questions.benchmark.methods if questions.benchmark else ("search_o1",))
        sandbox = SandboxOptions(unsafe=settings.unsafe_code)
        if questions.benchmark is None and "task" not in settings.options:
            self.say(f"Scored as {questions.task} (another kind of task: --set task=math).")
        check_scoring(settings.options.get("task", questions.task), sandbox, questions.questions)
        model = assemble_model(settings, self.home, self.say, policy=cache_policy(settings))
        retrieval = None
        if any(method != "direct" for method in methods):
            retrieval = assemble_retrieval(settings, self.home, self.say, questions.benchmark, watched=True)
        if model.profile.compact and not settings.paper:
            self.say(COMPACT_NOTE)
        data_hash = dataset_hash(everything.questions)
        # All programs are built before the first one runs, so that a mistake in the last method costs nothing.
        programs = [(method, *self._program(method, questions, model, retrieval)) for method in methods]
        done = [
            self._one_method(method, program, compiled, questions, data_hash, model, retrieval)
            for method, program, compiled in programs
        ]
        self._report(done, [compiled for _, _, compiled in programs])
        return done

    def _chosen(self, everything: QuestionSet) -> QuestionSet:
        benchmark = everything.benchmark
        limit = self.settings.limit
        if limit is None and benchmark is not None:
            limit = benchmark.default_limit
        if not limit or limit >= len(everything.questions):
            return everything
        self.say(f"First {limit} of {len(everything.questions)} questions (all: --limit 0).")
        return replace(everything, questions=everything.questions[:limit])

    def _one_method(
        self,
        method: str,
        program: Any,
        compiled: CompiledProgram | None,
        questions: QuestionSet,
        data_hash: str,
        model: Model,
        retrieval: Retrieval | None,
    ) -> Evaluation:
        settings = self.settings
        facts = run_facts(
            benchmark=questions.name, split=questions.split, data_hash=data_hash, method=method, program=program,
            model=model, retrieval=retrieval, compiled=compiled, fallback=settings.fallback,
        )  # fmt: skip
        recorded = run_id(facts)
        # Not part of the identity: the hub's commit changes with a mere page too, and the data hash tells data apart.
        facts["data_revision"] = questions.revision
        # A replay repeats what the recording did, so it must not find the recording's answers in its own journal.
        name = recorded + REPLAY_SUFFIX if settings.replay else recorded
        fresh = settings.fresh or settings.replay
        folder = self.home.runs / name
        journal = Journal(folder / "journal.jsonl")
        if fresh:
            journal.clear()
        everything = [(q.id, s) for q in questions.questions for s in range(settings.samples)]
        done = journal.read()
        # Not part of the identity either: it follows from prompt and questions, and grows with the limit.
        facts |= training_facts(compiled, {**_texts(done.values()), **{q.id: q.question for q in questions.questions}})
        note_start(folder, facts, everything, fresh=fresh)
        work = pending(questions.questions, settings.samples, done)
        wanted = set(everything)
        finished = [r for key, r in done.items() if key in wanted and r["finish"] != "error"]
        if finished and work:
            self.say(f"{method}: going on after {len(finished)} finished questions (--fresh starts anew).")
        known_run, complete = read_note(folder) if not fresh else ("", False)
        tracker = None
        # A run that was killed while its last lines were logged is closed properly by the next start.
        if settings.track and (work or not complete):
            tracker = self._tracker(method, folder, facts, compiled, known_run)
            self._start(tracker, method, name, facts, retrieval, finished)
        headline = HEADLINE[facts["options"]["task"]]
        started = time.monotonic()
        try:
            with RunProgress(method, len(work), finished, headline, self.console, shown=settings.progress) as progress:

                def on_done(record: Record) -> None:
                    progress.add(record)
                    if tracker is not None:
                        tracker.add(record)

                concurrency = settings.concurrency or (8 if model.name.startswith("local/") else 64)
                run_blocking(
                    answer_all(
                        program,
                        model,
                        work,
                        journal,
                        concurrency=concurrency,
                        seed=settings.seed,
                        on_done=on_done,
                        sandbox=SandboxOptions(unsafe=settings.unsafe_code),
                    )
                )
        except BaseException:
            if tracker is not None:
                tracker.abandon()
            raise
        seconds = time.monotonic() - started
        records = self._ordered(journal, questions)
        # A start with a smaller --limit shows its own scores; folder and MLflow keep those of all that was answered.
        stored = load_run(folder).records
        kept = {**summarise(stored, headline).metrics(), **training_facts(compiled, _texts(stored))}
        (folder / "summary.json").write_text(json.dumps(kept, indent=1), encoding="utf-8")
        if tracker is not None:
            files = [folder / "summary.json", *([compiled.path] if compiled else [])]
            tracker.finish(kept, [table_row(r) for r in stored], files, stored)
            if tracker.run_id and not tracker.failed:
                write_note(folder, tracker.run_id, complete=True)
        summary = summarise(records, headline)
        mlflow_run = tracker.run_id or "" if tracker is not None else known_run
        return Evaluation(
            name, method, folder, records, summary, compiled.path.name if compiled else "", mlflow_run, seconds,
            len(work), tracker.failed if tracker is not None else "", facts,
        )  # fmt: skip

    def _program(
        self, method: str, questions: QuestionSet, model: Model, retrieval: Retrieval | None
    ) -> tuple[Any, CompiledProgram | None]:
        settings = self.settings

        alone = len(settings.methods) <= 1 and settings.fallback is None

        def build(name: str, say: Say) -> tuple[Any, CompiledProgram | None]:
            options = assemble_options(
                name,
                model,
                questions.benchmark,
                settings.options,
                task=questions.task,
                paper=settings.paper,
                seed=settings.seed,
                name=questions.name,
                temperature=settings.temperature,
            )
            needed = retrieval if name != "direct" else None
            return assemble_program(
                name,
                options,
                needed,
                model,
                settings.program,
                self.home,
                say=say,
                tracking_uri=settings.tracking_uri,
                strict=alone,
            )

        program, compiled = build(method, self.say)
        if settings.fallback == "generate" and method != "direct":
            return WithFallback(program, build("direct", lambda line: None)[0]), compiled
        return program, compiled

    def _tracker(
        self, method: str, folder: Path, facts: dict[str, Any], compiled: CompiledProgram | None, known_run: str
    ) -> Tracker:
        uri = self.settings.tracking_uri or self.home.tracking_uri
        default_store = uri == f"sqlite:///{self.home.root / 'mlflow.db'}"
        return Tracker(
            uri,
            self.settings.experiment or facts["benchmark"],
            f"{method} {facts['profile']}{' compiled' if compiled else ''}",
            artifacts=self.home.artifacts if default_store else None,
            existing=known_run or None,
            on_open=lambda run_id: write_note(folder, run_id, complete=False),
            warn=self.say,
        )

    def _start(
        self,
        tracker: Tracker,
        method: str,
        name: str,
        facts: dict[str, Any],
        retrieval: Retrieval | None,
        finished: list[Record],
    ) -> None:
        options = {f"options.{key}": value for key, value in facts["options"].items()}
        rest = {key: value for key, value in facts.items() if key not in ("options", TRAINED, LEAKED)}
        tracker.start(
            {**rest, **options, "samples": self.settings.samples},
            {
                "method": method,
                "model": facts["model"],
                "program": facts["compiled"] or "none",
                **{name: str(facts[name]) for name in (TRAINED, LEAKED) if name in facts},
                "backend": self.settings.search if method != "direct" else "none",
                "corpus_hash": retrieval.corpus_hash if retrieval else "",
                "run_folder": name,
            },
            finished,
        )

    def _ordered(self, journal: Journal, questions: QuestionSet) -> list[Record]:
        done = journal.read()
        return [done[q.id, s] for q in questions.questions for s in range(self.settings.samples) if (q.id, s) in done]

    def _report(self, done: list[Evaluation], programs: list[CompiledProgram | None]) -> None:
        print_scores(self.console, [(e.method, e.summary) for e in done])
        for e, compiled in zip(done, programs, strict=True):
            for note in training_notes(training_facts(compiled, _texts(e.records)), e.method):
                self.say(note)
        last = done[-1]
        for other in done[:-1]:
            metric = last.summary.headline
            difference = compare_records(last.records, other.records, metric=metric)
            print_difference(self.console, last.method, other.method, difference, f"{metric} (strict)")
        if self.settings.replay:
            for line in replay_report(self.home, [(e.method, e.id, e.records) for e in done]):
                self.say(line)
        for e in done:
            self.say(f"{e.method}: {e.answered} questions in {e.seconds:.1f} s · journal {e.folder / 'journal.jsonl'}")
        if any(e.mlflow_run for e in done):
            self.say("Browse the runs: search-o1 ui   (then open the address it prints)")


def _texts(records: Iterable[Record]) -> dict[str, str]:
    return {record["id"]: record["question"] for record in records}

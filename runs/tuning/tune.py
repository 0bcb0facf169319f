"""Tuning: a space of options in, the best of them out; pruned, shared by workers, resumable: `search-o1 tune`."""

from __future__ import annotations

import contextlib
import hashlib
import itertools
import json
import logging
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from rich.console import Console

from metrics.sandbox.options import SandboxOptions
from metrics.version import METRICS_VERSION
from programs.options import COMPACT_NOTE
from runs.assembly import assemble_model
from runs.benchmarks.question import dataset_hash
from runs.home import Home
from runs.identity import run_facts
from runs.json_file import write_json
from runs.retrieval_setup import assemble_retrieval, cache_policy
from runs.scoring import check_scoring
from runs.settings import make_settings
from runs.trained_on import training_facts, training_notes
from runs.tuning.plots import draw_study, parameter_importances
from runs.tuning.printing import opening_lines, print_result
from runs.tuning.progress import TuneProgress
from runs.tuning.pruning import make_pruner
from runs.tuning.questions import TuningQuestions, tuning_questions
from runs.tuning.results import Tuned, best_trial, pareto_front, read_trials
from runs.tuning.settings import TuneSettings, check_objective
from runs.tuning.space import Setup, Space, flags_of, setup_of
from runs.tuning.storage import default_storage, shown_storage, storage_failed
from runs.tuning.study import TuningStudy
from runs.tuning.tracking import StudyTracker
from runs.tuning.trial_run import World, build_program
from runs.tuning.worker import Worker
from signatures.errors import OptionError

_MLFLOW_RUN = "mlflow_run"


def tune(benchmark: str = "", *, console: Console | None = None, home: Home | None = None, **settings: Any) -> Tuned:
    """Search for the best options of a chain on validation questions.

    The same call goes on where a killed one stopped, and the same call in several processes shares the work: all of
    them together finish `trials` trials. In one process it always tries the same options in the same order.

    Args:
        benchmark: Name of a benchmark, by default `quickstart`; with `data` a label, by default the file's name.
        console: Where to print; None prints nothing.
        home: Home folder; by default the user's.
        **settings: Fields of `TuneSettings`.

    Returns:
        What was found.

    Raises:
        OptionError: A setting or parameter is unknown or impossible.
        DataError: The questions hold test rows, the study is another one's, or its storage cannot be reached.
        SearchO1Error: Data, corpus, weights or server are missing, or a server failed every question.
    """
    chosen: TuneSettings = make_settings(TuneSettings, {"benchmark": benchmark, **settings})
    with _quiet_optuna():
        return _Tuning(chosen, home or Home(), console or Console(quiet=True)).tune()


class _Tuning:
    def __init__(self, settings: TuneSettings, home: Home, console: Console) -> None:
        self.settings = settings
        self.home = home
        self.console = console
        self.space = Space(settings.params, settings.options, settings.temperature)
        check_objective(settings.objective)

    def say(self, line: str) -> None:
        self.console.print(line, highlight=False, soft_wrap=True, markup=False)

    def tune(self) -> Tuned:
        settings = self.settings
        logging.getLogger("dspy.clients.lm").setLevel(logging.ERROR)
        chosen = tuning_questions(settings)
        for line in _leak_lines(chosen):
            self.say(line)
        world = self._world(chosen)
        facts = self._facts(world, chosen)
        digest = hashlib.sha256(json.dumps(facts, sort_keys=True, default=str).encode()).hexdigest()[:8]
        method = "methods" if self.space.values_of("method") else settings.method
        name = settings.study or f"{world.questions.name}-{method}-{world.model.profile.name}-{digest}".replace(
            "/", "_"
        )
        folder = self.home.root / "tuning" / name
        url = settings.storage or default_storage(folder)
        from optuna.exceptions import StorageInternalError
        from sqlalchemy.exc import SQLAlchemyError

        try:
            return self._search(world, chosen, facts, name, folder, url)
        except (SQLAlchemyError, StorageInternalError) as error:
            raise storage_failed(url, error) from None

    def _world(self, chosen: TuningQuestions) -> World:
        """Put together what trials share, and try out every method and compiled program, which costs nothing."""
        settings, questions = self.settings, chosen.questions
        sandbox = SandboxOptions(unsafe=settings.unsafe_code)
        check_scoring(settings.options.get("task", questions.task), sandbox, questions.questions)
        timed = "latency" in settings.objective
        if timed and settings.replay:
            raise OptionError("Objective latency: a replay takes no time to measure; leave --replay out.")
        model = assemble_model(settings, self.home, self.say, seeded_cache=not timed, policy=cache_policy(settings))
        if "cost" in settings.objective and model.core is not None:
            raise OptionError(f"Objective cost: nobody tells a price for {model.name}; weigh against tokens instead.")
        retrieval = None
        if any(setup.method != "direct" for setup in self._setups()):
            retrieval = assemble_retrieval(settings, self.home, self.say, questions.benchmark, watched=True)
        if model.profile.compact and not settings.paper:
            self.say(COMPACT_NOTE)
        return World(settings, questions, dataset_hash(questions.questions), model, retrieval, self.home)

    def _setups(self) -> Iterator[Setup]:
        """Yield every method with every compiled program that trials may combine."""
        methods = self.space.values_of("method") or (self.settings.method,)
        programs = self.space.values_of("program") or (self.settings.program,)
        for method, program in itertools.product(methods, programs):
            yield Setup(method, program, self.settings.options)

    def _facts(self, world: World, chosen: TuningQuestions) -> dict[str, Any]:
        """Collect what the scores of trials depend on: it tells studies apart."""
        settings = self.settings
        runs = {}
        asked = {q.id: q.question for q in world.questions.questions}
        for setup in self._setups():
            program, compiled = build_program(world, setup, self.say)
            for note in training_notes(training_facts(compiled, asked), setup.method):
                self.say(note)
            facts = run_facts(
                benchmark=world.questions.name, split=world.questions.split, data_hash=world.data_hash,
                method=setup.method, program=program, model=world.model, retrieval=world.retrieval, compiled=compiled,
                fallback=None,
            )  # fmt: skip
            kept = ("model", "context_length", "sampling", "options", "prompt", "retrieval")
            runs[f"{setup.method} {setup.program}"] = {name: facts[name] for name in kept}
        return {
            "space": self.space.specs,
            "objective": ",".join(settings.objective),
            "benchmark": world.questions.name,
            "split": world.questions.split,
            "data": world.data_hash,
            "questions": len(world.questions.questions),
            "leaked_test_rows": len(chosen.leaked),
            "seed": settings.seed,
            "metrics": METRICS_VERSION,
            "runs": runs,
        }

    def _search(
        self, world: World, chosen: TuningQuestions, facts: dict[str, Any], name: str, folder: Path, url: str
    ) -> Tuned:
        settings, questions = self.settings, len(world.questions.questions)
        study = TuningStudy(
            name, facts, settings.objective, url=url, folder=folder, seed=settings.seed, grace=settings.grace,
            pruner=make_pruner(
                settings.pruner, questions=questions, report_every=settings.report_every, warmup=settings.warmup
            ),
        )  # fmt: skip
        standing = study.standing()
        if standing.finished < settings.trials:
            for line in opening_lines(settings, self.space, questions, finished=standing.finished):
                self.say(line)
        else:
            self.say(f"Study {name} has its {settings.trials} trials; more of them: --trials N.")
        tracker = self._tracker(study, world, facts, folder, url) if settings.track else None
        try:
            with TuneProgress(
                settings.trials, standing.finished, questions, self.console, shown=settings.progress
            ) as progress:
                Worker(study, world, self.space, folder, progress, tracker, self.say).work()
            tuned = self._result(study, world, chosen, name, folder)
        except BaseException:
            if tracker is not None:
                tracker.abandon()
            raise
        if tracker is not None:
            files = [folder / "best.json", *tuned.plots]
            best = {f"best.{key}": value for key, value in tuned.best.metrics.items()} if tuned.best else {}
            counts = {state: sum(t.state == state for t in tuned.trials) for state in ("complete", "pruned", "failed")}
            tracker.finish(tuned.trials, {**best, **counts}, [f for f in files if f.is_file()])
            tuned = Tuned(**{**vars(tuned), "mlflow_run": tracker.run_id, "tracking_error": tracker.failed})
        benchmark = settings.benchmark or ("" if settings.data is not None else world.questions.name)
        print_result(self.console, tuned, settings, benchmark, leaked=len(chosen.leaked))
        return tuned

    def _result(self, study: TuningStudy, world: World, chosen: TuningQuestions, name: str, folder: Path) -> Tuned:
        """Read the study, and write `best.json` and the plots; every worker that ends does so."""
        settings = self.settings
        trials = read_trials(study.trials(), self.space)
        best, front = best_trial(trials), pareto_front(trials, settings.objective)
        if best is None:
            return Tuned(name, folder, settings.objective, trials, None, [], {}, "")
        setup = setup_of(best.values, settings.method, settings.program, settings.options)
        options, flags = setup.options, shlex.join(flags_of(best.values, settings.options))
        importances = parameter_importances(study.trials())
        shown = [{"trial": t.number, "values": t.values, **t.metrics} for t in (front if len(front) > 1 else [best])]
        document = {
            "study": name,
            "benchmark": world.questions.name,
            "split": world.questions.split,
            "data": world.data_hash,
            "leaked_test_rows": len(chosen.leaked),
            "warning": chosen.warning,
            "model": world.model.identity,
            "objective": list(settings.objective),
            "metric": world.headline,
            "trial": best.number,
            "method": setup.method,
            "program": setup.program,
            "temperature": settings.temperature,
            "options": options,
            "values": best.values,
            "score": {
                "mean": best.metrics["score"], "low": best.metrics.get("low"), "high": best.metrics.get("high"),
                "n": int(best.metrics["questions"]),
            },
            "flags": flags,
            "front": shown,
            "importance": importances,
            "trials": len(trials),
        }  # fmt: skip
        write_json(folder / "best.json", document)
        plots = draw_study(folder / "plots", trials, front, settings.objective, self.space.parameters, importances)
        return Tuned(name, folder, settings.objective, trials, best, front, options, flags, plots)

    def _tracker(self, study: TuningStudy, world: World, facts: dict[str, Any], folder: Path, url: str) -> StudyTracker:
        settings = self.settings
        uri = settings.tracking_uri or self.home.tracking_uri
        own_store = uri == f"sqlite:///{self.home.root / 'mlflow.db'}"

        def note(run_id: str) -> None:
            if not study.optuna.user_attrs.get(_MLFLOW_RUN):
                study.optuna.set_user_attr(_MLFLOW_RUN, run_id)

        method = settings.method if not self.space.values_of("method") else "methods"
        tracker = StudyTracker(
            uri,
            settings.experiment or f"{world.questions.name} tune",
            f"tune {world.questions.name} {method} {world.model.profile.name}",
            folder,
            known=lambda: str(study.optuna.user_attrs.get(_MLFLOW_RUN, "")),
            note=note,
            artifacts=self.home.artifacts if own_store else None,
            warn=self.say,
        )
        fixed = {name: value for name, value in facts.items() if name not in ("space", "runs")}
        space = {f"space.{name}": spec for name, spec in self.space.specs.items()}
        options = {f"options.{name}": value for name, value in settings.options.items()}
        chosen = {name: getattr(settings, name) for name in ("method", "program", "trials", "pruner", "report_every")}
        tracker.start(
            {**fixed, **space, **options, **chosen, "model": world.model.identity, "storage": shown_storage(url)},
            {
                "study": study.name,
                "method": method,
                "model": world.model.identity,
                "tuned_on_test_rows": str(facts["leaked_test_rows"]),
            },
        )
        return tracker


def _leak_lines(chosen: TuningQuestions) -> list[str]:
    if chosen.leaked:
        return [f"Tuning on {len(chosen.leaked)} test rows (--i-know); best.json and MLflow say so."]
    return [f"Note: {chosen.warning}"] if chosen.warning else []


@contextlib.contextmanager
def _quiet_optuna() -> Iterator[None]:
    """Keep Optuna's own log off the screen, and give its level back afterwards."""
    import optuna

    level = optuna.logging.get_verbosity()
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    try:
        yield
    finally:
        optuna.logging.set_verbosity(level)

"""What a compiled program says of how it came about, and which facts make an optimisation the one it is."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, is_dataclass
from datetime import UTC, datetime
from importlib.metadata import version
from typing import Any

from metrics.statistics import Estimate, PairedDifference
from retrieval.caching.keys import shown
from runs.benchmarks.question import Question, dataset_hash
from runs.identity import run_facts
from runs.models.factory import Model
from runs.optimizing.ledger import Ledger
from runs.optimizing.question_text import question_key
from runs.optimizing.settings import OptimizeSettings
from runs.optimizing.splits import Split
from runs.retrieval_setup import Retrieval

_PACKAGES = ("gepa", "optuna")
_COMMAND = ("method", "optimizer", "budget", "start", "only", "seed", "paper", "i_know", "search", "reader", "mode")


def optimisation_facts(
    settings: OptimizeSettings, split: Split, program: Any, model: Model, retrieval: Retrieval | None
) -> dict[str, Any]:
    """Collect what changes the result of an optimisation; concurrency, tracking and the name of the file do not.

    Args:
        settings: The settings.
        split: Its questions.
        program: The program that is improved, with its start prompts.
        model: The language model.
        retrieval: Search and reader, or None.

    Returns:
        Plain facts without credentials; `optimisation_id` hashes them.
    """
    facts = run_facts(
        benchmark=split.name, split=split.train_from, data_hash=dataset_hash(split.train), method=settings.method,
        program=program, model=model, retrieval=retrieval, compiled=None, fallback=None,
    )  # fmt: skip
    # The command line gives a number of candidates as text.
    chosen = {name: str(getattr(settings, name)) for name in ("optimizer", "budget", "only", "seed", "start")}
    models = {name: shown(getattr(settings, name) or "") for name in ("teacher", "reflection")}
    return {**facts, "val": dataset_hash(split.val), **chosen, **models}


def optimisation_id(facts: Mapping[str, Any]) -> str:
    """Return the id of an optimisation, also the name of its folder.

    Args:
        facts: Made by `optimisation_facts`.

    Returns:
        For example `quickstart-search_o1-smollm2-135m-gepa-1f2e3d4c5b6a`.
    """
    text = json.dumps(facts, sort_keys=True, ensure_ascii=False, default=str)
    digest = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:12]
    name = f"{facts['benchmark']}-{facts['method']}-{facts['profile']}-{facts['optimizer']}-{digest}"
    return name.replace("/", "_")


def program_metadata(
    settings: OptimizeSettings,
    split: Split,
    model: Model,
    ledger: Ledger,
    *,
    optimisation: str,
    plan: Any,
    before: Estimate,
    after: Estimate,
    difference: PairedDifference,
    demo_tokens: Mapping[str, int],
    started_from: Mapping[str, Any],
    interrupted: bool,
    mlflow_run: str,
) -> dict[str, Any]:
    """Collect what a compiled program's file says of it. Neither a key nor an address with credentials is in it.

    Args:
        settings: The settings.
        split: The questions.
        model: The language model.
        ledger: The optimisation's ledger.
        optimisation: The optimisation's id.
        plan: What the optimizer had planned.
        before: Validation score of the start.
        after: Validation score of this program.
        difference: After minus before, question by question.
        demo_tokens: Tokens of the demos in one prompt, by predictor.
        started_from: Metadata of the compiled program that was improved, or empty.
        interrupted: Whether Ctrl-C ended the search for better ones.
        mlflow_run: MLflow's run id, or empty.

    Returns:
        Plain JSON.
    """
    spent = ledger.spent
    questions = (*split.train, *split.val)
    trained_on = {*(question_key(q.question) for q in questions), *started_from.get("trained_on", ())}
    leaked = dict.fromkeys((*split.leaked, *started_from.get("leaked_test_rows", ())))
    return {
        "made": f"search-o1 optimize, optimizer {settings.optimizer}",
        "optimization": optimisation,
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "interrupted": interrupted,
        "model": {"name": shown(model.name), "revision": settings.revision, "identity": shown(model.identity)},
        "optimizer": settings.optimizer,
        "budget": str(settings.budget),
        "plan": asdict(plan) if is_dataclass(plan) and not isinstance(plan, type) else plan,
        "seed": settings.seed,
        "train": _about(split.train_from, split.train),
        "validation": _about(split.val_from, split.val),
        "trained_on": sorted(trained_on),
        "leaked_test_rows": list(leaked),
        "checked_against": split.checked_against,
        "demo_tokens": dict(demo_tokens),
        "before": before.to_dict(),
        "after": after.to_dict(),
        "difference": difference.to_dict(),
        "trials": len(ledger.trials()),
        "failed_answers": ledger.failures(),
        "spent": {**asdict(spent), "seconds": round(ledger.seconds, 1)},
        "versions": {name: version(name) for name in _PACKAGES},
        "mlflow_run": mlflow_run,
        "command": _command(settings),
    }


def _about(name: str, questions: Sequence[Question]) -> dict[str, Any]:
    return {"name": name, "n": len(questions), "sha256": dataset_hash(questions), "ids": [q.id for q in questions]}


def _command(settings: OptimizeSettings) -> dict[str, Any]:
    given = {name: getattr(settings, name) for name in _COMMAND}
    models = {
        name: shown(str(found)) for name in ("model", "teacher", "reflection") if (found := getattr(settings, name))
    }
    corpus = settings.index or (settings.corpus.name if settings.corpus is not None else "")
    return {**given, **models, "corpus": corpus, "options": dict(settings.options)}

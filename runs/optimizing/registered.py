"""Registering a compiled program in MLflow: its prompts, and itself as a model from code that holds the JSON.

Nothing is pickled. What is registered already is found again, so that a second start registers nothing twice.
"""

from __future__ import annotations

import re
import shutil
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from metrics.statistics import Estimate
from programs.saving import CompiledProgram
from runs.optimizing.tracked_trial import prompts_of
from runs.registered_programs import ARTIFACT, CHAMPION, MODEL, ProgramKind

_CODE = Path(__file__).parents[1] / "model_code.py"
_UNSAFE_FILE = re.compile(r"[^A-Za-z0-9._-]+")
_PROMPT_CHARS = 100_000
"""MLflow's limit of a prompt in its registry."""

_EXPERIMENTS_TAG = "_mlflow_experiment_ids"
"""Where MLflow looks for the prompts of an experiment's page."""


@dataclass(frozen=True)
class Chosen:
    """The score by which a program was chosen.

    Attributes:
        metric: Name of the metric.
        score: Mean on the validation questions with its interval.
        val_hash: Hash of the validation questions; only scores on the same ones are compared.
    """

    metric: str
    score: Estimate
    val_hash: str


@dataclass(frozen=True)
class Registration:
    """Where a program stands in MLflow's registries.

    Attributes:
        uri: `models:/search-o1/VERSION`, or empty when it was not registered.
        model_id: MLflow's id of the logged model.
        prompts: Predictor to `prompts:/NAME/VERSION`.
        champion: Whether it is the champion of its kind.
        why: Why, or why not, in a sentence.
    """

    uri: str = ""
    model_id: str = ""
    prompts: Mapping[str, str] = field(default_factory=dict)
    champion: bool = False
    why: str = ""


def register_program(
    client: Any, experiment_id: str, run_id: str, compiled: CompiledProgram, chosen: Chosen, tags: Mapping[str, str]
) -> Registration:
    """Register a compiled program and its prompts, and make it the champion of its kind if it is the best.

    It becomes champion (alias `champion--METHOD--MODEL--TASK--LANGUAGE`) when its kind has none, or when its score on
    the same validation questions is higher than the present one's. The plain alias `champion` goes to the first kind
    that was registered and follows that kind's champion.

    Args:
        client: MLflow's client.
        experiment_id: Experiment of the optimisation.
        run_id: Run of the optimisation.
        compiled: The program.
        chosen: The score it was chosen by.
        tags: More tags for the version.

    Returns:
        Where it now stands.

    Raises:
        Exception: Whatever MLflow raises.
    """
    kind = ProgramKind.of(compiled)
    facts = {
        **{name: str(value)[:1_000] for name, value in tags.items()},
        "method": compiled.method, "model": compiled.model, "task": compiled.task, "language": compiled.language,
        "digest": compiled.digest, "metric": chosen.metric, "val_hash": chosen.val_hash,
        "score": repr(chosen.score.mean), "score_low": repr(chosen.score.low), "score_high": repr(chosen.score.high),
        "questions": str(chosen.score.n),
    }  # fmt: skip
    prompts = _register_prompts(client, experiment_id, run_id, compiled, kind)
    version = _known_version(client, run_id, facts) or _new_version(
        client, experiment_id, run_id, compiled, kind, facts
    )
    champion, why = _crown(client, kind, version, chosen)
    if champion:
        for uri in prompts.values():
            name, number = uri.removeprefix("prompts:/").split("/")
            client.set_prompt_alias(name, CHAMPION, int(number))
    return Registration(f"models:/{MODEL}/{version.version}", version.tags["model_id"], prompts, champion, why)


def copy_for_mlflow(program: Path, folder: Path) -> Path:
    """Copy a program's file under a name that MLflow keeps: it reads names as addresses, where `#` and `%` mean more.

    Args:
        program: The file.
        folder: Where the copy goes.

    Returns:
        The copy.
    """
    name = _UNSAFE_FILE.sub("-", program.name)
    return Path(shutil.copyfile(program, folder / (name if name.endswith(".json") else f"{name}.json")))


def _register_prompts(
    client: Any, experiment_id: str, run_id: str, compiled: CompiledProgram, kind: ProgramKind
) -> dict[str, str]:
    """Register the prompt of each predictor; one whose text has a version already keeps that."""
    found: dict[str, str] = {}
    for predictor, text in prompts_of(compiled.state)[0].items():
        if len(text) > _PROMPT_CHARS:
            continue
        name = f"{kind.slug}--{_UNSAFE_FILE.sub('-', predictor)}"
        known = client.get_prompt(name)
        if known is None:
            _create(client.create_prompt, name, tags={"method": kind.method, "model": kind.model, "task": kind.task})
            known = client.get_prompt(name)
        versions = client.search_prompt_versions(name)
        version = next((v for v in versions if v.template == text), None)
        if version is None:
            about = {"run_id": run_id, "digest": compiled.digest, "predictor": predictor}
            version = client.create_prompt_version(name, template=text, description=f"run {run_id}", tags=about)
        listed = [i for i in known.tags.get(_EXPERIMENTS_TAG, "").split(",") if i]
        if experiment_id not in listed:
            client.set_prompt_tag(name, _EXPERIMENTS_TAG, f",{','.join([*listed, experiment_id])},")
        found[predictor] = f"prompts:/{name}/{version.version}"
    return found


def _known_version(client: Any, run_id: str, facts: dict[str, str]) -> Any:
    versions = client.search_model_versions(f"name='{MODEL}' and run_id='{run_id}'")
    # An optimisation that was stopped registers its best so far; its end is a version of its own.
    same = ("digest", "interrupted")
    return next((v for v in versions if all(v.tags.get(name) == facts.get(name) for name in same)), None)


def _new_version(
    client: Any, experiment_id: str, run_id: str, compiled: CompiledProgram, kind: ProgramKind, facts: dict[str, str]
) -> Any:
    """Log the program as a model from code and register it."""
    from mlflow.entities import LoggedModelOutput

    model = client.create_logged_model(
        experiment_id, name=kind.slug, source_run_id=run_id, tags=facts, model_type="search-o1 program"
    )
    status = "FAILED"
    try:
        with tempfile.TemporaryDirectory() as scratch:
            _save_model(model, run_id, compiled, Path(scratch))
            client.log_model_artifacts(model.model_id, str(Path(scratch) / "model"))
        status = "READY"
    finally:
        client.finalize_logged_model(model.model_id, status)
    client.log_outputs(run_id, [LoggedModelOutput(model.model_id, step=0)])
    _create(client.create_registered_model, MODEL, description="Compiled programs of search-o1.")
    # The source is the place itself: `models:/m-ID` would be looked up in the store of the whole process.
    return client.create_model_version(
        MODEL,
        source=model.artifact_location,
        run_id=run_id,
        model_id=model.model_id,
        tags={**facts, "model_id": model.model_id},
    )


def _save_model(model: Any, run_id: str, compiled: CompiledProgram, folder: Path) -> None:
    """Write the model's files: the code that MLflow runs, the JSON, and what is to be installed."""
    from importlib.metadata import version

    import mlflow
    from mlflow.models import Model, ModelSignature
    from mlflow.types import ParamSchema, ParamSpec

    from runs.loaded_program import SETTINGS

    artifact = copy_for_mlflow(compiled.path, folder)
    params = ParamSchema([ParamSpec(setting, "string", "") for setting in SETTINGS])
    mlflow.pyfunc.save_model(
        path=str(folder / "model"),
        python_model=str(_CODE),
        artifacts={ARTIFACT: str(artifact)},
        # With a schema of the inputs MLflow would refuse a plain list of questions.
        signature=ModelSignature(params=params),
        input_example=[{"question": "Who directed the film Casablanca?"}],
        # Given, they need not be guessed, for which MLflow would load the model in a process of its own.
        pip_requirements=[f"{package}=={version(package)}" for package in ("search-o1", "dspy", "mlflow")],
        mlflow_model=Model(
            artifact_path=model.artifact_location, model_uuid=model.model_id, run_id=run_id, model_id=model.model_id
        ),
    )
    for cache in (folder / "model").rglob("__pycache__"):
        shutil.rmtree(cache)


def _crown(client: Any, kind: ProgramKind, version: Any, chosen: Chosen) -> tuple[bool, str]:
    """Make a version its kind's champion if it is the best; return whether it is, and why."""
    aliases = dict(client.get_registered_model(MODEL).aliases)
    present = aliases.get(kind.alias())
    by_hand = f"to choose it by hand, give version {version.version} the alias {kind.alias()}"
    if present is None:
        why = "the first of its kind"
    elif str(present) == str(version.version):
        return True, "it is already"
    else:
        tags = client.get_model_version(MODEL, present).tags
        if (tags.get("val_hash"), tags.get("metric")) != (chosen.val_hash, chosen.metric):
            return False, f"version {present} was chosen on other questions, so the two do not compare; {by_hand}"
        before = float(tags.get("score", "nan"))
        if not chosen.score.mean > before:
            return False, f"version {present} has {before:.4f} on the same questions, this one {chosen.score.mean:.4f}"
        why = f"{chosen.score.mean:.4f} on the same questions, version {present} has {before:.4f}"
    client.set_registered_model_alias(MODEL, kind.alias(), version.version)
    if CHAMPION not in aliases or (present is not None and str(aliases[CHAMPION]) == str(present)):
        client.set_registered_model_alias(MODEL, CHAMPION, version.version)
    return True, why


def _create(make: Any, name: str, **about: Any) -> None:
    """Make an entry of the registry, unless it, or another run just then, has made it."""
    from mlflow.exceptions import MlflowException

    try:
        make(name, **about)
    except MlflowException as error:
        if error.error_code != "RESOURCE_ALREADY_EXISTS":
            raise

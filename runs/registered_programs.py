"""Compiled programs in MLflow's model registry: what they are called there, and how one is fetched.

One registered model, `search-o1`, holds all of them as its versions; tags say what a version was compiled for. The
alias `champion` means the best one of a kind, and its full name says which: `champion--METHOD--MODEL--TASK--LANGUAGE`.
"""

from __future__ import annotations

import hashlib
import os
import re
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

from programs.saving import CompiledProgram, read_compiled
from runs.mlflow_client import first_line, open_client, without_credentials
from runs.tracking_store import PREFIX
from signatures.errors import ProgramError

MODEL = "search-o1"
"""The registered model whose versions are the compiled programs."""

CHAMPION = "champion"
ARTIFACT = "program"
"""Name of the JSON among a logged model's artifacts, and the folder it has among a run's."""

_REFERENCE = re.compile(r"(models|runs):/+([^/@]+)(?:@([^/@]+)|/(.+))?")
_LOGGED = re.compile(r"m-[0-9a-f]{32}")
_UNSAFE = re.compile(r"[^A-Za-z0-9_-]+")
_UNKNOWN = ("RESOURCE_DOES_NOT_EXIST", "INVALID_PARAMETER_VALUE", "NOT_FOUND", "BAD_REQUEST")
_SHOWN = 10
_HOW = "models:/NAME/VERSION, models:/NAME/ALIAS, models:/NAME@ALIAS, models:/m-ID, runs:/ID or runs:/ID/FILE.json"


@dataclass(frozen=True)
class ProgramKind:
    """What a program is compiled for; programs of one kind can stand in for each other.

    Attributes:
        method: Method.
        model: Name of the model profile.
        task: Task kind.
        language: Prompt language.
    """

    method: str
    model: str
    task: str
    language: str = "en"

    @classmethod
    def of(cls, compiled: CompiledProgram) -> ProgramKind:
        """Return the kind of a compiled program."""
        return cls(compiled.method, compiled.model, compiled.task, compiled.language)

    @property
    def slug(self) -> str:
        """The kind in letters that every name in MLflow may have."""
        return "--".join(_UNSAFE.sub("-", part) for part in (self.method, self.model, self.task, self.language))

    def alias(self, name: str = CHAMPION) -> str:
        """Return the full name of an alias that each kind has for itself."""
        return f"{name}--{self.slug}"


def fetch_registered(reference: str, tracking_uri: str, folder: Path, *, kind: ProgramKind | None = None) -> Path:
    """Fetch a compiled program from MLflow. Only its JSON file is fetched; no code of the model is run.

    Args:
        reference: `models:/NAME/VERSION`, `models:/NAME/ALIAS`, `models:/NAME@ALIAS`, `models:/NAME/latest`,
            `models:/m-ID`, `runs:/ID` or `runs:/ID/FILE.json`.
        tracking_uri: MLflow's store.
        folder: Where fetched programs are kept; one that is there already is not fetched again.
        kind: What the program is wanted for: an alias then means this kind's own (`champion--METHOD--...`), where there
            is one. Whether the program fits is for `load_program` to say.

    Returns:
        The JSON file.

    Raises:
        ProgramError: The reference is none, the store cannot be reached, it has no such model, version, alias or run,
            that one holds no compiled program, or a damaged one.
    """
    found = _REFERENCE.fullmatch(reference)
    if not found:
        raise ProgramError(f"{reference!r} names no program in MLflow; write {_HOW}.")
    if tracking_uri.startswith(PREFIX) and not Path(tracking_uri.removeprefix(PREFIX)).is_file():
        # Asked for a file that is not there, MLflow would make it.
        raise ProgramError(f"{reference}: there is no MLflow store at {tracking_uri.removeprefix(PREFIX)} yet.")
    scheme, name, alias, rest = found.groups()
    with _said(reference, tracking_uri):
        client = open_client(tracking_uri)
        if scheme == "runs":
            path = _fetch_of_run(client, name, rest or ARTIFACT, reference, tracking_uri, folder)
        elif _LOGGED.fullmatch(name) and not (alias or rest):
            path = _fetch_logged(client.get_logged_model(name).artifact_location, reference, tracking_uri, folder)
        else:
            root = _version_location(client, reference, name, alias or rest, kind)
            path = _fetch_logged(root, reference, tracking_uri, folder)
    # A file that is damaged, or was changed in the store, must not be taken for a program.
    read_compiled(path)
    return path


def _version_location(client: Any, reference: str, name: str, wanted: str | None, kind: ProgramKind | None) -> str:
    """Return where the files of a registered model's version lie."""
    if not wanted:
        raise ProgramError(f"{reference} says no version; write models:/{name}/{CHAMPION} or models:/{name}/VERSION.")
    aliases = dict(client.get_registered_model(name).aliases)
    found = client.search_model_versions(f"name='{name}'", max_results=1_000, order_by=["version_number DESC"])
    versions = [str(version.version) for version in found]
    own = aliases.get(kind.alias(wanted)) if kind is not None else None
    version = versions[0] if wanted == "latest" and versions else str(own or aliases.get(wanted, wanted))
    if version not in versions:
        raise ProgramError(
            f"{reference}: the registered model {name} has neither version nor alias {wanted!r}. It has the versions "
            f"{', '.join(versions[:_SHOWN]) or '(none)'}, newest first, and the aliases "
            f"{', '.join(sorted(aliases)) or '(none)'}."
        )
    return str(client.get_model_version_download_uri(name, version))


def _fetch_logged(root: str, reference: str, tracking_uri: str, folder: Path) -> Path:
    """Fetch the program of a logged model from where its files lie, unless it is here already."""
    inner = _program_of_model(root, reference, tracking_uri)
    # A logged model never changes and lies at an address of its own.
    target = _place(folder, tracking_uri, root) / PurePosixPath(inner).name
    if not target.is_file():
        with tempfile.TemporaryDirectory(dir=target.parent) as scratch:
            os.replace(_download(f"{root.rstrip('/')}/{inner}", tracking_uri, scratch), target)
    return target


def _fetch_of_run(client: Any, run_id: str, inside: str, reference: str, tracking_uri: str, folder: Path) -> Path:
    """Fetch a JSON file of a run, named, or the only one in a folder; always anew, for it can be written again."""
    if not inside.endswith(".json"):
        names = [file.path for file in client.list_artifacts(run_id, inside) if file.path.endswith(".json")]
        if len(names) != 1:
            what = ", ".join(sorted(names)) or "no JSON file"
            raise ProgramError(f"{reference} does not say which file is meant; its folder {inside!r} holds: {what}.")
        inside = names[0]
    target = _place(folder, tracking_uri, f"{run_id} {inside}") / PurePosixPath(inside).name
    with tempfile.TemporaryDirectory(dir=target.parent) as scratch:
        os.replace(client.download_artifacts(run_id, inside, scratch), target)
    return target


def _place(folder: Path, tracking_uri: str, source: str) -> Path:
    place = folder / hashlib.sha256(f"{tracking_uri} {source}".encode()).hexdigest()[:12]
    place.mkdir(parents=True, exist_ok=True)
    return place


def _program_of_model(root: str, reference: str, tracking_uri: str) -> str:
    """Return where a logged model keeps its compiled program, as its MLmodel file says."""
    import yaml  # type: ignore[import-untyped]

    with tempfile.TemporaryDirectory() as scratch:
        path = _download(f"{root.rstrip('/')}/MLmodel", tracking_uri, scratch)
        try:
            described = yaml.safe_load(path.read_text(encoding="utf-8"))
            inner = PurePosixPath(described["flavors"]["python_function"]["artifacts"][ARTIFACT]["path"])
        except (KeyError, TypeError, ValueError, yaml.YAMLError):
            inner = PurePosixPath()
    if inner.suffix != ".json" or inner.is_absolute() or ".." in inner.parts:
        raise ProgramError(f"{reference} is no compiled program of this project: it has no artifact `{ARTIFACT}`.")
    return str(inner)


def _download(uri: str, tracking_uri: str, folder: str) -> Path:
    from mlflow.artifacts import download_artifacts

    return Path(download_artifacts(artifact_uri=uri, dst_path=folder, tracking_uri=tracking_uri))


@contextmanager
def _said(reference: str, tracking_uri: str) -> Iterator[None]:
    """Turn whatever MLflow raises into an error that a person can act on."""
    try:
        yield
    except ProgramError:
        raise
    except Exception as error:
        where = without_credentials(tracking_uri)
        code = getattr(error, "error_code", "")
        if code in _UNKNOWN or isinstance(error, FileNotFoundError):
            raise ProgramError(f"{reference} is not in MLflow's store {where}: {first_line(error)}.") from error
        raise ProgramError(
            f"{reference} cannot be fetched, MLflow's store {where} does not answer as it should "
            f"({first_line(error)}); check --tracking-uri."
        ) from error

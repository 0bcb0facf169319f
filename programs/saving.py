"""Compiled programs as JSON files: prompts and demos only, never pickle, with what is known about them.

Shipped files lie in `programs/compiled/<method>--<model>--<task>.json`.
"""

from __future__ import annotations

import copy
import hashlib
import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

from programs.program_file import read_document, write_document
from signatures.errors import ProgramError

SHIPPED = Path(__file__).parent / "compiled"


@dataclass(frozen=True)
class CompiledProgram:
    """A compiled program read from its file.

    Attributes:
        path: The file.
        method: Method it was compiled for.
        model: Name of the model profile it was compiled for.
        task: Task kind.
        language: Prompt language.
        metadata: How it came about: data, optimizer, scores, versions, date.
        state: DSPy's state of its predictors.
        digest: SHA-256 of the state, for identities and reports.
    """

    path: Path
    method: str
    model: str
    task: str
    language: str
    metadata: dict[str, Any]
    state: dict[str, Any]
    digest: str


def state_digest(state: Mapping[str, Any]) -> str:
    """Return the SHA-256 of a program's state, which names its prompts and demos wherever they are kept."""
    text = json.dumps(state, sort_keys=True, ensure_ascii=False)
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def save_program(program: Any, path: Path, *, model: str, metadata: Mapping[str, Any] | None = None) -> CompiledProgram:
    """Write a program's prompts and demos to a JSON file.

    Instructions are written as DSPy shows them to the model. It passes each text through `inspect.cleandoc`: blank
    lines at both ends go, tabs become spaces, and the indentation that all lines after the first share goes; spaces at
    the end of a line stay. `load_program` brings back exactly these texts.

    Args:
        program: One of the four methods.
        path: File to write; what stood there is replaced in one stroke.
        model: Name of the model profile it is meant for.
        metadata: How it came about; versions of DSPy and of this package are added.

    Returns:
        What was written.

    Raises:
        ProgramError: A demo or the metadata hold what JSON cannot, or the file cannot be written.
    """
    document = {
        "method": program.method,
        "model": model,
        "task": program.options.task,
        "language": program.options.language,
        "metadata": {"dspy": version("dspy"), "search-o1": version("search-o1"), **_plain(metadata or {})},
        "state": _lean_state(program),
    }
    write_document(path, document)
    return read_compiled(path)


def read_compiled(path: Path) -> CompiledProgram:
    """Read a compiled program.

    Args:
        path: The JSON file.

    Returns:
        Its content.

    Raises:
        ProgramError: The file is missing, no compiled program, of another format, or was changed after it was written.
    """
    document = read_document(path)
    return CompiledProgram(
        path, document["method"], document["model"], document["task"], document["language"], document["metadata"],
        document["state"], state_digest(document["state"]),
    )  # fmt: skip


def load_program(program: Any, compiled: CompiledProgram | Path) -> Any:
    """Put a compiled program's prompts and demos into a program of the same method.

    The versions that wrote the file do not matter as long as its layout is the present one, which reading it checks.

    Args:
        program: The program to change.
        compiled: The compiled program, or its file.

    Returns:
        The same program.

    Raises:
        ProgramError: It was compiled for another method, task or language, holds other predictors, or the file is bad.
    """
    found = read_compiled(compiled) if isinstance(compiled, Path) else compiled
    wanted = (program.method, program.options.task, program.options.language)
    if (found.method, found.task, found.language) != wanted:
        raise ProgramError(
            f"{found.path.name} was compiled for method {found.method}, task {found.task}, language {found.language}; "
            f"this program is {wanted[0]}, {wanted[1]}, {wanted[2]}."
        )
    predictors = dict(program.named_predictors())
    if set(predictors) != set(found.state):
        raise ProgramError(
            f"{found.path.name} holds prompts of {', '.join(sorted(found.state)) or 'nothing'}, but {program.method} "
            f"has the predictors {', '.join(sorted(predictors))}; compile it again: search-o1 optimize"
        )
    texts = {name: str(predictor["signature"]["instructions"]) for name, predictor in found.state.items()}
    for name, text in texts.items():
        if _exactly(predictors[name].signature, text).instructions != text:
            raise ProgramError(
                f"{found.path.name}: this Python or DSPy would change the instructions of {name}; use the versions it "
                f"was written with (DSPy {found.metadata.get('dspy')}), or compile it again: search-o1 optimize"
            )
    # A predictor takes its demos as they are handed over; those of the file must stay what was read.
    program.load_state(copy.deepcopy(found.state))
    for name, text in texts.items():
        predictors[name].signature = _exactly(predictors[name].signature, text)
    return program


def shipped_programs() -> list[CompiledProgram]:
    """Return the compiled programs that come with the package, by file name."""
    return [read_compiled(path) for path in sorted(SHIPPED.glob("*.json"))]


def find_compiled(method: str, model: str, task: str, language: str = "en") -> CompiledProgram | None:
    """Return the shipped program compiled for a method, model profile, task and language, or None.

    Args:
        method: Method name.
        model: Name of the model profile.
        task: Task kind.
        language: Prompt language.

    Returns:
        The compiled program, or None when none fits.
    """
    path = SHIPPED / f"{method}--{model}--{task}.json"
    if not path.is_file():
        return None
    found = read_compiled(path)
    return found if found.language == language else None


def _lean_state(program: Any) -> dict[str, Any]:
    """Return the state with the fields a prompt needs and nothing that a run left behind."""
    twin = program.deepcopy()
    # DSPy would refuse to write a language model that runs on one of our engines.
    twin.set_lm(None)
    state: dict[str, Any] = twin.dump_state()
    return {name: {**predictor, "traces": [], "train": []} for name, predictor in state.items()}


def _exactly(signature: Any, instructions: str) -> Any:
    """Return a signature whose instructions are a text that was read from another.

    Cleaning a text twice is not cleaning it once: a first line that kept its indentation loses it the second time.
    After a line break it is no first line any more, and the break itself is cleaned away.
    """
    return signature.with_instructions("\n" + instructions)


def _plain(value: Any) -> Any:
    """Return metadata as JSON can hold it: an error bar of a single question is no number, and becomes null."""
    if isinstance(value, Mapping):
        return {key: _plain(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(inner) for inner in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value

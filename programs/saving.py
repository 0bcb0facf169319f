"""Compiled programs as JSON files: prompts and demos only, never pickle, with what is known about them.

Shipped files lie in `programs/compiled/<method>--<model>--<task>.json`.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

from signatures.errors import ProgramError

FORMAT = 1
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


def state_digest(state: dict[str, Any]) -> str:
    """Return the SHA-256 of a program's state in canonical JSON."""
    return hashlib.sha256(json.dumps(state, sort_keys=True, ensure_ascii=False).encode()).hexdigest()


def save_program(program: Any, path: Path, *, model: str, metadata: dict[str, Any] | None = None) -> CompiledProgram:
    """Write a program's prompts and demos to a JSON file.

    Args:
        program: One of the four methods.
        path: File to write.
        model: Name of the model profile it is meant for.
        metadata: How it came about; versions of DSPy and of this package are added.

    Returns:
        What was written.
    """
    state = _lean_state(program)
    document = {
        "format": FORMAT,
        "method": program.method,
        "model": model,
        "task": program.options.task,
        "language": program.options.language,
        "metadata": {"dspy": version("dspy"), "search-o1": version("search-o1"), **(metadata or {})},
        "sha256": state_digest(state),
        "state": state,
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(document, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")
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
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise ProgramError(f"No compiled program at {path}; `search-o1 programs` lists the shipped ones.") from None
    except ValueError as error:
        raise ProgramError(f"{path} is not a JSON file: {error}.") from None
    if not isinstance(document, dict) or "state" not in document or "method" not in document:
        raise ProgramError(f"{path} is not a compiled program of this project; it lacks `method` or `state`.")
    if document.get("format") != FORMAT:
        raise ProgramError(
            f"{path} has format {document.get('format')!r}; this version reads format {FORMAT}. Compile it again."
        )
    digest = state_digest(document["state"])
    if digest != document.get("sha256"):
        raise ProgramError(f"{path} was changed after it was written (its checksum does not match); compile it again.")
    return CompiledProgram(
        path, document["method"], document["model"], document["task"], document["language"], document["metadata"],
        document["state"], digest,
    )  # fmt: skip


def load_program(program: Any, compiled: CompiledProgram | Path) -> Any:
    """Put a compiled program's prompts and demos into a program of the same method.

    Args:
        program: The program to change.
        compiled: The compiled program, or its file.

    Returns:
        The same program.

    Raises:
        ProgramError: It was compiled for another method, task or language, or the file is bad.
    """
    found = read_compiled(compiled) if isinstance(compiled, Path) else compiled
    wanted = (program.method, program.options.task, program.options.language)
    if (found.method, found.task, found.language) != wanted:
        raise ProgramError(
            f"{found.path.name} was compiled for method {found.method}, task {found.task}, language {found.language}; "
            f"this program is {wanted[0]}, {wanted[1]}, {wanted[2]}."
        )
    program.load_state(found.state)
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

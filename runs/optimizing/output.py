"""Where a compiled program is written, and when one that stands there may be replaced."""

from __future__ import annotations

import tempfile
from pathlib import Path

from programs.saving import read_compiled
from runs.home import Home
from runs.models.factory import Model
from runs.optimizing.settings import OptimizeSettings
from runs.program_store import model_key, program_path
from runs.user_path import user_path
from signatures.errors import ProgramError


def output_path(settings: OptimizeSettings, home: Home, model: Model, task: str) -> Path:
    """Return the file that an optimisation writes.

    Args:
        settings: The settings, whose `output` is a name, a path ending in `.json`, or empty.
        home: Home folder.
        model: The language model.
        task: Task kind.

    Returns:
        The path.

    Raises:
        OptionError: The name is no plain name, or no file can have it.
    """
    if settings.output.endswith(".json"):
        return user_path(settings.output)
    return program_path(home, settings.output or f"{settings.method}--{model_key(model)}--{task}")


def check_output(path: Path, optimisation: str, *, force: bool) -> None:
    """Make sure that a program may and can be written, before anything is paid for.

    Args:
        path: The file.
        optimisation: Id of the optimisation, whose own earlier result is replaced.
        force: Replace any program.

    Raises:
        ProgramError: Another program stands there, or something that is none, or the folder cannot be written to.
    """
    if path.is_dir():
        raise ProgramError(f"{path} is a folder; choose another name with --output.")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=path.parent):
            pass
    except OSError as error:
        raise ProgramError(
            f"{path} cannot be written: {error.strerror or error}. Choose another place with --output."
        ) from error
    if not path.exists():
        return
    try:
        known = read_compiled(path).metadata.get("optimization")
    except ProgramError:
        if force:
            raise ProgramError(
                f"{path} is no compiled program, so --force does not replace it; write elsewhere with --output."
            ) from None
        known = None
    if force:
        return
    if known != optimisation:
        raise ProgramError(
            f"{path} exists and is not an earlier result of this very command; write elsewhere with --output NAME, or "
            "replace it with --force."
        )


def name_for_use(path: Path, home: Home) -> str:
    """Return by what `--program` finds a file: its name in the home folder, else its path."""
    return path.stem if path.parent == home.programs else str(path)

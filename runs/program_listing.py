"""Compiled programs as a person looks at them: all there are, or one with its prompts, demos and scores."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from programs.program_file import digest_of
from programs.saving import SHIPPED, CompiledProgram
from runs.home import Home
from runs.program_store import read_program, stored_programs

Demo = dict[str, Any]

_LISTED = 6


@dataclass(frozen=True)
class ListedProgram:
    """A compiled program in a few words.

    Attributes:
        name: Its name, by which `--program` finds it.
        file: Its file.
        origin: `home` for one of the user's own, `package` for one that comes with the package, `file` for any other.
        method: Method it was compiled for; empty, as the other fields, for a damaged file.
        model: Model profile it was compiled for.
        task: Task kind.
        language: Prompt language.
        digest: SHA-256 of prompts and demos.
        demos: Predictor to number of demos.
        metadata: How it came about.
        damage: What is wrong with the file, or empty.
    """

    name: str
    file: str
    origin: str
    method: str = ""
    model: str = ""
    task: str = ""
    language: str = ""
    digest: str = ""
    demos: dict[str, int] = field(default_factory=dict)
    metadata: dict[str, Any] = field(default_factory=dict)
    damage: str = ""

    def to_dict(self) -> dict[str, Any]:
        """Return the fields as plain data that JSON can hold."""
        return asdict(self)


@dataclass(frozen=True)
class ShownPredictor:
    """What one predictor of a program is told.

    Attributes:
        name: The predictor: `reason` or `refine`.
        instructions: The prompt text that was optimised; the answer format comes from the task and is added to it.
        demos: Its worked examples, all of them.
    """

    name: str
    instructions: str
    demos: tuple[Demo, ...]


@dataclass(frozen=True)
class ShownProgram:
    """A compiled program with its prompts and demos.

    Attributes:
        program: What it is.
        predictors: Its predictors.
    """

    program: ListedProgram
    predictors: tuple[ShownPredictor, ...]

    def to_dict(self) -> dict[str, Any]:
        """Return the program as plain data that JSON can hold."""
        return asdict(self)


def list_programs(home: Home | None = None) -> list[ListedProgram]:
    """List the compiled programs: the user's own first, then those of the package.

    Args:
        home: Home folder; by default the user's.

    Returns:
        The programs by name; a damaged file is among them with what is wrong.
    """
    where = home or Home()
    return [
        listed(entry.compiled, where)
        if entry.compiled is not None
        else ListedProgram(entry.name, str(entry.path), entry.origin, damage=entry.damage)
        for entry in stored_programs(where)
    ]


def show_program(program: str, *, home: Home | None = None, tracking_uri: str | None = None) -> ShownProgram:
    """Show a compiled program.

    Args:
        program: Its name, its JSON file, or a registered one (`models:/search-o1/champion`).
        home: Home folder; by default the user's.
        tracking_uri: MLflow store of registered programs; by default the home folder's.

    Returns:
        The program.

    Raises:
        OptionError: The name is unknown; the text lists the nearest.
        ProgramError: The file is bad, or MLflow does not have it.
    """
    where = home or Home()
    compiled = read_program(program, where, tracking_uri)
    predictors = tuple(
        ShownPredictor(name, state["signature"]["instructions"], tuple(state["demos"]))
        for name, state in compiled.state.items()
    )
    return ShownProgram(listed(compiled, where), predictors)


def listed(compiled: CompiledProgram, home: Home) -> ListedProgram:
    """Return a compiled program in a few words.

    Args:
        compiled: The program.
        home: Home folder, to tell where it comes from.

    Returns:
        What it is.
    """
    parent = compiled.path.resolve().parent
    places = {home.programs.resolve(): "home", SHIPPED.resolve(): "package"}
    return ListedProgram(
        compiled.path.stem, str(compiled.path), places.get(parent, "file"), compiled.method, compiled.model,
        compiled.task, compiled.language, compiled.digest,
        {name: len(state["demos"]) for name, state in compiled.state.items()}, compiled.metadata,
    )  # fmt: skip


def flat_metadata(metadata: Mapping[str, Any]) -> dict[str, str]:
    """Return metadata as lines of text: nested names joined by dots, scores in percent with intervals.

    Args:
        metadata: A program's metadata.

    Returns:
        Name to text. A long list is told by its length and the beginning of its hash.
    """
    flat: dict[str, str] = {}
    for name, value in metadata.items():
        if isinstance(value, Mapping) and "mean" not in value and value:
            flat |= {f"{name}.{inner}": text for inner, text in flat_metadata(value).items()}
        else:
            flat[name] = _as_text(value)
    return flat


def scores_of(metadata: Mapping[str, Any]) -> tuple[str, str]:
    """Return the scores before and after an optimisation, in percent with intervals; empty where there are none."""
    told = metadata.get("scores", metadata)
    found = [told.get(name) if isinstance(told, Mapping) else None for name in ("before", "after")]
    before, after = (_as_text(score) if isinstance(score, Mapping) and "mean" in score else "" for score in found)
    return before, after


def _as_text(value: Any) -> str:
    if isinstance(value, Mapping):
        mean, low, high = (_percent(value.get(name)) for name in ("mean", "low", "high"))
        interval = f" [{low}, {high}]" if low and high else ""
        count = f", n = {value['n']}" if "n" in value else ""
        return f"{mean} %{interval}{count}" if mean else "-"
    if isinstance(value, list):
        if len(value) > _LISTED or any(isinstance(item, list | Mapping) for item in value):
            return f"{len(value)} entries ({digest_of(value)[:8]})"
        return ", ".join(str(item) for item in value)
    return "-" if value is None else str(value)


def _percent(value: Any) -> str:
    return f"{100 * value:.1f}" if isinstance(value, int | float) else ""

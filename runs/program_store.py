"""Where compiled programs are found: the user's own in the home folder's `programs`, then those of the package."""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal

from programs.saving import SHIPPED, CompiledProgram, read_compiled
from runs.home import Home
from runs.models.factory import Model
from runs.terminal_text import visible
from runs.user_path import user_path
from signatures.errors import OptionError, ProgramError
from signatures.profiles import UNKNOWN

AUTO, NONE = "auto", "none"
_REGISTRY = ("models:/", "runs:/")
_NAME = re.compile(r"\w[\w.+\-]{0,149}")
_SHOWN = 10

Origin = Literal["home", "package"]


@dataclass(frozen=True)
class StoredProgram:
    """A file in one of the two places.

    Attributes:
        name: Its name, without `.json`.
        path: The file.
        origin: `home` for one of the user's own, `package` for one that comes with the package.
        compiled: The program; None for a damaged file.
        damage: What is wrong with the file, or empty.
    """

    name: str
    path: Path
    origin: Origin
    compiled: CompiledProgram | None
    damage: str = ""


def program_path(home: Home, name: str) -> Path:
    """Return the file of a program in the home folder.

    Args:
        home: The home folder.
        name: Its name, with or without `.json`.

    Returns:
        The path, whether or not the file is there.

    Raises:
        OptionError: The name is reserved, or no plain file name.
    """
    stem = name.removesuffix(".json")
    if not _NAME.fullmatch(stem) or stem in (AUTO, NONE):
        raise OptionError(
            f"{name!r} cannot name a program: use up to 150 letters, digits, `.`, `-`, `_` and `+`, and neither "
            f"`{AUTO}` nor `{NONE}`; for a file elsewhere give a path that ends in .json."
        )
    return home.programs / f"{stem}.json"


def model_key(model: Model) -> str:
    """Return under which name programs for a model are filed: its profile, or its own name where no profile knows it.

    Args:
        model: The language model.

    Returns:
        For example `qwq-32b`, or `mistral-7b-instruct-v0.3` for `hosted_vllm/mistralai/Mistral-7B-Instruct-v0.3`.
    """
    if model.profile.name != UNKNOWN.name:
        return model.profile.name
    last = model.name.replace("\\", "/").rstrip("/").rsplit("/", 1)[-1].lower()
    return re.sub(r"[^\w.]+", "-", last).strip("-.") or UNKNOWN.name


def stored_programs(home: Home) -> list[StoredProgram]:
    """Return all programs, the user's own first, each by name; a damaged file is among them with what is wrong."""
    return [*_stored(home.programs, "home"), *_stored(SHIPPED, "package")]


def find_program(
    wanted: str,
    home: Home,
    method: str,
    model: Model,
    task: str,
    language: str,
    tracking_uri: str | None = None,
    say: Callable[[str], None] = lambda line: None,
) -> CompiledProgram | None:
    """Find the compiled program that a person wants.

    Args:
        wanted: `auto` takes the one compiled for model, method and task: the user's newest, one made with this very
            model first, else the package's. `none` takes none. Else a name, a JSON file, or a registered one
            (`models:/search-o1/champion`, `runs:/ID/...`).
        home: The home folder.
        method: The method.
        model: The language model.
        task: Task kind.
        language: Prompt language.
        tracking_uri: MLflow store of registered programs; by default the home folder's.
        say: Called with a line for the user: which program it is, why, and which damaged file was passed over.

    Returns:
        The compiled program; None where none is wanted or `auto` finds none.

    Raises:
        OptionError: The name is unknown; the text lists the nearest.
        ProgramError: The file is bad, or MLflow does not have it.
    """
    if wanted == NONE:
        return None
    key = model_key(model)
    if wanted != AUTO:
        found = read_program(wanted, home, tracking_uri, (method, key, task, language))
        source = f", {wanted}" if wanted.startswith(_REGISTRY) else ""
        other = f", which was compiled for {found.model} and not for {key}" if found.model != key else ""
        say(_line(method, found, source + other))
        return found
    for entries in (_stored(home.programs, "home"), _stored(SHIPPED, "package")):
        for damaged in entries:
            if damaged.damage and damaged.name == f"{method}--{key}--{task}":
                say(f"{method}: passed over a damaged program: {damaged.damage}")
        fitting = [
            entry
            for entry in entries
            if (c := entry.compiled) is not None
            and (c.method, c.model, c.task, c.language) == (method, key, task, language)
        ]
        # One profile serves a family of models; a program made with this very one comes before its sisters'.
        fitting = [entry for entry in fitting if _made_with(entry, model)] or fitting
        if fitting:
            newest = max(fitting, key=made_at)
            found = newest.compiled or read_compiled(newest.path)
            count = f"the newest of your {len(fitting)}" if len(fitting) > 1 else "your own"
            say(_line(method, found, f", {count} for {key}" if newest.origin == "home" else ""))
            return found
    return None


def read_program(
    wanted: str, home: Home, tracking_uri: str | None = None, kind: tuple[str, str, str, str] | None = None
) -> CompiledProgram:
    """Read the program that a name, a file or a reference into MLflow's registry means.

    Args:
        wanted: A name with or without `.json`, looked up in the home folder and then in the package; the path of a JSON
            file; or `models:/...`, `runs:/...`.
        home: The home folder.
        tracking_uri: MLflow store; by default the home folder's.
        kind: Method, model, task and language it is wanted for; an alias in MLflow then means that kind's own.

    Returns:
        The program.

    Raises:
        OptionError: The name is unknown; the text lists the nearest.
        ProgramError: The file is bad, or MLflow does not have it.
    """
    if wanted.startswith(_REGISTRY):
        from runs.registered_programs import ProgramKind, fetch_registered

        meant = ProgramKind(*kind) if kind is not None else None
        folder = home.root / "registered"
        return read_compiled(fetch_registered(wanted, tracking_uri or home.tracking_uri, folder, kind=meant))
    path = user_path(wanted)
    if "/" in wanted or "\\" in wanted or (wanted.endswith(".json") and path.is_file()):
        return read_compiled(path)
    for folder in (home.programs, SHIPPED):
        named = folder / f"{wanted.removesuffix('.json')}.json"
        if _NAME.fullmatch(wanted) and named.is_file():
            return read_compiled(named)
    known = sorted({path.stem for folder in (home.programs, SHIPPED) for path in folder.glob("*.json")})
    nearest = sorted(known, key=lambda name: -difflib.SequenceMatcher(None, wanted, name).ratio())
    listed = "".join(f"\n  {visible(name)}" for name in nearest[:_SHOWN])
    more = f"\n  ... {len(known) - _SHOWN} more: search-o1 programs" if len(known) > _SHOWN else ""
    raise OptionError(
        f"Unknown program {wanted!r}. It is `{AUTO}`, `{NONE}`, a JSON file, models:/NAME/VERSION or ALIAS, or one of "
        f"these, the nearest first:{listed}{more}"
    )


def made_at(entry: StoredProgram) -> datetime:
    """Return when a program was made: the date in its metadata, else that of its file."""
    told = str(entry.compiled.metadata.get("date", "")) if entry.compiled is not None else ""
    try:
        date = datetime.fromisoformat(told)
    except ValueError:
        return datetime.fromtimestamp(entry.path.stat().st_mtime, UTC)
    return date if date.tzinfo is not None else date.replace(tzinfo=UTC)


def _stored(folder: Path, origin: Origin) -> list[StoredProgram]:
    found = []
    for path in sorted(folder.glob("*.json")):
        try:
            found.append(StoredProgram(path.stem, path, origin, read_compiled(path)))
        except ProgramError as error:
            found.append(StoredProgram(path.stem, path, origin, None, str(error)))
    return found


def _made_with(entry: StoredProgram, model: Model) -> bool:
    told = entry.compiled.metadata.get("model") if entry.compiled is not None else None
    return isinstance(told, dict) and told.get("name") == model.name


def _line(method: str, found: CompiledProgram, why: str) -> str:
    return visible(f"{method}: compiled program {found.path.name}{why} (without it: --program none).")

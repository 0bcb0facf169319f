"""Settings as flags of `search-o1 evaluate`: for the command with which a tuning or an optimisation ends."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel

from retrieval.caching.keys import shown
from runs.settings import ModelSettings, RetrievalSettings

_SPELLED = {"search_options": "--search-option", "reader_options": "--reader-option", "cached": "--no-cache"}
"""Flags that are not spelled as their field."""
_SHARED = ("seed", "paper", "unsafe_code", "tracking_uri")
"""Fields that each verb's settings have of their own. `models:/NAME/ALIAS` is found in its MLflow store only."""
_NO_FLAG = ("profile",)
_HIDDEN = "***"


def flags_of_settings(settings: BaseModel) -> list[str]:
    """Return the flags that give `search-o1 evaluate` the same model and knowledge.

    Chain options are left to `flags_of_options`, and `profile` to `note_without_flag`.

    Args:
        settings: Settings of any verb.

    Returns:
        Flags and values of whatever differs from its default, not yet quoted for a shell (`shlex.join` does that).
        `***` stands for each key and each user name and password in an address.
    """
    shared = [*RetrievalSettings.model_fields, *ModelSettings.model_fields, *_SHARED]
    flags: list[str] = []
    for name in shared:
        field = type(settings).model_fields.get(name)
        if field is None or name in _NO_FLAG:
            continue
        value = getattr(settings, name)
        if value != field.get_default(call_default_factory=True):
            flags += _flags(_SPELLED.get(name, f"--{name.replace('_', '-')}"), value)
    return flags


def flags_of_options(options: Mapping[str, Any]) -> list[str]:
    """Return the flags that set chain options.

    Args:
        options: Chain options by name.

    Returns:
        `--set` and `NAME=VALUE` for each, not yet quoted for a shell.
    """
    return [part for name, value in options.items() for part in ("--set", f"{name}={_pair_value(value)}")]


def note_without_flag(settings: ModelSettings) -> str:
    """Return a sentence on the settings that no flag can give, or nothing if all are at their defaults."""
    if not settings.profile:
        return ""
    return f"No flag gives profile={settings.profile!r}: evaluate from Python, with the same profile=... as here."


def _flags(flag: str, value: Any) -> list[str]:
    if isinstance(value, bool):
        return [flag]
    if isinstance(value, Mapping):
        return [part for name, each in value.items() for part in (flag, f"{name}={_without_secrets(name, each)}")]
    return [flag, shown(str(value))]


def _pair_value(value: Any) -> str:
    """Return the value of a `NAME=VALUE` so that it is read as it is: JSON as such, and the rest as text."""
    if isinstance(value, str):
        try:
            json.loads(value)
        except ValueError:
            return value
    return json.dumps(value, ensure_ascii=False)


def _without_secrets(name: str, value: Any) -> str:
    """Return the value of a backend's option, of which `name` may begin with the backend's: `brave.key`."""
    probe = f"{name.rpartition('.')[2]}=x"
    return shown(_pair_value(value)) if shown(probe) == probe else _HIDDEN

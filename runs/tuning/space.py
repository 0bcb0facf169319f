"""The space that is searched, and what a point of it means: method, compiled program and options of a trial."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from programs.options import ChainOptions
from runs.command_flags import flags_of_options
from runs.tuning.parameter import (
    KNOWN,
    PROGRAM_PARAMETERS,
    SAMPLED_CALLS,
    SAMPLING_BOUNDS,
    parse_parameter,
    value_text,
)
from signatures.errors import OptionError


@dataclass(frozen=True)
class Setup:
    """What a trial runs.

    Attributes:
        method: The method.
        program: Compiled program.
        options: Chain options by name, over those of model and benchmark.
    """

    method: str
    program: str
    options: dict[str, Any] = field(default_factory=dict)


class Space:
    """All parameters of a study.

    Args:
        params: Parameter name to range or choices, as text.
        fixed: Chain options that are set for every trial.
        temperature: The temperature of every trial, or None.

    Raises:
        OptionError: None is given, one is unknown, impossible, empty, or set for every trial too.
    """

    def __init__(self, params: Mapping[str, str], fixed: Mapping[str, Any], temperature: float | None = None) -> None:
        if not params:
            raise OptionError(
                "Nothing to tune: give --param NAME=RANGE, for example --param top_k=1:20 --param temperature=0:1. "
                f"Known: {', '.join(KNOWN)}."
            )
        self.parameters = tuple(parse_parameter(name, spec) for name, spec in params.items())
        names = {p.name for p in self.parameters}
        for name in names:
            if name in fixed:
                raise OptionError(f"{name} is given by --param and by --set; leave one of them out.")
            bare = name.rpartition(".")[2]
            if "." in name and bare in names and bare in SAMPLING_BOUNDS:
                raise OptionError(f"--param {name} and --param {bare} both set {name}; leave one of them out.")
        for calls in SAMPLED_CALLS:
            inner = fixed.get(calls)
            for key in inner if isinstance(inner, Mapping) else ():
                if f"{calls}.{key}" in names or (key in names and key in SAMPLING_BOUNDS):
                    raise OptionError(f"{key} is given by --param and in --set {calls}; leave one of them out.")
        if temperature is not None and any(name.rpartition(".")[2] == "temperature" for name in names):
            raise OptionError("temperature is given by --param and by --temperature; leave one of them out.")

    @property
    def specs(self) -> dict[str, str]:
        """Parameter name to range or choices, by name."""
        return {p.name: p.spec for p in sorted(self.parameters, key=lambda p: p.name)}

    @property
    def size(self) -> float:
        """How many combinations there are; infinite where a range has no step."""
        return math.prod(p.size for p in self.parameters)

    def values_of(self, name: str) -> tuple[str, ...]:
        """Return the choices of `method` or `program`; empty where it is not tuned."""
        return next((p.choices for p in self.parameters if p.name == name), ())

    def readable(self, values: Mapping[str, Any]) -> dict[str, Any]:
        """Return Optuna's values of a trial as it was run with."""
        return {p.name: p.readable(values[p.name]) for p in self.parameters if p.name in values}

    def suggest(self, trial: Any) -> dict[str, Any]:
        """Let Optuna choose a value of each parameter, in the order of their names."""
        return {p.name: p.suggest(trial) for p in sorted(self.parameters, key=lambda p: p.name)}


def setup_of(values: Mapping[str, Any], method: str, program: str, fixed: Mapping[str, Any]) -> Setup:
    """Return what a trial with these values runs.

    Args:
        values: Parameter name to value.
        method: The method, unless it is among the values.
        program: The compiled program likewise.
        fixed: Chain options that are set for every trial.

    Returns:
        Method, program and options.
    """
    options = dict(fixed)
    for calls in SAMPLED_CALLS:
        inner = options.get(calls) or {}
        chosen = {name: value for name, value in values.items() if name in SAMPLING_BOUNDS}
        chosen |= {name.partition(".")[2]: v for name, v in values.items() if name.partition(".")[0] == calls}
        if chosen:
            options[calls] = {**inner, **chosen}
    options |= {name: value for name, value in values.items() if name in ChainOptions.model_fields}
    return Setup(str(values.get("method", method)), str(values.get("program", program)), options)


def flags_of(values: Mapping[str, Any], fixed: Mapping[str, Any]) -> list[str]:
    """Return the arguments that give a trial's options to `search-o1 evaluate`.

    Args:
        values: Parameter name to value.
        fixed: Chain options that are set for every trial.

    Returns:
        Flags and values, not yet quoted for a shell.
    """
    named = {name: value for name, value in values.items() if name in (*PROGRAM_PARAMETERS, "temperature")}
    options = setup_of({n: v for n, v in values.items() if n not in named}, "", "", fixed).options
    flags = [part for name, value in named.items() for part in (f"--{name}", value_text(value))]
    return [*flags, *flags_of_options(options)]

"""One parameter of a tuning: `--param NAME=RANGE`, checked against the options of a chain before anything runs."""

from __future__ import annotations

import json
import math
import typing
from dataclasses import dataclass
from typing import Any

from programs.options import ChainOptions, make_options
from programs.registry import PROGRAMS
from signatures.errors import OptionError

# The task changes what is right, the seed only luck; the others hold fields of their own.
_NOT_TUNED = ("task", "seed", "sampling", "refine_sampling", "profile")
SAMPLING_BOUNDS: dict[str, tuple[float, float]] = {
    "temperature": (0, 2),
    "top_p": (0, 1),
    "min_p": (0, 1),
    "repetition_penalty": (0, 2),
    "frequency_penalty": (-2, 2),
    "presence_penalty": (-2, 2),
}
_POSITIVE = ("top_p", "repetition_penalty")
SAMPLED_CALLS = ("sampling", "refine_sampling")
_MOST_STEPS = 1_000_000
PROGRAM_PARAMETERS = ("method", "program")

KNOWN = (
    *(name for name in ChainOptions.model_fields if name not in _NOT_TUNED),
    *SAMPLING_BOUNDS,
    *(f"{calls}.{name}" for calls in SAMPLED_CALLS for name in (*SAMPLING_BOUNDS, "top_k")),
    *PROGRAM_PARAMETERS,
)
"""Names of everything that can be tuned."""


@dataclass(frozen=True)
class Parameter:
    """One dimension of the space.

    Attributes:
        name: Name, one of `KNOWN`.
        choices: The choices, or empty for a range.
        low: Lower end of a range, which belongs to it.
        high: Upper end likewise; with a step, the last value that is reached.
        step: Distance between the values of a range, or None.
        log: Whether small values are searched as closely as large ones.
        integer: Whether a range has whole numbers only.
    """

    name: str
    choices: tuple[Any, ...] = ()
    low: float = 0
    high: float = 0
    step: float | None = None
    log: bool = False
    integer: bool = False

    @property
    def spec(self) -> str:
        """The range or choices as text, the same for every way of writing them."""
        if self.choices:
            return ",".join(value_text(choice) for choice in self.choices)
        step = "" if self.step is None else f":step={value_text(self.step)}"
        return f"{value_text(self.low)}:{value_text(self.high)}{':log' if self.log else ''}{step}"

    @property
    def size(self) -> float:
        """How many values there are; infinite for a range without a step."""
        if self.choices:
            return len(self.choices)
        step = self.step or (1 if self.integer else None)
        return math.inf if step is None else round((self.high - self.low) / step) + 1

    def suggest(self, trial: Any) -> Any:
        """Let Optuna choose a value for a trial."""
        if self.choices:
            return trial.suggest_categorical(self.name, list(self.choices))
        if self.integer:
            step = None if self.log else int(self.step or 1)
            kwargs = {"log": True} if step is None else {"step": step}
            return trial.suggest_int(self.name, int(self.low), int(self.high), **kwargs)
        return self.readable(trial.suggest_float(self.name, self.low, self.high, step=self.step, log=self.log))

    def readable(self, value: Any) -> Any:
        """Return a value as trials are run with: a number of Optuna's with four digits says all there is to say."""
        if not isinstance(value, float) or self.choices:
            return value
        digits = 4 if self.step is None else 10
        return min(max(float(f"{value:.{digits}g}"), self.low), self.high)


def parse_parameter(name: str, spec: str) -> Parameter:
    """Read one parameter.

    Args:
        name: Its name.
        spec: `1:20`, `0.001:1:log`, `500:6000:step=500`, or choices `a,b,c`.

    Returns:
        The parameter.

    Raises:
        OptionError: The name is unknown, or the range or a choice is impossible.
    """
    if name not in KNOWN:
        raise OptionError(f"Unknown parameter {name!r}; known: {', '.join(KNOWN)}.")
    if ":" in spec and name not in PROGRAM_PARAMETERS:
        return _parse_range(name, spec)
    choices = tuple(_typed(name, text.strip()) for text in spec.split(",") if text.strip())
    if len(choices) < 2:
        raise OptionError(
            f"--param {name}={spec}: one value is nothing to search; give a range such as 1:20 or choices such as "
            f"1,3,10. One value for all trials: --set {name}={spec or 'VALUE'}."
        )
    if len({json.dumps(choice) for choice in choices}) < len(choices):
        raise OptionError(f"--param {name}={spec}: a choice stands there twice.")
    for choice in choices:
        _check_value(name, choice)
    return Parameter(name, choices)


def _parse_range(name: str, spec: str) -> Parameter:
    if _kind(name) not in (int, float):
        raise OptionError(f"--param {name}={spec}: {name} takes no range; give choices, separated by commas.")
    low_text, high_text, *rest = (part.strip() for part in spec.split(":"))
    low, high = _typed(name, low_text), _typed(name, high_text)
    if low is None or high is None:
        raise OptionError(f"--param {name}={spec}: a range goes from one number to another.")
    integer, step, log = _kind(name) is int, None, False
    for word in rest:
        if word == "log":
            log = True
        elif word.startswith("step="):
            step = _typed(name, word.removeprefix("step="))
        else:
            raise OptionError(f"--param {name}={spec}: {word!r} is neither `log` nor `step=NUMBER`.")
    if low >= high:
        raise OptionError(
            f"--param {name}={spec}: the range is empty, its lower end {low} is not below its upper end {high}."
        )
    if log and (low <= 0 or step is not None):
        raise OptionError(f"--param {name}={spec}: a log range begins above 0 and has no step.")
    if step is not None:
        if not 0 < step <= high - low:
            raise OptionError(f"--param {name}={spec}: the step is above 0 and at most {high - low:g}.")
        if (high - low) / step > _MOST_STEPS:
            raise OptionError(
                f"--param {name}={spec}: the step makes more than {_MOST_STEPS:,} values; take a larger one, or none."
            )
        # Optuna would shorten the range itself, with a warning.
        steps = math.floor((high - low) / step + 1e-9)
        high = low + steps * step
    _check_value(name, low)
    _check_value(name, high)
    return Parameter(name, low=low, high=high, step=step, log=log, integer=integer)


def _kind(name: str) -> type:
    """Return the type of a parameter's values: int, float, bool or str."""
    bare = name.rpartition(".")[2]
    if "." in name and bare == "top_k":
        return int
    if bare in SAMPLING_BOUNDS:
        return float
    if name in PROGRAM_PARAMETERS:
        return str
    found = ChainOptions.model_fields[name].annotation
    # `int | None` has its own type among its arguments, `int` has none.
    options = (found, *typing.get_args(found))
    return bool if bool in options else int if int in options else float if float in options else str


def _takes_none(name: str) -> bool:
    described = ChainOptions.model_fields.get(name)
    return described is not None and type(None) in typing.get_args(described.annotation)


def _typed(name: str, text: str) -> Any:
    """Return a value as the parameter's type.

    Raises:
        OptionError: The text is none.
    """
    kind = _kind(name)
    if text.lower() in ("none", "null") and _takes_none(name):
        return None
    if kind is str:
        return text
    if kind is bool:
        if text.lower() not in ("true", "false"):
            raise OptionError(f"--param {name}: {text!r} is neither true nor false.")
        return text.lower() == "true"
    try:
        value = kind(text)
        if not math.isfinite(value):
            raise ValueError
    except ValueError:
        what = "whole number" if kind is int else "number"
        raise OptionError(f"--param {name}: {text!r} is no {what}.") from None
    return value


def _check_value(name: str, value: Any) -> None:
    """Refuse a value that no trial could run with.

    Raises:
        OptionError: It is impossible.
    """
    bare = name.rpartition(".")[2]
    if name == "method":
        if value not in PROGRAMS:
            raise OptionError(f"--param method: unknown method {value!r}; known: {', '.join(PROGRAMS)}.")
    elif "." in name and bare == "top_k":
        if value < 1:
            raise OptionError(f"--param {name}: {value} is below 1.")
    elif bare in SAMPLING_BOUNDS:
        low, high = SAMPLING_BOUNDS[bare]
        if not low <= value <= high or (bare in _POSITIVE and value == 0):
            above = "above" if bare in _POSITIVE else "from"
            raise OptionError(f"--param {name}: {value:g} is out of bounds; it goes {above} {low:g} to {high:g}.")
    elif name in ChainOptions.model_fields:
        make_options(None, **{name: value})


def value_text(value: Any) -> str:
    """Return a parameter's value as people write it."""
    if value is None or isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float):
        short = f"{value:g}"
        return short if float(short) == value else repr(value)
    return str(value)

"""Options as a person types them, made what a backend or reader takes."""

from __future__ import annotations

import inspect
import typing
from collections.abc import Callable, Mapping
from typing import Any

from signatures.errors import OptionError

SHOWN_CHARS = 100
_SECRET = "key"


def typed_options(name: str, made: Callable[..., Any], options: Mapping[str, Any]) -> dict[str, Any]:
    """Check options against the types that a class or function declares.

    A number stands for a text of digits, as a key or a region may be one, and a text of digits for a number; a mapping
    of fields stands for a data class such as `Limits`.

    Args:
        name: Name of the backend or reader, for errors.
        made: Its class or function.
        options: Values by option name; each is a parameter.

    Returns:
        The values in those types.

    Raises:
        OptionError: A value is of another type; the text names it, except a key.
    """
    if not options:
        return {}
    from pydantic import ConfigDict, TypeAdapter, ValidationError

    declared = typing.get_type_hints(made.__init__ if inspect.isclass(made) else made)
    config = ConfigDict(coerce_numbers_to_str=True, arbitrary_types_allowed=True, extra="forbid")
    typed = {}
    for option, value in options.items():
        try:
            typed[option] = TypeAdapter(declared[option], config=config).validate_python(value)
        except ValidationError as error:
            why = error.errors()[0]["msg"]
            shown = "" if option == _SECRET else f" = {value!r:.{SHOWN_CHARS}}"
            raise OptionError(f"{name!r}: the option {option}{shown}: {why}.") from None
    return typed

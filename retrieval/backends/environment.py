"""Keys and addresses of providers: given as arguments, or taken from the environment when they are needed."""

from __future__ import annotations

import os

from signatures.errors import RetrievalError, SearchError


def require_setting(
    given: str | None,
    variable: str,
    *,
    provider: str,
    meaning: str,
    error: type[RetrievalError] = SearchError,
) -> str:
    """Return a setting that must be there.

    Args:
        given: What the caller passed, or None.
        variable: Environment variable that holds it otherwise.
        provider: Name of the backend or reader.
        meaning: What to set the variable to, for the error text: `your API key from https://…`.
        error: Type of the error.

    Returns:
        The setting, not empty.

    Raises:
        RetrievalError: It is not set; the text names the variable.
    """
    found = given or os.environ.get(variable, "").strip()
    if not found:
        raise error(
            f"{provider}: the environment variable {variable} is not set; set it to {meaning}.", provider=provider
        )
    return found


def optional_setting(given: str | None, variable: str, default: str = "") -> str:
    """Return a setting: what was given, else the environment variable's value, else the default."""
    return given or os.environ.get(variable, "").strip() or default

"""Keys, addresses and rates of providers: given as arguments, or taken from the environment when they are needed."""

from __future__ import annotations

import math
import os
from urllib.parse import SplitResult, urlsplit, urlunsplit

from retrieval.http.rates import Rate
from signatures.errors import OptionError, RetrievalError, SearchError


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


def route_url(address: str, route: str) -> str:
    """Complete the address of a server that was given without the route to ask.

    Args:
        address: URL of a server, `https://proxy.example`, or of its route, `https://proxy.example/my/search`.
        route: Path of the route at the provider's own server, from `/`.

    Returns:
        The address; with the route if it had no path.

    Raises:
        OptionError: It is no URL.
    """
    parts = _split(address)
    return urlunsplit(parts._replace(path=route)) if parts.path in ("", "/") else address


def shown_url(address: str) -> str:
    """Return an address as it may be shown and stored: without user name, password and query.

    Raises:
        OptionError: It is no URL.
    """
    parts = _split(address)
    return urlunsplit((parts.scheme, parts.netloc.rpartition("@")[2], parts.path, "", ""))


def rate_of(requests_per_second: float | None, provider: str) -> Rate | None:
    """Return how often a provider may be asked.

    Args:
        requests_per_second: Requests a second, fractions too; None for no limit.
        provider: Name of the backend or reader.

    Returns:
        The rate for `HttpClient`, or None.

    Raises:
        OptionError: It is not above zero.
    """
    if requests_per_second is None:
        return None
    if not (math.isfinite(requests_per_second) and requests_per_second > 0):
        raise OptionError(
            f"{provider}: requests_per_second is {requests_per_second!r}; give a number above 0, or none for no limit."
        )
    return Rate(requests_per_second)


def _split(address: str) -> SplitResult:
    try:
        return urlsplit(address)
    except ValueError as error:
        raise OptionError(f"The address of a server is not a valid URL: {error}.") from error

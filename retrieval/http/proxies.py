"""Which proxy a request goes through: HTTPS_PROXY, HTTP_PROXY, ALL_PROXY and NO_PROXY of the environment.

Requests to this machine itself (`localhost`, 127.0.0.0/8, ::1) never go through a proxy, which could not reach it.

The guard behind a proxy: it resolves a name itself and refuses it unless all its addresses are public, but the proxy
resolves the name again, so a name that changes its address in between (DNS rebinding) cannot be excluded. This limit is
logged once. Who must exclude it has the proxy itself refuse private addresses.
"""

from __future__ import annotations

import functools
import ipaddress
import logging
import os
import re

from yarl import URL

from retrieval.http.failures import Failure, FailureError

_log = logging.getLogger(__name__)


def proxy_for(url: URL) -> URL | None:
    """Choose the proxy for a request.

    Args:
        url: What is requested.

    Returns:
        Address of the proxy, which may hold credentials and is not to be shown; None to connect directly.

    Raises:
        FailureError: The environment names a proxy of a kind that is not supported.
    """
    variable = f"{url.scheme}_proxy"
    address = _setting(variable)
    if not address:
        variable = "all_proxy"
        address = _setting(variable)
    host = (url.host or "").lower().removesuffix(".")
    if not address or _is_this_machine(host) or _is_exempt(host, url.port, _setting("no_proxy")):
        return None
    try:
        proxy = URL(address if "://" in address else f"http://{address}")
        if proxy.scheme in ("http", "https") and proxy.host:
            return proxy
    except ValueError:
        pass
    # The value itself may hold a password.
    text = f"the environment variable {variable.upper()} names no http:// or https:// proxy; others are not supported"
    raise FailureError(Failure("connection", text))


def proxy_secrets() -> tuple[str, ...]:
    """Return the passwords of all proxies in the environment, to be blacked out in errors."""
    credentials = (_setting(name).rpartition("@")[0] for name in ("http_proxy", "https_proxy", "all_proxy"))
    return tuple(found.rpartition(":")[2] for found in credentials if found)


@functools.cache
def warn_of_rebinding() -> None:
    """Log, once in a process, what the guard cannot see behind a proxy."""
    _log.warning(
        "Pages are fetched through a proxy, which resolves their names again: addresses are checked before, but a name "
        "that changes in between (DNS rebinding) cannot be noticed. Let the proxy refuse private addresses."
    )


def _setting(name: str) -> str:
    found = os.environ.get(name)
    # In a CGI program HTTP_PROXY comes from a header field of the visitor (https://httpoxy.org).
    if found is None and not (name == "http_proxy" and "REQUEST_METHOD" in os.environ):
        found = os.environ.get(name.upper())
    return (found or "").strip()


def _is_this_machine(host: str) -> bool:
    if host == "localhost" or host.endswith(".localhost"):
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _is_exempt(host: str, port: int | None, exempt: str) -> bool:
    return any(_matches(host, port, part) for part in re.split(r"[,\s]+", exempt.lower()) if part)


def _matches(host: str, port: int | None, part: str) -> bool:
    # As curl reads it: `*`, a name with its subdomains (a dot in front changes nothing), an address, a network; and,
    # as Python's urllib does, a name with a port.
    if part == "*":
        return True
    try:
        return ipaddress.ip_address(host) in ipaddress.ip_network(part.strip("[]"), strict=False)
    except ValueError:
        name, _, wanted = part.partition(":")
        name = name.strip(".")
        same = host == name or host.endswith(f".{name}")
        return bool(name) and same and wanted in ("", str(port))

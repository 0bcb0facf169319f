"""Which URLs may be fetched: the guard for those that come from search hits or from the model.

It looks at an address three times: as it is written (`check_url`), as its name resolves (`GuardedResolver`), and when
the socket for it is made (`guarded_socket`). The last two see the very address that is connected to, so a name that
changes between check and use (DNS rebinding) gains nothing, nor does a spelling that no resolver sees. Configured
endpoints do not pass here.
"""

from __future__ import annotations

import re
import socket
from collections.abc import Sequence
from typing import Any
from urllib.parse import urlsplit

from aiohttp.abc import AbstractResolver, ResolveResult
from yarl import URL

from retrieval.http.addresses import is_public
from retrieval.http.names import SystemNames

MAX_URL_CHARS = 8192
"""Longer URLs are refused; RFC 9110 asks for support of 8,000 octets."""

# The ports that browsers refuse (Fetch standard, "port blocking"), and two databases that take lines of an HTTP
# request for commands: Redis 6379, memcached 11211.
# fmt: off
_REFUSED_PORTS = frozenset({
    0, 1, 7, 9, 11, 13, 15, 17, 19, 20, 21, 22, 23, 25, 37, 42, 43, 53, 69, 77, 79, 87, 95, 101, 102, 103, 104, 109,
    110, 111, 113, 115, 117, 119, 123, 135, 137, 139, 143, 161, 179, 389, 427, 465, 512, 513, 514, 515, 526, 530, 531,
    532, 540, 548, 554, 556, 563, 587, 601, 636, 989, 990, 993, 995, 1719, 1720, 1723, 2049, 3659, 4045, 4190, 5060,
    5061, 6000, 6379, 6566, 6665, 6666, 6667, 6668, 6669, 6679, 6697, 10080, 11211,
})
# fmt: on
# None of these is delegated in the public DNS (RFC 6761, 6762, 8375, ICANN's reservation of `internal`).
_LOCAL_NAMES = ("localhost", "local", "internal", "localdomain", "home.arpa", "lan", "home", "corp", "intranet")
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f]")
_HOST_NAME = re.compile(r"(?=.{1,253}\Z)(?:[a-z0-9_-]{1,63}\.)*[a-z0-9_-]{1,63}\Z")
# As browsers see it (URL standard, "ends in a number"): such a host is an IPv4 address or nothing.
_NUMERIC_HOST = re.compile(r"(?:.*\.)?(?:[0-9]+|0x[0-9a-f]*)\Z")


class RefusedAddress(OSError):
    """The guard refuses an address; the text says why."""


def check_url(url: str, allow_private: bool = False) -> URL:
    """Check an address as it is written.

    Args:
        url: Absolute URL.
        allow_private: Check only that it is a well-formed http(s) URL; for configured endpoints and `--allow-private`.

    Returns:
        The parsed URL; an IPv4 address in an odd spelling (`0x8.8.8.8`) is written as usual.

    Raises:
        RefusedAddress: It is no well-formed http(s) URL of acceptable length; or, unless `allow_private`, it carries a
            user name, names a port of another protocol, or its host is, or plainly spells, an address that is not
            public.
    """
    parsed = _parse(url)
    if allow_private:
        return parsed
    if parsed.raw_user is not None or parsed.raw_password is not None:
        raise RefusedAddress("it carries a user name or password")
    if parsed.port in _REFUSED_PORTS:
        raise RefusedAddress(f"port {parsed.port} belongs to another protocol")
    host = (parsed.raw_host or "").lower().removesuffix(".")
    if ":" in host:
        _refuse_unless_public(host)
        return parsed
    if not _HOST_NAME.match(host):
        raise RefusedAddress(f"{host!r:.100} is no host name")
    if _NUMERIC_HOST.match(host):
        host = _usual_spelling(host)
        _refuse_unless_public(host)
        return parsed.with_host(host)
    if "." not in host or any(host.endswith(f".{name}") for name in _LOCAL_NAMES):
        raise RefusedAddress(f"{host} is a local name")
    return parsed


class GuardedResolver(AbstractResolver):
    """A resolver that hands out public addresses only; aiohttp connects to exactly what it returns.

    Args:
        inner: What it asks; by default the system's resolver.
    """

    def __init__(self, inner: AbstractResolver | None = None) -> None:
        self._inner = inner or SystemNames()

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_INET
    ) -> list[ResolveResult]:
        """Resolve a name.

        Args:
            host: Name, or a numeric spelling that the system understands.
            port: Port to connect to.
            family: Address family wanted.

        Returns:
            Its public addresses.

        Raises:
            RefusedAddress: It has none.
            OSError: It cannot be resolved.
        """
        found = await self._inner.resolve(host, port, family)
        public = [result for result in found if is_public(result["host"])]
        if found and not public:
            raise RefusedAddress(f"{host} resolves to an address that is not public")
        return public

    async def check_all(self, host: str, port: int) -> None:
        """Check a name that somebody else, a proxy, will resolve again.

        Args:
            host: Name or IP address.
            port: Port that will be connected to.

        Raises:
            RefusedAddress: One of its addresses is not public, so the proxy might choose that one.
            OSError: It cannot be resolved.
        """
        for result in await self._inner.resolve(host, port, socket.AF_UNSPEC):
            if not is_public(result["host"]):
                raise RefusedAddress(f"{host} resolves to an address that is not public")

    async def close(self) -> None:
        """Release the resolver."""
        await self._inner.close()


def guarded_socket(address: Sequence[Any]) -> socket.socket:
    """Make the socket for a connection, the last moment to refuse it; IP addresses in a URL pass no resolver.

    Args:
        address: What `socket.getaddrinfo` gives for it: family, type, protocol, canonical name, socket address.

    Returns:
        A socket, not yet connected.

    Raises:
        RefusedAddress: The address is not public.
    """
    family, kind, protocol, _, target = address
    _refuse_unless_public(target[0])
    return socket.socket(family=family, type=kind, proto=protocol)


def _parse(url: str) -> URL:
    if len(url) > MAX_URL_CHARS:
        raise RefusedAddress(f"it is longer than {MAX_URL_CHARS} characters")
    if _CONTROL.search(url):
        # Some parsers drop them silently, so that two of them see different hosts.
        raise RefusedAddress("it holds a control character or line break")
    try:
        parsed = URL(url)
        scheme = urlsplit(url).scheme.lower()
        host = parsed.raw_host
    except ValueError as error:
        raise RefusedAddress(f"it is not a valid URL ({type(error).__name__})") from error
    if scheme not in ("http", "https") or parsed.scheme != scheme:
        raise RefusedAddress("only http and https addresses are fetched")
    if not host:
        raise RefusedAddress("it names no host")
    return parsed


def _usual_spelling(host: str) -> str:
    try:
        # Understands what browsers and the C library do: 2130706433, 0x7f.1, 0177.0.0.1, 127.1.
        return socket.inet_ntoa(socket.inet_aton(host))
    except OSError as error:
        raise RefusedAddress(f"{host} is no IP address") from error


def _refuse_unless_public(host: str) -> None:
    try:
        public = is_public(host)
    except ValueError as error:
        raise RefusedAddress(f"{host!r:.100} is no IP address") from error
    if not public:
        raise RefusedAddress(f"{host} is not a public address")

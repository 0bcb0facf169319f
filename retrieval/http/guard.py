"""Which addresses may be fetched: the guard for URLs that come from search hits or from the model.

It looks at an address twice: as it is written (scheme, host), and as it resolves, at the moment of connecting, so that
a name that changes between check and use (DNS rebinding) gains nothing. Configured endpoints do not pass here.
"""

from __future__ import annotations

import ipaddress
import re
import socket
from urllib.parse import urlsplit

from aiohttp.abc import AbstractResolver, ResolveResult
from aiohttp.resolver import ThreadedResolver
from yarl import URL

Address = ipaddress.IPv4Address | ipaddress.IPv6Address

_NUMERIC_HOST = re.compile(r"[0-9a-fx.]+", re.IGNORECASE)
_LOCAL_NAMES = ("localhost", "local", "internal", "localdomain", "home.arpa")
# The standard library calls these public; they serve cloud metadata and protocol assignments.
_REFUSED_NETWORKS = tuple(ipaddress.ip_network(network) for network in ("168.63.129.16/32", "192.0.0.0/24"))
_NAT64 = ipaddress.IPv6Network("64:ff9b::/96")
_IPV4_COMPATIBLE = ipaddress.IPv6Network("::/96")


class RefusedAddress(OSError):
    """The guard refuses an address; the text says why."""


def is_public(address: str) -> bool:
    """Tell whether an IP address belongs to the public internet.

    Args:
        address: An IPv4 or IPv6 address in its usual spelling; a zone after `%` is ignored.

    Returns:
        False for loopback, private, link-local, CGNAT, multicast, reserved, unspecified and cloud metadata addresses,
        also when one of them is wrapped in an IPv6 address (mapped, compatible, 6to4, Teredo, NAT64).

    Raises:
        ValueError: It is no IP address.
    """
    parsed = _unwrap(ipaddress.ip_address(address.partition("%")[0]))
    if any(parsed in network for network in _REFUSED_NETWORKS if network.version == parsed.version):
        return False
    if isinstance(parsed, ipaddress.IPv6Address) and parsed.is_site_local:
        return False
    return parsed.is_global and not (parsed.is_multicast or parsed.is_reserved or parsed.is_unspecified)


def check_url(url: str, allow_private: bool = False) -> URL:
    """Check an address as it is written.

    Args:
        url: Absolute URL.
        allow_private: Let private addresses pass; the scheme is checked all the same.

    Returns:
        The parsed URL.

    Raises:
        RefusedAddress: It is no http(s) URL, or its host is, or plainly spells, an address that is not public.
    """
    try:
        parsed = URL(url)
        host = (parsed.host or "").rstrip(".").lower()
        scheme = urlsplit(url).scheme.lower()
    except ValueError as error:
        raise RefusedAddress(f"it is not a valid URL ({error})") from error
    if scheme not in ("http", "https") or parsed.scheme != scheme:
        raise RefusedAddress("only http and https addresses are fetched")
    if not host:
        raise RefusedAddress("it names no host")
    if allow_private:
        return parsed
    spelled = _spelled_address(host)
    if spelled is not None and not is_public(spelled):
        raise RefusedAddress(f"{host} is not a public address")
    if any(host == name or host.endswith(f".{name}") for name in _LOCAL_NAMES):
        raise RefusedAddress(f"{host} is a local name")
    return parsed


class GuardedResolver(AbstractResolver):
    """A resolver that hands out public addresses only; aiohttp connects to exactly what it returns."""

    def __init__(self) -> None:
        self._inner = ThreadedResolver()

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

    async def close(self) -> None:
        """Release the resolver."""
        await self._inner.close()


def _spelled_address(host: str) -> str | None:
    try:
        return str(ipaddress.ip_address(host.partition("%")[0]))
    except ValueError:
        pass
    if not _NUMERIC_HOST.fullmatch(host):
        return None
    try:
        # Understands what browsers and the C library do: 2130706433, 0x7f.1, 0177.0.0.1, 127.1.
        return socket.inet_ntoa(socket.inet_aton(host))
    except OSError:
        return None


def _unwrap(address: Address) -> Address:
    if isinstance(address, ipaddress.IPv4Address):
        return address
    if address.ipv4_mapped is not None:
        return address.ipv4_mapped
    if address.sixtofour is not None:
        return address.sixtofour
    if address.teredo is not None:
        return address.teredo[1]
    if address in _NAT64 or (address in _IPV4_COMPATIBLE and int(address) > 1):
        return ipaddress.IPv4Address(int(address) & 0xFFFFFFFF)
    return address

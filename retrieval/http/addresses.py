"""Which IP addresses belong to the public internet.

The tables follow the IANA special-purpose address registries (RFC 6890); they are written out because the standard
library's own differ between Python versions, and because some networks that it calls public serve cloud metadata.
"""

from __future__ import annotations

import ipaddress

_REFUSED_IPV4 = tuple(
    ipaddress.IPv4Network(network)
    for network in (
        "0.0.0.0/8",  # this network
        "10.0.0.0/8",  # private (RFC 1918)
        "100.64.0.0/10",  # shared by carriers (CGNAT, RFC 6598); Alibaba's metadata is 100.100.100.200
        "127.0.0.0/8",  # loopback
        "168.63.129.16/32",  # Azure's platform server, reachable from its machines only
        "169.254.0.0/16",  # link-local; metadata of most clouds is 169.254.169.254
        "172.16.0.0/12",  # private
        "192.0.0.0/24",  # protocol assignments; Oracle's metadata is 192.0.0.192
        "192.0.2.0/24",  # documentation (RFC 5737)
        "192.88.99.0/24",  # 6to4 relays, retired (RFC 7526)
        "192.168.0.0/16",  # private
        "198.18.0.0/15",  # benchmarks (RFC 2544)
        "198.51.100.0/24",  # documentation
        "203.0.113.0/24",  # documentation
        "224.0.0.0/4",  # multicast
        "240.0.0.0/4",  # reserved, and broadcast
    )
)
_GLOBAL_IPV6 = ipaddress.IPv6Network("2000::/3")
"""The only part of IPv6 that is given out for public use."""
_REFUSED_IPV6 = tuple(
    ipaddress.IPv6Network(network)
    for network in (
        "2001::/23",  # protocol assignments, among them Teredo and ORCHID
        "2001:db8::/32",  # documentation (RFC 3849)
        "3fff::/20",  # documentation (RFC 9637)
    )
)
_NAT64 = ipaddress.IPv6Network("64:ff9b::/96")
"""Reaches the IPv4 address in its last 32 bits (RFC 6052); how hosts without IPv4 reach most of the web."""
_ISATAP_MARKS = (0x0000_5EFE, 0x0200_5EFE)


def is_public(address: str) -> bool:
    """Tell whether an IP address belongs to the public internet.

    Args:
        address: An IPv4 or IPv6 address in its usual spelling.

    Returns:
        False for loopback, private, link-local, CGNAT, multicast, reserved, unspecified, documentation and cloud
        metadata addresses, also when one of them is wrapped in an IPv6 address (mapped, 6to4, ISATAP, NAT64); for
        every Teredo, IPv4-compatible and SIIT address; and for an address with a zone (`fe80::1%eth0`), which has a
        meaning on one link only.

    Raises:
        ValueError: It is no IP address.
    """
    spelled, _, zone = address.partition("%")
    parsed = ipaddress.ip_address(spelled)
    if zone:
        return False
    if isinstance(parsed, ipaddress.IPv4Address):
        return _is_public_ipv4(parsed)
    if parsed.ipv4_mapped is not None:
        return _is_public_ipv4(parsed.ipv4_mapped)
    if parsed in _NAT64:
        return _is_public_ipv4(_last_bits(parsed))
    inner = parsed.sixtofour
    if (int(parsed) >> 32) & 0xFFFF_FFFF in _ISATAP_MARKS:
        inner = _last_bits(parsed)
    if inner is not None and not _is_public_ipv4(inner):
        return False
    return parsed in _GLOBAL_IPV6 and not any(parsed in network for network in _REFUSED_IPV6)


def _is_public_ipv4(address: ipaddress.IPv4Address) -> bool:
    return not any(address in network for network in _REFUSED_IPV4)


def _last_bits(address: ipaddress.IPv6Address) -> ipaddress.IPv4Address:
    return ipaddress.IPv4Address(int(address) & 0xFFFF_FFFF)

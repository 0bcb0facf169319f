"""Keys of cache entries: a hash that finds them, and the same parts in a form that may be read and shown."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit, urlunsplit

from signatures.errors import OptionError

SHOWN_CHARS = 2_000
"""A part of a key is kept readable up to this many characters."""

_USER_INFO = re.compile(r"(://)[^/?#\s]*@")
_SECRET_FIELD = re.compile(
    r"((?:^|[?&;])(?:api[_-]?key|subscription[_-]?key|key|code|token|access[_-]?token|secret|sig|signature|password"
    r"|auth)=)[^&;\s]+",
    re.IGNORECASE,
)


def cache_key(key_parts: Mapping[str, Any]) -> str:
    """Return the key of an entry.

    Args:
        key_parts: Everything that changes the value, JSON only; the order of the keys does not matter.

    Returns:
        SHA-256 of their canonical JSON, in hex.
    """
    canonical = json.dumps(key_parts, sort_keys=True, ensure_ascii=True, separators=(",", ":"))
    return hashlib.sha256(canonical.encode()).hexdigest()


def readable(key_parts: Mapping[str, Any]) -> str:
    """Return the parts of a key as JSON that may be stored and shown.

    Args:
        key_parts: The parts.

    Returns:
        Sorted JSON, credentials in addresses blacked out, long texts cut.
    """
    shown_parts = json.dumps(_shown(key_parts), sort_keys=True, ensure_ascii=False, separators=(",", ":"))
    # Half a surrogate pair, which a model or a provider may write, cannot be stored as text.
    return shown_parts.encode("utf-8", "replace").decode()


def without_credentials(url: str) -> str:
    """Return an address without user, password, query and fragment: what names a server in a key.

    Args:
        url: The address.

    Returns:
        Scheme, host, port and path, no slash at the end.

    Raises:
        OptionError: It is no URL.
    """
    try:
        parts = urlsplit(url)
    except ValueError as error:
        raise OptionError(f"The address of a server is not a valid URL: {error}.") from error
    return urlunsplit((parts.scheme, parts.netloc.rpartition("@")[2], parts.path.rstrip("/"), "", ""))


def shown(text: str) -> str:
    """Return a text with what looks like a credential in an address blacked out, cut to `SHOWN_CHARS` characters."""
    return _SECRET_FIELD.sub(r"\1***", _USER_INFO.sub(r"\1***@", text))[:SHOWN_CHARS]


def _shown(value: Any) -> Any:
    if isinstance(value, str):
        return shown(value)
    if isinstance(value, Mapping):
        return {str(name): _shown(part) for name, part in value.items()}
    if isinstance(value, list | tuple):
        return [_shown(part) for part in value]
    return value

"""Frames on the pipes between the host and a sandbox: four bytes of length, then that many bytes."""

from __future__ import annotations

import os
import struct
from collections.abc import Callable

MAX_FRAME = 1 << 30
"""No frame is longer than this many bytes; a reader refuses to believe more."""

_LENGTH = struct.Struct(">I")


def encode_frame(payload: bytes) -> bytes:
    """Return a payload with its length before it.

    Args:
        payload: Up to `MAX_FRAME` bytes.

    Returns:
        The frame.

    Raises:
        ValueError: The payload is longer than a frame may be.
    """
    if len(payload) > MAX_FRAME:
        raise ValueError(f"a frame holds at most {MAX_FRAME} bytes, not {len(payload)}")
    return _LENGTH.pack(len(payload)) + payload


def write_frame(descriptor: int, payload: bytes) -> None:
    """Write one frame to a blocking file descriptor.

    Args:
        descriptor: Where to.
        payload: What.
    """
    view = memoryview(encode_frame(payload))
    while view:
        view = view[os.write(descriptor, view) :]


def read_frame(read: Callable[[int], bytes], limit: int = MAX_FRAME) -> bytes | None:
    """Read one frame.

    Args:
        read: Returns up to that many bytes, and nothing at the end, as `os.read` of a descriptor does.
        limit: The most bytes that are believed.

    Returns:
        The payload; None when the stream ends before or within the frame.

    Raises:
        ValueError: The frame says that it is longer than `limit`.
    """
    head = _exactly(read, _LENGTH.size)
    if head is None:
        return None
    (length,) = _LENGTH.unpack(head)
    if length > limit:
        raise ValueError(f"a frame of {length} bytes is longer than the {limit} allowed")
    return _exactly(read, length)


def _exactly(read: Callable[[int], bytes], count: int) -> bytes | None:
    parts: list[bytes] = []
    while count:
        part = read(min(count, 1 << 20))
        if not part:
            return None
        parts.append(part)
        count -= len(part)
    return b"".join(parts)

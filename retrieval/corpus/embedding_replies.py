"""Reading a reply of `/v1/embeddings`: whatever it holds, it ends in sound vectors or in a `SearchError`."""

from __future__ import annotations

import base64
import binascii
from typing import Any

import numpy as np
from numpy.typing import NDArray

from signatures.errors import SearchError

PROVIDER = "embeddings"


def parse_embeddings(reply: Any, count: int, what: str) -> NDArray[np.float32]:
    """Read the vectors of a reply.

    Args:
        reply: The parsed JSON: `{"data": [{"index", "embedding"}, …]}`, in any order; an embedding is a list of
            numbers, or base64 of little-endian float32.
        count: Texts that were sent.
        what: What was asked for, for errors.

    Returns:
        One row a text in the order sent, scaled to length 1; shape (count, dimension).

    Raises:
        SearchError: The count or the dimension is wrong, a number is missing or not finite, or a vector is zero.
    """
    records = reply.get("data") if isinstance(reply, dict) else None
    if not isinstance(records, list) or not all(isinstance(record, dict) for record in records):
        raise _error(what, 'the reply has no list "data" of objects, so it is not that of /v1/embeddings')
    if len(records) != count:
        raise _error(what, f"the server gave {len(records)} vectors for {count} texts")
    rows = [_numbers(record.get("embedding"), what) for record in _in_order(records, what)]
    widths = {row.size for row in rows}
    if len(widths) != 1:
        raise _error(what, f"the vectors have different dimensions: {sorted(widths)}")
    return _unit(np.stack(rows), what)


def _in_order(records: list[dict[str, Any]], what: str) -> list[dict[str, Any]]:
    indexes = [record.get("index") for record in records]
    if all(index is None for index in indexes):
        return records
    if any(isinstance(index, bool) or not isinstance(index, int) for index in indexes) or sorted(indexes) != list(  # type: ignore[type-var]
        range(len(records))
    ):
        raise _error(what, f'the "index" of the vectors is not each of 0 to {len(records) - 1} once')
    return sorted(records, key=lambda record: record["index"])


def _numbers(embedding: Any, what: str) -> NDArray[np.float64]:
    if isinstance(embedding, str):
        try:
            row = np.frombuffer(base64.b64decode(embedding, validate=True), dtype="<f4").astype(np.float64)
        except (binascii.Error, ValueError) as error:
            raise _error(what, "a vector is not base64 of float32 numbers") from error
    else:
        try:
            made = np.asarray(embedding)
        except (ValueError, TypeError, OverflowError, RecursionError) as error:
            raise _error(what, "a vector is not a list of numbers") from error
        if not isinstance(embedding, list) or made.ndim != 1 or made.dtype.kind not in "fiu":
            raise _error(what, "a vector is not a list of numbers")
        row = made.astype(np.float64)
    if not row.size:
        raise _error(what, "a vector is empty")
    return row


def _unit(vectors: NDArray[np.float64], what: str) -> NDArray[np.float32]:
    if not np.isfinite(vectors).all():
        raise _error(what, "a vector holds NaN or infinity")
    # Scaled by the largest number first, since squares of very large or very small ones leave the range.
    largest = np.abs(vectors).max(axis=1, keepdims=True)
    if not (largest > 0).all():
        raise _error(what, "a vector is all zeros, so it points nowhere")
    scaled = vectors / largest
    unit: NDArray[np.float32] = (scaled / np.linalg.norm(scaled, axis=1, keepdims=True)).astype(np.float32)
    return unit


def _error(what: str, text: str) -> SearchError:
    return SearchError(
        f"{PROVIDER}: {what} failed: {text}; check that the model is an embedding model.", provider=PROVIDER, status=200
    )

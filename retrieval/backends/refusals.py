"""What a provider's refusal means and what to do about it, in place of a bare status."""

from __future__ import annotations

from collections.abc import Mapping

from signatures.errors import SearchError


def explain(error: SearchError, what: str, meanings: Mapping[int, str]) -> SearchError:
    """Say what a status means at this provider.

    Args:
        error: The failure as the HTTP client tells it.
        what: What was asked for; see `retrieval.backends.shape.describe_query`.
        meanings: Meaning of each status with the way out, without a full stop.

    Returns:
        The error with that meaning and the start of the reply, or the same one if the status has none.
    """
    meaning = meanings.get(error.status or 0)
    if meaning is None:
        return error
    answer = f" ({error.body})" if error.body and not error.body.startswith("<") else ""
    return SearchError(
        f"{error.provider}: {what} failed: the server answered {error.status}{answer}: {meaning}.",
        provider=error.provider,
        status=error.status,
        body=error.body,
    )


def refused_key(variable: str, where: str) -> str:
    """Return the meaning of a refused key.

    Args:
        variable: Environment variable that holds the key.
        where: Where keys are given out.
    """
    return f"the key is not accepted; check {variable}, keys are at {where}"

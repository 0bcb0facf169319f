"""The one error tree: everything this project raises on purpose is a `SearchO1Error`.

This module is a leaf: it imports the standard library only and may be imported from every package.
"""

from __future__ import annotations


class SearchO1Error(Exception):
    """Base of all errors that a user can mend; its text names the thing, the value and the way out.

    Args:
        message: What went wrong, with which value, and what to do about it. Never holds a secret.
    """

    kind = "error"
    """Short name under which a run counts this failure."""


class OptionError(SearchO1Error):
    """An option has an unknown name or an impossible value."""

    kind = "option"


class DataError(SearchO1Error):
    """A data file is missing, malformed or of the wrong kind."""

    kind = "data"


class ProgramError(SearchO1Error):
    """A compiled program is missing, damaged, or meant for another method."""

    kind = "program"


class ModelError(SearchO1Error):
    """The language model or its server could not answer."""

    kind = "model"


class ContextLengthError(ModelError):
    """A prompt does not fit the model's context."""

    kind = "context"


class RetrievalError(SearchO1Error):
    """Base of search and read failures.

    Args:
        message: What failed, for which query or URL, and the way out.
        provider: Name of the backend or reader.
        status: HTTP status of the reply, or None when there was none.
        body: Start of the reply; cut to its first 200 characters.
    """

    kind = "retrieval"

    def __init__(self, message: str, *, provider: str = "", status: int | None = None, body: str = "") -> None:
        super().__init__(message)
        self.provider = provider
        self.status = status
        self.body = body[:200]


class SearchError(RetrievalError):
    """A search backend failed; never raised for an honest empty result."""

    kind = "search"


class ReadError(RetrievalError):
    """A page could not be read; `reason` is a short word that runs count by.

    Args:
        message: What failed, for which URL.
        reason: One of `http`, `timeout`, `connection`, `blocked`, `refused` (by our own guard), `not_found`,
            `rate_limited`, `quota` (a service's balance is spent), `unauthorized` (a service wants a valid key),
            `unsupported`, `too_large`; or, of a reply that looks like success: `empty`, `binary`, `bot_wall`,
            `cookie_wall`, `login_wall`, `word_list`.
        provider: Name of the reader.
        status: HTTP status of the reply, or None.
        body: Start of the reply; cut to its first 200 characters.
    """

    kind = "read"

    def __init__(
        self, message: str, *, reason: str = "http", provider: str = "", status: int | None = None, body: str = ""
    ) -> None:
        super().__init__(message, provider=provider, status=status, body=body)
        self.reason = reason

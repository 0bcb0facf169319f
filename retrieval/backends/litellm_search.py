"""The tail of search providers: those that LiteLLM speaks to, as `litellm:PROVIDER`.

Source: LiteLLM's search API, https://docs.litellm.ai/docs/search. LiteLLM is imported at the first search, or when a
provider is named that is not in `KEY_VARIABLES`.
"""

from __future__ import annotations

import asyncio
import importlib
import os
from collections.abc import Mapping
from typing import Any

from retrieval.backends.environment import optional_setting, rate_of, shown_url
from retrieval.backends.library_calls import LibraryCaller
from retrieval.backends.refusals import explain, refused_key
from retrieval.backends.shape import day, describe_query, text_field, web_hits
from retrieval.base import Hit
from retrieval.http.client import Limits
from retrieval.http.failures import Failure, FailureError, status_failure
from signatures.errors import OptionError, SearchError

DOCUMENTATION = "https://docs.litellm.ai/docs/search"
MOST_PER_REQUEST = 20

KEY_VARIABLES: Mapping[str, tuple[str, ...]] = {
    "apiserpent": ("APISERPENT_API_KEY",),
    "brave": ("BRAVE_API_KEY",),
    "deepseek": ("DEEPSEEK_API_KEY",),
    "exa_ai": ("EXA_API_KEY",),
    "fastcrw": ("CRW_API_KEY",),
    "firecrawl": ("FIRECRAWL_API_KEY",),
    "google_pse": ("GOOGLE_PSE_API_KEY",),
    "linkup": ("LINKUP_API_KEY",),
    "nimble": ("NIMBLE_API_KEY",),
    "parallel_ai": ("PARALLEL_AI_API_KEY", "PARALLEL_API_KEY"),
    "perplexity": ("PERPLEXITYAI_API_KEY",),
    "searchapi": ("SEARCHAPI_API_KEY",),
    "serper": ("SERPER_API_KEY",),
    "tavily": ("TAVILY_API_KEY",),
    "tinyfish": ("TINYFISH_API_KEY",),
    "xai": ("XAI_API_KEY",),
}
"""Environment variables that hold each provider's key, the first one that is set counts. LiteLLM knows them as well,
but hands a key from the environment only to the provider's own server, never to one that we name."""


class LitellmSearch:
    """Searches through LiteLLM.

    Args:
        provider: LiteLLM's name of the provider: `exa_ai`, `perplexity`, `linkup`, …
        endpoint: Base URL of a server that speaks the provider's API; by default the environment's
            LITELLM_SEARCH_BASE_URL, else what LiteLLM takes.
        key: The provider's key; by default its own environment variable.
        country: Country of the results, two letters; empty for any. Not every provider heeds it.
        limits: Time, retries and waits.
        requests_per_second: How often to ask; None for no limit.

    Raises:
        OptionError: LiteLLM does not know the provider.
    """

    def __init__(
        self,
        provider: str,
        endpoint: str | None = None,
        key: str | None = None,
        country: str = "",
        limits: Limits | None = None,
        requests_per_second: float | None = 5.0,
    ) -> None:
        if provider not in KEY_VARIABLES and provider not in (known := _known_providers()):
            raise OptionError(
                f"Unknown search provider {provider!r} in litellm:{provider}; LiteLLM knows: {', '.join(known)}."
            )
        self.provider = provider
        self.name = f"litellm:{provider}"
        self.endpoint = endpoint
        self.country = country
        self._key = key
        self._caller = LibraryCaller(self.name, limits, rate_of(requests_per_second, self.name))

    async def search(self, query: str, k: int) -> list[Hit]:
        """Search; see `retrieval.base.Search.search`. More than 20 hits cannot be had."""
        key = self._given_key()
        what = describe_query(query)
        # Its import takes seconds, which count neither as this search's time nor as anybody else's.
        litellm = await asyncio.to_thread(_litellm)

        async def attempt() -> Any:
            return await self._ask(litellm, query, k, key)

        try:
            reply = await self._caller.call(attempt, what=what, secrets=(key,) if key else ())
        except SearchError as error:
            refused = refused_key(self._key_variable(), DOCUMENTATION)
            raise explain(error, what, {401: refused, 403: refused}) from error
        return self._parse(reply, k)

    def identity(self) -> str:
        """Return provider, server and country."""
        return f"{self.name}:{shown_url(self._address())}:{self.country}"

    def _address(self) -> str:
        return optional_setting(self.endpoint, "LITELLM_SEARCH_BASE_URL")

    def _key_variable(self) -> str:
        return KEY_VARIABLES.get(self.provider, ("its key",))[0]

    def _given_key(self) -> str | None:
        variables = KEY_VARIABLES.get(self.provider, ())
        found = self._key or next(filter(None, (os.environ.get(name, "").strip() for name in variables)), None)
        if found is None and variables:
            raise SearchError(
                f"{self.name}: the environment variable {variables[0]} is not set; set it to your key for "
                f"{self.provider}, see {DOCUMENTATION}.",
                provider=self.name,
            )
        return found

    async def _ask(self, litellm: Any, query: str, k: int, key: str | None) -> Any:
        # Its advice to report bugs goes to standard output, where our own output is.
        litellm.suppress_debug_info = True
        try:
            return await litellm.asearch(
                query=query.strip(),
                search_provider=self.provider,
                max_results=max(1, min(k, MOST_PER_REQUEST)),
                country=self.country or None,
                api_base=self._address() or None,
                api_key=key,
                timeout=self._caller.limits.total_s,
            )
        except TimeoutError:
            raise
        except Exception as error:
            raise FailureError(_failure(error)) from error

    def _parse(self, reply: Any, k: int) -> list[Hit]:
        found = getattr(reply, "results", None)
        records = [vars(result) for result in found if hasattr(result, "__dict__")] if isinstance(found, list) else []
        return web_hits(
            (
                Hit(
                    title=text_field(record, "title"),
                    url=text_field(record, "url"),
                    snippet=text_field(record, "snippet"),
                    date=day(text_field(record, "date")),
                )
                for record in records
            ),
            k,
        )


def _litellm() -> Any:
    # Its price list would otherwise be fetched from the network while it is imported.
    os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")
    return importlib.import_module("litellm")


def _known_providers() -> list[str]:
    _litellm()
    from litellm.types.utils import SearchProviders

    return sorted(provider.value for provider in SearchProviders)


def _failure(error: Exception) -> Failure:
    # LiteLLM wraps whatever happened; what it was is in the exception that it was handling.
    origin = error.__context__ or error
    status = getattr(origin, "status_code", None)
    if isinstance(status, int):
        headers = getattr(origin, "headers", None)
        if headers:
            lower = {str(name).lower(): str(value) for name, value in dict(headers).items()}
            return status_failure(status, lower, str(getattr(origin, "message", "")).encode())
        # It gives status 500 to connections that failed, but no header fields.
        return Failure("connection", f"the connection failed ({type(origin.__context__).__name__})", again=True)
    if type(origin) is ValueError:
        return Failure("http", str(origin).partition("\n")[0].rstrip("."))
    text = f"the reply does not have the shape that LiteLLM expects ({type(origin).__name__})"
    return Failure("http", text, 200)

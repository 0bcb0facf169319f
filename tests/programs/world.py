"""A small world for chains: a search backend and a reader in memory, and short-hands for asking a scripted server."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import dspy

from programs import DirectReasoning, RAGAgent, SearchO1, StandardRAG, WithFallback
from retrieval.base import Hit, Page
from runs.models.factory import Model, make_model
from signatures.errors import ReadError, SearchError
from tests.servers.lm import LMServer

BQ, EQ = "<|begin_search_query|>", "<|end_search_query|>"
BR, ER = "<|begin_search_result|>", "<|end_search_result|>"
BU, EU = "<|begin_url|>", "<|end_url|>"
BP, EP = "<|begin_full_page|>", "<|end_full_page|>"
QUESTION = "Who directed Arrival?"
ANSWER = "So it is \\boxed{Denis Villeneuve}."
REFINED = "**Final Information**\n\nArrival was directed by Denis Villeneuve."
INFORMATION = "Arrival was directed by Denis Villeneuve."
NO_QUERY = f"No search query was found. Write it between {BQ} and {EQ}."
LIMIT = "The maximum search limit is exceeded. You are not allowed to search."
REPEATED = "You have searched this query. Please refer to previous results."
FETCH_LIMIT = "The maximum number of URL fetches has been reached. You are not allowed to fetch more URLs."


def query(text: str) -> str:
    return f"{BQ}{text}{EQ}"


def message(text: str) -> str:
    return f"\n{BR}\n{text}\n{ER}\n"


class MemorySearch:
    """Hits by query, the same for every query by default; a query in `failing` fails."""

    name = "memory"

    def __init__(
        self, hits: Mapping[str, Sequence[Hit]] | Sequence[Hit] | None = None, failing: Sequence[str] = ()
    ) -> None:
        self.hits = [Hit("Arrival", "https://a.example/arrival", "Arrival is a film")] if hits is None else hits
        self.failing = list(failing)
        self.queries: list[str] = []

    async def search(self, query: str, k: int) -> list[Hit]:
        self.queries.append(query)
        if query in self.failing:
            raise SearchError(f"memory: the query {query!r} failed", provider=self.name)
        found = self.hits.get(query, []) if isinstance(self.hits, Mapping) else self.hits
        return list(found)[:k]

    def identity(self) -> str:
        return "memory"


class MemoryReader:
    """Pages by URL; an unknown one is a read error."""

    name = "memory"

    def __init__(self, pages: Mapping[str, str] | None = None) -> None:
        self.pages = {"https://a.example/arrival": "Arrival is a film by Denis Villeneuve."} if pages is None else pages
        self.urls: list[str] = []

    async def read(self, url: str) -> Page:
        self.urls.append(url)
        if url not in self.pages:
            raise ReadError(f"memory: no page {url!r}", reason="not_found", provider=self.name, status=404)
        return Page(url, self.pages[url])

    def identity(self) -> str:
        return "memory"


def model_of(server: LMServer, **options: Any) -> Model:
    # Servers here die on purpose: two seconds of retries are enough.
    return make_model(f"hosted_vllm/{server.model}", base_url=server.base_url, **{"retry_seconds": 2.0, **options})


def search_o1(**options: Any) -> SearchO1:
    search = options.pop("search", None) or MemorySearch()
    reader = options.pop("reader", None) or MemoryReader()
    return SearchO1(search, reader, **options)


def ask(server: LMServer, program: Any = None, question: str = QUESTION, **model_options: Any) -> Any:
    with dspy.context(lm=model_of(server, **model_options).lm):
        return (program if program is not None else search_o1())(question=question)


def ask_async(server: LMServer, program: Any = None, question: str = QUESTION, **model_options: Any) -> Any:
    program = program if program is not None else search_o1()
    lm = model_of(server, **model_options).lm

    async def run() -> Any:
        with dspy.context(lm=lm):
            return await program.acall(question=question)

    return asyncio.run(run())


def say(*replies: str, refined: str = REFINED) -> Callable[[str, dict[str, Any]], str]:
    """Return a reply function: reasoning turns get the texts in turn, refine calls `refined`."""
    left = list(replies)

    def reply(prompt: str, _: dict[str, Any]) -> str:
        if "Searched Web Pages" in prompt or "检索到的网页" in prompt:
            return refined
        return left.pop(0)

    return reply


def chain_of(prompt: str, think: str = "") -> str:
    """Return what stands after the generation prompt."""
    return prompt.rpartition("<|im_start|>assistant\n" + think)[2]


def reasoning_calls(server: LMServer) -> list[Any]:
    return [
        call for call in server.calls if "Searched Web Pages" not in call.prompt and "检索到的网页" not in call.prompt
    ]


def refine_calls(server: LMServer) -> list[Any]:
    return [call for call in server.calls if "Searched Web Pages" in call.prompt or "检索到的网页" in call.prompt]


def events(prediction: Any, kind: str) -> list[dict[str, Any]]:
    return [event for event in prediction.events if event["type"] == kind]


def words(number: int, seed: int = 0) -> str:
    rng = random.Random(seed)
    return " ".join(rng.choice(("film", "director", "Arrival", "science", "año", "映画")) for _ in range(number))


def no_refusals(server: LMServer) -> None:
    """No generation was refused: every completion request became a call."""
    assert server.counts["/v1/completions"] == len(server.calls)


def every_program() -> list[Any]:
    direct = DirectReasoning()
    return [
        direct,
        StandardRAG(MemorySearch(), MemoryReader()),
        RAGAgent(MemorySearch(), MemoryReader()),
        search_o1(),
        WithFallback(search_o1(), DirectReasoning()),
    ]

"""What a chain pauses for: Search-o1's search with Reason-in-Documents, and the RAG agent's search and fetch."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from programs.chain import ChainState
from programs.documents import (
    add_contexts,
    full_page_text,
    make_records,
    render_full_pages,
    render_pages,
    render_records,
    split_urls,
)
from programs.messages import MESSAGES, Block, information_block, page_block
from programs.operations import CallPredictor, PageReply, ReadPages, SearchFor, SearchReply, Steps
from programs.options import ChainOptions
from programs.steps import previous_reasoning
from retrieval.base import Hit, Page
from signatures.markup import BEGIN_SEARCH_RESULT, END_SEARCH_RESULT, neutralise

FIELD_CHARS = {"title": 1_000, "snippet": 10_000, "date": 100, "site": 200}
"""Characters of a hit's fields; providers' own are far below."""
MOST_URL_CHARS = 8_192


def search_steps(query: str, options: ChainOptions, state: ChainState) -> Steps[SearchReply]:
    """Ask the search backend and log what came back.

    Args:
        query: The query.
        options: The chain's options.
        state: The chain; gets a search record and an event.

    Returns:
        The reply, at most `top_k` hits.
    """
    start = time.time()
    try:
        reply: SearchReply = yield SearchFor(query, options.top_k)
        reply = replace(reply, hits=bounded_hits(reply.hits))
    except Exception as error:
        provider = getattr(error, "provider", "")
        state.log("search", start, query=query, error=str(error), provider=provider)
        raise
    hits = [{"title": h.title, "url": h.url} for h in reply.hits]
    for hit in reply.hits:
        _remember(hit, state)
    state.searches.append({"query": query, "backend": reply.backend, "cached": reply.cached, "hits": hits, "pages": []})
    for failure in reply.failures:
        state.log("backend_failed", start, query=query, provider=failure.provider, error=failure.reason)
    state.log("search", start, query=query, backend=reply.backend, cached=reply.cached, hits=len(hits))
    return reply


def bounded_hits(hits: Sequence[Hit]) -> list[Hit]:
    """Shorten what a provider says of its hits, so that no single one crowds the others out of a prompt.

    Args:
        hits: Hits as a backend gave them.

    Returns:
        The same with fields of at most `FIELD_CHARS` characters; those with an address longer than `MOST_URL_CHARS`,
        which nothing fetches, are left out.
    """
    return [
        replace(hit, **{name: getattr(hit, name)[:most] for name, most in FIELD_CHARS.items()})
        for hit in hits
        if len(hit.url) <= MOST_URL_CHARS
    ]


def read_steps(hits: Sequence[Hit], state: ChainState) -> Steps[list[PageReply]]:
    """Read the pages of hits, all at once, and log each; a hit that brings its text is not read.

    Args:
        hits: The hits.
        state: The chain; the pages are added to its last search record and get an event each.

    Returns:
        One reply a hit, in order.
    """
    urls = list(dict.fromkeys(hit.url for hit in hits if not hit.text.strip()))
    read: list[PageReply] = (yield ReadPages(urls)) if urls else []
    pages, now = dict(zip(urls, read, strict=True)), time.time()
    replies = [
        PageReply(hit.url, Page(hit.url, hit.text, hit.title), started=now, ended=now, source="search")
        if hit.text.strip()
        else pages[hit.url]
        for hit in hits
    ]
    for reply in replies:
        failed = reply.error
        facts: dict[str, Any] = {
            "url": reply.url,
            "cached": reply.cached,
            "status": reply.page.status if reply.page is not None else getattr(failed, "status", None),
            "reason": "" if failed is None else failed.reason,
            "chars": len(reply.page.text) if reply.page is not None else 0,
            "source": reply.source,
        }
        state.events.append({"type": "read", "start": reply.started, "end": reply.ended, **facts})
        if state.searches:
            state.searches[-1]["pages"].append(facts)
    return replies


def _remember(hit: Hit, state: ChainState) -> None:
    """Keep a hit for later fetches; passages that share an address are put together."""
    known = state.known_hits.get(hit.url)
    if known is None or not known.text.strip():
        state.known_hits[hit.url] = hit
    elif hit.text.strip() not in known.text:
        state.known_hits[hit.url] = replace(known, text=f"{known.text}\n\n{hit.text}")


class SearchAndRefine:
    """Search-o1's tool: search, read the pages, keep a window of each, let Reason-in-Documents distil them.

    Args:
        refine: The `RefineDocs` predictor.
        options: The program's options.
    """

    fetches = False

    def __init__(self, refine: Any, options: ChainOptions) -> None:
        self.refine = refine
        self.options = options

    def search(self, query: str, state: ChainState) -> Steps[Block]:
        """Execute a query; no hit at all gives the sentence that nothing was found, without a model call."""
        options = self.options
        reply = yield from search_steps(query, options, state)
        if not reply.hits:
            state.searches[-1].update(information=MESSAGES[options.language].no_information, outcome="no_hits")
            return information_block(MESSAGES[options.language].no_information)
        pages = yield from read_steps(reply.hits, state)
        records = add_contexts(
            make_records(reply.hits),
            reply.hits,
            pages,
            page_chars=options.page_chars,
            context_chars=options.context_chars,
        )
        refined = yield CallPredictor(
            self.refine,
            {
                "prev_reasoning": previous_reasoning(state.text),
                "search_query": query,
                "document": render_pages(records),
                "records": records,
                "chain_id": state.chain_id,
                "turn": state.turn,
            },
        )
        state.events.extend(refined.events)
        information = neutralise(refined.final_information)
        state.searches[-1].update(information=information, outcome=refined.outcome)
        return information_block(information)

    def fetch(self, content: str, state: ChainState) -> Steps[Block]:
        """Search-o1 has no fetch; never called, because its turns do not stop at URLs."""
        raise AssertionError("search_o1 does not fetch URLs")


class SearchAndFetch:
    """The RAG agent's tool: searches return records without page text, and the model chooses the pages to read in full.

    Args:
        options: The program's options.
    """

    fetches = True

    def __init__(self, options: ChainOptions) -> None:
        self.options = options

    def search(self, query: str, state: ChainState) -> Steps[Block]:
        """Execute a query and return its records."""
        reply = yield from search_steps(query, self.options, state)
        outcome = "found" if reply.hits else "no_hits"
        state.searches[-1].update(information="", outcome=outcome)
        return Block(f"\n{BEGIN_SEARCH_RESULT}\n", render_records(make_records(reply.hits)), f"\n{END_SEARCH_RESULT}\n")

    def fetch(self, content: str, state: ChainState) -> Steps[Block]:
        """Fetch the pages asked for: those already fetched are dropped, then as many as the limit still allows."""
        options, messages = self.options, MESSAGES[self.options.language]
        remaining = options.max_fetches - len(state.fetched)
        if remaining <= 0:
            state.log("fetch_limit", time.time(), urls=split_urls(content, state.known_hits))
            return page_block(messages.fetch_limit)
        new = [url for url in split_urls(content, state.known_hits) if url not in state.fetched]
        if not options.open_urls:
            new_known = [url for url in new if url in state.known_hits]
            if new and not new_known:
                state.log("unknown_urls", time.time(), urls=new)
                return page_block(messages.unknown_urls)
            new = new_known
        if not new:
            return page_block(messages.repeated_urls)
        chosen = new[:remaining]
        state.fetched.extend(chosen)
        replies = yield from read_steps([state.known_hits.get(url) or Hit("", url) for url in chosen], state)
        pages = {neutralise(r.url): full_page_text(r, options.page_chars) for r in replies if r.page is not None}
        block = page_block(render_full_pages(pages) if pages else messages.no_page)
        if len(state.fetched) < options.max_fetches:
            return block
        spent = page_block(messages.fetch_limit)
        return Block(block.opening, block.body, block.closing + spent.text)

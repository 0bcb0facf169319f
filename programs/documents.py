"""Documents as prompts show them: hits and pages become records, records become text (design section 2)."""

from __future__ import annotations

import json
import re
from collections.abc import Container, Mapping, Sequence
from typing import Any

from programs.operations import PageReply
from retrieval.base import Hit
from retrieval.passages import best_window, strip_markdown_links, strip_tags
from signatures.markup import neutralise

Record = dict[str, Any]
"""One document: id (rank from 1), title, url, site_name, date, snippet, context."""

WINDOW_PAGE_CHARS = 50_000
FULL_PAGE_CHARS = 8_000
MOST_URL_COMMAS = 20
_URL_SPLIT = re.compile(r"[,，]")


def make_records(hits: Sequence[Hit]) -> list[Record]:
    """Turn hits into records without page text, every text neutralised.

    Args:
        hits: Hits, best first.

    Returns:
        Records with ids from 1 and an empty context.
    """
    return [
        {
            "id": rank,
            "title": neutralise(hit.title),
            "url": neutralise(hit.url),
            "site_name": neutralise(hit.site),
            "date": neutralise(hit.date),
            "snippet": neutralise(strip_tags(hit.snippet)),
            "context": "",
        }
        for rank, hit in enumerate(hits, 1)
    ]


def add_contexts(
    records: Sequence[Record],
    hits: Sequence[Hit],
    pages: Sequence[PageReply],
    *,
    page_chars: int | None,
    context_chars: int,
) -> list[Record]:
    """Add to each record the window of its page around the sentence that matches the snippet best.

    Args:
        records: Records of `make_records`.
        hits: The same hits.
        pages: What reading each hit gave, in the same order; a page that failed leaves the context empty.
        page_chars: Page text is cut to this many characters; None means 50,000.
        context_chars: Characters either side of the best sentence.

    Returns:
        New records with their contexts.
    """
    result = []
    for record, hit, reply in zip(records, hits, pages, strict=True):
        context = ""
        if reply.page is not None:
            text = strip_markdown_links(reply.page.text)[: page_chars or WINDOW_PAGE_CHARS]
            context = best_window(text, strip_tags(hit.snippet), context_chars)[1]
        result.append({**record, "context": neutralise(context)})
    return result


def render_compact(records: Sequence[Record]) -> str:
    """Render records for a compact profile: a line `title: text` each, the snippet where there is no page text."""
    return "\n".join(f"{r['title']}: {' '.join((r['context'] or r['snippet']).split())}" for r in records)


def render_pages(records: Sequence[Record], *, compact: bool = False) -> str:
    """Render records for Reason-in-Documents' `{document}`: a heading and indented JSON each, or compact lines."""
    if compact:
        return render_compact(records)
    return "".join(
        f"**Web Page {rank}:**\n{json.dumps(record, ensure_ascii=False, indent=2)}\n"
        for rank, record in enumerate(records, 1)
    )


def render_documents(records: Sequence[Record], *, compact: bool = False) -> str:
    """Render records for standard RAG's `{documents}`, or as compact lines."""
    if compact:
        return render_compact(records)
    return "".join(
        f"**Document {rank}:**\n**Title:** {r['title']}\n**URL:** {r['url']}\n"
        f"**Snippet:** {r['snippet']}\n**Content:** {r['context']}\n\n"
        for rank, r in enumerate(records, 1)
    )


def render_records(records: Sequence[Record]) -> str:
    """Render records as the RAG agent sees a search result: one JSON list."""
    return json.dumps(list(records), ensure_ascii=False, indent=2)


def render_full_pages(pages: Mapping[str, str]) -> str:
    """Render fetched pages as the RAG agent sees them: JSON of URL to text."""
    return json.dumps(dict(pages), ensure_ascii=False, indent=2)


def full_page_text(reply: PageReply, page_chars: int | None) -> str:
    """Return a fetched page's text as the RAG agent may see it: links stripped, cut, neutralised."""
    text = reply.page.text if reply.page is not None else ""
    return neutralise(strip_markdown_links(text)[: page_chars or FULL_PAGE_CHARS])


def split_urls(content: str, known: Container[str] = ()) -> list[str]:
    """Split what the model wrote between the URL markers, in order and without repeats.

    Args:
        content: For example `https://a.org/x, https://b.org/y`.
        known: Addresses that searches returned; one that holds commas stays whole.

    Returns:
        The URLs, surrounding white space, quotes and angle brackets removed.
    """
    cuts = [-1, *(comma.start() for comma in _URL_SPLIT.finditer(content)), len(content)]
    urls: list[str] = []
    first = 0
    while first < len(cuts) - 1:
        for last in range(min(len(cuts) - 1, first + MOST_URL_COMMAS + 1), first, -1):
            url = content[cuts[first] + 1 : cuts[last]].strip().strip("<>\"'")
            if last == first + 1 or url in known:
                break
        urls.append(url)
        first = last
    return list(dict.fromkeys(url for url in urls if url))

"""The part of a document shown in a search result: the sentences around the match."""

from __future__ import annotations

from retrieval.cjk import is_cjk_text
from retrieval.corpus.analysis import cjk_terms, english_terms, query_terms
from retrieval.sentences import cjk_sentence_spans, sentence_spans

SNIPPET_CHARS = 300
SCANNED_CHARS = 20_000
"""Only this much of a long text is searched for the best sentence, so that a hit costs milliseconds."""


def snippet_around_match(text: str, query: str) -> str:
    """Choose what to show of a text for a query.

    Args:
        text: Text of the document.
        query: What was searched.

    Returns:
        A short text whole; otherwise the sentence with the most distinct query terms and, as far as about
        `SNIPPET_CHARS` characters allow, the sentences next to it.
    """
    if len(text) <= SNIPPET_CHARS:
        return text.strip()
    scanned = text[:SCANNED_CHARS]
    spans = cjk_sentence_spans(scanned) if is_cjk_text(scanned) else sentence_spans(scanned)
    if not spans:
        return ""
    wanted = {*query_terms(query), *cjk_terms(query)}
    scores = [len(wanted & _terms(scanned[start:end])) for start, end in spans]
    first = last = scores.index(max(scores))
    start, end = spans[first]
    if end - start > SNIPPET_CHARS:
        return _cut_around_match(scanned[start:end], wanted)
    while True:
        after = spans[last + 1][1] - start if last + 1 < len(spans) else SNIPPET_CHARS + 1
        before = end - spans[first - 1][0] if first else SNIPPET_CHARS + 1
        if after <= SNIPPET_CHARS and (before > SNIPPET_CHARS or scores[last + 1] >= scores[first - 1]):
            last += 1
            end = spans[last][1]
        elif before <= SNIPPET_CHARS:
            first -= 1
            start = spans[first][0]
        else:
            return scanned[start:end]


def _terms(text: str) -> set[str]:
    return {*english_terms(text), *cjk_terms(text)}


def _cut_around_match(sentence: str, wanted: set[str]) -> str:
    # Windows overlap by half, so that a cluster of matches is never split by all of them.
    step = SNIPPET_CHARS // 2
    starts = range(0, max(1, len(sentence) - step), step)
    best = max(starts, key=lambda start: len(wanted & _terms(sentence[start : start + SNIPPET_CHARS])))
    window = sentence[best : best + SNIPPET_CHARS]
    if best:
        _, gap, rest = window.partition(" ")
        window = rest if gap else window
    if best + SNIPPET_CHARS < len(sentence):
        kept, gap, _ = window.rpartition(" ")
        window = kept if gap else window
    return window.strip()

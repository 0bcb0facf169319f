"""The part of a page that answers a snippet: the best matching sentence with context on both sides.

Source: Search-o1 (arXiv 2501.05366), section 4.1, and the rule of its published search script.
"""

from __future__ import annotations

import html
import re
import string

from retrieval.cjk import cjk_words, is_cjk_text
from retrieval.sentences import cjk_sentence_spans, sentence_spans

MINIMUM_F1 = 0.2
"""A sentence must match the snippet better than this to be chosen."""

_PUNCTUATION = str.maketrans("", "", string.punctuation)
_PUNCTUATION_RUN = re.compile(f"[{re.escape(string.punctuation)}]+")
_TAG = re.compile(r"</?[A-Za-z][^<>]*>")
_PRIVATE_USE = re.compile("[\ue000\ue001]")
_MARKDOWN_LINK = re.compile(r"\(https?:.*?\)|\[https?:.*?\]")


def best_window(page_text: str, snippet: str, context_chars: int = 3000) -> tuple[bool, str]:
    """Return the sentence that best matches the snippet, with its surroundings.

    Sentences and snippet are compared as sets of words (lower-cased, ASCII punctuation removed) by F1; the first
    sentence with the highest F1 above 0.2 wins. Chinese and Japanese pages are split at 。！？ and compared by
    character bigrams.

    Args:
        page_text: Text of the page; cut it to the length wanted before.
        snippet: What the search engine showed of it, tags removed.
        context_chars: Characters kept on each side of the sentence.

    Returns:
        `(True, window)`, or `(False, first 2 * context_chars characters)` when no sentence matches.
    """
    cjk = is_cjk_text(page_text)
    words = _cjk_words if cjk else _words
    wanted = words(snippet)
    # Cutting a sentence into bigrams is dear, so only sentences are cut that hold one of those wanted.
    any_wanted = re.compile("|".join(map(re.escape, wanted)))
    best, best_f1 = "", MINIMUM_F1
    if wanted:
        for start, end in cjk_sentence_spans(page_text) if cjk else sentence_spans(page_text):
            sentence = page_text[start:end]
            if cjk:
                plain = _cjk_plain(sentence)
                if not any_wanted.search(plain):
                    continue
                f1 = _word_set_f1(wanted, cjk_words(plain))
            else:
                f1 = _word_set_f1(wanted, _words(sentence))
            if f1 > best_f1:
                best, best_f1 = sentence, f1
    if not best:
        return False, page_text[: 2 * context_chars]
    # As in the authors' script, the window lies around the first place where the sentence's text occurs.
    found = page_text.find(best)
    return True, page_text[max(0, found - context_chars) : found + len(best) + context_chars]


def strip_tags(snippet: str) -> str:
    """Remove HTML tags, highlighting marks and character references from a title or snippet.

    Args:
        snippet: Text as a search engine sends it.

    Returns:
        Plain text; a `<` that opens no tag stays.
    """
    plain = _PRIVATE_USE.sub("", _TAG.sub("", snippet))
    return html.unescape(plain).replace("\xa0", " ").strip()


def strip_markdown_links(text: str) -> str:
    """Remove the addresses of Markdown links, keeping their words.

    Args:
        text: Markdown, for example from a page reader.

    Returns:
        The text without `(http…)` and `[http…]`.
    """
    return _MARKDOWN_LINK.sub("", text)


def _words(text: str) -> set[str]:
    return set(text.lower().translate(_PUNCTUATION).split())


def _cjk_words(text: str) -> set[str]:
    return cjk_words(_cjk_plain(text))


def _cjk_plain(text: str) -> str:
    # On text beyond ASCII this is several times faster than `translate`.
    return _PUNCTUATION_RUN.sub("", text.lower())


def _word_set_f1(wanted: set[str], present: set[str]) -> float:
    # In one division: by way of precision and recall an F1 of exactly a fifth may come out a bit above it.
    return 2 * len(wanted & present) / (len(wanted) + len(present))

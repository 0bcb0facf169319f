"""Tells pages from what is served in their place: walls, empty shells, binary noise, word lists.

A reply with status 200 is no proof of a page. The rules are careful: a wall is short and speaks to the visitor in
several of its usual phrases at once, so that a long article about bot walls, or a short one, stays a page.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from retrieval.readers import wall_phrases as walls
from retrieval.readers.html_text import html_title, visible_text
from retrieval.readers.word_list import is_word_list

TINY_CHARS = 200
SHORT_CHARS = 800
MEDIUM_CHARS = 3_000
COOKIE_CHARS = 5_000
_LEFT_OVER = 60
_EXAMINED_MARKUP = 50_000
_EXAMINED_NOISE = 8_000

# What stands in quotation marks is talked about, not said.
_QUOTED = re.compile(r"[\"“„«「『][^\"“”„«»「」『』\n]{1,200}[\"”“»」』]")
_NOISE = re.compile("[\x00-\x08\x0e-\x1a\x1c-\x1f\x7f-\x9f\ufffd\ue000-\uf8ff]")
_ENDLESS = re.compile(r"[!-~]{500,}")
_SENTENCE = re.compile(r"[^.!?。！？\n]+[.!?。！？]*")


@dataclass(frozen=True)
class Problem:
    """Why a reply is no page.

    Attributes:
        reason: `bot_wall`, `cookie_wall`, `login_wall`, `empty`, `binary` or `word_list`; see
            `signatures.errors.ReadError`.
        text: What it is, for people.
    """

    reason: str
    text: str


def page_problem(text: str, title: str = "", markup: str = "") -> Problem | None:
    """Judge a page that was served with a status of success.

    Args:
        text: Its readable text; Markdown will do.
        title: Its title, or empty.
        markup: The HTML it was taken from, or empty.

    Returns:
        What is wrong with it, or None for a page.
    """
    text = text.strip()
    if len(text) <= COOKIE_CHARS:
        head = markup[:_EXAMINED_MARKUP]
        titles = [title, html_title(head), text.split("\n", 1)[0].lstrip("# ")]
        shown = text or visible_text(markup)
        for judge in (_bot_wall, _login_wall, _cookie_wall, _shell):
            problem = judge(shown, titles, head)
            if problem is not None:
                return problem
        if not text:
            return Problem("empty", "the page has no readable text")
    if _is_noise(text):
        return Problem("binary", "the page is binary data")
    if is_word_list(text):
        return Problem("word_list", "the page is a list of words without sentences")
    return None


def error_page_problem(start: str) -> Problem | None:
    """Judge the start of a page that was served with an error status, where one sign of a bot wall is enough.

    Args:
        start: First characters of the reply.

    Returns:
        The bot wall, or None.
    """
    title = html_title(start)
    if _has_bot_markup(start) or walls.BOT_PHRASES.search(start) or (title and _is_bot_title(title)):
        return _BOT_WALL
    return None


_BOT_WALL = Problem("bot_wall", "the site shows a check for robots in place of the page")
_LOGIN_WALL = Problem("login_wall", "the site wants a login before it shows the page")
_COOKIE_WALL = Problem("cookie_wall", "the site wants consent to cookies before it shows the page")


def _bot_wall(text: str, titles: list[str], markup: str) -> Problem | None:
    signs = any(map(_is_bot_title, titles)) + _has_bot_markup(markup)
    return _BOT_WALL if _is_wall(text, walls.BOT_PHRASES, signs) else None


def _has_bot_markup(markup: str) -> bool:
    lowered = markup.lower().replace("'", '"')
    return any(sign in lowered for sign in walls.BOT_MARKUP)


def _is_bot_title(title: str) -> bool:
    return walls.BOT_TITLES.fullmatch(title) is not None


def _login_wall(text: str, titles: list[str], markup: str) -> Problem | None:
    # The first line of the text is left aside: often it is a link of the page's head.
    named = any(walls.LOGIN_TITLES.fullmatch(title) for title in titles[:2])
    signs = named + (walls.PASSWORD_FIELD.search(markup) is not None)
    return _LOGIN_WALL if len(text) <= MEDIUM_CHARS and _is_wall(text, walls.LOGIN_PHRASES, signs) else None


def _is_wall(text: str, phrases: re.Pattern[str], signs: int) -> bool:
    """Tell a wall by the number of its signs, more of them the longer the text."""
    if len(text) > MEDIUM_CHARS:
        return False
    plain = _QUOTED.sub(" ", text)
    found = {match.group().lower() for match in phrases.finditer(plain)}
    if len(text) <= TINY_CHARS and len(found) + signs == 1:
        # A text so short must hold nothing else: `Access Denied`.
        return bool(found) and _left_over(plain, phrases) <= _LEFT_OVER
    return len(found) + signs >= (2 if len(text) <= SHORT_CHARS else 3) and bool(found or signs > 1)


def _left_over(text: str, phrases: re.Pattern[str]) -> int:
    """Count the characters of sentences that hold none of the phrases."""
    return sum(len(s.group().strip()) for s in _SENTENCE.finditer(text) if not phrases.search(s.group()))


def _cookie_wall(text: str, titles: list[str], markup: str) -> Problem | None:
    if len(text) < 40 or any(map(walls.POLICY_TITLE.search, titles)):
        return None
    plain = walls.CONSENT_BUTTON.sub("\n", _QUOTED.sub(" ", text))
    kinds = {match.group().lower() for match in walls.CONSENT_WORDS.finditer(plain)}
    if len(kinds) < 2 or not (walls.CONSENT_BUTTON.search(text) or walls.CONSENT_BUTTON.search(markup)):
        return None
    left = _left_over(plain, walls.CONSENT_WORDS)
    return _COOKIE_WALL if left <= 2 * _LEFT_OVER and left <= 0.4 * len(text) else None


def _shell(text: str, titles: list[str], markup: str) -> Problem | None:
    if len(text) > SHORT_CHARS:
        return None
    plain = _QUOTED.sub(" ", text)
    found = {match.group().lower() for match in walls.SCRIPT_PHRASES.finditer(plain)}
    if found and _left_over(plain, walls.SCRIPT_PHRASES) <= max(_LEFT_OVER, 0.5 * len(text) * (len(found) > 1)):
        return Problem("empty", "the page is an empty shell that only JavaScript would fill")
    if len(text) <= TINY_CHARS and (refresh := walls.META_REFRESH.search(markup)):
        return Problem("empty", f"the page only refers to {refresh.group(1)!r:.200} by a refresh")
    if (walls.LOADING_TEXT.fullmatch(text) or text in titles[:2]) and walls.APP_ROOT.search(markup):
        return Problem("empty", "the page is an empty shell that only JavaScript would fill")
    return None


def _is_noise(text: str) -> bool:
    start = text[:_EXAMINED_NOISE]
    if len(_NOISE.findall(start)) > 0.05 * len(start):
        return True
    # Base64 and the like: printable, but without a space for thousands of characters, and not one of them repeated.
    runs = _ENDLESS.findall(start) if len(start) > 2_000 else []
    return sum(map(len, runs)) > 0.6 * len(start) and len(set("".join(runs))) > 20

"""Tells a list of words without sentences (a menu, a tag cloud, a dictionary dump) from anything worth reading."""

from __future__ import annotations

import re

EXAMINED_CHARS = 8_000
_MIN_WORDS = 60
_MIN_LOWER_WORDS = 150

_WORD = re.compile(r"[^\W\d_]+(?:['’-][^\W\d_]+)*")
_SENTENCE_END = re.compile(r"[.!?;:…。！？।؟۔](?:\s|[\"'”’)\]*_]|$)", re.MULTILINE)
_DIGIT_WORD = re.compile(r"\b\d[\d.,]*")
# Japanese, Chinese and Thai write no spaces, so their words cannot be told apart here.
_UNSPACED = re.compile("[\u0e00-\u0eff\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff]")
_CODE = re.compile(r"[{}=<>;|\\]|\(\)|->")
_FUNCTION = """
    the of and to in is a an for was were with on as by at from that this it its are be or not but which has have had
    he she his her they their you your i my we our who what when where how if into than there will would can no all
    der die das und in von zu den mit ist im für auf des dem ein eine nicht sich als auch es an werden aus er
    le la les de des du et en un une est que qui dans pour pas sur au par plus avec ce il elle
    el los las y del una con por para su se no lo como más al o pero
    o os as e do da dos das em um uma não com il lo gli che di della per non sono con una
    het een van en op te dat zijn voor met och att det som på är av den i og til er ikke på som ja on ei että se
    w z na do nie się jest że i v je že s bir ve bu için ile и в не на что с по как это из"""
_MENU = """
    home about contact login logout register signup subscribe newsletter sitemap careers jobs press faq help support
    privacy terms cookies cart checkout wishlist account profile search menu shop store products services pricing blog
    news events gallery downloads feedback advertise partners rss facebook twitter instagram youtube linkedin pinterest
    tiktok next previous categories category tags archive archives startseite impressum datenschutz kontakt anmelden
    warenkorb über accueil connexion panier inicio contacto"""
_FUNCTION_WORDS = frozenset(_FUNCTION.split())
_MENU_WORDS = frozenset(_MENU.split())


def is_word_list(text: str) -> bool:
    """Tell whether a text is only words.

    Lists of names, facts or figures, tables, poems, code and recipes are none: a menu is told by its usual entries, a
    dump by being in lower case throughout, and both by having neither sentences nor the small words that hold
    sentences together.

    Args:
        text: Text of a page; its first `EXAMINED_CHARS` characters are looked at.

    Returns:
        Whether nothing can be learnt from it but that the words exist.
    """
    start = text[:EXAMINED_CHARS]
    ends = len(_SENTENCE_END.findall(start))
    # Most pages are done here: no word is shorter than two characters with its space.
    if ends * 160 > len(start) or len(_UNSPACED.findall(start)) * 10 > len(start):
        return False
    words = _WORD.findall(start)
    count = len(words)
    if count < _MIN_WORDS or ends * 80 > count or len(_DIGIT_WORD.findall(start)) * 25 > count:
        return False
    if len(_CODE.findall(start)) * 40 > count:
        return False
    lowered = [word.lower() for word in words]
    if sum(word in _FUNCTION_WORDS for word in lowered) > 0.08 * count:
        return False
    lines = [len(_WORD.findall(line)) for line in start.splitlines()]
    lines = [length for length in lines if length]
    return _is_menu(lowered, lines) or _is_dump(words, lines)


def _is_menu(lowered: list[str], lines: list[int]) -> bool:
    entries = _MENU_WORDS.intersection(lowered)
    share = sum(word in _MENU_WORDS for word in lowered) / len(lowered)
    # Menus are short entries, or all of them run together.
    short = sum(length <= 4 for length in lines) >= 0.8 * len(lines) or max(lines) > 60
    return len(entries) >= 8 and share >= 0.08 and short


def _is_dump(words: list[str], lines: list[int]) -> bool:
    if len(words) < _MIN_LOWER_WORDS or sum(word.islower() for word in words) < 0.9 * len(words):
        return False
    # An unpunctuated poem has lines of several words; a dump has single words or endless lines.
    return sorted(lines)[len(lines) // 2] <= 2 or max(lines) > 100

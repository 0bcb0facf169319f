"""One spelling for the many addresses of one page, so that hits of several backends can be told to be the same.

The canonical form is for comparing only; what is fetched and shown is the address as it came.
Source: RFC 3986, section 6 (normalisation and comparison), and the habits of links on the web beyond it.
"""

from __future__ import annotations

import re
import string
from urllib.parse import quote, urlsplit

_DEFAULT_PORTS = (None, 80, 443)
_PREFIXES = ("www.", "m.", "mobile.")
_MOBILE_WIKI = re.compile(
    r"^([a-z0-9-]+)\.m\.((?:wikipedia|wiktionary|wikiquote|wikibooks|wikisource|wikinews|wikiversity|wikivoyage|wikimedia)\.org)$"
)
_HOST = re.compile(r"[a-z0-9._-]+|[0-9a-f:.]*:[0-9a-f:.]*")
_INDEX_FILE = re.compile(r"/index\.(?:html?|php)$", re.IGNORECASE)
_TRACKING = re.compile(
    r"utm_.*|_?ga|_gl|gclid|gclsrc|dclid|gbraid|wbraid|srsltid|fbclid|fb_(?:action_ids|action_types|ref|source)|msclkid|"
    r"yclid|twclid|ttclid|li_fat_id|igshid|igsh|mc_[ce]id|mkt_tok|_hs(?:enc|mi)|vero_id|oly_(?:anon|enc)_id|ref_src|"
    r"ref_url|spm|xtor|__twitter_impression|wt\.mc_id",
    re.IGNORECASE,
)
_ESCAPE = re.compile(r"%[0-9A-Fa-f]{2}|[^A-Za-z0-9._~-]")
# Written with and without an escape, these mean the same to servers; the others in a URL divide it into parts.
_SAME_IN_PATH = frozenset("!$&'()*+,:=@")
_SAME_IN_QUERY = frozenset("!$'()*,:@/?")
_UNRESERVED = frozenset(string.ascii_letters + string.digits + "-._~")


def canonical_url(url: str) -> str:
    """Return the form in which two addresses of the same page are equal.

    Scheme (http is https) and host in one spelling, without `www.`, mobile hosts, default port, fragment (a `#!` route
    stays), tracking parameters, index file and slash at the end; escapes normalised, parameters sorted.

    Args:
        url: Any text.

    Returns:
        The canonical address; what is no http(s) address, or names a user, is returned as it is. The result is its own
        canonical form.
    """
    try:
        parts = urlsplit(url.strip())
        host, port = _canonical_host(parts.hostname or ""), parts.port
    except ValueError:
        return url
    if parts.scheme not in ("http", "https") or "@" in parts.netloc or not _HOST.fullmatch(host):
        return url
    if ":" in host:
        host = f"[{host}]"
    if port not in _DEFAULT_PORTS:
        host = f"{host}:{port}"
    query, fragment = _canonical_query(parts.query), _canonical_fragment(parts.fragment)
    return f"https://{host}{_canonical_path(parts.path)}{query and '?' + query}{fragment and '#' + fragment}"


def _canonical_host(host: str) -> str:
    if not host.isascii():
        host = host.encode("idna").decode()
    host = host.lower().rstrip(".")
    while True:
        wiki = _MOBILE_WIKI.match(host)
        prefix = next((p for p in _PREFIXES if host.startswith(p) and "." in host[len(p) :]), "")
        if wiki is None and not prefix:
            return host
        host = f"{wiki[1]}.{wiki[2]}" if wiki is not None else host[len(prefix) :]


def _canonical_path(path: str) -> str:
    segments: list[str] = []
    for segment in _one_spelling(path, _SAME_IN_PATH, "/;").split("/")[1:]:
        if segment == "..":
            del segments[-1:]
        elif segment != ".":
            segments.append(segment)
    path, before = "/" + "/".join(segments), ""
    while path != before:
        before, path = path, _INDEX_FILE.sub("", path.rstrip("/"))
    return path or "/"


def _canonical_query(query: str) -> str:
    parameters = (_one_spelling(part, _SAME_IN_QUERY, ";=") for part in query.replace("+", "%20").split("&"))
    return "&".join(sorted(p for p in parameters if p and not _TRACKING.fullmatch(p.partition("=")[0])))


def _canonical_fragment(fragment: str) -> str:
    # What follows :~: only tells a browser what to mark on the page.
    fragment = _one_spelling(fragment, _SAME_IN_PATH, "/;?").partition(":~:")[0]
    return fragment if fragment.startswith("!") else ""


def _one_spelling(text: str, same: frozenset[str], separators: str) -> str:
    """Write each character in the one way: plain where it means the same without an escape, else escaped."""

    def spell(match: re.Match[str]) -> str:
        found = match[0]
        if len(found) == 3:
            character = chr(int(found[1:], 16))
            return character if character in _UNRESERVED or character in same else found.upper()
        return found if found in same or found in separators else quote(found, safe="", errors="surrogatepass")

    return _ESCAPE.sub(spell, text)
